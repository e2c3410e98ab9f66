/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of device code
 */

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vgpu/checked.h"
#include "vgpu/cleanup.h"

#include "image.h"

/* What the compiler puts around a fat binary: the public header fatbinary_section.h. */
#define WRAPPER_MAGIC 0x466243b1u
#define WRAPPER_LINKED 2u

struct fat_wrapper {
	uint32_t magic;
	uint32_t version;
	const void *container;
	/* Version 2: array of the containers it was linked from, NULL at its end. */
	const void *const *inputs;
};

#define CONTAINER_MAGIC 0xba55ed50u

struct fat_container {
	uint32_t magic;
	uint16_t version;
	uint16_t header_size;
	uint64_t size; /* of what follows the header */
};

static CUresult add_part(struct shim_image *image, const void *data, uint64_t size)
{
	if (image->n_parts == SHIM_IMAGE_PARTS_MAX || !size || size > SHIM_IMAGE_SIZE_MAX)
		return CUDA_ERROR_INVALID_IMAGE;
	image->parts[image->n_parts++] = (struct shim_image_part){ data, size };
	return CUDA_SUCCESS;
}

static CUresult add_container(struct shim_image *image, const void *data)
{
	struct fat_container container;
	uint64_t size;

	memcpy(&container, data, sizeof(container));
	if (container.magic != CONTAINER_MAGIC ||
		container.header_size < sizeof(container) ||
		!vgpu_add_u64(container.size, container.header_size, &size))
		return CUDA_ERROR_INVALID_IMAGE;
	return add_part(image, data, size);
}

static CUresult add_wrapped(struct shim_image *image, const void *data)
{
	struct fat_wrapper wrapper;
	CUresult result;

	memcpy(&wrapper, data, sizeof(wrapper));
	if (!wrapper.container)
		return CUDA_ERROR_INVALID_IMAGE;
	result = add_container(image, wrapper.container);
	if (wrapper.version != WRAPPER_LINKED || !wrapper.inputs)
		return result;
	for (const void *const *input = wrapper.inputs; *input && result == CUDA_SUCCESS;
		input++)
		result = add_container(image, *input);
	return result;
}

/* An ELF file ends where the last of its tables and sections does. */
static CUresult add_elf(struct shim_image *image, const void *data)
{
	Elf64_Ehdr header;
	uint64_t end = sizeof(header), table_end;

	memcpy(&header, data, sizeof(header));
	if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
		header.e_shoff > SHIM_IMAGE_SIZE_MAX ||
		header.e_phoff > SHIM_IMAGE_SIZE_MAX ||
		(header.e_shnum && header.e_shentsize < sizeof(Elf64_Shdr)))
		return CUDA_ERROR_INVALID_IMAGE;
	table_end = header.e_phoff + (uint64_t)header.e_phnum * header.e_phentsize;
	end = table_end > end ? table_end : end;
	table_end = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
	end = table_end > end ? table_end : end;

	for (uint32_t i = 0; i < header.e_shnum; i++) {
		Elf64_Shdr section;
		uint64_t section_end;

		memcpy(&section,
			(const uint8_t *)data + header.e_shoff +
				(uint64_t)i * header.e_shentsize,
			sizeof(section));
		if (section.sh_type == SHT_NOBITS)
			continue;
		if (!vgpu_add_u64(section.sh_offset, section.sh_size, &section_end) ||
			section_end > SHIM_IMAGE_SIZE_MAX)
			return CUDA_ERROR_INVALID_IMAGE;
		end = section_end > end ? section_end : end;
	}
	return add_part(image, data, end);
}

/* PTX begins with a directive, a comment, or space in front of them. */
static bool begins_text(char first)
{
	return first == '.' || first == '/' || first == ' ' || first == '\t' ||
	       first == '\n' || first == '\r';
}

CUresult shim_image_measure(const void *data, struct shim_image *image)
{
	const char *text = data;

	image->n_parts = 0;
	if (begins_text(*text))
		return add_part(image, data, strnlen(text, SHIM_IMAGE_SIZE_MAX) + 1);
	/* From the first byte on: what is shorter than a magic number is not read past.
	 */
	if (!memcmp(text, "\xb1", 1) && !memcmp(text, "\xb1\x43\x62\x46", 4))
		return add_wrapped(image, data);
	if (!memcmp(text, "\x50", 1) && !memcmp(text, "\x50\xed\x55\xba", 4))
		return add_container(image, data);
	if (!memcmp(text, ELFMAG, 1) && !memcmp(text, ELFMAG, SELFMAG))
		return add_elf(image, data);
	return CUDA_ERROR_INVALID_IMAGE;
}

static bool read_all(int fd, uint8_t *data, size_t size)
{
	while (size) {
		ssize_t n = read(fd, data, size);

		if (n <= 0)
			return false;
		data += n;
		size -= (size_t)n;
	}
	return true;
}

CUresult shim_image_read_file(const char *path, void **datap, size_t *sizep)
{
	_vgpu_cleanup_(vgpu_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	_vgpu_cleanup_(vgpu_freep) uint8_t *data = NULL;
	struct stat info;

	if (fd < 0 || fstat(fd, &info) || !S_ISREG(info.st_mode))
		return CUDA_ERROR_FILE_NOT_FOUND;
	if ((uint64_t)info.st_size > SHIM_IMAGE_SIZE_MAX)
		return CUDA_ERROR_INVALID_IMAGE;
	data = malloc((size_t)info.st_size + 1);
	if (!data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!read_all(fd, data, (size_t)info.st_size))
		return CUDA_ERROR_FILE_NOT_FOUND;
	data[info.st_size] = '\0';
	*datap = data;
	*sizep = (size_t)info.st_size;
	data = NULL;
	return CUDA_SUCCESS;
}
