/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects: object files of the host, and archives of them, with device code inside
 */

#include <ar.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/checked.h"

#include "fatbin/fatbin.h"
#include "fatbin/object.h"

static const char *const sections[] = { "__nv_relfatbin", ".nv_fatbin" };

/* Reads a structure, which may be unaligned. Return: whether it is there. */
static bool read_at(
	const uint8_t *bytes, size_t size, uint64_t off, void *to, size_t to_size)
{
	if (!vgpu_range_within(off, to_size, 0, size))
		return false;
	memcpy(to, bytes + off, to_size);
	return true;
}

static int walk_section(
	const uint8_t *bytes, uint64_t size, object_found found, void *data)
{
	uint64_t at = 0, length;
	uint32_t n = 0;
	int r;

	while (size - at >= FATBIN_HEADER_SIZE) {
		if (!fatbin_is_container(bytes + at, size - at) ||
			++n > OBJECT_CONTAINERS_MAX)
			return OBJECT_E_INVALID;
		memcpy(&length, bytes + at + 8, sizeof(length));
		if (length > size - at - FATBIN_HEADER_SIZE)
			return OBJECT_E_INVALID;
		length += FATBIN_HEADER_SIZE;
		r = found(data, bytes + at, length);
		if (r)
			return r;
		/* What follows begins at a multiple of 8. */
		length = (length + 7) & ~UINT64_C(7);
		if (length >= size - at)
			return 0;
		at += length;
	}
	return 0;
}

static bool is_device_code(
	const uint8_t *bytes, size_t size, const Elf64_Shdr *names, uint32_t name)
{
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		size_t length = strlen(sections[i]) + 1;
		char text[16];
		uint64_t off;

		if (name < names->sh_size && length <= names->sh_size - name &&
			vgpu_add_u64(names->sh_offset, name, &off) &&
			read_at(bytes, size, off, text, length) &&
			!memcmp(text, sections[i], length))
			return true;
	}
	return false;
}

static bool section_at(const uint8_t *bytes, size_t size, const Elf64_Ehdr *header,
	uint32_t number, Elf64_Shdr *sectionp)
{
	uint64_t off;

	return vgpu_add_u64(
		       header->e_shoff, (uint64_t)number * sizeof(*sectionp), &off) &&
	       read_at(bytes, size, off, sectionp, sizeof(*sectionp));
}

int object_walk(const void *bytes, size_t size, object_found found, void *data)
{
	Elf64_Shdr section, names;
	Elf64_Ehdr header;
	uint32_t n, n_names;
	int r = 0;

	if (!read_at(bytes, size, 0, &header, sizeof(header)) ||
		memcmp(header.e_ident, ELFMAG, SELFMAG) ||
		header.e_ident[EI_CLASS] != ELFCLASS64 ||
		header.e_ident[EI_DATA] != ELFDATA2LSB ||
		header.e_shentsize != sizeof(section) ||
		!section_at(bytes, size, &header, 0, &section))
		return OBJECT_E_INVALID;
	/* The first one has the numbers that do not fit the header. */
	n = header.e_shnum ? header.e_shnum : (uint32_t)section.sh_size;
	n_names = header.e_shstrndx == SHN_XINDEX ? section.sh_link : header.e_shstrndx;
	if (!section_at(bytes, size, &header, n_names, &names) ||
		!vgpu_range_within(names.sh_offset, names.sh_size, 0, size))
		return OBJECT_E_INVALID;
	for (uint32_t i = 1; i < n && !r; i++) {
		if (!section_at(bytes, size, &header, i, &section))
			return OBJECT_E_INVALID;
		if (section.sh_type != SHT_PROGBITS ||
			!is_device_code(bytes, size, &names, section.sh_name))
			continue;
		if (!vgpu_range_within(section.sh_offset, section.sh_size, 0, size))
			return OBJECT_E_INVALID;
		r = walk_section((const uint8_t *)bytes + section.sh_offset,
			section.sh_size, found, data);
	}
	return r;
}

/* A decimal number, padded with spaces. Return: whether it is one. */
static bool read_size(const char *text, size_t length, uint64_t *sizep)
{
	uint64_t value = 0;
	size_t i = 0;

	/* Ten digits do not overflow. */
	for (; i < length && text[i] >= '0' && text[i] <= '9'; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	*sizep = value;
	return i && (i == length || text[i] == ' ');
}

int archive_walk(const void *bytes, size_t size, object_found found, void *data)
{
	const uint8_t *start = bytes;
	uint64_t at = SARMAG, member_size;
	struct ar_hdr member;
	uint32_t n = 0;
	int r = 0;

	if (size < SARMAG || memcmp(bytes, ARMAG, SARMAG))
		return OBJECT_E_INVALID;
	while (at < size && !r) {
		if (++n > OBJECT_MEMBERS_MAX ||
			!read_at(bytes, size, at, &member, sizeof(member)) ||
			memcmp(member.ar_fmag, ARFMAG, sizeof(member.ar_fmag)) ||
			!read_size(member.ar_size, sizeof(member.ar_size), &member_size))
			return OBJECT_E_INVALID;
		at += sizeof(member);
		if (member_size > size - at)
			return OBJECT_E_INVALID;
		if (member_size >= SELFMAG && !memcmp(start + at, ELFMAG, SELFMAG))
			r = object_walk(start + at, member_size, found, data);
		at += member_size + member_size % 2;
	}
	return r;
}
