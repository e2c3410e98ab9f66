/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fatbin builder for tests
 *
 * Makes containers as nvcc lays them out, or deliberately wrong ones: what is put
 * into an entry's header can be overwritten before the container is closed.
 */

#include <stddef.h>
#include <stdint.h>

enum builder_packing {
	BUILDER_PLAIN,
	BUILDER_LZ4,
	BUILDER_ZSTD,
};

struct builder {
	uint8_t *bytes;
	size_t size;
	size_t capacity;
	size_t last_entry; /* offset of its header */
};

void builder_init(struct builder *builder);
void builder_deinit(struct builder *builder);

/* Adds an entry; version is the PTX ISA as major * 10 + minor. */
void builder_add(struct builder *builder, uint16_t kind, uint32_t arch, uint64_t flags,
	unsigned int version, enum builder_packing packing, const char *text);

/* The same with any bytes. */
void builder_add_bytes(struct builder *builder, uint16_t kind, uint32_t arch,
	uint64_t flags, unsigned int version, enum builder_packing packing,
	const void *bytes, size_t size);

/* Overwrites bytes of the last entry's header. */
void builder_poke(struct builder *builder, size_t offset, uint64_t value, size_t size);

/* Writes the container's size into its header. */
void builder_close(struct builder *builder);
