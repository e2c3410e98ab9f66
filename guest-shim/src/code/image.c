/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of device code
 */

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "vgpu/checked.h"

#include "code/fatbin.h"
#include "code/image.h"
#include "memory/backing.h"
#include "process/device.h"

/* The compiler's wrapper of a fat binary: the public header fatbinary_section.h. */
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
	image->parts[image->n_parts++] = (struct shim_image_part){ data, size, 0 };
	return CUDA_SUCCESS;
}

/* The processors of this program's devices; constant once known. */
static struct shim_processors all_processors(void)
{
	struct shim_processors processors = { .n = 0 };
	int major, minor;

	for (int i = 0; i < shim_device_n(); i++) {
		const struct vgpu_device_info *device = shim_device_get(i);

		if (!shim_device_attribute(device,
			    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major) ||
			!shim_device_attribute(device,
				CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor))
			continue;
		processors.capabilities[processors.n].major = (uint32_t)major;
		processors.capabilities[processors.n++].minor = (uint32_t)minor;
	}
	return processors;
}

/* Whether so much of it is there, as far as can be known. */
static bool is_there(const struct shim_image *image, uint64_t size)
{
	return size <= (image->file ? image->file->size : SHIM_IMAGE_SIZE_MAX);
}

static CUresult add_container(struct shim_image *image, const void *data)
{
	const struct shim_processors processors = all_processors();
	struct shim_fatbin fatbin = { .bytes = data, .processors = &processors };
	struct fat_container container;
	CUresult result;

	memcpy(&container, data, sizeof(container));
	if (container.magic != CONTAINER_MAGIC ||
		container.header_size < sizeof(container) ||
		!vgpu_add_u64(container.size, container.header_size, &fatbin.size) ||
		!is_there(image, fatbin.size))
		return CUDA_ERROR_INVALID_IMAGE;
	result = add_part(image, data, fatbin.size);
	if (result != CUDA_SUCCESS)
		return result;
	image->parts[image->n_parts - 1].size = shim_fatbin_usable_size(&fatbin);
	image->parts[image->n_parts - 1].whole = fatbin.size;
	return CUDA_SUCCESS;
}

static CUresult add_wrapped(struct shim_image *image, const void *data)
{
	struct fat_wrapper wrapper;
	CUresult result;

	memcpy(&wrapper, data, sizeof(wrapper));
	/* Addresses that come from a file lead nowhere. */
	if (!wrapper.container || image->file)
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
		!is_there(image,
			header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize) ||
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
	return is_there(image, end) ? add_part(image, data, end)
				    : CUDA_ERROR_INVALID_IMAGE;
}

/* PTX begins with a directive or a comment, after optional white space. */
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

void shim_image_copy_part(const struct shim_image_part *part, uint8_t *to)
{
	const struct shim_processors processors = all_processors();
	const struct shim_fatbin fatbin = { part->data, part->whole, &processors };

	if (part->whole)
		shim_fatbin_copy_usable(&fatbin, to, part->size);
	else
		memcpy(to, part->data, part->size);
}

static uint64_t mix(uint64_t sum, uint64_t value)
{
	return (sum ^ value) * 0x9e3779b97f4a7c15ull + (sum >> 29);
}

/* Hashes which bytes of the file are sent: the file is the same, so offsets and sizes of
 * the parts suffice. */
static uint64_t shape_of(const struct shim_image *image, uint64_t sum,
	const struct shim_image_part *part, const struct shim_backing *backing)
{
	sum = mix(sum, image->n_parts);
	sum = mix(sum, backing->offset);
	sum = mix(sum, part->whole);
	return mix(sum, part->size);
}

static bool find_backing(const struct shim_image *image,
	const struct shim_image_part *part, struct shim_backing *backing)
{
	if (!image->file)
		return shim_backing_find(
			part->data, part->whole ? part->whole : part->size, backing);
	/* It is all there is in the file. */
	*backing = image->file->backing;
	return image->file->is_known;
}

bool shim_image_identify(
	const struct shim_image *image, struct shim_digest_key *key, bool *settledp)
{
	struct shim_backing first, backing;
	uint64_t shape = 0, total = 0;

	for (uint32_t i = 0; i < image->n_parts; i++) {
		const struct shim_image_part *part = &image->parts[i];

		if (!find_backing(image, part, &backing))
			return false;
		if (!i)
			first = backing;
		else if (first.device != backing.device || first.inode != backing.inode ||
			 first.changed_s != backing.changed_s ||
			 first.changed_ns != backing.changed_ns)
			return false;
		shape = shape_of(image, shape, part, &backing);
		total += part->size;
	}
	if (!image->n_parts)
		return false;
	*key = (struct shim_digest_key){ {
		first.device,
		first.inode,
		first.size,
		first.modified_s,
		first.modified_ns,
		first.changed_s,
		first.changed_ns,
		first.offset,
		total,
		shape,
	} };
	*settledp = shim_backing_is_settled(&first);
	return true;
}
