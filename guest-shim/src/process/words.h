/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Completion words and their users
 *
 *	0 ..		the staging blocks, one each
 *	592 ..		the lanes: a thread that waits for its copy
 *	1616 ..		streams, given out and taken back
 */

#include <stdint.h>

#include "vgpu/ring-layout.h"

#include "process/environment.h"
#include "wire/channel.h"

#define SHIM_WORD_NONE 0xffffffffu

#define SHIM_STAGING_SMALL_N 512u
#define SHIM_STAGING_MIDDLE_N 32u
#define SHIM_STAGING_LARGE_N 48u

#define SHIM_WORDS_LANES                                                                 \
	(SHIM_STAGING_SMALL_N + SHIM_STAGING_MIDDLE_N + SHIM_STAGING_LARGE_N)
#define SHIM_WORDS_STREAMS (SHIM_WORDS_LANES + VGPU_SLOTS_MAX)

static_assert(SHIM_WORDS_STREAMS + 4096 <= VGPU_WORDS_MAX, "enough are left for streams");

/* Takes a word for a stream, set to 0. Return: its number, or SHIM_WORD_NONE. */
uint32_t shim_words_take(void);

/* Gives one back. Nothing may write it any more. */
void shim_words_give(uint32_t word);

/* Whether completion words may answer calls and may be requested: not if every call is to
 * be sent, nor while a capture is live. */
static inline bool shim_words_answer(void)
{
	return !shim_environment.is_synchronous && !shim_channel_has_capture();
}

static inline uint64_t shim_words_read(uint32_t word)
{
	/* Partner: the device, or the worker on its behalf, after the work in front. */
	return __atomic_load_n(&shim_channel.words[word].value, __ATOMIC_ACQUIRE);
}
