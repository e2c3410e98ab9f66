/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fatbin container
 */

#include <endian.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"

#include "fatbin/bounds.h"
#include "fatbin/fatbin.h"

/* Offsets in the header of an entry. */
enum {
	ENTRY_KIND = 0,
	ENTRY_HEADER_SIZE = 4,
	ENTRY_PAYLOAD_SIZE = 8,
	ENTRY_COMPRESSED_SIZE = 16,
	ENTRY_VERSION_MINOR = 24,
	ENTRY_VERSION_MAJOR = 26,
	ENTRY_ARCH = 28,
	ENTRY_FLAGS = 40,
	ENTRY_UNCOMPRESSED_SIZE = 56,
};

/* Containers may be unaligned: no word is read in place. */
static uint16_t get_u16(const uint8_t *p)
{
	uint16_t value;

	memcpy(&value, p, sizeof(value));
	return le16toh(value);
}

static uint32_t get_u32(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return le32toh(value);
}

static uint64_t get_u64(const uint8_t *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return le64toh(value);
}

bool fatbin_is_container(const void *bytes, size_t size)
{
	return size >= sizeof(uint32_t) && get_u32(bytes) == FATBIN_MAGIC;
}

int fatbin_init(struct fatbin *fatbin, const void *bytes, size_t size)
{
	const uint8_t *header = bytes;
	uint16_t header_size;
	uint64_t entries_size;

	if (!fatbin_is_container(bytes, size) || size < FATBIN_HEADER_SIZE)
		return FATBIN_E_INVALID;
	header_size = get_u16(header + 6);
	entries_size = get_u64(header + 8);
	if (get_u16(header + 4) != 1 || header_size < FATBIN_HEADER_SIZE ||
		header_size > size || entries_size > size - header_size)
		return FATBIN_E_INVALID;
	*fatbin = (struct fatbin){
		.bytes = bytes,
		.size = header_size + entries_size,
		.next = header_size,
	};
	return 0;
}

/* The fields about compression have to be consistent. */
static int check_compression(const struct fatbin_entry *entry, uint32_t compressed_size)
{
	uint64_t packings = entry->flags & (FATBIN_FLAG_LZ4 | FATBIN_FLAG_ZSTD);

	if (packings == (FATBIN_FLAG_LZ4 | FATBIN_FLAG_ZSTD))
		return FATBIN_E_INVALID;
	if (packings && (!compressed_size || compressed_size > entry->payload_size ||
				!entry->uncompressed_size))
		return FATBIN_E_INVALID;
	return 0;
}

int fatbin_next(struct fatbin *fatbin, struct fatbin_entry *entry)
{
	const uint8_t *header = fatbin->bytes + fatbin->next;
	size_t left = fatbin->size - fatbin->next;
	uint32_t header_size, compressed_size;
	uint64_t payload_size;

	if (!left)
		return FATBIN_E_END;
	if (left < FATBIN_ENTRY_HEADER_SIZE || fatbin->n_entries == FATBIN_ENTRIES_MAX)
		return FATBIN_E_INVALID;
	header_size = get_u32(header + ENTRY_HEADER_SIZE);
	payload_size = get_u64(header + ENTRY_PAYLOAD_SIZE);
	if (header_size < FATBIN_ENTRY_HEADER_SIZE ||
		!fatbin_entry_fits(left, header_size, payload_size))
		return FATBIN_E_INVALID;
	*entry = (struct fatbin_entry){
		.kind = get_u16(header + ENTRY_KIND),
		.version_major = get_u16(header + ENTRY_VERSION_MAJOR),
		.version_minor = get_u16(header + ENTRY_VERSION_MINOR),
		.arch = get_u32(header + ENTRY_ARCH),
		.flags = get_u64(header + ENTRY_FLAGS),
		.payload = header + header_size,
		.payload_size = payload_size,
		.uncompressed_size = get_u64(header + ENTRY_UNCOMPRESSED_SIZE),
	};
	compressed_size = get_u32(header + ENTRY_COMPRESSED_SIZE);
	if (check_compression(entry, compressed_size))
		return FATBIN_E_INVALID;
	if (entry->flags & (FATBIN_FLAG_LZ4 | FATBIN_FLAG_ZSTD))
		entry->payload_size = compressed_size;
	else
		entry->uncompressed_size = 0;
	fatbin->next += header_size + payload_size;
	fatbin->n_entries++;
	return 0;
}

/* Returns: whether exactly size bytes came out. */
static bool decompress(const struct fatbin_entry *entry, char *text, size_t size)
{
	size_t n;

	if (entry->flags & FATBIN_FLAG_LZ4) {
		if (entry->payload_size > LZ4_MAX_INPUT_SIZE || size > LZ4_MAX_INPUT_SIZE)
			return false;
		return LZ4_decompress_safe((const char *)entry->payload, text,
			       entry->payload_size, size) == (int)size;
	}
	n = ZSTD_decompress(text, size, entry->payload, entry->payload_size);
	return !ZSTD_isError(n) && n == size;
}

int fatbin_unpack(
	const struct fatbin_entry *entry, size_t max, char **textp, size_t *sizep)
{
	_vgpu_cleanup_(vgpu_freep) char *text = NULL;
	bool compressed = entry->uncompressed_size;
	size_t size = compressed ? entry->uncompressed_size : entry->payload_size;

	if (size > max)
		return FATBIN_E_INVALID;
	text = malloc(size + 1);
	if (!text)
		return vgpu_error_origin(-ENOMEM);
	if (!compressed)
		memcpy(text, entry->payload, size);
	else if (!decompress(entry, text, size))
		return FATBIN_E_INVALID;
	text[size] = '\0';
	*sizep = strlen(text);
	*textp = text;
	text = NULL;
	return 0;
}

static void peek_lz4(
	const struct fatbin_entry *entry, void *bytes, size_t max, size_t *sizep)
{
	int n = 0;

	if (entry->payload_size <= LZ4_MAX_INPUT_SIZE)
		n = LZ4_decompress_safe_partial((const char *)entry->payload, bytes,
			entry->payload_size, max, max);
	*sizep = n > 0 ? n : 0;
}

static int peek_zstd(
	const struct fatbin_entry *entry, void *bytes, size_t max, size_t *sizep)
{
	ZSTD_inBuffer in = { .src = entry->payload, .size = entry->payload_size };
	ZSTD_outBuffer out = { .dst = bytes, .size = max };
	ZSTD_DStream *stream = ZSTD_createDStream();
	size_t before, r;

	if (!stream)
		return vgpu_error_origin(-ENOMEM);
	/* A call may take input alone, or end a frame. */
	do {
		before = in.pos + out.pos;
		r = ZSTD_decompressStream(stream, &out, &in);
	} while (!ZSTD_isError(r) && out.pos < max && in.pos + out.pos > before);
	ZSTD_freeDStream(stream);
	*sizep = out.pos;
	return 0;
}

int fatbin_peek(const struct fatbin_entry *entry, void *bytes, size_t max, size_t *sizep)
{
	if (entry->uncompressed_size && entry->flags & FATBIN_FLAG_ZSTD)
		return peek_zstd(entry, bytes, max, sizep);
	if (entry->uncompressed_size) {
		peek_lz4(entry, bytes, max, sizep);
		return 0;
	}
	*sizep = entry->payload_size < max ? entry->payload_size : max;
	memcpy(bytes, entry->payload, *sizep);
	return 0;
}
