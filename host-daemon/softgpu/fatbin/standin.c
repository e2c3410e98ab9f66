/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stand-in for a cubin
 */

#include <assert.h>
#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/error.h"

#include "fatbin/elf-file.h"
#include "fatbin/standin.h"

/* The operating system and the version in the header of CUDA's own files. */
#define CUDA_OSABI 0x41
#define CUDA_ABI_VERSION 8
/* The first byte of the flags of files with 64-bit addresses, and the place of the
 * architecture. */
#define CUDA_FLAGS 0x06000004u

/* The sections: none, the names, the text, the kernels. */
enum { SECTION_NULL, SECTION_NAMES, SECTION_TEXT, SECTION_KERNELS, _SECTION_N };

static const char names[] = "\0.shstrtab\0" STANDIN_SECTION "\0" STANDIN_KERNELS;

#define NAME_OF_NAMES 1
#define NAME_OF_TEXT (NAME_OF_NAMES + sizeof(".shstrtab"))
#define NAME_OF_KERNELS (NAME_OF_TEXT + sizeof(STANDIN_SECTION))

struct file {
	Elf64_Ehdr header;
	Elf64_Shdr sections[_SECTION_N];
	char names[sizeof(names)];
};

static_assert(sizeof(struct file) <= STANDIN_HEAD_SIZE, "the head has all names");

bool standin_begins(const void *bytes, size_t size)
{
	const char *found = (const char *)bytes + offsetof(struct file, names);

	return size >= sizeof(struct file) && elf_is_file(bytes, size) &&
	       !memcmp(found, names, sizeof(names));
}

bool standin_find(const void *bytes, size_t size, const char **textp, size_t *text_sizep)
{
	struct elf_section section;
	struct elf elf;

	if (!elf_init(&elf, bytes, size) || elf.machine != ELF_MACHINE_CUDA ||
		!elf_find(&elf, STANDIN_SECTION, &section) || !section.size)
		return false;
	*textp = (const char *)section.bytes;
	*text_sizep = section.size;
	return true;
}

static Elf64_Shdr section_of(uint32_t name, uint32_t type, uint64_t off, uint64_t size)
{
	return (Elf64_Shdr){
		.sh_name = name,
		.sh_type = type,
		.sh_offset = off,
		.sh_size = size,
		.sh_addralign = 1,
	};
}

int standin_new(unsigned int arch, const char *text, size_t text_size,
	const char *kernels, uint8_t **bytesp, size_t *sizep)
{
	const uint64_t text_off = sizeof(struct file), kernels_size = strlen(kernels);
	const uint64_t kernels_off = text_off + text_size + 1;
	struct file file = {
		.header = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
				ELFDATA2LSB, EV_CURRENT, CUDA_OSABI, CUDA_ABI_VERSION },
			.e_type = ET_EXEC,
			.e_machine = ELF_MACHINE_CUDA,
			.e_version = EV_CURRENT,
			.e_shoff = offsetof(struct file, sections),
			.e_flags = CUDA_FLAGS | (arch & 0xff) << 8,
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = _SECTION_N,
			.e_shstrndx = SECTION_NAMES,
		},
		.sections = {
			[SECTION_NAMES] = section_of(NAME_OF_NAMES, SHT_STRTAB,
				offsetof(struct file, names), sizeof(names)),
			/* With the NUL that follows. */
			[SECTION_TEXT] = section_of(
				NAME_OF_TEXT, SHT_PROGBITS, text_off, text_size + 1),
			[SECTION_KERNELS] = section_of(NAME_OF_KERNELS, SHT_PROGBITS,
				kernels_off, kernels_size),
		},
	};
	uint8_t *bytes = calloc(1, kernels_off + kernels_size + 1);

	if (!bytes)
		return vgpu_error_origin(-ENOMEM);
	memcpy(file.names, names, sizeof(names));
	memcpy(bytes, &file, sizeof(file));
	memcpy(bytes + text_off, text, text_size);
	memcpy(bytes + kernels_off, kernels, kernels_size);
	*bytesp = bytes;
	*sizep = kernels_off + kernels_size;
	return 0;
}
