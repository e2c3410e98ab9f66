/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the check of images before they are passed to a driver
 *
 * The input is an image or an archive. One that passes the check is read as a driver
 * reads it: every table, section, segment, entry and member that the bytes refer to; the
 * sanitizer finds one that is outside.
 */

#include <ar.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/fatbin.h"
#include "worker/code/image-check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint8_t sink;

static void read_all(const uint8_t *bytes, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		sink += bytes[i];
}

/* Where a section of that index begins; the table is part of the image. */
static Elf64_Shdr section_at(const uint8_t *bytes, const Elf64_Ehdr *elf, uint64_t i)
{
	Elf64_Shdr section;

	memcpy(&section, bytes + elf->e_shoff + i * sizeof(section), sizeof(section));
	return section;
}

/* With the numbers in section 0 if the header's fields are too small. */
static void follow_elf(const uint8_t *bytes)
{
	uint64_t n_sections, n_segments, names;
	Elf64_Shdr section = { 0 };
	Elf64_Phdr segment;
	Elf64_Ehdr elf;

	memcpy(&elf, bytes, sizeof(elf));
	if (elf.e_shoff)
		section = section_at(bytes, &elf, 0);
	n_sections = elf.e_shnum || !elf.e_shoff ? elf.e_shnum : section.sh_size;
	n_segments = elf.e_phnum == PN_XNUM ? section.sh_info : elf.e_phnum;
	names = elf.e_shstrndx == SHN_XINDEX ? section.sh_link : elf.e_shstrndx;
	for (uint64_t i = 0; i < n_sections; i++) {
		section = section_at(bytes, &elf, i);
		if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL)
			read_all(bytes + section.sh_offset, section.sh_size);
	}
	if (n_sections && names != SHN_UNDEF)
		sink += section_at(bytes, &elf, names).sh_type;
	for (uint64_t i = 0; i < n_segments; i++) {
		memcpy(&segment, bytes + elf.e_phoff + i * sizeof(segment),
			sizeof(segment));
		read_all(bytes + segment.p_offset, segment.p_filesz);
	}
}

static bool is_elf(const uint8_t *bytes, uint64_t size)
{
	return size >= SELFMAG && !memcmp(bytes, ELFMAG, SELFMAG);
}

static void follow_container(const uint8_t *bytes)
{
	uint16_t header_size;
	uint32_t entry_header;
	uint64_t at, end, payload;

	memcpy(&header_size, bytes + 6, sizeof(header_size));
	memcpy(&end, bytes + 8, sizeof(end));
	end += header_size;
	for (at = header_size; at < end; at += entry_header + payload) {
		memcpy(&entry_header, bytes + at + 4, sizeof(entry_header));
		memcpy(&payload, bytes + at + 8, sizeof(payload));
		read_all(bytes + at, entry_header + payload);
		if (is_elf(bytes + at + entry_header, payload))
			follow_elf(bytes + at + entry_header);
	}
}

static void follow_archive(const uint8_t *bytes, size_t size)
{
	struct ar_hdr header;
	uint64_t at = SARMAG, length;

	while (at < size) {
		memcpy(&header, bytes + at, sizeof(header));
		at += sizeof(header);
		length = strtoull(header.ar_size, NULL, 10);
		read_all(bytes + at, length);
		if (is_elf(bytes + at, length))
			follow_elf(bytes + at);
		at += length + length % 2;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	uint32_t magic = 0;

	/* As in images.c: NUL-terminated, without further room. */
	if (size)
		memcpy(copy, data, size);
	copy[size] = 0;
	if (size >= sizeof(magic))
		memcpy(&magic, copy, sizeof(magic));
	if (image_is_contained(copy, size)) {
		if (magic == FATBIN_MAGIC)
			follow_container(copy);
		else if (is_elf(copy, size))
			follow_elf(copy);
		else
			read_all(copy, strlen((const char *)copy));
		image_may_print(copy, size);
	}
	if (image_archive_is_contained(copy, size))
		follow_archive(copy, size);
	free(copy);
	return 0;
}
