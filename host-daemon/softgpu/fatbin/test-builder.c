/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fatbin builder for tests
 */

#include <assert.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "fatbin/fatbin.h"
#include "fatbin/test-builder.h"

static void append(struct builder *builder, const void *bytes, size_t size)
{
	if (builder->size + size > builder->capacity) {
		builder->capacity = (builder->size + size) * 2;
		builder->bytes = realloc(builder->bytes, builder->capacity);
		assert(builder->bytes);
	}
	if (bytes)
		memcpy(builder->bytes + builder->size, bytes, size);
	else
		memset(builder->bytes + builder->size, 0, size);
	builder->size += size;
}

void builder_init(struct builder *builder)
{
	const uint32_t magic = FATBIN_MAGIC;
	const uint16_t words[2] = { 1, FATBIN_HEADER_SIZE };

	*builder = (struct builder){};
	append(builder, &magic, sizeof(magic));
	append(builder, words, sizeof(words));
	append(builder, NULL, 8);
}

void builder_deinit(struct builder *builder)
{
	free(builder->bytes);
	*builder = (struct builder){};
}

void builder_poke(struct builder *builder, size_t offset, uint64_t value, size_t size)
{
	memcpy(builder->bytes + builder->last_entry + offset, &value, size);
}

static size_t pack(enum builder_packing packing, const void *text, size_t size,
	char *packed, size_t max)
{
	size_t n;

	switch (packing) {
	case BUILDER_LZ4:
		n = LZ4_compress_default(text, packed, size, max);
		assert(n > 0);
		return n;
	case BUILDER_ZSTD:
		n = ZSTD_compress(packed, max, text, size, 3);
		assert(!ZSTD_isError(n));
		return n;
	default:
		memcpy(packed, text, size);
		return size;
	}
}

void builder_add(struct builder *builder, uint16_t kind, uint32_t arch, uint64_t flags,
	unsigned int version, enum builder_packing packing, const char *text)
{
	builder_add_bytes(
		builder, kind, arch, flags, version, packing, text, strlen(text) + 1);
}

void builder_add_bytes(struct builder *builder, uint16_t kind, uint32_t arch,
	uint64_t flags, unsigned int version, enum builder_packing packing,
	const void *bytes, size_t size)
{
	size_t max = size + size / 8 + 128, n, padded;
	char *packed = malloc(max);

	assert(packed);
	n = pack(packing, bytes, size, packed, max);
	padded = (n + 7) & ~(size_t)7;
	builder->last_entry = builder->size;
	append(builder, NULL, FATBIN_ENTRY_HEADER_SIZE);
	builder_poke(builder, 0, kind, 2);
	builder_poke(builder, 2, 0x0101, 2);
	builder_poke(builder, 4, FATBIN_ENTRY_HEADER_SIZE, 4);
	builder_poke(builder, 8, padded, 8);
	builder_poke(builder, 24, version % 10, 2);
	builder_poke(builder, 26, version / 10, 2);
	builder_poke(builder, 28, arch, 4);
	flags |= FATBIN_FLAG_64BIT;
	if (packing != BUILDER_PLAIN) {
		flags |= packing == BUILDER_LZ4 ? FATBIN_FLAG_LZ4 : FATBIN_FLAG_ZSTD;
		builder_poke(builder, 16, n, 4);
		builder_poke(builder, 56, size, 8);
	}
	builder_poke(builder, 40, flags, 8);
	append(builder, packed, n);
	append(builder, NULL, padded - n);
	free(packed);
}

void builder_close(struct builder *builder)
{
	uint64_t size = builder->size - FATBIN_HEADER_SIZE;

	memcpy(builder->bytes + 8, &size, sizeof(size));
}
