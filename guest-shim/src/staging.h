/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Staging blocks: where pageable memory of the program meets the device
 *
 * Each block has a completion word. Whoever takes a block gets with it the number that
 * the device is to write there when it is done with the block; from then on the block
 * is free again, without anybody giving it back.
 */

#include <stdint.h>

#include "words.h"

#define SHIM_STAGING_SMALL_SIZE (4u << 10)
#define SHIM_STAGING_LARGE_SIZE (512u << 10)
#define SHIM_STAGING_SIZE                                                                \
	(SHIM_STAGING_SMALL_N * SHIM_STAGING_SMALL_SIZE +                                \
		SHIM_STAGING_LARGE_N * SHIM_STAGING_LARGE_SIZE)

struct shim_block {
	uint8_t *data;
	uint32_t size;
	uint32_t word;
	uint64_t value; /* what the word will be */
};

void shim_staging_setup(uint8_t *start);

/*
 * Takes a block of at least `size` bytes, or the largest there is; waits until one is
 * free. A wait that gets long asks the driver, about the stream the block is wanted for.
 *
 * Return: CUDA_SUCCESS, or the fault or loss of the host that ended the wait.
 */
CUresult shim_staging_take(uint64_t size, CUstream stream, struct shim_block *block);

/* Waits until a word has a value that the device is to write in that stream. */
CUresult shim_staging_wait(uint32_t word, uint64_t value, CUstream stream);

/* Gives back a block that the device was never told of, or has certainly left. */
void shim_staging_give(const struct shim_block *block);
