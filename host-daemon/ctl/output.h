/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Output: what vgpuctl prints for programs and for people
 */

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "control/ctl-message.h"
#include "ctl/ctl.h"
#include "vgpu/finding.h"

/* Prints an object and frees it. Return: CTL_OK or CTL_FAILED. */
enum ctl_status output_json(json_t *object);

/* Prints findings. Return: CTL_FAILED if one says so, or the output does. */
enum ctl_status output_findings(const struct vgpu_findings *findings, bool is_json);

/* Ends the output; a full disk is a failure. Return: the status, or CTL_FAILED. */
enum ctl_status output_end(enum ctl_status status);

/* Says that a file cannot be written, or removed, by an -errno. Return: the status. */
enum ctl_status output_unwritten(const char *path, int error);
enum ctl_status output_unremoved(const char *path, int error);

/* Numbers of JSON; without a limit: null. */
json_t *output_number(uint64_t value);
json_t *output_limit(uint64_t value);

/* Whether a guest has greeted; null: vgpud does not tell. */
json_t *output_greeting(VgpuCtl__Greeting greeting);

/* The last error of a process; null: none. */
json_t *output_last_error(const VgpuCtl__LastError *error);

#define OUTPUT_ERROR_MAX 128

/* The same for people: "NOT_FOUND in cuModuleGetFunction, 3 s ago", or "-". */
const char *output_error_text(
	const VgpuCtl__LastError *error, char text[static OUTPUT_ERROR_MAX]);

/* A size for people: "1.5G". Return: the text. */
const char *output_size(uint64_t size, char text[static 24]);

/* The same for a use and its limit, 0: none. */
const char *output_use(uint64_t size, uint64_t limit, char text[static 64]);
