/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Output of kernels
 *
 * The host keeps the text and counts its bytes in the control page. After each call that
 * may have waited for kernels the count is read, and new text is fetched and written to
 * the C library's stdout (messages of failed assertions: stderr), so that it is between
 * what the program itself printed before and after that call. The program decides when
 * stdout is flushed, as for its own text.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/channel.h"

struct shim_thread;

void shim_print_fetch(struct shim_thread *thread);

/* At the end of the process, which waits for no kernel: also writes out what the driver
 * has written and the host has not announced yet. */
void shim_print_finish(struct shim_thread *thread);

/* Bytes that were fetched; the rest of the count is new. */
extern uint64_t shim_print_position;

/* Writes out new text. Costs a memory read if there is none. */
static inline void shim_print_check(
	struct shim_thread *thread, const struct shim_channel *channel)
{
	/* Partner: the worker's store, before the reply that was just received. */
	uint64_t printed = __atomic_load_n(&channel->control->printed, __ATOMIC_ACQUIRE);

	if (__builtin_expect(
		    printed != __atomic_load_n(&shim_print_position, __ATOMIC_ACQUIRE),
		    0))
		shim_print_fetch(thread);
}

/* Whether a wait that a completion word ends has to call the driver all the same. */
static inline bool shim_print_is_owed(const struct shim_channel *channel)
{
	return __atomic_load_n(&channel->control->may_print, __ATOMIC_RELAXED);
}
