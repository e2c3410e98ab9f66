/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the fatbin walk and of the choice of an image
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"

#include "fatbin/fatbin.h"
#include "fatbin/image.h"
#include "fatbin/test-builder.h"
#include "ptx/module.h"
#include "test.h"

#define CC 121

/* Selects from an exact copy on the heap, where a sanitizer sees each byte too far. */
static int select_below(
	const void *bytes, size_t size, unsigned int below, struct softgpu_image *image)
{
	void *copy = malloc(size ? size : 1);
	int r;

	memcpy(copy, bytes, size);
	r = softgpu_image_select(copy, size, CC, below, image);
	free(copy);
	return r;
}

static void selects_text(const struct builder *b, unsigned int below, const char *text)
{
	struct softgpu_image image;

	check_eq(select_below(b->bytes, b->size, below, &image), 0);
	check_str(image.text, text);
	check_eq(image.size, strlen(text));
	softgpu_image_deinit(&image);
}

static void refuses(const void *bytes, size_t size, int condition)
{
	struct softgpu_image image;

	check_eq(select_below(bytes, size, 0, &image), condition);
	check(!image.text);
}

static void add_ptx(struct builder *b, uint32_t arch, const char *text)
{
	builder_add(b, FATBIN_KIND_PTX, arch, 0, 90, BUILDER_ZSTD, text);
}

#define BUILDER(_b)                                                                      \
	__attribute__((__cleanup__(builder_deinit))) struct builder _b;                  \
	builder_init(&_b)

TEST(highest_ptx_the_device_may_run_is_taken)
{
	BUILDER(b);
	add_ptx(&b, 75, "seven");
	add_ptx(&b, 120, "twelve");
	add_ptx(&b, 130, "thirteen");
	add_ptx(&b, 90, "nine");
	builder_close(&b);
	selects_text(&b, 0, "twelve");
	selects_text(&b, 120, "nine");
	selects_text(&b, 90, "seven");
}

TEST(lower_image_can_end)
{
	struct softgpu_image image;

	BUILDER(b);
	add_ptx(&b, 75, "seven");
	builder_close(&b);
	check_eq(select_below(b.bytes, b.size, 75, &image), SOFTGPU_IMAGE_E_NO_BINARY);
	check_eq(select_below(".version", 8, 75, &image), SOFTGPU_IMAGE_E_NO_BINARY);
}

TEST(specific_ptx_counts_only_where_it_applies)
{
	BUILDER(b);
	builder_add(&b, 1, 90, FATBIN_FLAG_ARCH, 90, BUILDER_PLAIN, "90a");
	add_ptx(&b, 75, "75");
	builder_close(&b);
	selects_text(&b, 0, "75");
	builder_add(&b, 1, 100, FATBIN_FLAG_FAMILY, 90, BUILDER_PLAIN, "100f");
	builder_close(&b);
	selects_text(&b, 0, "75");
	builder_add(&b, 1, 120, FATBIN_FLAG_FAMILY, 90, BUILDER_PLAIN, "120f");
	add_ptx(&b, 120, "120");
	builder_close(&b);
	selects_text(&b, 0, "120f");
	builder_add(&b, 1, 121, FATBIN_FLAG_ARCH, 90, BUILDER_PLAIN, "121a");
	add_ptx(&b, 121, "121");
	builder_close(&b);
	selects_text(&b, 0, "121a");
}

TEST(all_packings_are_unpacked)
{
	static char text[100000];

	for (size_t i = 0; i < sizeof(text) - 1; i++)
		text[i] = 'a' + i * i % 23;
	for (int packing = BUILDER_PLAIN; packing <= BUILDER_ZSTD; packing++) {
		BUILDER(b);
		builder_add(&b, 1, 75, 0, 90, packing, text);
		builder_close(&b);
		selects_text(&b, 0, text);
	}
}

TEST(longer_entry_headers_are_skipped)
{
	struct softgpu_image image;
	uint8_t options[16] = "-O1";

	BUILDER(b);
	add_ptx(&b, 75, "75");
	/* options between header and payload, as -lineinfo makes them */
	b.capacity = b.size + sizeof(options);
	b.bytes = realloc(b.bytes, b.capacity);
	memmove(b.bytes + b.last_entry + 64 + sizeof(options),
		b.bytes + b.last_entry + 64, b.size - b.last_entry - 64);
	memcpy(b.bytes + b.last_entry + 64, options, sizeof(options));
	b.size += sizeof(options);
	builder_poke(&b, 4, 64 + sizeof(options), 4);
	add_ptx(&b, 80, "80");
	builder_close(&b);
	selects_text(&b, 0, "80");
	selects_text(&b, 80, "75");
	check_eq(select_below(b.bytes, b.size, 0, &image), 0);
	check_eq(image.arch, 80);
	softgpu_image_deinit(&image);
}

TEST(machine_code_alone_is_no_binary_for_us)
{
	BUILDER(b);
	builder_add(&b, FATBIN_KIND_CUBIN, 120, 0, 18, BUILDER_PLAIN, "\177ELF");
	builder_add(&b, 8, 120, 0, 18, BUILDER_PLAIN, "lto");
	add_ptx(&b, 130, "too high");
	builder_close(&b);
	refuses(b.bytes, b.size, SOFTGPU_IMAGE_E_NO_BINARY);
	refuses("\177ELF\2\1\1", 7, SOFTGPU_IMAGE_E_NO_BINARY);
}

TEST(empty_container_is_no_binary_for_us)
{
	BUILDER(b);
	builder_close(&b);
	refuses(b.bytes, b.size, SOFTGPU_IMAGE_E_NO_BINARY);
}

TEST(newer_isa_is_recognised_and_skipped)
{
	BUILDER(b);
	builder_add(&b, 1, 120, 0, 92, BUILDER_PLAIN, "9.2");
	builder_close(&b);
	refuses(b.bytes, b.size, SOFTGPU_IMAGE_E_VERSION);
	add_ptx(&b, 75, "9.0");
	builder_close(&b);
	selects_text(&b, 0, "9.0");
}

TEST(bare_ptx_is_taken_up_to_its_nul)
{
	static const char *const texts[] = { ".version 9.0", "\n\n.version 9.0", "// x",
		"/* x */", "\t" };
	struct softgpu_image image;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		check_eq(select_below(texts[i], strlen(texts[i]), 0, &image), 0);
		check_str(image.text, texts[i]);
		check_eq(image.arch, 0);
		softgpu_image_deinit(&image);
	}
	check_eq(select_below(".version 9.0\0junk", 17, 0, &image), 0);
	check_eq(image.size, 12);
	softgpu_image_deinit(&image);
}

TEST(other_bytes_are_no_image)
{
	static const uint8_t wrapper[24] = { 0xb1, 0x43, 0x62, 0x46, 1 };

	refuses("", 0, SOFTGPU_IMAGE_E_INVALID);
	refuses("\0", 1, SOFTGPU_IMAGE_E_INVALID);
	refuses("hello", 5, SOFTGPU_IMAGE_E_INVALID);
	refuses(".versio", 7, SOFTGPU_IMAGE_E_INVALID);
	refuses("/", 1, SOFTGPU_IMAGE_E_INVALID);
	refuses(wrapper, sizeof(wrapper), SOFTGPU_IMAGE_E_INVALID);
}

TEST(bytes_after_the_container_are_ignored)
{
	BUILDER(b);
	add_ptx(&b, 75, "75");
	builder_close(&b);
	b.capacity = b.size + 100;
	b.bytes = realloc(b.bytes, b.capacity);
	memset(b.bytes + b.size, 0xff, 100);
	b.size += 100;
	selects_text(&b, 0, "75");
}

TEST(every_truncation_is_refused)
{
	BUILDER(b);
	add_ptx(&b, 75, "75");
	add_ptx(&b, 80, "80");
	builder_close(&b);
	for (size_t size = 0; size < b.size; size++)
		refuses(b.bytes, size, SOFTGPU_IMAGE_E_INVALID);
}

/* One field of the only entry is wrong. */
static void refuses_entry(
	enum builder_packing packing, size_t offset, uint64_t value, size_t size)
{
	BUILDER(b);
	builder_add(&b, 1, 75, 0, 90, packing, "some text that is long enough to pack");
	builder_close(&b);
	selects_text(&b, 0, "some text that is long enough to pack");
	builder_poke(&b, offset, value, size);
	refuses(b.bytes, b.size, SOFTGPU_IMAGE_E_INVALID);
}

TEST(wrong_sizes_are_refused)
{
	refuses_entry(BUILDER_PLAIN, 4, 0, 4);
	refuses_entry(BUILDER_PLAIN, 4, 63, 4);
	refuses_entry(BUILDER_PLAIN, 4, 65, 4);
	refuses_entry(BUILDER_PLAIN, 4, UINT32_MAX, 4);
	refuses_entry(BUILDER_PLAIN, 8, 41, 8);
	refuses_entry(BUILDER_PLAIN, 8, 48, 8);
	refuses_entry(BUILDER_PLAIN, 8, UINT64_MAX, 8);
	refuses_entry(BUILDER_PLAIN, 8, UINT64_MAX - 63, 8);
	refuses_entry(BUILDER_ZSTD, 16, 0, 4);
	refuses_entry(BUILDER_ZSTD, 16, 4096, 4);
	refuses_entry(BUILDER_ZSTD, 16, 10, 4);
	refuses_entry(BUILDER_LZ4, 16, 10, 4);
}

TEST(wrong_uncompressed_sizes_are_refused)
{
	for (int packing = BUILDER_LZ4; packing <= BUILDER_ZSTD; packing++) {
		refuses_entry(packing, 56, 0, 8);
		refuses_entry(packing, 56, 37, 8);
		refuses_entry(packing, 56, 39, 8);
		refuses_entry(packing, 56, PTX_TEXT_SIZE_MAX + 1ull, 8);
		refuses_entry(packing, 56, UINT64_MAX, 8);
	}
}

TEST(wrong_compression_is_refused)
{
	refuses_entry(BUILDER_PLAIN, 40, FATBIN_FLAG_ZSTD, 8);
	refuses_entry(BUILDER_ZSTD, 40, FATBIN_FLAG_ZSTD | FATBIN_FLAG_LZ4, 8);
	refuses_entry(BUILDER_ZSTD, 40, FATBIN_FLAG_LZ4, 8);
	refuses_entry(BUILDER_LZ4, 40, FATBIN_FLAG_ZSTD, 8);
	refuses_entry(BUILDER_ZSTD, 64, 0, 8);
}

TEST(wrong_containers_are_refused)
{
	BUILDER(b);
	add_ptx(&b, 75, "75");
	builder_close(&b);
	b.bytes[4] = 2;
	refuses(b.bytes, b.size, SOFTGPU_IMAGE_E_INVALID);
	b.bytes[4] = 1;
	b.bytes[6] = 15;
	refuses(b.bytes, b.size, SOFTGPU_IMAGE_E_INVALID);
	b.bytes[6] = 16;
	b.bytes[7] = 0xff;
	refuses(b.bytes, b.size, SOFTGPU_IMAGE_E_INVALID);
	b.bytes[7] = 0;
	memset(b.bytes + 8, 0xff, 8);
	refuses(b.bytes, b.size, SOFTGPU_IMAGE_E_INVALID);
}

TEST(entries_have_a_limit)
{
	struct fatbin_entry entry;
	struct fatbin fatbin;
	int r;

	BUILDER(b);
	for (unsigned int i = 0; i <= FATBIN_ENTRIES_MAX; i++)
		builder_add(&b, 1, 75, 0, 90, BUILDER_PLAIN, "x");
	builder_close(&b);
	check_eq(fatbin_init(&fatbin, b.bytes, b.size), 0);
	while (!(r = fatbin_next(&fatbin, &entry)))
		;
	check_eq(r, FATBIN_E_INVALID);
	check_eq(fatbin.n_entries, FATBIN_ENTRIES_MAX);
}

TEST(conditions_stand_for_cuda_errors)
{
	check_eq(softgpu_image_result(SOFTGPU_IMAGE_E_INVALID), 200);
	check_eq(softgpu_image_result(SOFTGPU_IMAGE_E_NO_BINARY), 209);
	check_eq(softgpu_image_result(SOFTGPU_IMAGE_E_VERSION), 222);
}
