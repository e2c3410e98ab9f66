/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Session: the state of one guest process in its worker
 *
 * A worker serves one session in its life, so a session ends by the exit of the process:
 * the driver and the kernel then free memory, contexts and mappings, whatever the threads
 * are doing. The fields of the first group are constant while threads other than the
 * first run; each other group names its owner.
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
struct call;
struct callbacks;
struct functions;
struct captures;
struct codes;
struct debts;
struct device_memory;
struct faults;
struct flight;
struct growth;
struct ipc;
struct lane;
struct latency;
struct lookups;
struct managed;
struct marks;
struct meter;
struct mirrors;
struct notices;
struct prints;
struct recorder;
struct residency;
struct shares;
struct store;
struct trace;
struct virtual_memory;

struct session {
	/* The assignment; constant. */
	uint32_t channel;
	bool poll;	/* no doorbells: poll the ring with a growing pause */
	bool hugepages; /* ask for them */
	int doorbell;	/* rung by the guest; -1 with poll */
	int interrupt;	/* wakes the guest; -1 if it sleeps on futexes */
	int control;	/* socket to vgpud */
	struct vgpu_window window;
	uint64_t shm_size;
	uint64_t area_off;
	uint64_t extents_off;
	const struct driver *driver;
	struct worker_stats *stats;
	struct worker_use *use;
	struct worker_wishes *wishes;
	struct trace *trace;	   /* NULL: there is none; see base/trace.h */
	struct flight *flight;	   /* its entries are written by base/flight.h */
	struct recorder *recorder; /* NULL: it is not recorded */
	uint8_t *area;		   /* the channel's, at W + area_off */
	int driver_version;
	int n_devices;

	/* Owned by the dispatcher; dispatcher_sleeps is atomic, for threads that wake
	 * it. */
	struct vgpu_ring_consumer consumer;
	struct runner runner;
	bool dispatcher_sleeps;

	/* Each has a lock or a rule in its header. */
	struct uses uses;
	struct contexts contexts;
	struct object_table objects[_VGPU_HANDLE_N]; /* all kinds but contexts */
	struct object_totals totals;
	uint32_t n_descriptors; /* of resources, see handle/green.c; atomic */
	struct ranges ranges;
	struct lane *lanes[VGPU_SLOTS_MAX]; /* created by the dispatcher, atomic */
	/* Of the dispatcher: admitted lanes of the program and of the guest
	 * library, and the limit of the former, max-threads. */
	uint32_t n_lanes;
	uint32_t n_library_lanes;
	uint32_t lanes_max;
	uint64_t image_bytes; /* copied for loads in progress; atomic */
	uint64_t list_bytes;  /* of graph lists being returned; atomic */
	/* Held from the look-up of a graph or node until the driver's destroy call has
	 * returned, so that two guest threads cannot destroy it twice. */
	pthread_mutex_t destroy_lock;

	/* State of higher layers that every call reads; written by these layers. */
	bool writes_words;	    /* the device can, see wait/words.h; constant */
	uint32_t n_captures;	    /* live captures, see stream/capture.h; atomic */
	uint32_t n_global_captures; /* those in global mode; atomic */
	struct context *home;	    /* the arena's, see memory/arena.h; atomic */
	/* Registers the shared memory with the driver. The context is current, and
	 * becomes the home if there is none yet. */
	CUresult (*register_fn)(struct session *session, struct context *context);

	/* Called when the stream of a call is known, with its context current; NULL:
	 * device time is not measured here, see wait/meter.h. */
	void (*stream_fn)(struct call *call, struct stream *stream);

	struct lookups *lookups; /* see lookup.h */
	struct latency *latency; /* see run/latency.h */

	/* State of higher layers; each layer accesses only its own. */
	struct marks *marks;
	struct meter *meter;
	struct debts *debts;
	struct faults *faults;
	struct arena *arena;
	struct growth *growth;
	struct residency *residency;
	struct device_memory *memory;
	struct notices *notices;
	struct managed *managed;
	struct mirrors *mirrors;
	struct virtual_memory *virtual;
	struct shares *shares;
	struct ipc *ipc;
	struct store *store;
	struct codes *codes;
	struct callbacks *callbacks;
	struct functions *functions;
	struct captures *captures;
	struct prints *prints;
};

static inline struct vgpu_channel_control *session_control(struct session *session)
{
	return (struct vgpu_channel_control *)session->area;
}

/* Whether any stream is being captured, or a capture may be about to begin. */
static inline bool session_is_capturing(const struct session *session)
{
	/* Partner: the store in set_count() of stream/capture.c. */
	return __atomic_load_n(&session->n_captures, __ATOMIC_SEQ_CST);
}

/* Rings the doorbell on which the dispatcher sleeps. Any thread. */
void session_ring(struct session *session);

/* Adds to a counter of the session's statistics, named as in struct worker_stats. */
#define session_count(_session, _counter, _n)                                            \
	__atomic_fetch_add(&(_session)->stats->_counter, (_n), __ATOMIC_RELAXED)

/* Notes that the session has a context on a device. */
static inline void session_use_device(struct session *session, CUdevice device)
{
	/* Partner: vgpud's look at what it publishes. */
	__atomic_fetch_or(
		&session->use->devices, (uint64_t)1 << device, __ATOMIC_RELAXED);
}

/*
 * Adds the calling thread's private counts: a write to a cache line shared by all threads
 * costs as much as a step of a launch. Called now and then, and before each reply,
 * because the session may end right after it.
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
