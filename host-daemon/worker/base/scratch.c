/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scratch: memory for one call
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/error.h"
#include "worker/base/scratch.h"

#define SCRATCH_ALIGN 16u

static void *allocator_alloc(void *data, size_t size)
{
	return scratch_alloc(data, size);
}

static void allocator_free(void *data, void *pointer)
{
}

int scratch_init(struct scratch *scratch)
{
	scratch->allocator = (ProtobufCAllocator){
		.alloc = allocator_alloc,
		.free = allocator_free,
		.allocator_data = scratch,
	};
	scratch->used = 0;
	scratch->block = aligned_alloc(SCRATCH_ALIGN, SCRATCH_SIZE);
	if (!scratch->block)
		return vgpu_error_origin(-ENOMEM);
	/* Populates the pages before the first call. */
	memset(scratch->block, 0, SCRATCH_SIZE);
	return 0;
}

void scratch_deinit(struct scratch *scratch)
{
	free(scratch->block);
	scratch->block = NULL;
}

void scratch_reset(struct scratch *scratch)
{
	scratch->used = 0;
}

void *scratch_alloc(struct scratch *scratch, size_t size)
{
	void *memory = scratch->block + scratch->used;

	if (size > SCRATCH_SIZE - scratch->used)
		return NULL;
	size = (size + SCRATCH_ALIGN - 1) & ~(size_t)(SCRATCH_ALIGN - 1);
	scratch->used += size;
	return memory;
}
