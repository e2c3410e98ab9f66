/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging blocks
 *
 * Three rings, by size. Small blocks are taken in turn, so the next one was taken longest
 * ago and is the most likely to be free. Of the others the first free one is taken: so
 * few are in use, and those stay in the caches. A word only grows, so the shim itself
 * writes the number of a block that is returned unused.
 */

#include "memory/staging.h"
#include "process/call.h"
#include "process/context.h"
#include "process/stream.h"
#include "wire/lock.h"
#include "wire/wait.h"

/* A wait for any free block that lasts this long asks the driver. */
#define STANDSTILL_NS 20000000ull
/* Slower than a copy is anywhere: it takes a nanosecond for so many bytes. */
#define SLOW_COPY_RATE 4u
/* Compared with a copy that takes longer, a wake-up at its end is negligible. */
#define SPIN_MAX_NS 20000000ull

#define N_RINGS 3

struct block_ring {
	struct shim_lock lock;
	uint8_t *data;
	uint32_t block_size;
	uint32_t first_word;
	uint32_t n;
	uint32_t front;
	/* Per block: the number that its word has when the device is done, whether it is
	 * still read then, and the context that used it last. */
	uint64_t due[SHIM_STAGING_SMALL_N];
	bool is_held[SHIM_STAGING_SMALL_N];
	const struct shim_context *context[SHIM_STAGING_SMALL_N];
};

static struct block_ring rings[N_RINGS];

static const struct {
	uint32_t size;
	uint32_t n;
} shapes[N_RINGS] = {
	{ SHIM_STAGING_SMALL_SIZE, SHIM_STAGING_SMALL_N },
	{ SHIM_STAGING_MIDDLE_SIZE, SHIM_STAGING_MIDDLE_N },
	{ SHIM_STAGING_LARGE_SIZE, SHIM_STAGING_LARGE_N },
};

static_assert(SHIM_STAGING_MIDDLE_N <= SHIM_STAGING_SMALL_N &&
		      SHIM_STAGING_LARGE_N <= SHIM_STAGING_SMALL_N,
	"a ring's arrays hold any of the three");

void shim_staging_setup(uint8_t *start)
{
	uint32_t word = 0;

	for (int i = 0; i < N_RINGS; i++) {
		rings[i] = (struct block_ring){
			.data = start,
			.block_size = shapes[i].size,
			.first_word = word,
			.n = shapes[i].n,
		};
		start += (uint64_t)shapes[i].n * shapes[i].size;
		word += shapes[i].n;
	}
}

static struct block_ring *ring_of_size(uint64_t size)
{
	if (size <= SHIM_STAGING_SMALL_SIZE)
		return &rings[0];
	return size <= SHIM_STAGING_MIDDLE_SIZE ? &rings[1] : &rings[2];
}

static struct block_ring *ring_of_word(uint32_t word)
{
	struct block_ring *ring = rings;

	while (word >= ring->first_word + ring->n)
		ring++;
	return ring;
}

static bool is_under_way(const struct block_ring *ring, uint32_t i)
{
	return shim_words_read(ring->first_word + i) < ring->due[i];
}

/* Takes the first free block from the front on. Return: false where all are in use. */
static bool try_take(struct block_ring *ring, enum shim_block_use use,
	const struct shim_context *context, struct shim_block *block)
{
	SHIM_LOCKED(&ring->lock);
	for (uint32_t turn = 0; turn < ring->n; turn++) {
		uint32_t i = (ring->front + turn) % ring->n;

		if (ring->is_held[i] || is_under_way(ring, i))
			continue;
		ring->is_held[i] = use == SHIM_BLOCK_FROM_DEVICE;
		ring->context[i] = context;
		*block = (struct shim_block){
			.data = ring->data + (uint64_t)i * ring->block_size,
			.size = ring->block_size,
			.word = ring->first_word + i,
			.value = ++ring->due[i],
		};
		if (ring == &rings[0])
			ring->front = (i + 1) % ring->n;
		return true;
	}
	return false;
}

bool shim_staging_try_take(
	uint64_t size, enum shim_block_use use, CUstream stream, struct shim_block *block)
{
	return try_take(ring_of_size(size), use, shim_stream_context(stream), block);
}

/* Returns: how long to spin for a copy; 0 as for any other work. */
static uint64_t worth_ns(uint64_t size, CUstream stream)
{
	uint64_t ns = size / SLOW_COPY_RATE;
	const struct shim_context *context;

	/* Less is over within any spin. */
	if (size < SHIM_STAGING_LARGE_SIZE || ns > SPIN_MAX_NS)
		return 0;
	context = shim_stream_context(stream);
	return context && shim_context_blocks(context) ? 0 : ns;
}

CUresult shim_staging_take(
	uint64_t size, enum shim_block_use use, CUstream stream, struct shim_block *block)
{
	const uint64_t worth = worth_ns(shim_staging_worth(size), stream);
	struct shim_wait wait = { .worth_ns = worth };
	CUresult result = CUDA_SUCCESS;

	while (!shim_staging_try_take(size, use, stream, block)) {
		if (!shim_wait_turn(&wait, &shim_channel))
			return SHIM_ERROR_HOST_GONE;
		if (shim_wait_ns(&wait) < STANDSTILL_NS)
			continue;
		/* The driver is the first to know of a fault. */
		result = shim_stream_park(stream);
		if (result != CUDA_SUCCESS)
			return result;
		wait = (struct shim_wait){ .worth_ns = worth };
	}
	return result;
}

CUresult shim_staging_wait(uint32_t word, uint64_t value, uint64_t size, CUstream stream)
{
	struct shim_thread *thread = shim_thread_get();
	CUresult result = thread ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	while (result == CUDA_SUCCESS &&
		!shim_wait_work(&thread->pace, &shim_channel.words[word].value, value,
			worth_ns(size, stream)))
		/* A thread that sleeps does so in a call of the driver, which also
		 * reports a fault. The word is written before that stream is complete. */
		result = shim_stream_park(stream);
	return result;
}

void shim_staging_release(const struct shim_block *block)
{
	struct block_ring *ring = ring_of_word(block->word);
	SHIM_LOCKED(&ring->lock);

	ring->is_held[block->word - ring->first_word] = false;
}

static void write_word(uint32_t word, uint64_t value)
{
	__atomic_store_n(&shim_channel.words[word].value, value, __ATOMIC_RELEASE);
}

void shim_staging_give_unused(const struct shim_block *block)
{
	write_word(block->word, block->value);
	shim_staging_release(block);
}

static void drop_context(struct block_ring *ring, const struct shim_context *context)
{
	SHIM_LOCKED(&ring->lock);
	for (uint32_t i = 0; i < ring->n; i++)
		if (ring->context[i] == context && is_under_way(ring, i))
			write_word(ring->first_word + i, ring->due[i]);
}

void shim_staging_drop_context(const struct shim_context *context)
{
	for (int i = 0; i < N_RINGS; i++)
		drop_context(&rings[i], context);
}
