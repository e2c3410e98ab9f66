/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Findings: what a program that looks for mistakes says about each subject
 *
 * vgpuctl doctor on the host and vgpu-doctor in the guest print them in the same form.
 */

#include <stddef.h>
#include <stdio.h>

enum vgpu_finding_level {
	VGPU_FINDING_OK,
	VGPU_FINDING_WARN, /* it works, but not as well as it could */
	VGPU_FINDING_FAIL,
	_VGPU_FINDING_LEVEL_N,
};

struct vgpu_finding {
	enum vgpu_finding_level level;
	const char *subject; /* a string constant */
	char *text;
	char *advice; /* what to do; NULL: nothing */
};

/* More than all looks add together; only the mistakes of a configuration can be more. */
#define VGPU_FINDINGS_MAX 64

struct vgpu_findings {
	struct vgpu_finding list[VGPU_FINDINGS_MAX];
	size_t n;
	size_t n_left_out;
	enum vgpu_finding_level worst; /* of those left out, too */
};

/* Adds a finding, with copies of both texts. */
void vgpu_findings_add(struct vgpu_findings *findings, enum vgpu_finding_level level,
	const char *subject, const char *advice, const char *format, ...)
	__attribute__((__format__(__printf__, 5, 6)));

/* For people: a line for each, and a line for each advice. */
void vgpu_findings_print(const struct vgpu_findings *findings, FILE *out);

/* For programs: an object with the members level and findings. */
void vgpu_findings_print_json(const struct vgpu_findings *findings, FILE *out);

void vgpu_findings_deinit(struct vgpu_findings *findings);
