/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/elf-file.h"
#include "fatbin/fatbin.h"

#include "tool/file.h"
#include "tool/source.h"

/* The alignment of fat binaries in their section. */
#define CONTAINER_ALIGN 8u

int source_init(struct source *source, const char *path)
{
	*source = (struct source){ 0 };
	return file_read(path, &source->bytes, &source->size);
}

void source_deinit(struct source *source)
{
	free(source->bytes);
	*source = (struct source){ 0 };
}

/* How many bytes a container has by its header, at most those that are left. */
static uint64_t container_size(const uint8_t *bytes, uint64_t left)
{
	struct fatbin fatbin;

	return fatbin_init(&fatbin, bytes, left) ? left : fatbin.size;
}

/* The next container in a section; there may be padding in between. */
static bool next_container(struct source *source, const struct elf_section *section,
	struct source_image *image)
{
	while (source->off < section->size) {
		const uint8_t *at = section->bytes + source->off;
		uint64_t left = section->size - source->off;

		if (!fatbin_is_container(at, left)) {
			source->off += CONTAINER_ALIGN;
			continue;
		}
		snprintf(image->where, sizeof(image->where), "%.60s+0x%llx",
			section->name, (unsigned long long)source->off);
		image->bytes = at;
		image->size = container_size(at, left);
		source->off += (image->size + CONTAINER_ALIGN - 1) &
			       ~(uint64_t)(CONTAINER_ALIGN - 1);
		return true;
	}
	return false;
}

static bool has_containers(const char *section)
{
	return !strcmp(section, ".nv_fatbin") || !strcmp(section, "__nv_relfatbin");
}

static bool next_in_elf(
	struct source *source, const struct elf *elf, struct source_image *image)
{
	struct elf_section section;

	for (; source->section < elf->n_sections; source->section++) {
		if (elf_section(elf, source->section, &section) &&
			has_containers(section.name) &&
			next_container(source, &section, image))
			return true;
		source->off = 0;
	}
	return false;
}

bool source_next(struct source *source, struct source_image *image)
{
	struct elf elf;

	if (elf_init(&elf, source->bytes, source->size) &&
		elf.machine != ELF_MACHINE_CUDA)
		return next_in_elf(source, &elf, image);
	if (source->is_at_end)
		return false;
	source->is_at_end = true;
	*image = (struct source_image){ .bytes = source->bytes, .size = source->size };
	return true;
}
