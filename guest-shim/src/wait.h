/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Waiting: spin for a bounded time, then sleep
 */

#include <stdbool.h>
#include <stdint.h>

struct shim_channel;
struct shim_thread;
struct vgpu_reply_slot;

/* Progress of one wait; starts as {}. */
struct shim_wait {
	uint64_t started_ns;
	uint32_t n_turns;
};

/*
 * Passes a little time: first by spinning, then by giving the processor up, at last by
 * sleeping. For those who look at a word that nobody signals.
 *
 * Return: false once the host is known to be gone.
 */
bool shim_wait_turn(struct shim_wait *wait, struct shim_channel *channel);

/* Returns: how long the wait has lasted since it gave up spinning eagerly. */
uint64_t shim_wait_ns(const struct shim_wait *wait);

/*
 * Waits until the slot carries the sequence.
 *
 * Return: false where the host is gone first.
 */
bool shim_wait_reply(
	struct shim_channel *channel, struct vgpu_reply_slot *slot, uint32_t sequence);

/* Looks how many processors there are. */
void shim_wait_setup(void);
