/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Room policy: who may have how much on the device, and whose memory makes room
 *
 * The one that has waited longest comes first, and those behind it get nothing that it
 * could use, so that large requests are not passed for ever.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct room_policy {
	uint64_t total;	  /* bytes of all members */
	uint64_t slack;	  /* granted beyond a need while there is plenty */
	uint64_t idle_ms; /* without calls: memory may go, for a new allocation */
	/* The same for one whose memory comes back, and how long that waits for room. */
	uint64_t back_idle_ms;
	uint64_t back_wait_ms;
};

enum room_verdict {
	ROOM_KEEP,   /* nothing changes */
	ROOM_GRANT,  /* it has `granted` from now on */
	ROOM_TRIM,   /* the same, and that is less */
	ROOM_MOVE,   /* its memory is to go */
	ROOM_REFUSE, /* its request cannot be met */
};

struct room_member {
	uint64_t granted;
	uint64_t need;
	uint64_t idle_ms;   /* 0: it has calls */
	uint64_t waited_ms; /* since its request */
	bool is_evictable;
	bool is_asking;
	bool is_back;  /* for memory that was on the device before */
	bool is_over;  /* its VM may not have so much: refused */
	bool is_going; /* was told to go, and has not answered */
	enum room_verdict verdict;
};

/* Sets the verdict of each, and the grants. */
void room_decide(
	const struct room_policy *policy, struct room_member *members, size_t n_members);
