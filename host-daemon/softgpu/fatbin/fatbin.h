/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fatbin container
 *
 * What nvcc embeds: a header of 16 bytes, then entries of a header and a payload each,
 * PTX text or machine code for one architecture, compressed or not. The layout is from
 * the documentation of public decoders; all numbers are little endian and untrusted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FATBIN_MAGIC 0xba55ed50u
#define FATBIN_HEADER_SIZE 16u
#define FATBIN_ENTRY_HEADER_SIZE 64u /* the least; names and options make it longer */
#define FATBIN_ENTRIES_MAX 4096u     /* of one container; a few dozen are met */

enum fatbin_kind {
	FATBIN_KIND_PTX = 1,
	FATBIN_KIND_CUBIN = 2,
};

enum fatbin_flag {
	FATBIN_FLAG_64BIT = 0x1,
	FATBIN_FLAG_LZ4 = 0x2000,      /* one raw block */
	FATBIN_FLAG_ZSTD = 0x8000,     /* one frame */
	FATBIN_FLAG_ARCH = 0x100000,   /* for this very architecture: sm_90a */
	FATBIN_FLAG_FAMILY = 0x200000, /* for its family: sm_100f */
};

/* Conditions of the functions of this module. */
enum {
	_FATBIN_E_SUCCESS,
	FATBIN_E_END,	  /* there is no further entry */
	FATBIN_E_INVALID, /* the bytes are no fatbin, or break a limit */
};

/* A walk over the entries; borrows the bytes. */
struct fatbin {
	const uint8_t *bytes;
	size_t size; /* of header and entries */
	size_t next; /* offset of the next entry */
	uint32_t n_entries;
};

/* One entry. payload and its sizes have been checked against the container. */
struct fatbin_entry {
	uint16_t kind;
	uint16_t version_major; /* of PTX text: its ISA */
	uint16_t version_minor;
	uint32_t arch; /* 75 for sm_75 */
	uint64_t flags;
	const uint8_t *payload;
	size_t payload_size;	  /* stored bytes, compressed ones exactly */
	size_t uncompressed_size; /* 0 unless compressed */
};

/* Returns: whether the bytes start like a container. */
bool fatbin_is_container(const void *bytes, size_t size);

/* Starts a walk. Returns: 0 or FATBIN_E_INVALID. */
int fatbin_init(struct fatbin *fatbin, const void *bytes, size_t size);

/* Returns: 0 with *entry filled, FATBIN_E_END or FATBIN_E_INVALID. */
int fatbin_next(struct fatbin *fatbin, struct fatbin_entry *entry);

/**
 * fatbin_unpack() - the text of an entry
 * @entry:	from fatbin_next()
 * @max:	the most bytes the text may have
 * @textp:	the text NUL-terminated; the caller frees it
 * @sizep:	its size up to the first NUL
 *
 * Return: 0, -ENOMEM, or FATBIN_E_INVALID.
 */
int fatbin_unpack(
	const struct fatbin_entry *entry, size_t max, char **textp, size_t *sizep);

/**
 * fatbin_peek() - the first bytes of an entry
 * @entry:	from fatbin_next()
 * @bytes:	room for them
 * @max:	its size
 * @sizep:	the number of bytes there; less than @max only if the entry has no more,
 *		or is damaged
 *
 * Costs less than to unpack all.
 *
 * Return: 0 or -ENOMEM.
 */
int fatbin_peek(const struct fatbin_entry *entry, void *bytes, size_t max, size_t *sizep);
