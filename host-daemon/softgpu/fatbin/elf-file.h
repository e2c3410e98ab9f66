/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ELF files: the sections of a cubin, a program or a library
 *
 * Only what names and places sections is read. All numbers are untrusted; a section whose
 * name or contents are not within the file is passed over.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_MAGIC "\177ELF"
#define ELF_HEADER_SIZE 64u
#define ELF_MACHINE_CUDA 190u

struct elf {
	const uint8_t *bytes;
	size_t size;
	uint64_t sections_off;
	uint32_t n_sections;
	const char *names; /* of sections */
	uint64_t names_size;
	uint16_t machine;
	uint32_t arch; /* of a cubin: 75 for sm_75; else 0 */
};

struct elf_section {
	const char *name;
	uint32_t type;
	const uint8_t *bytes;
	uint64_t size;
};

bool elf_is_file(const void *bytes, size_t size);

/*
 * Returns: how many bytes an ELF file has by its header and the table of its sections;
 * SIZE_MAX for one that is too large to be an image, or whose table is not within size.
 * ELF_HEADER_SIZE bytes can be read, and size of them: SIZE_MAX if only the tables tell.
 */
size_t elf_extent(const void *bytes, size_t size);

/* Borrows the bytes. Returns: whether they are an ELF file of 64 bits, little endian. */
bool elf_init(struct elf *elf, const void *bytes, size_t size);

/* Returns: false for a section that is outside of the file or has no contents there. */
bool elf_section(const struct elf *elf, uint32_t index, struct elf_section *section);

/* The first section of that name. */
bool elf_find(const struct elf *elf, const char *name, struct elf_section *section);
