/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Images: what a program gives to the load calls, brought down to PTX text
 */

#include <stdbool.h>

#include "api/api.h"

struct image;
struct ptx_error;
struct ptx_module;

/* The results of loading besides the module. */
struct image_log {
	char text[512];
	uint64_t start_ns; /* when it began */
};

/* Says why loading failed: to the caller, and in the host's log as often as a guest may
 * have it said. */
void image_warn(CUresult result, const struct image_log *log);

/* Begins to load: takes the time. */
struct image_log image_log_begin(void);

/**
 * image_new() - find the PTX in something that can be loaded
 * @data:	wrapper of a fat binary, container, PTX text or ELF
 *
 * Return: 0, INVALID_IMAGE, NO_BINARY_FOR_GPU, and what else its contents deserve.
 */
CUresult image_new(struct image **imagep, const void *data, struct image_log *log);
struct image *image_free(struct image *image);

/* Returns: whether the lengths in an image are within the bytes of its file. */
bool image_is_whole(const void *data, size_t size);

/* Return: the declarations of an image, to be freed by ptx_module_free(). */
CUresult image_parse(
	const struct image *image, struct ptx_module **ptxp, struct image_log *log);

/*
 * Reads all bodies once: text that is not PTX is refused when it is loaded. PTX that
 * cannot be run is refused when its kernel is looked up.
 */
CUresult image_check(struct ptx_module *ptx, struct image_log *log);

/* The text of an image. */
const char *image_text(const struct image *image, size_t *sizep);

/* Return: the result for a condition of the parser, with its message in the log. */
CUresult image_report(int r, const struct ptx_error *error, struct image_log *log);

/* Writes log and time where the options ask for them. */
void jit_report(unsigned int n_options, CUjit_option *options, void **values,
	const struct image_log *log, bool failed);

/* The messages of a verbose compiler about a module. */
void jit_describe(unsigned int n_options, const CUjit_option *options, void **values,
	const struct ptx_module *ptx, struct image_log *log);
