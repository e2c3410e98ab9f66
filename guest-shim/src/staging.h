/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Staging blocks: where pageable memory of the program meets the device
 *
 * Each block has a completion word. Whoever takes a block gets with it the number that
 * the device is to write there when it is done with the block. A block on its way to the
 * device is free again from then on, without anybody giving it back; one that was
 * filled by the device stays its taker's until it is released.
 */

#include <stdbool.h>
#include <stdint.h>

#include "words.h"

struct shim_context;

#define SHIM_STAGING_SMALL_SIZE (4u << 10)
#define SHIM_STAGING_MIDDLE_SIZE (64u << 10)
/* No size from 128 KiB to 1 MiB was the best in every run on softgpu: how far from each
 * other a hypervisor puts the processors moves copies more. This one leaves room in a
 * second-level cache for what is copied, and a message is little beside it. */
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
	uint64_t value; /* what the word will be */
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

/* Waits until a word has a value that the device is to write in that stream, behind a
 * copy of `size` bytes. */
CUresult shim_staging_wait(uint32_t word, uint64_t value, uint64_t size, CUstream stream);

/* The same for those who have blocks already and may not wait for more: two of them
 * could wait for each other. Return: false where none is free. */
bool shim_staging_try_take(uint64_t size, enum shim_block_use use, CUstream stream,
	struct shim_block *block);

/* Ends the use of a block from the device. One whose word has not come, because the wait
 * for it failed, is free when it comes or its context goes. */
void shim_staging_release(const struct shim_block *block);

/* Gives back a block that the device was never told of. */
void shim_staging_give_unused(const struct shim_block *block);

/* Frees what the device will no longer write the words of: all work of the context is
 * over, and what came behind a fault was not done. */
void shim_staging_drop_context(const struct shim_context *context);
