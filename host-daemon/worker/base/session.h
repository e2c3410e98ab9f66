/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Session: one guest process and all that this worker holds for it
 *
 * A worker serves one session in its life, so ending the session is ending the
 * process: the driver and the kernel then take back memory, contexts and mappings,
 * whatever threads are doing. The fields in the first group are constant while
 * threads other than the first run; each other group names its owner.
 */

#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"
#include "driver/driver.h"
#include "vgpu/hello.h"
#include "vgpu/ring.h"
#include "worker/base/context.h"
#include "worker/base/lane.h"
#include "worker/base/objects.h"
#include "worker/base/ranges.h"
#include "worker/code/code.h"
#include "worker/code/store.h"
#include "worker/memory/arena.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/growth.h"
#include "worker/memory/managed.h"
#include "worker/output/print.h"
#include "worker/stream/callbacks.h"
#include "worker/stream/capture.h"
#include "worker/wait/marks.h"

struct session {
	/* The assignment; constant. */
	uint32_t channel;
	bool poll;     /* no doorbells: look at the ring with a growing pause */
	int doorbell;  /* rung by the guest; -1 with poll */
	int interrupt; /* wakes the guest, or -1 where it sleeps on futexes */
	int control;   /* socket to vgpud */
	struct vgpu_window window;
	uint64_t shm_size;
	uint64_t area_off;
	uint64_t extents_off;
	const struct driver *driver;
	struct worker_stats *stats;
	uint8_t *area; /* the channel's, at W + area_off */
	int driver_version;
	int n_devices;

	/* The dispatcher's; that it sleeps is atomic, for those who may wake it. */
	struct vgpu_ring_consumer consumer;
	struct runner runner;
	bool dispatcher_sleeps;

	/* Each with its own lock or rule. */
	struct arena arena;
	struct callbacks callbacks;
	struct captures captures;
	struct fences fences;
	struct uses uses;
	struct contexts contexts;
	struct object_table objects[_VGPU_HANDLE_N]; /* all kinds but contexts */
	struct object_totals totals;
	struct prints prints;
	struct ranges ranges;
	struct lane *lanes[VGPU_SLOTS_MAX]; /* made by the dispatcher, atomic */

	struct device_memory memory;
	struct managed managed;
	struct store store;
	struct codes codes;
	uint64_t image_bytes; /* copied for loads under way; atomic */
	uint64_t list_bytes;  /* of graph lists being returned; atomic */
	/* Held from the look-up of a graph or node until the driver has destroyed it,
	 * or not, so that two threads of a guest do not destroy one. */
	pthread_mutex_t destroy_lock;

	/* A grant of arena that a lane waits for, see growth.h. */
	pthread_mutex_t growth_lock; /* held by the lane that grows the arena */
	pthread_mutex_t grant_lock;
	pthread_cond_t granted;
	struct control_grant grant;
	uint32_t grant_cookie;
	bool grant_arrived;
	bool grant_awaited;
	struct control_grant spares[GROWTH_SPARES_MAX];
	uint32_t n_spares;
};

/*
 * Does what needs to know of no guest, while there is none: makes the tables and touches
 * their memory.
 *
 * Return: 0 or -errno.
 */
int session_prepare(struct session *session, const struct driver *driver);

/* The descriptors of an assignment; all but the memory may be -1. */
struct session_fds {
	int memory;
	int quota;
	int doorbell;
	int interrupt;
};

/*
 * Takes an assignment up, once prepared: copies its numbers after checking them against
 * each other, maps the shared memory into the window. Descriptors become the session's.
 *
 * Return: 0 or -errno.
 */
int session_init(struct session *session, struct worker_stats *stats, int control,
	const struct control_assign *assign, const struct vgpu_window *window,
	const struct session_fds *fds);

/* For tests: a worker never comes back from a session. */
void session_deinit(struct session *session);

/*
 * Ends the session and the process: logs why, notifies vgpud, exits. Any thread.
 *
 * @reason:	enum vgpu_channel_reason
 * @why:	a sentence without its full stop
 */
void session_end(struct session *session, uint32_t reason, const char *why)
	__attribute__((__noreturn__));

static inline struct vgpu_channel_control *session_control(struct session *session)
{
	return (struct vgpu_channel_control *)session->area;
}

/* Adds to a counter of the session's statistics, named as in struct worker_stats. */
#define session_count(_session, _counter, _n)                                            \
	__atomic_fetch_add(&(_session)->stats->_counter, (_n), __ATOMIC_RELAXED)

/*
 * Adds what the calling thread counted for itself: a change of memory that all threads
 * write costs as much as a step of a launch. Called before any reply, since a guest that
 * was answered may end and the session with it, and now and then.
 */
static inline void session_count_own(struct session *session, struct runner *runner)
{
	if (runner->n_calls)
		session_count(session, calls, runner->n_calls);
	if (runner->n_launches)
		session_count(session, launches, runner->n_launches);
	runner->n_calls = 0;
	runner->n_launches = 0;
}
