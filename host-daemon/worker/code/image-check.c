/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image check: whether a guest's image stays within its own bytes
 */

#include <ar.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/checked.h"
#include "vgpu/cleanup.h"

#include "fatbin/fatbin.h"
#include "worker/code/image-check.h"
#include "worker/code/image-table.h"

/* Both start with sizes that the walk needs; the driver checks the rest. */
struct container_header {
	uint32_t magic;
	uint16_t version;
	uint16_t header_size;
	uint64_t size; /* of all entries */
};

struct entry_header {
	uint32_t kind;
	uint32_t header_size;
	uint64_t payload_size;
};

/* Bytes to unpack from one image; above that it is assumed to print. Some unpack to half
 * a GiB. */
#define UNPACKED_SIZE_MAX (64u << 20)

/* The tables of a file, according to its header. */
struct elf_tables {
	uint64_t n_sections;
	uint64_t n_segments;
	uint64_t names; /* index of the section with the names of sections */
};

static Elf64_Shdr section_at(const uint8_t *bytes, const Elf64_Ehdr *elf, uint64_t i)
{
	Elf64_Shdr section;

	memcpy(&section, bytes + elf->e_shoff + i * sizeof(section), sizeof(section));
	return section;
}

/* Numbers that are too large for the header are in section 0, see elf(5). Return: false
 * if that is needed and absent. */
static bool read_tables(const uint8_t *bytes, size_t size, const Elf64_Ehdr *elf,
	struct elf_tables *tables)
{
	const bool is_extended = (!elf->e_shnum && elf->e_shoff) ||
				 elf->e_phnum == PN_XNUM || elf->e_shstrndx == SHN_XINDEX;
	Elf64_Shdr first;

	*tables = (struct elf_tables){ elf->e_shnum, elf->e_phnum, elf->e_shstrndx };
	if (!is_extended)
		return true;
	if (!elf->e_shoff ||
		!image_table_is_contained(elf->e_shoff, 1, sizeof(first), size))
		return false;
	first = section_at(bytes, elf, 0);
	if (!elf->e_shnum)
		tables->n_sections = first.sh_size;
	if (elf->e_phnum == PN_XNUM)
		tables->n_segments = first.sh_info;
	if (elf->e_shstrndx == SHN_XINDEX)
		tables->names = first.sh_link;
	return true;
}

static bool tables_are_contained(
	size_t size, const Elf64_Ehdr *elf, const struct elf_tables *tables)
{
	if (tables->n_sections && (elf->e_shentsize != sizeof(Elf64_Shdr) ||
					  tables->names >= tables->n_sections))
		return false;
	if (tables->n_segments && elf->e_phentsize != sizeof(Elf64_Phdr))
		return false;
	return image_table_is_contained(
		       elf->e_shoff, tables->n_sections, sizeof(Elf64_Shdr), size) &&
	       image_table_is_contained(
		       elf->e_phoff, tables->n_segments, sizeof(Elf64_Phdr), size);
}

static bool elf_is_contained(const uint8_t *bytes, size_t size)
{
	struct elf_tables tables;
	Elf64_Phdr segment;
	Elf64_Shdr section;
	Elf64_Ehdr elf;

	if (size < sizeof(elf))
		return false;
	memcpy(&elf, bytes, sizeof(elf));
	if (elf.e_ident[EI_CLASS] != ELFCLASS64 ||
		!read_tables(bytes, size, &elf, &tables) ||
		!tables_are_contained(size, &elf, &tables))
		return false;
	for (uint64_t i = 0; i < tables.n_sections; i++) {
		section = section_at(bytes, &elf, i);
		if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
			!vgpu_range_within(section.sh_offset, section.sh_size, 0, size))
			return false;
	}
	for (uint64_t i = 0; i < tables.n_segments; i++) {
		memcpy(&segment, bytes + elf.e_phoff + i * sizeof(segment),
			sizeof(segment));
		if (!vgpu_range_within(segment.p_offset, segment.p_filesz, 0, size))
			return false;
	}
	return true;
}

static bool is_elf(const uint8_t *bytes, size_t size)
{
	return size >= SELFMAG && !memcmp(bytes, ELFMAG, SELFMAG);
}

static bool container_is_contained(const uint8_t *bytes, size_t size)
{
	struct container_header container;
	struct entry_header entry;
	uint64_t at, end, next;

	if (size < sizeof(container))
		return false;
	memcpy(&container, bytes, sizeof(container));
	at = container.header_size;
	if (at < sizeof(container) || !vgpu_add_u64(at, container.size, &end) ||
		end > size)
		return false;
	while (at < end) {
		if (end - at < sizeof(entry))
			return false;
		memcpy(&entry, bytes + at, sizeof(entry));
		if (entry.header_size < sizeof(entry) ||
			!vgpu_add_u64(entry.header_size, entry.payload_size, &next) ||
			next > end - at)
			return false;
		/* A compressed payload is not checked: the driver unpacks it into its own
		 * memory. */
		if (is_elf(bytes + at + entry.header_size, entry.payload_size) &&
			!elf_is_contained(
				bytes + at + entry.header_size, entry.payload_size))
			return false;
		at += next;
	}
	return true;
}

bool image_is_contained(const uint8_t *bytes, size_t size)
{
	uint32_t magic;

	if (size >= sizeof(magic)) {
		memcpy(&magic, bytes, sizeof(magic));
		if (magic == FATBIN_MAGIC)
			return container_is_contained(bytes, size);
		if (is_elf(bytes, size))
			return elf_is_contained(bytes, size);
	}
	/* A NUL follows, so text is terminated. */
	return size && (bytes[0] == '\t' || bytes[0] == '\n' || bytes[0] == '\r' ||
			       (bytes[0] >= ' ' && bytes[0] <= '~'));
}

static bool names(const uint8_t *bytes, size_t size, const char *name)
{
	return memmem(bytes, size, name, strlen(name));
}

/* The functions that printing and assertions call, in text and in symbol tables. */
static bool names_printing(const uint8_t *bytes, size_t size)
{
	return names(bytes, size, "vprintf") || names(bytes, size, "__assertfail");
}

static bool search_entry(const struct fatbin_entry *entry, size_t *budget)
{
	_vgpu_cleanup_(vgpu_freep) char *bytes = NULL;
	size_t length;

	if (!entry->uncompressed_size)
		return names_printing(entry->payload, entry->payload_size);
	if (fatbin_unpack(entry, *budget, &bytes, &length))
		return true;
	*budget -= entry->uncompressed_size;
	return names_printing((const uint8_t *)bytes, entry->uncompressed_size);
}

static bool search_container(const uint8_t *bytes, size_t size)
{
	size_t budget = UNPACKED_SIZE_MAX;
	struct fatbin_entry entry;
	struct fatbin fatbin;
	int r;

	if (fatbin_init(&fatbin, bytes, size))
		return true;
	while (!(r = fatbin_next(&fatbin, &entry)))
		if (search_entry(&entry, &budget))
			return true;
	return r != FATBIN_E_END;
}

bool image_may_print(const uint8_t *bytes, size_t size)
{
	return fatbin_is_container(bytes, size) ? search_container(bytes, size)
						: names_printing(bytes, size);
}

bool image_archive_is_contained(const uint8_t *bytes, size_t size)
{
	size_t at = SARMAG;

	if (size < SARMAG || memcmp(bytes, ARMAG, SARMAG))
		return false;
	while (at < size) {
		char digits[sizeof(((struct ar_hdr *)0)->ar_size) + 1] = "";
		struct ar_hdr header;
		uint64_t length;

		if (size - at < sizeof(header))
			return false;
		memcpy(&header, bytes + at, sizeof(header));
		memcpy(digits, header.ar_size, sizeof(header.ar_size));
		at += sizeof(header);
		length = strtoull(digits, NULL, 10);
		if (memcmp(header.ar_fmag, ARFMAG, sizeof(header.ar_fmag)) ||
			length > size - at)
			return false;
		if (is_elf(bytes + at, length) && !elf_is_contained(bytes + at, length))
			return false;
		at += length;
		at += at % 2 && at < size;
	}
	return true;
}
