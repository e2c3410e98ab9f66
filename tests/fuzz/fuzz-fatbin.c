/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: images
 *
 * The input is what a program handed to a module call. Each entry of a container
 * is unpacked, and the choice is made down to the lowest image. An ELF file may be a
 * stand-in for a cubin, and a message says what machine code there is.
 */

#include <stdlib.h>

#include <string.h>

#include "fatbin/elf-file.h"
#include "fatbin/fatbin.h"
#include "fatbin/image.h"
#include "fatbin/machine-code.h"

#define UNPACK_MAX (1u << 20) /* keeps an execution short */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first bytes are those of the whole. */
static void check_head(const struct fatbin_entry *entry, const char *bytes, size_t size)
{
	char head[600];
	size_t n;

	if (fatbin_peek(entry, head, sizeof(head), &n) || n > sizeof(head) || n > size ||
		memcmp(head, bytes, n))
		abort();
}

static void walk(const uint8_t *data, size_t size)
{
	struct fatbin_entry entry;
	struct fatbin fatbin;
	size_t text_size;
	char *text;

	if (fatbin_init(&fatbin, data, size))
		return;
	while (!fatbin_next(&fatbin, &entry)) {
		if (fatbin_unpack(&entry, UNPACK_MAX, &text, &text_size))
			continue;
		if (text[text_size])
			abort();
		check_head(&entry, text,
			entry.uncompressed_size ? entry.uncompressed_size
						: entry.payload_size);
		free(text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct softgpu_image image;
	char code[MACHINE_CODE_TEXT_MAX];
	unsigned int below = 0;

	machine_code_describe(data, size, code);
	if (!memchr(code, 0, sizeof(code)))
		abort();
	if (size >= ELF_HEADER_SIZE && elf_is_file(data, size))
		elf_extent(data, size);
	walk(data, size);
	while (!softgpu_image_select(data, size, 121, below, &image)) {
		if (below && image.arch >= below)
			abort();
		below = image.arch;
		softgpu_image_deinit(&image);
		if (!below)
			break;
	}
	return 0;
}
