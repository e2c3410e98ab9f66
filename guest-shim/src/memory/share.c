/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared blocks
 *
 * A short table with an entry for each stream that has a block. The thread that sets
 * `is_busy` owns the entry; no thread waits for it: one that finds it set takes a block
 * of its own. So a thread that never returns from there (it may be cancelled, or leave by
 * a signal handler) costs a block and blocks no other thread.
 *
 * Per-thread streams end with their threads, without a call that could close a block, so
 * they have none. Neither have the streams that come when the table is full.
 */

#include <string.h>

#include "memory/share.h"
#include "process/context.h"
#include "process/stream.h"
#include "wire/lock.h"

/* Half of the blocks: the others go round. */
#define SHARES_MAX (SHIM_STAGING_MIDDLE_N / 2)
/* Pieces begin on a cache line, as what a device reads at its best speed. */
#define PIECE_ALIGN 64u

struct shim_share {
	/* Atomic: the stream; for the default stream its context. 0: free. */
	uint64_t key;
	uint32_t is_busy; /* atomic */
	/* Owned by the thread that made it busy. */
	const struct shim_context *context;
	bool has_block;
	uint32_t used;
	struct shim_block block;
};

static struct shim_share shares[SHARES_MAX];

/* Held while an entry is added, so that no stream gets two. */
static struct shim_lock add_lock;

void shim_share_setup(void)
{
	memset(shares, 0, sizeof(shares));
	add_lock = (struct shim_lock)SHIM_LOCK_INIT;
}

static uint64_t key_of(CUstream stream, const struct shim_context *context)
{
	if (stream == CU_STREAM_PER_THREAD)
		return 0;
	return !stream || stream == CU_STREAM_LEGACY ? (uint64_t)(uintptr_t)context
						     : (uint64_t)(uintptr_t)stream;
}

static bool enter(struct shim_share *share, uint64_t key)
{
	if (__atomic_load_n(&share->key, __ATOMIC_RELAXED) != key ||
		/* Partner: leave(). */
		__atomic_exchange_n(&share->is_busy, 1, __ATOMIC_ACQUIRE))
		return false;
	if (__atomic_load_n(&share->key, __ATOMIC_RELAXED) == key)
		return true;
	__atomic_store_n(&share->is_busy, 0, __ATOMIC_RELEASE);
	return false;
}

static void leave(struct shim_share *share)
{
	/* Partner: enter(). */
	__atomic_store_n(&share->is_busy, 0, __ATOMIC_RELEASE);
}

static bool has_entry(uint64_t key)
{
	for (uint32_t i = 0; i < SHARES_MAX; i++)
		if (__atomic_load_n(&shares[i].key, __ATOMIC_RELAXED) == key)
			return true;
	return false;
}

/* Returns: the stream's entry, entered, or NULL. */
static struct shim_share *find(uint64_t key)
{
	for (uint32_t i = 0; i < SHARES_MAX; i++)
		if (enter(&shares[i], key))
			return &shares[i];
	return NULL;
}

static struct shim_share *add(uint64_t key, const struct shim_context *context)
{
	struct shim_share *share;
	SHIM_LOCKED(&add_lock);

	if (has_entry(key))
		return NULL;
	share = find(0);
	if (share) {
		share->context = context;
		__atomic_store_n(&share->key, key, __ATOMIC_RELAXED);
	}
	return share;
}

bool shim_share_take(uint64_t size, CUstream stream, struct shim_piece *piece)
{
	const struct shim_context *context = shim_stream_context(stream);
	uint64_t key = key_of(stream, context);
	struct shim_share *share;

	if (size > SHIM_SHARE_MAX || !key)
		return false;
	share = find(key);
	if (!share && !has_entry(key))
		share = add(key, context);
	if (!share)
		return false;
	if (!share->has_block) {
		share->has_block = shim_staging_try_take(SHIM_STAGING_MIDDLE_SIZE,
			SHIM_BLOCK_TO_DEVICE, stream, &share->block);
		share->used = 0;
	}
	if (!share->has_block) {
		leave(share);
		return false;
	}
	*piece = (struct shim_piece){
		.data = share->block.data + share->used,
		.word = SHIM_WORD_NONE,
		.end = (share->used + (uint32_t)size + PIECE_ALIGN - 1) &
		       ~(PIECE_ALIGN - 1),
		.share = share,
	};
	if (share->block.size - piece->end < SHIM_SHARE_MAX) {
		piece->word = share->block.word;
		piece->value = share->block.value;
	}
	return true;
}

void shim_share_done(const struct shim_piece *piece, bool is_sent)
{
	struct shim_share *share = piece->share;

	if (is_sent) {
		share->used = piece->end;
		share->has_block = piece->word == SHIM_WORD_NONE;
	}
	leave(share);
}

bool shim_share_end(CUstream stream, struct shim_block *block)
{
	uint64_t key = key_of(stream, shim_stream_context(stream));
	struct shim_share *share = key ? find(key) : NULL;
	bool has_block;

	if (!share)
		return false;
	has_block = share->has_block;
	*block = share->block;
	share->has_block = false;
	__atomic_store_n(&share->key, 0, __ATOMIC_RELAXED);
	leave(share);
	return has_block;
}

void shim_share_drop_context(const struct shim_context *context)
{
	for (uint32_t i = 0; i < SHARES_MAX; i++) {
		struct shim_share *share = &shares[i];
		uint64_t key = __atomic_load_n(&share->key, __ATOMIC_RELAXED);

		if (!key || !enter(share, key))
			continue;
		if (share->context == context) {
			share->has_block = false;
			__atomic_store_n(&share->key, 0, __ATOMIC_RELAXED);
		}
		leave(share);
	}
}
