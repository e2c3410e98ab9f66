/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reader: an input of the fuzzer, read number by number
 *
 * After its end an input reads as zeroes.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct reader {
	const uint8_t *bytes;
	size_t size; /* left */
};

static inline void reader_bytes(struct reader *reader, void *to, size_t size)
{
	size_t n = size < reader->size ? size : reader->size;

	memset(to, 0, size);
	if (n)
		memcpy(to, reader->bytes, n);
	reader->bytes += n;
	reader->size -= n;
}

static inline uint8_t reader_u8(struct reader *reader)
{
	uint8_t value;

	reader_bytes(reader, &value, sizeof(value));
	return value;
}

static inline uint16_t reader_u16(struct reader *reader)
{
	uint16_t value;

	reader_bytes(reader, &value, sizeof(value));
	return value;
}

static inline uint32_t reader_u32(struct reader *reader)
{
	uint32_t value;

	reader_bytes(reader, &value, sizeof(value));
	return value;
}

static inline uint64_t reader_u64(struct reader *reader)
{
	uint64_t value;

	reader_bytes(reader, &value, sizeof(value));
	return value;
}

/* Returns: a number below n, which is at least 1. */
static inline uint32_t reader_below(struct reader *reader, uint32_t n)
{
	return reader_u8(reader) % n;
}
