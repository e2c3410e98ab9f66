/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Residency: device memory that leaves the device for a while
 *
 * With device-memory-total a session asks vgpud for room on the device before it takes
 * memory (control/room.h). An idle session may be asked to make room: then all of its
 * memory that can moves to extents of the arena, and comes back before the next call that
 * may use it. Addresses stay as they are.
 *
 * The dispatcher moves it, between two calls: no lane runs a call then, and the device is
 * idle. How is the mover's affair (mover.h). Places and sizes are private; the guest can
 * write the extents, which changes its own memory only.
 *
 * The bytes are in the extents until all memory is back. A failure on the way out leaves
 * memory where it was, a failure on the way back leaves it in the extents.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/room.h"
#include "vgpu/cuda.h"
#include "worker/memory/mover.h"

struct session;

/* Growth of the arena by fewer extents at a time than these allow is not worth it. */
#define RESIDENCY_RUNS_MAX 256u

/* How often a driver that refuses memory is asked again after others have made room. What
 * they have left may be in pieces, or somebody else's meanwhile. */
#define RESIDENCY_LACK_TRIES 3u

/* Extents that take what moves. */
struct residency_run {
	uint32_t first;
	uint32_t n_extents;
};

struct residency {
	struct worker_room *room; /* NULL: anything may be on the device */
	pthread_mutex_t turn;	  /* held during a request */
	pthread_mutex_t lock;	  /* for these */
	uint64_t resident;	  /* bytes charged that are on the device, or will be */
	uint64_t evicted;	  /* bytes charged that are not */

	/* The dispatcher's. */
	bool is_out;
	const struct mover *mover; /* NULL: not known yet, or there is none */
	struct mover_list list;	   /* of what is out */
	struct residency_run runs[RESIDENCY_RUNS_MAX];
	uint32_t n_runs;
	uint64_t runs_size;
};

void residency_init(struct session *session);
void residency_deinit(struct session *session);

/* Uses the room in the file that vgpud shares. Return: 0 or -errno. */
int residency_open(struct session *session, int stats);

/* Takes room on the device for memory that was charged; may wait for vgpud. Return:
 * whether there is so much. */
bool residency_take(struct session *session, uint64_t size);
void residency_give(struct session *session, uint64_t size);

/*
 * The driver has refused memory that was taken: has vgpud move idle memory of other
 * sessions, and waits for that.
 *
 * @is_back:	it was there before
 *
 * Return: whether some has gone, so that the driver may be asked again.
 */
bool residency_ask_lacking(struct session *session, uint64_t size, bool is_back);

/*
 * For the dispatcher
 */

/* Whether memory has to come back before a call may use it. */
bool residency_is_out(const struct session *session);

/* Whether vgpud would like it to go. */
bool residency_is_wanted(const struct session *session);

/* Moves memory, if nothing is under way, and answers. The ring is empty. */
void residency_leave(struct session *session);

/*
 * Brings memory back: all of it, or nothing.
 *
 * @may_fail:	false: waits until there is room
 *
 * Return: CUDA_ERROR_OUT_OF_MEMORY if there is no room, with a reason; the driver's
 *result if it fails in another way.
 */
CUresult residency_return(struct session *session, bool may_fail);

/* Notes since when there were no calls, by CLOCK_MONOTONIC; 0: there are. */
void residency_note_idle(struct session *session, uint64_t since);
