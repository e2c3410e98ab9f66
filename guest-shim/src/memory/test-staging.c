/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging blocks, of a device that is the test itself
 */

#include <stdlib.h>

#include "test.h"

#include "memory/staging.h"
#include "process/call.h"
#include "process/context.h"
#include "process/stream.h"
#include "process/thread.h"
#include "process/words.h"

static struct shim_context *context;
static uint8_t *start;

static void begin(void)
{
	static const uint32_t ready = SHIM_READY;

	shim_channel.words = calloc(VGPU_WORDS_MAX, sizeof(*shim_channel.words));
	/* Never written: the blocks are not touched. */
	start = (uint8_t *)(uintptr_t)0x100000000ull;
	check(shim_channel.words);
	shim_statep = &ready;
	check_eq(shim_thread_setup(shim_call_lane_exit, shim_stream_drop_thread), 0);
	shim_context_setup(1);
	context = shim_context_primary(0);
	context->is_live = 1;
	check_eq(shim_context_push(context), CUDA_SUCCESS);
	shim_staging_setup(start);
}

/* The function that closes the channel at exit does not know this one. */
static void end(void)
{
	static const uint32_t not_ready = SHIM_NEW;

	shim_statep = &not_ready;
	free(shim_channel.words);
}

static bool take(uint64_t size, enum shim_block_use use, struct shim_block *block)
{
	return shim_staging_try_take(size, use, NULL, block);
}

/* What the device does after the copy. */
static void land(const struct shim_block *block)
{
	__atomic_store_n(
		&shim_channel.words[block->word].value, block->value, __ATOMIC_RELEASE);
}

TEST(blocks_do_not_overlap_and_have_words_of_their_own)
{
	static struct shim_block blocks[SHIM_WORDS_LANES];
	const uint64_t sizes[] = { 1, SHIM_STAGING_SMALL_SIZE + 1,
		SHIM_STAGING_MIDDLE_SIZE + 1 };
	uint32_t n = 0;

	begin();
	for (int i = 0; i < 3; i++)
		while (n < SHIM_WORDS_LANES &&
			take(sizes[i], SHIM_BLOCK_TO_DEVICE, &blocks[n])) {
			check(blocks[n].data >= start);
			check(blocks[n].data + blocks[n].size <=
				start + SHIM_STAGING_SIZE);
			check(blocks[n].size >= sizes[i]);
			for (uint32_t k = 0; k < n; k++) {
				check(blocks[k].word != blocks[n].word);
				check(blocks[k].data + blocks[k].size <= blocks[n].data ||
					blocks[n].data + blocks[n].size <=
						blocks[k].data);
			}
			n++;
		}
	check_eq(n, SHIM_WORDS_LANES);
	end();
}

TEST(a_size_is_served_by_the_smallest_kind_of_block)
{
	struct shim_block block;

	begin();
	check(take(SHIM_STAGING_SMALL_SIZE, SHIM_BLOCK_TO_DEVICE, &block));
	check_eq(block.size, SHIM_STAGING_SMALL_SIZE);
	check(take(SHIM_STAGING_SMALL_SIZE + 1, SHIM_BLOCK_TO_DEVICE, &block));
	check_eq(block.size, SHIM_STAGING_MIDDLE_SIZE);
	check(take(SHIM_STAGING_MIDDLE_SIZE + 1, SHIM_BLOCK_TO_DEVICE, &block));
	check_eq(block.size, SHIM_STAGING_LARGE_SIZE);
	/* The largest there is. */
	check(take(1ull << 40, SHIM_BLOCK_TO_DEVICE, &block));
	check_eq(block.size, SHIM_STAGING_LARGE_SIZE);
	end();
}

TEST(a_block_to_the_device_is_free_when_its_word_is_written)
{
	static struct shim_block blocks[SHIM_STAGING_LARGE_N];
	struct shim_block again;

	begin();
	for (uint32_t i = 0; i < SHIM_STAGING_LARGE_N; i++)
		check(take(1ull << 30, SHIM_BLOCK_TO_DEVICE, &blocks[i]));
	check(!take(1ull << 30, SHIM_BLOCK_TO_DEVICE, &again));
	land(&blocks[7]);
	check(take(1ull << 30, SHIM_BLOCK_TO_DEVICE, &again));
	check_eq(again.word, blocks[7].word);
	check(again.data == blocks[7].data);
	/* An old value is not the new one. */
	check_eq(again.value, blocks[7].value + 1);
	check(!take(1ull << 30, SHIM_BLOCK_TO_DEVICE, &again));
	end();
}

TEST(a_block_from_the_device_is_free_when_it_is_released_too)
{
	static struct shim_block blocks[SHIM_STAGING_MIDDLE_N];
	const uint64_t size = SHIM_STAGING_MIDDLE_SIZE;
	struct shim_block again;

	begin();
	for (uint32_t i = 0; i < SHIM_STAGING_MIDDLE_N; i++)
		check(take(size, SHIM_BLOCK_FROM_DEVICE, &blocks[i]));
	land(&blocks[3]);
	check(!take(size, SHIM_BLOCK_FROM_DEVICE, &again));
	shim_staging_release(&blocks[3]);
	check(take(size, SHIM_BLOCK_FROM_DEVICE, &again));
	check_eq(again.word, blocks[3].word);
	/* Released, but the device has yet to write it. */
	shim_staging_release(&blocks[5]);
	check(!take(size, SHIM_BLOCK_FROM_DEVICE, &again));
	land(&blocks[5]);
	check(take(size, SHIM_BLOCK_FROM_DEVICE, &again));
	end();
}

TEST(a_block_that_was_not_sent_is_free_at_once)
{
	struct shim_block block;

	begin();
	for (uint32_t i = 0; i < 2 * SHIM_STAGING_LARGE_N; i++) {
		check(take(1ull << 30, SHIM_BLOCK_FROM_DEVICE, &block));
		shim_staging_give_unused(&block);
	}
	end();
}

TEST(blocks_of_a_context_that_ends_are_free)
{
	struct shim_block block;

	begin();
	for (uint32_t i = 0; i < SHIM_STAGING_LARGE_N; i++)
		check(take(1ull << 30, SHIM_BLOCK_TO_DEVICE, &block));
	shim_staging_drop_context(NULL);
	check(!take(1ull << 30, SHIM_BLOCK_TO_DEVICE, &block));
	shim_staging_drop_context(context);
	check(take(1ull << 30, SHIM_BLOCK_TO_DEVICE, &block));
	end();
}

TEST(a_wait_for_a_word_that_is_written_ends_at_once)
{
	struct shim_block block;

	begin();
	check_eq(
		shim_staging_take(1, SHIM_BLOCK_FROM_DEVICE, NULL, &block), CUDA_SUCCESS);
	land(&block);
	check_eq(shim_staging_wait(block.word, block.value, 1, NULL), CUDA_SUCCESS);
	end();
}
