/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging blocks
 *
 * Two rings, small and large. Blocks are taken in turn, so the one at the front is the
 * one that was taken longest ago, and the best to wait for. A word only grows, thus a
 * block that its taker gives back unused gets its number written by the shim itself.
 */

#include "call.h"
#include "lock.h"
#include "staging.h"
#include "stream.h"
#include "wait.h"

/* A wait for any free block that lasts this long asks the driver. */
#define STANDSTILL_NS 20000000ull
/* So does, after this time, one for a certain word. */
#define SPIN_NS 50000ull

struct block_ring {
	struct shim_lock lock;
	uint8_t *data;
	uint32_t block_size;
	uint32_t first_word;
	uint32_t n;
	uint32_t front;
	/* By block: the number its word has when the device is done, and whether its
	 * taker still reads it then. */
	uint64_t due[SHIM_STAGING_SMALL_N];
	bool is_held[SHIM_STAGING_SMALL_N];
};

static struct block_ring small_blocks, large_blocks;

static void ring_init(struct block_ring *ring, uint8_t *data, uint32_t block_size,
	uint32_t first_word, uint32_t n)
{
	*ring = (struct block_ring){
		.data = data,
		.block_size = block_size,
		.first_word = first_word,
		.n = n,
	};
}

void shim_staging_setup(uint8_t *start)
{
	ring_init(&small_blocks, start, SHIM_STAGING_SMALL_SIZE, 0, SHIM_STAGING_SMALL_N);
	ring_init(&large_blocks, start + SHIM_STAGING_SMALL_N * SHIM_STAGING_SMALL_SIZE,
		SHIM_STAGING_LARGE_SIZE, SHIM_STAGING_SMALL_N, SHIM_STAGING_LARGE_N);
}

/* Takes the first free block from the front on. Return: false where all are in use. */
static bool try_take(
	struct block_ring *ring, enum shim_block_use use, struct shim_block *block)
{
	SHIM_LOCKED(&ring->lock);
	for (uint32_t turn = 0; turn < ring->n; turn++) {
		uint32_t i = (ring->front + turn) % ring->n;

		if (ring->is_held[i] ||
			shim_word_read(ring->first_word + i) < ring->due[i])
			continue;
		ring->is_held[i] = use == SHIM_BLOCK_FROM_DEVICE;
		*block = (struct shim_block){
			.data = ring->data + (uint64_t)i * ring->block_size,
			.size = ring->block_size,
			.word = ring->first_word + i,
			.value = ++ring->due[i],
		};
		ring->front = (i + 1) % ring->n;
		return true;
	}
	return false;
}

bool shim_staging_try_take(
	uint64_t size, enum shim_block_use use, struct shim_block *block)
{
	return try_take(size <= SHIM_STAGING_SMALL_SIZE ? &small_blocks : &large_blocks,
		use, block);
}

CUresult shim_staging_take(
	uint64_t size, enum shim_block_use use, CUstream stream, struct shim_block *block)
{
	struct shim_wait wait = {};
	CUresult result = CUDA_SUCCESS;

	while (!shim_staging_try_take(size, use, block)) {
		if (!shim_wait_turn(&wait, &shim_channel))
			return SHIM_ERROR_HOST_GONE;
		if (shim_wait_ns(&wait) < STANDSTILL_NS)
			continue;
		/* The driver knows of a fault before anybody else does. */
		result = shim_stream_synchronize(stream);
		if (result != CUDA_SUCCESS)
			return result;
		wait = (struct shim_wait){};
	}
	return result;
}

CUresult shim_staging_wait(uint32_t word, uint64_t value, CUstream stream)
{
	struct shim_wait wait = {};
	CUresult result;

	while (shim_word_read(word) < value) {
		if (!shim_wait_turn(&wait, &shim_channel))
			return SHIM_ERROR_HOST_GONE;
		if (shim_wait_ns(&wait) < SPIN_NS)
			continue;
		/* Whoever sleeps sleeps in the driver, which also tells of a fault. The
		 * word was to be written before that stream was done. */
		result = shim_stream_synchronize(stream);
		if (result != CUDA_SUCCESS)
			return result;
		wait = (struct shim_wait){};
	}
	return CUDA_SUCCESS;
}

void shim_staging_release(const struct shim_block *block)
{
	struct block_ring *ring =
		block->word < SHIM_STAGING_SMALL_N ? &small_blocks : &large_blocks;
	SHIM_LOCKED(&ring->lock);

	ring->is_held[block->word - ring->first_word] = false;
}

void shim_staging_give_unused(const struct shim_block *block)
{
	__atomic_store_n(
		&shim_channel.words[block->word].value, block->value, __ATOMIC_RELEASE);
	shim_staging_release(block);
}
