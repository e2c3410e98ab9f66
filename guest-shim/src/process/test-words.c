/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion words of streams
 */

#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "process/words.h"

#define N (VGPU_WORDS_MAX - SHIM_WORDS_STREAMS)

/* A channel of which only the words exist. */
static void begin(void)
{
	shim_channel.words = calloc(VGPU_WORDS_MAX, sizeof(*shim_channel.words));
	check(shim_channel.words);
}

static void end(void)
{
	free(shim_channel.words);
}

TEST(each_word_of_a_stream_is_taken_once)
{
	static bool is_taken[VGPU_WORDS_MAX];

	begin();
	for (uint32_t i = 0; i < N; i++) {
		uint32_t word = shim_words_take();

		check(word >= SHIM_WORDS_STREAMS && word < VGPU_WORDS_MAX);
		check(!is_taken[word]);
		is_taken[word] = true;
	}
	check_eq(shim_words_take(), SHIM_WORD_NONE);
	end();
}

TEST(a_word_given_back_is_taken_again_and_is_zero)
{
	uint32_t word;

	begin();
	for (uint32_t i = 0; i < N; i++)
		check(shim_words_take() != SHIM_WORD_NONE);
	shim_channel.words[SHIM_WORDS_STREAMS + 7].value = 99;
	shim_words_give(SHIM_WORDS_STREAMS + 7);
	word = shim_words_take();
	check_eq(word, SHIM_WORDS_STREAMS + 7);
	check_eq(shim_words_read(word), 0);
	check_eq(shim_words_take(), SHIM_WORD_NONE);
	end();
}

TEST(giving_back_no_word_changes_nothing)
{
	begin();
	for (uint32_t i = 0; i < N; i++)
		check(shim_words_take() != SHIM_WORD_NONE);
	shim_words_give(SHIM_WORD_NONE);
	check_eq(shim_words_take(), SHIM_WORD_NONE);
	end();
}

TEST(all_words_can_be_given_back)
{
	begin();
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < N; i++)
			check(shim_words_take() != SHIM_WORD_NONE);
		for (uint32_t i = 0; i < N; i++)
			shim_words_give(SHIM_WORDS_STREAMS + i);
	}
	end();
}

TEST(words_answer_unless_every_call_is_sent)
{
	static struct vgpu_channel_control control;

	shim_channel.control = &control;
	check(shim_words_answer());
	shim_environment.is_synchronous = true;
	check(!shim_words_answer());
}
