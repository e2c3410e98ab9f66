/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF files
 */

#include <elf.h>
#include <string.h>

#include "vgpu/checked.h"

#include "fatbin/elf-file.h"
#include "fatbin/image.h"

/* Where a cubin's flags have its architecture changed with CUDA 13. */
#define ABI_VERSION_WIDE 8

bool elf_is_file(const void *bytes, size_t size)
{
	return size >= SELFMAG && !memcmp(bytes, ELFMAG, SELFMAG);
}

static Elf64_Shdr header_at(const uint8_t *bytes, uint64_t sections_off, uint32_t index)
{
	Elf64_Shdr header;

	memcpy(&header, bytes + sections_off + (uint64_t)index * sizeof(header),
		sizeof(header));
	return header;
}

static uint64_t end_of(uint64_t off, uint64_t size)
{
	uint64_t end;

	return vgpu_add_u64(off, size, &end) ? end : UINT64_MAX;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

size_t elf_extent(const void *bytes, size_t size)
{
	Elf64_Ehdr elf;
	Elf64_Shdr section;
	uint64_t end;

	memcpy(&elf, bytes, sizeof(elf));
	if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_shentsize != sizeof(section))
		return sizeof(elf);
	end = larger(sizeof(elf),
		end_of(elf.e_shoff, (uint64_t)elf.e_shnum * sizeof(section)));
	if (end > size)
		return SIZE_MAX;
	for (uint32_t i = 0; i < elf.e_shnum && end <= SOFTGPU_IMAGE_SIZE_MAX; i++) {
		section = header_at(bytes, elf.e_shoff, i);
		if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL)
			end = larger(end, end_of(section.sh_offset, section.sh_size));
	}
	return end > SOFTGPU_IMAGE_SIZE_MAX ? SIZE_MAX : end;
}

static uint32_t arch_of(const Elf64_Ehdr *header)
{
	if (header->e_machine != ELF_MACHINE_CUDA)
		return 0;
	return header->e_ident[EI_ABIVERSION] >= ABI_VERSION_WIDE
		       ? header->e_flags >> 8 & 0xff
		       : header->e_flags & 0xff;
}

bool elf_init(struct elf *elf, const void *bytes, size_t size)
{
	struct elf_section names;
	Elf64_Ehdr header;

	if (!elf_is_file(bytes, size) || size < sizeof(header))
		return false;
	memcpy(&header, bytes, sizeof(header));
	if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
		header.e_ident[EI_DATA] != ELFDATA2LSB)
		return false;
	*elf = (struct elf){
		.bytes = bytes,
		.size = size,
		.sections_off = header.e_shoff,
		.machine = header.e_machine,
		.arch = arch_of(&header),
	};
	if (header.e_shentsize != sizeof(Elf64_Shdr) ||
		!vgpu_range_within(header.e_shoff,
			(uint64_t)header.e_shnum * sizeof(Elf64_Shdr), 0, size))
		return true;
	elf->n_sections = header.e_shnum;
	/* Without names yet: its own is not asked for. */
	if (!elf_section(elf, header.e_shstrndx, &names) || names.type != SHT_STRTAB ||
		!names.size || names.bytes[names.size - 1]) {
		elf->n_sections = 0;
		return true;
	}
	elf->names = (const char *)names.bytes;
	elf->names_size = names.size;
	return true;
}

bool elf_section(const struct elf *elf, uint32_t index, struct elf_section *section)
{
	Elf64_Shdr header;

	if (index >= elf->n_sections)
		return false;
	header = header_at(elf->bytes, elf->sections_off, index);
	if (header.sh_type == SHT_NULL || header.sh_type == SHT_NOBITS ||
		!vgpu_range_within(header.sh_offset, header.sh_size, 0, elf->size) ||
		(elf->names && header.sh_name >= elf->names_size))
		return false;
	*section = (struct elf_section){
		.name = elf->names ? elf->names + header.sh_name : "",
		.type = header.sh_type,
		.bytes = elf->bytes + header.sh_offset,
		.size = header.sh_size,
	};
	return true;
}

bool elf_find(const struct elf *elf, const char *name, struct elf_section *section)
{
	for (uint32_t i = 0; i < elf->n_sections; i++)
		if (elf_section(elf, i, section) && !strcmp(section->name, name))
			return true;
	return false;
}
