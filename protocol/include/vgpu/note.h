/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Note: whether a library is of the guest
 *
 * The guest's libcuda.so.1 and libnvidia-ml.so.1 have an ELF note: owner "vGPU", type 1,
 * and a text, "NAME RELEASE ... protocol VERSION revision REVISION". A worker that loaded
 * the guest's libcuda.so.1 would connect to vgpud and start another worker, and so on; so
 * the file is examined before it is loaded.
 */

#include <stddef.h>
#include <stdint.h>

#define VGPU_NOTE_OWNER "vGPU"
#define VGPU_NOTE_TYPE 1u

/* Puts the note with that text, a string constant, into a library. */
#define VGPU_NOTE_DEFINE(_text)                                                          \
	__attribute__((__used__, __section__(".note.vgpu"),                              \
		__aligned__(4))) static const struct {                                   \
		uint32_t name_size;                                                      \
		uint32_t text_size;                                                      \
		uint32_t type;                                                           \
		char name[8];                                                            \
		char text[(sizeof(_text) + 3) / 4 * 4];                                  \
	} vgpu_note = {                                                                  \
		.name_size = sizeof(VGPU_NOTE_OWNER),                                    \
		.text_size = sizeof(_text),                                              \
		.type = VGPU_NOTE_TYPE,                                                  \
		.name = VGPU_NOTE_OWNER,                                                 \
		.text = _text,                                                           \
	}

enum {
	_VGPU_NOTE_E_SUCCESS,
	VGPU_NOTE_E_ABSENT,  /* an ELF file without such a note */
	VGPU_NOTE_E_NOT_ELF, /* not a 64-bit little-endian ELF file, or a damaged one */
};

/*
 * Reads the text of our note from an ELF file, cut to the size of the buffer.
 *
 * Return: 0, VGPU_NOTE_E_ABSENT, VGPU_NOTE_E_NOT_ELF or -errno.
 */
int vgpu_note_read(int fd, char *text, size_t text_size);

/* As vgpu_note_read(), by path. */
int vgpu_note_read_path(const char *path, char *text, size_t text_size);
