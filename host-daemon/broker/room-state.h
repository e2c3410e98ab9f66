/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Room state: what one worker may have on the device, as the broker keeps it
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpud/account.h"

struct worker_room;

/* All zeros before the worker has a session. */
struct room_state {
	struct worker_room *room; /* mapped, NULL: none */
	uint64_t granted;
	uint32_t request; /* the last one that was seen */
	uint32_t refused; /* the last one that was refused */
	uint32_t met;	  /* the last one for which memory has gone */
	bool has_told;	  /* others were told to go for `request`, which lacks memory */
	int64_t asked;	  /* ms: when the last one was seen */
	uint32_t move;	  /* the last number by which it was told to go */
	bool is_going;	  /* it has not answered that */
	int64_t going;	  /* ms: since then */
	uint64_t held;	  /* bytes that it had on the device then */
	/* Who pays for it: whose driver refused memory; NULL: nobody. */
	struct account *for_lack_of;
	int64_t busy_until;  /* ms: it could not go, and is not told to before */
	unsigned int n_over; /* how often in a row it was seen to have more */
};

/*
 * Maps the room in a worker's file, and grants what a broker before this one has granted.
 *
 * @total:	device-memory-total; 0: the worker is not limited
 *
 * Return: 0 or -errno; then it is not limited.
 */
int room_state_open(struct room_state *state, int stats, const struct account *account,
	uint64_t total);
void room_state_close(struct room_state *state);

/* What all workers of a VM may have: its limit, or more if that was lowered; UINT64_MAX:
 * there is none. */
uint64_t room_state_limit(const struct account *account);

/* Bytes of device memory of the worker that are elsewhere, as it says. */
uint64_t room_state_evicted(const struct room_state *state);
