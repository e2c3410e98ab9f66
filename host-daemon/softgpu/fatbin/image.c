/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Module images
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"

#include "fatbin/elf-file.h"
#include "fatbin/fatbin.h"
#include "fatbin/image.h"
#include "fatbin/standin.h"
#include "ptx/module.h"

/* Of a stand-in: PTX, and a line for each kernel, which is shorter than its PTX. */
#define STANDIN_SIZE_MAX (2u * PTX_TEXT_SIZE_MAX)

/* Returns: how well an entry's PTX, if it has some, suits the device, 0 not at all. */
static unsigned int suitability(const struct fatbin_entry *entry, unsigned int cc)
{
	unsigned int kind = 0;

	if (!entry->arch || entry->arch > cc)
		return 0;
	if (entry->flags & FATBIN_FLAG_ARCH) {
		if (entry->arch != cc)
			return 0;
		kind = 2;
	} else if (entry->flags & FATBIN_FLAG_FAMILY) {
		if (entry->arch / 10 != cc / 10)
			return 0;
		kind = 1;
	}
	return entry->arch * 4 + kind;
}

/* Of a stand-in the text alone tells, which the parser checks. */
static bool is_too_new(const struct fatbin_entry *entry)
{
	return entry->kind == FATBIN_KIND_PTX &&
	       entry->version_major * 10u + entry->version_minor > PTX_VERSION_MAX;
}

int image_entry_has_ptx(const struct fatbin_entry *entry)
{
	uint8_t head[STANDIN_HEAD_SIZE];
	size_t size;
	int r;

	if (entry->kind != FATBIN_KIND_CUBIN)
		return entry->kind == FATBIN_KIND_PTX;
	r = fatbin_peek(entry, head, sizeof(head), &size);
	return r ? vgpu_error_trace(r) : standin_begins(head, size);
}

static int select_entry(const void *bytes, size_t size, unsigned int cc,
	unsigned int below, struct fatbin_entry *bestp)
{
	unsigned int best = 0, found;
	struct fatbin_entry entry;
	bool newer = false;
	struct fatbin fatbin;
	int r, has_ptx;

	r = fatbin_init(&fatbin, bytes, size);
	if (r)
		return SOFTGPU_IMAGE_E_INVALID;
	while (!(r = fatbin_next(&fatbin, &entry))) {
		found = suitability(&entry, cc);
		if (found <= best || (below && entry.arch >= below))
			continue;
		has_ptx = image_entry_has_ptx(&entry);
		if (has_ptx < 0)
			return vgpu_error_trace(has_ptx);
		if (!has_ptx)
			continue;
		if (is_too_new(&entry)) {
			newer = true;
			continue;
		}
		best = found;
		*bestp = entry;
	}
	if (r != FATBIN_E_END)
		return SOFTGPU_IMAGE_E_INVALID;
	if (best)
		return 0;
	return newer ? SOFTGPU_IMAGE_E_VERSION : SOFTGPU_IMAGE_E_NO_BINARY;
}

static int copy_text(const char *text, size_t size, struct softgpu_image *image)
{
	size = strnlen(text, size);
	if (size > PTX_TEXT_SIZE_MAX)
		return SOFTGPU_IMAGE_E_INVALID;
	image->text = strndup(text, size);
	if (!image->text)
		return vgpu_error_origin(-ENOMEM);
	image->size = size;
	return 0;
}

/* The text of an ELF file, which has to be a stand-in. */
static int copy_standin(
	const void *bytes, size_t size, int otherwise, struct softgpu_image *image)
{
	const char *text;
	size_t text_size;

	if (!standin_find(bytes, size, &text, &text_size))
		return otherwise;
	return copy_text(text, text_size, image);
}

static int unpack_standin(const struct fatbin_entry *entry, struct softgpu_image *image)
{
	_vgpu_cleanup_(vgpu_freep) char *bytes = NULL;
	size_t size = entry->uncompressed_size, length;
	int r;

	if (!size)
		return copy_standin(entry->payload, entry->payload_size,
			SOFTGPU_IMAGE_E_INVALID, image);
	r = fatbin_unpack(entry, STANDIN_SIZE_MAX, &bytes, &length);
	if (r)
		return r > 0 ? SOFTGPU_IMAGE_E_INVALID : vgpu_error_trace(r);
	return copy_standin(bytes, size, SOFTGPU_IMAGE_E_INVALID, image);
}

static int unpack_ptx(const struct fatbin_entry *entry, struct softgpu_image *image)
{
	int r = fatbin_unpack(entry, PTX_TEXT_SIZE_MAX, &image->text, &image->size);

	if (r)
		return r > 0 ? SOFTGPU_IMAGE_E_INVALID : vgpu_error_trace(r);
	return 0;
}

static int unpack_container(const void *bytes, size_t size, unsigned int cc,
	unsigned int below, struct softgpu_image *image)
{
	struct fatbin_entry entry;
	int r;

	r = select_entry(bytes, size, cc, below, &entry);
	if (r)
		return r;
	r = entry.kind == FATBIN_KIND_PTX ? unpack_ptx(&entry, image)
					  : unpack_standin(&entry, image);
	if (r)
		return r;
	image->arch = entry.arch;
	return 0;
}

size_t softgpu_image_text_size(const void *bytes, size_t size, unsigned int cc)
{
	struct fatbin_entry entry;

	if (size > SOFTGPU_IMAGE_SIZE_MAX || select_entry(bytes, size, cc, 0, &entry))
		return 0;
	return entry.uncompressed_size ? entry.uncompressed_size : entry.payload_size;
}

/* PTX begins with white space, a comment or .version. */
static bool is_ptx(const char *text, size_t size)
{
	static const char version[] = ".version";

	if (!size)
		return false;
	if (strchr(" \t\r\n", *text) && *text)
		return true;
	if (size >= 2 && text[0] == '/' && (text[1] == '/' || text[1] == '*'))
		return true;
	return size >= sizeof(version) - 1 && !memcmp(text, version, sizeof(version) - 1);
}

int softgpu_image_select(const void *bytes, size_t size, unsigned int cc,
	unsigned int below, struct softgpu_image *image)
{
	*image = (struct softgpu_image){};
	if (size > SOFTGPU_IMAGE_SIZE_MAX)
		return SOFTGPU_IMAGE_E_INVALID;
	if (fatbin_is_container(bytes, size))
		return unpack_container(bytes, size, cc, below, image);
	if (elf_is_file(bytes, size))
		return below ? SOFTGPU_IMAGE_E_NO_BINARY
			     : copy_standin(
				       bytes, size, SOFTGPU_IMAGE_E_NO_BINARY, image);
	if (is_ptx(bytes, size))
		return below ? SOFTGPU_IMAGE_E_NO_BINARY : copy_text(bytes, size, image);
	return SOFTGPU_IMAGE_E_INVALID;
}

void softgpu_image_deinit(struct softgpu_image *image)
{
	free(image->text);
	*image = (struct softgpu_image){};
}

int softgpu_image_result(int condition)
{
	switch (condition) {
	case SOFTGPU_IMAGE_E_NO_BINARY:
		return 209; /* CUDA_ERROR_NO_BINARY_FOR_GPU */
	case SOFTGPU_IMAGE_E_VERSION:
		return 222; /* CUDA_ERROR_UNSUPPORTED_PTX_VERSION */
	default:
		return 200; /* CUDA_ERROR_INVALID_IMAGE */
	}
}
