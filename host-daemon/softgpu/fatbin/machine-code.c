/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machine code in an image
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "vgpu/cleanup.h"

#include "fatbin/elf-file.h"
#include "fatbin/fatbin.h"
#include "fatbin/machine-code.h"

#define ARCHS_MAX 8u /* named; more are counted */
#define NAME_MAX_SHOWN 48u
/* A cubin is unpacked only for the name of a kernel. */
#define UNPACKED_MAX (8u << 20)

static const char prefix[] = ".text.";

struct found {
	uint32_t archs[ARCHS_MAX];
	unsigned int n_archs, n_more_archs;
	char name[NAME_MAX_SHOWN + 1];
	unsigned int n_kernels;
	bool is_searched; /* for kernels */
};

static void note_arch(struct found *found, uint32_t arch)
{
	for (unsigned int i = 0; i < found->n_archs; i++)
		if (found->archs[i] == arch)
			return;
	if (found->n_archs < ARCHS_MAX)
		found->archs[found->n_archs++] = arch;
	else
		found->n_more_archs++;
}

static void note_name(struct found *found, const char *name)
{
	if (found->n_kernels++)
		return;
	snprintf(found->name, sizeof(found->name), "%s", name);
	for (char *at = found->name; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

/* Each kernel is a section of its own. */
static void note_elf(struct found *found, const void *bytes, size_t size)
{
	struct elf_section section;
	struct elf elf;

	if (!elf_init(&elf, bytes, size) || elf.machine != ELF_MACHINE_CUDA)
		return;
	note_arch(found, elf.arch);
	if (found->is_searched)
		return;
	found->is_searched = true;
	for (uint32_t i = 0; i < elf.n_sections; i++)
		if (elf_section(&elf, i, &section) &&
			!strncmp(section.name, prefix, sizeof(prefix) - 1))
			note_name(found, section.name + sizeof(prefix) - 1);
}

static void note_entry(struct found *found, const struct fatbin_entry *entry)
{
	_vgpu_cleanup_(vgpu_freep) char *bytes = NULL;
	size_t length;

	note_arch(found, entry->arch);
	if (found->is_searched)
		return;
	if (!entry->uncompressed_size)
		note_elf(found, entry->payload, entry->payload_size);
	else if (!fatbin_unpack(entry, UNPACKED_MAX, &bytes, &length))
		note_elf(found, bytes, entry->uncompressed_size);
}

static void note_container(struct found *found, const void *bytes, size_t size)
{
	struct fatbin_entry entry;
	struct fatbin fatbin;

	if (fatbin_init(&fatbin, bytes, size))
		return;
	while (!fatbin_next(&fatbin, &entry))
		if (entry.kind == FATBIN_KIND_CUBIN)
			note_entry(found, &entry);
}

void machine_code_describe(
	const void *bytes, size_t size, char text[MACHINE_CODE_TEXT_MAX])
{
	struct found found = { 0 };
	FILE *out = fmemopen(text, MACHINE_CODE_TEXT_MAX, "w");

	text[0] = 0;
	if (!out)
		return;
	if (fatbin_is_container(bytes, size))
		note_container(&found, bytes, size);
	else
		note_elf(&found, bytes, size);
	for (unsigned int i = 0; i < found.n_archs; i++)
		fprintf(out, "%ssm_%u", i ? ", " : "machine code for ", found.archs[i]);
	if (found.n_more_archs)
		fprintf(out, " and others");
	if (found.n_kernels == 1)
		fprintf(out, " (kernel %s)", found.name);
	else if (found.n_kernels)
		fprintf(out, " (kernel %s and %u more)", found.name, found.n_kernels - 1);
	fclose(out);
	text[MACHINE_CODE_TEXT_MAX - 1] = 0;
}
