/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ledger: the host's private state of one shared memory
 *
 * A memfd that only the keeper and its broker share. The broker works in it directly, so
 * that the next broker finds the worker and the extents of each channel. Stores are
 * ordered so that a broker that dies after any of them leaves a state from which the next
 * one can continue: the worker is recorded before it gets resources, and erased once the
 * channel is EMPTYING. An extent has its owner until it is empty, so a broker that finds
 * that phase empties the rest.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/ring-layout.h"
#include "vgpud/extent.h"
#include "vgpud/layout.h"

/* The state of a channel in the host. */
enum channel_phase {
	CHANNEL_IDLE,	  /* no worker and no resources */
	CHANNEL_WAITING,  /* hello accepted, no worker free yet */
	CHANNEL_ASSIGNED, /* ASSIGN was sent to a worker, which has not answered */
	CHANNEL_HELD,	  /* the window was refused, the worker waits for another */
	CHANNEL_OPEN,
	CHANNEL_ENDING,	  /* STOP was sent to the worker, or it was killed */
	CHANNEL_DEAD,	  /* the worker is gone, the guest has not closed yet */
	CHANNEL_EMPTYING, /* its memory is being emptied */
	_CHANNEL_PHASE_N,
};

/* The state of the guest's entry once the worker of an ending channel is reaped. */
enum channel_after {
	CHANNEL_AFTER_DEAD,    /* DEAD, with the reason */
	CHANNEL_AFTER_REFUSED, /* unchanged: the refusal was written before */
	CHANNEL_AFTER_FREE,    /* FREE, after all memory was released */
	_CHANNEL_AFTER_N,
};

struct ledger_channel {
	uint32_t phase;		/* enum channel_phase */
	uint32_t after;		/* enum channel_after, while ENDING or EMPTYING */
	uint32_t reason;	/* enum vgpu_channel_reason; NONE before ENDING */
	uint32_t served;	/* whether ASSIGN was ever sent to the worker */
	uint64_t worker;	/* identifies it to the keeper; 0: none */
	int32_t driver_version; /* of that worker */
	uint32_t signal;	/* that killed it, or 0 */

	/* Copy of the guest's hello, made once and checked. */
	uint32_t pid;
	uint32_t api_version;
	uint64_t window_base;
	uint64_t window_size;
	uint8_t boot_id[16];
	char comm[16];

	uint32_t first_extent; /* of the first grant */
	uint32_t n_extents;

	/* The last granted request for more: if repeated, it gets the same extents. */
	uint32_t grant_cookie;
	uint32_t grant_first;
	uint32_t grant_n;    /* 0: none. Stored last, erased first */
	uint32_t quota_slot; /* of the section's quota page, 0: none; see quota.h */
};

struct ledger {
	uint8_t boot_id[16]; /* of the guest kernel */
	struct ledger_channel channels[VGPU_CHANNELS_MAX];
	uint8_t owners[]; /* one for each extent */
};

/* tests/soak/books.py reads it from outside. */
static_assert(offsetof(struct ledger, channels) == 16, "read by a test");
static_assert(sizeof(struct ledger_channel) == 112, "read by a test");

static inline uint64_t ledger_size(const struct layout *layout)
{
	return sizeof(struct ledger) + layout->n_extents;
}
