/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Staging blocks: buffers between pageable memory and the device
 *
 * Each block has a completion word. Taking a block returns the number that the device is
 * to write there when it is done with the block. A block on its way to the device is free
 * again from then on, without a call; a block that the device filled belongs to its taker
 * until it is released.
 */

#include <stdbool.h>
#include <stdint.h>

#include "process/words.h"

struct shim_context;

#define SHIM_STAGING_SMALL_SIZE (4u << 10)
#define SHIM_STAGING_MIDDLE_SIZE (64u << 10)
/* No size from 128 KiB to 1 MiB was the best in every run on softgpu: the distance
 * between the processors, as a hypervisor places them, affects copies more. This one
 * leaves room in a second-level cache for the data, and the cost of a message is small
 * beside it. */
#define SHIM_STAGING_LARGE_SIZE (256u << 10)
#define SHIM_STAGING_WORTH_MAX (4u << 20)
#define SHIM_STAGING_SIZE                                                                \
	(SHIM_STAGING_SMALL_N * SHIM_STAGING_SMALL_SIZE +                                \
		SHIM_STAGING_MIDDLE_N * SHIM_STAGING_MIDDLE_SIZE +                       \
		SHIM_STAGING_LARGE_N * SHIM_STAGING_LARGE_SIZE)

struct shim_block {
	uint8_t *data;
	uint32_t size;
	uint32_t word;
	uint64_t value; /* the final value of the word */
};

void shim_staging_setup(uint8_t *start);

enum shim_block_use {
	SHIM_BLOCK_TO_DEVICE,	/* free when the device is done */
	SHIM_BLOCK_FROM_DEVICE, /* free when released */
};

/*
 * Takes a block of at least `size` bytes, or the largest there is; waits until one is
 * free. A wait that gets long asks the driver, about the stream the block is wanted for.
 *
 * Return: CUDA_SUCCESS, or the fault or loss of the host that ended the wait.
 */
CUresult shim_staging_take(uint64_t size, enum shim_block_use use, CUstream stream,
	struct shim_block *block);

/*
 * Of a copy in pieces each wait for one is worth as much as the whole, up to a bound:
 * while both sides stay awake they catch up with what kept one from its processor.
 *
 * Return: the size to pass to shim_staging_wait()
 */
static inline uint64_t shim_staging_worth(uint64_t size)
{
	return size < SHIM_STAGING_WORTH_MAX ? size : SHIM_STAGING_WORTH_MAX;
}

/* Waits until a word has a value that the device writes in that stream, after a copy of
 * `size` bytes. */
CUresult shim_staging_wait(uint32_t word, uint64_t value, uint64_t size, CUstream stream);

/* The same for those who have blocks already and may not wait for more: two of them
 * could wait for each other. Return: false where none is free. */
bool shim_staging_try_take(uint64_t size, enum shim_block_use use, CUstream stream,
	struct shim_block *block);

/* Releases a block from the device. One whose word was not written, because the wait for
 * it failed, is free when it is written or its context ends. */
void shim_staging_release(const struct shim_block *block);

/* Returns a block that was not sent to the device. */
void shim_staging_give_unused(const struct shim_block *block);

/* Frees blocks whose words the device will not write any more: all work of the context
 * has ended, and work after a fault was not done. */
void shim_staging_drop_context(const struct shim_context *context);
