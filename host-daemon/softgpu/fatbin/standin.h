/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stand-in for a cubin: PTX in an ELF file
 *
 * Compilers that call ptxas load the file that it wrote. vgpu-ptxas writes a file of the
 * same outline, an ELF file for CUDA's machine, which has no machine code but the section
 * STANDIN_SECTION with the PTX. softgpu loads that text; any other driver refuses it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STANDIN_SECTION ".vgpu.ptx"
/* For people: a line for each kernel, with its sizes. */
#define STANDIN_KERNELS ".vgpu.kernels"

/* So many bytes of a file, or all of a shorter one, say whether it is such a file. */
#define STANDIN_HEAD_SIZE 512u

/* Returns: whether a file begins as those of standin_new() do. */
bool standin_begins(const void *bytes, size_t size);

/* Returns: whether there is such a section; its text need not end with a NUL. */
bool standin_find(const void *bytes, size_t size, const char **textp, size_t *text_sizep);

/**
 * standin_new() - make such a file
 * @arch:	75 for sm_75, up to 255
 * @text:	the PTX
 * @kernels:	the contents of STANDIN_KERNELS
 * @bytesp:	the file; the caller frees it
 *
 * Return: 0 or -ENOMEM.
 */
int standin_new(unsigned int arch, const char *text, size_t text_size,
	const char *kernels, uint8_t **bytesp, size_t *sizep);
