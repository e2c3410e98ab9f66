/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Images: what a program gives to the load calls, brought down to PTX text
 */

#include <stdbool.h>

#include "api/api.h"

struct image;
struct ptx_module;

/* What loading reports besides its result. */
struct image_log {
	char text[512];
};

/**
 * image_new() - find the PTX in something that can be loaded
 * @data:	wrapper of a fat binary, container, PTX text or ELF
 *
 * Return: 0, INVALID_IMAGE, NO_BINARY_FOR_GPU, and what else its contents deserve.
 */
CUresult image_new(struct image **imagep, const void *data, struct image_log *log);
struct image *image_free(struct image *image);

/* Return: the declarations of an image, to be freed by ptx_module_free(). */
CUresult image_parse(
	const struct image *image, struct ptx_module **ptxp, struct image_log *log);

/*
 * Reads all bodies once: text that is no PTX is refused when it is loaded. What is PTX
 * but cannot be run is refused when its kernel is asked for.
 */
CUresult image_check(struct ptx_module *ptx, struct image_log *log);

/* Writes the log where the options ask for it. */
void jit_report(unsigned int n_options, CUjit_option *options, void **values,
	const struct image_log *log, bool failed);
