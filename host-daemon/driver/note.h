/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Note: whether a libcuda is the guest library
 *
 * The guest's libcuda.so.1 has an ELF note (owner "vGPU", type 1, text "libcuda
 * VERSION"). Loaded by a worker it would connect to vgpud and start another worker, and
 * so on; so the file is examined before it is loaded.
 */

#include <stddef.h>

#define NOTE_OWNER "vGPU"
#define NOTE_TYPE 1u

enum {
	_NOTE_E_SUCCESS,
	NOTE_E_ABSENT,	/* an ELF file without such a note */
	NOTE_E_NOT_ELF, /* not a 64-bit little-endian ELF file, or a damaged one */
};

/*
 * Reads the text of our note from an ELF file, cut to the size of the buffer.
 *
 * Return: 0, NOTE_E_ABSENT, NOTE_E_NOT_ELF or -errno.
 */
int note_read(int fd, char *text, size_t text_size);

/* As note_read(), by path. */
int note_read_path(const char *path, char *text, size_t text_size);
