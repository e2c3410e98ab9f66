/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Room policy: who may have how much on the device, and whose memory makes room
 *
 * The one that has waited longest comes first, and those behind it get nothing that it
 * could use, so that large requests are not passed for ever.
 *
 * A request may also be for memory that was granted and that the driver refuses, because
 * others use the device as well. What is free by the books is nothing then: idle memory
 * goes until it adds up to what is lacking, or all of it, and the request is met when it
 * has gone. Such a request has its turn as others have, once: whoever makes another one
 * is behind all that wait, and those are not kept longer than by a request for room.
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
	ROOM_MEET,   /* what goes for its request has gone */
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
	/* Bytes that the driver refuses; 0: the request is for room. And whether others
	 * were told to go for it, which room_decide() sets. */
	uint64_t lacking;
	bool has_told;
	enum room_verdict verdict;
	/* With ROOM_MOVE: the member that lacks memory; NULL: one asks for room. */
	const struct room_member *for_lack_of;
};

/* Sets the verdict of each, and the grants. */
void room_decide(
	const struct room_policy *policy, struct room_member *members, size_t n_members);
