/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Waiting: spin for a bounded time, then sleep
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/pace.h"

struct shim_channel;
struct vgpu_reply_slot;

/* Progress of one wait; starts as {}, or with what the thread knows. */
struct shim_wait {
	bool is_together; /* the host runs on this processor: no look before a yield */
	uint64_t started_ns;
	uint64_t looked_ns;
	uint64_t worth_ns; /* how long it is spun for beyond what a wake-up costs */
	uint64_t wakes_ns; /* how long the host may take to wake up first */
	uint32_t n_turns;
};

/*
 * Passes a little time: first by spinning, then by yielding the processor, at last by
 * sleeping. For polling a word without wake-ups.
 *
 * Return: false once the host is known to be gone.
 */
bool shim_wait_turn(struct shim_wait *wait, struct shim_channel *channel);

/* Returns: how long the wait has lasted since it gave up spinning eagerly. */
uint64_t shim_wait_ns(const struct shim_wait *wait);

/*
 * Spins until a word has a value, as long as that is worth while.
 *
 * @gives_up:	return at once if it has not
 *
 * Return: whether it has. If not, the caller sleeps in a call to the host.
 */
bool shim_wait_word(
	struct shim_pace *pace, const uint64_t *word, uint64_t value, bool gives_up);

/*
 * The same for work whose length is known, if the device is at it already.
 *
 * @worth_ns:	that length
 */
bool shim_wait_work(
	struct shim_pace *pace, const uint64_t *word, uint64_t value, uint64_t worth_ns);

/*
 * Waits until the slot carries the sequence.
 *
 * @parks:	sleep at once: the caller has spun for the same
 *
 * Return: false where the host is gone first.
 */
bool shim_wait_reply(struct shim_channel *channel, struct shim_pace *pace,
	struct vgpu_reply_slot *slot, uint32_t sequence, bool parks);

/* The same for a reply that may take hours and is not urgent: it is noticed up to a
 * second late where the host cannot wake this thread. */
bool shim_wait_rest(
	struct shim_channel *channel, struct vgpu_reply_slot *slot, uint32_t sequence);

/* Takes a query that a word which was not written yet may answer. Return: false where
 * this one is to be sent, as one is at intervals. */
bool shim_wait_take_poll(struct shim_pace *pace);

/* Looks how many processors there are. */
void shim_wait_setup(void);
