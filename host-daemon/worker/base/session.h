/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Session: one guest process, and what all of this worker needs to know of it
 *
 * A worker serves one session in its life, so ending the session is ending the
 * process: the driver and the kernel then take back memory, contexts and mappings,
 * whatever threads are doing. The fields in the first group are constant while
 * threads other than the first run; each other group names its owner.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"
#include "driver/driver.h"
#include "vgpu/hello.h"
#include "vgpu/ring.h"
#include "worker/base/context.h"
#include "worker/base/objects.h"
#include "worker/base/ranges.h"

struct arena;
struct callbacks;
struct captures;
struct codes;
struct debts;
struct device_memory;
struct faults;
struct growth;
struct lane;
struct managed;
struct marks;
struct prints;
struct store;

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
	struct uses uses;
	struct contexts contexts;
	struct object_table objects[_VGPU_HANDLE_N]; /* all kinds but contexts */
	struct object_totals totals;
	struct ranges ranges;
	struct lane *lanes[VGPU_SLOTS_MAX]; /* made by the dispatcher, atomic */
	uint64_t image_bytes;		    /* copied for loads under way; atomic */
	uint64_t list_bytes;		    /* of graph lists being returned; atomic */
	/* Held from the look-up of a graph or node until the driver has destroyed it,
	 * or not, so that two threads of a guest do not destroy one. */
	pthread_mutex_t destroy_lock;

	/* What every call looks at, of layers above; each is set there. */
	bool writes_words;    /* by the device, see wait/words.h; constant */
	uint32_t n_captures;  /* live, see stream/capture.h; atomic */
	struct context *home; /* of the arena, see memory/arena.h; atomic */
	/* Has the driver register the shared memory, with a context that is current and
	 * becomes the home if there is none. */
	CUresult (*register_fn)(struct session *session, struct context *context);

	/* State of the layers above; each knows its own only. */
	struct marks *marks;
	struct debts *debts;
	struct faults *faults;
	struct arena *arena;
	struct growth *growth;
	struct device_memory *memory;
	struct managed *managed;
	struct store *store;
	struct codes *codes;
	struct callbacks *callbacks;
	struct captures *captures;
	struct prints *prints;
};

static inline struct vgpu_channel_control *session_control(struct session *session)
{
	return (struct vgpu_channel_control *)session->area;
}

/* Whether any stream is being captured, or may be about to. */
static inline bool session_is_capturing(const struct session *session)
{
	/* Partner: the store in set_count() of stream/capture.c. */
	return __atomic_load_n(&session->n_captures, __ATOMIC_SEQ_CST);
}

/* Rings the doorbell that the dispatcher sleeps on. Any thread. */
void session_ring(struct session *session);

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
