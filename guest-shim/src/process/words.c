/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion words of streams
 */

#include "process/words.h"
#include "wire/lock.h"

#define STREAM_WORDS (VGPU_WORDS_MAX - SHIM_WORDS_STREAMS)

static struct {
	struct shim_lock lock;
	uint32_t n_used; /* never given out are those from here on */
	uint32_t n_free;
	uint32_t free[STREAM_WORDS];
} words;

uint32_t shim_words_take(void)
{
	uint32_t word = SHIM_WORD_NONE;

	shim_lock(&words.lock);
	if (words.n_free)
		word = words.free[--words.n_free];
	else if (words.n_used < STREAM_WORDS)
		word = SHIM_WORDS_STREAMS + words.n_used++;
	shim_unlock(&words.lock);

	if (word != SHIM_WORD_NONE)
		__atomic_store_n(&shim_channel.words[word].value, 0, __ATOMIC_RELAXED);
	return word;
}

void shim_words_give(uint32_t word)
{
	if (word == SHIM_WORD_NONE)
		return;
	shim_lock(&words.lock);
	words.free[words.n_free++] = word;
	shim_unlock(&words.lock);
}
