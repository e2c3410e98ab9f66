/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session life: the beginning and end of a session
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/checked.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "worker/base/context.h"
#include "worker/base/flight.h"
#include "worker/base/lane.h"
#include "worker/base/lookup.h"
#include "worker/base/objects.h"
#include "worker/base/ranges.h"
#include "worker/base/recorder.h"
#include "worker/base/scratch.h"
#include "worker/base/session.h"
#include "worker/base/uses.h"
#include "worker/code/code.h"
#include "worker/code/images.h"
#include "worker/code/store.h"
#include "worker/handle/device-info.h"
#include "worker/handle/texture.h"
#include "worker/memory/arena.h"
#include "worker/memory/array.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/growth.h"
#include "worker/memory/ipc.h"
#include "worker/memory/managed.h"
#include "worker/memory/mirror.h"
#include "worker/memory/notice.h"
#include "worker/memory/residency.h"
#include "worker/memory/share.h"
#include "worker/memory/virtual.h"
#include "worker/output/print.h"
#include "worker/run/latency.h"
#include "worker/run/session-life.h"
#include "worker/stream/callbacks.h"
#include "worker/stream/capture.h"
#include "worker/stream/functions.h"
#include "worker/stream/graph.h"
#include "worker/wait/debts.h"
#include "worker/wait/faults.h"
#include "worker/wait/marks.h"
#include "worker/wait/meter.h"
#include "worker/wait/words.h"

/* The numbers come from vgpud, not from the guest; these checks keep a bug there from
 * mapping memory of another channel here. */
static int check_layout(
	const struct control_assign *assign, const struct vgpu_window *window)
{
	if (!vgpu_window_is_sane(window->base, window->size, assign->shm_size) ||
		!vgpu_range_within(
			assign->area_off, VGPU_AREA_SIZE, 0, assign->shm_size) ||
		assign->extents_off > assign->shm_size ||
		assign->area_off % VGPU_EXTENT_SIZE ||
		assign->extents_off % VGPU_EXTENT_SIZE)
		return vgpu_error_origin(-EINVAL);
	return 0;
}

/* State of higher layers, to which the session has pointers. */
struct session_parts {
	struct arena arena; /* first: the block is freed by its address */
	struct lookups lookups;
	struct latency latency;
	struct marks marks;
	struct meter meter;
	struct debts debts;
	struct faults faults;
	struct growth growth;
	struct residency residency;
	struct device_memory memory;
	struct notices notices;
	struct managed managed;
	struct mirrors mirrors;
	struct virtual_memory virtual;
	struct shares shares;
	struct ipc ipc;
	struct store store;
	struct codes codes;
	struct callbacks callbacks;
	struct functions functions;
	struct captures captures;
	struct prints prints;
};

static int make_parts(struct session *session)
{
	struct session_parts *parts = calloc(1, sizeof(*parts));

	if (!parts)
		return vgpu_error_origin(-ENOMEM);
	session->arena = &parts->arena;
	session->lookups = &parts->lookups;
	session->latency = &parts->latency;
	session->marks = &parts->marks;
	session->meter = &parts->meter;
	session->debts = &parts->debts;
	session->faults = &parts->faults;
	session->growth = &parts->growth;
	session->residency = &parts->residency;
	session->memory = &parts->memory;
	session->notices = &parts->notices;
	session->managed = &parts->managed;
	session->mirrors = &parts->mirrors;
	session->virtual = &parts->virtual;
	session->shares = &parts->shares;
	session->ipc = &parts->ipc;
	session->store = &parts->store;
	session->codes = &parts->codes;
	session->callbacks = &parts->callbacks;
	session->functions = &parts->functions;
	session->captures = &parts->captures;
	session->prints = &parts->prints;
	return 0;
}

static int make_tables(struct session *session)
{
	static const size_t entry_sizes[_VGPU_HANDLE_N] = {
		[VGPU_HANDLE_FUNCTION] = sizeof(struct kernel),
		[VGPU_HANDLE_KERNEL] = sizeof(struct kernel),
		[VGPU_HANDLE_STREAM] = sizeof(struct stream),
		[VGPU_HANDLE_EVENT] = sizeof(struct event),
		[VGPU_HANDLE_ARRAY] = sizeof(struct array),
		[VGPU_HANDLE_MIPMAP] = sizeof(struct array),
		[VGPU_HANDLE_TEXREF] = sizeof(struct texture),
		[VGPU_HANDLE_SURFREF] = sizeof(struct texture),
		[VGPU_HANDLE_TEXTURE] = sizeof(struct texture),
		[VGPU_HANDLE_SURFACE] = sizeof(struct texture),
		[VGPU_HANDLE_GRAPH_NODE] = sizeof(struct graph_entry),
		[VGPU_HANDLE_GRAPH_EXEC] = sizeof(struct graph_exec),
		[VGPU_HANDLE_USER_OBJECT] = sizeof(struct user_object),
		[VGPU_HANDLE_GREEN] = sizeof(struct green),
	};
	uint32_t kind;
	int r;

	for (kind = VGPU_HANDLE_CONTEXT + 1; kind < _VGPU_HANDLE_N; kind++) {
		bool numbered =
			kind == VGPU_HANDLE_TEXTURE || kind == VGPU_HANDLE_SURFACE;
		bool unique = kind == VGPU_HANDLE_FUNCTION ||
			      kind == VGPU_HANDLE_KERNEL || kind == VGPU_HANDLE_MODULE ||
			      kind == VGPU_HANDLE_ARRAY || kind == VGPU_HANDLE_TEXREF ||
			      kind == VGPU_HANDLE_SURFREF || kind == VGPU_HANDLE_GRAPH ||
			      kind == VGPU_HANDLE_GRAPH_NODE ||
			      kind == VGPU_HANDLE_CONDITION || numbered;

		r = object_table_init(&session->objects[kind], kind,
			entry_sizes[kind] ? entry_sizes[kind] : sizeof(struct object), 0,
			unique, &session->totals);
		if (r)
			return vgpu_error_trace(r);
		session->objects[kind].per_owner = numbered;
	}
	r = contexts_init(session);
	return r ? vgpu_error_trace(r) : 0;
}

static void ask_driver(struct session *session)
{
	const struct vgpu_driver *driver = &session->driver->table;

	if (driver->cuDriverGetVersion)
		driver->cuDriverGetVersion(&session->driver_version);
	if (!driver->cuDeviceGetCount ||
		driver->cuDeviceGetCount(&session->n_devices) != CUDA_SUCCESS)
		session->n_devices = 0;
	if (session->n_devices > (int)VGPU_DEVICES_MAX)
		session->n_devices = VGPU_DEVICES_MAX;
	device_info_load(session->driver, session->n_devices);
}

int session_prepare(struct session *session, const struct driver *driver)
{
	int r;

	memset(session, 0, sizeof(*session));
	session->driver = driver;
	session->totals.n_max = OBJECTS_MAX;
	session->lanes_max = VGPU_SLOTS_MAX;
	pthread_mutex_init(&session->destroy_lock, NULL);
	r = make_parts(session);
	if (r)
		return vgpu_error_trace(r);
	growth_init(session);
	residency_init(session);
	ranges_init(&session->ranges);
	managed_init(session);
	mirror_init(session);
	virtual_init(session);
	shares_init(session);
	ipc_init(session);
	store_init(session->store);
	codes_init(session->codes);
	ask_driver(session);
	callbacks_init(session);
	functions_init(session);
	captures_init(session);
	uses_init(session);
	lookups_init(session);
	print_init(session);
	session->runner.is_dispatcher = true;
	r = scratch_init(&session->runner.scratch);
	if (!r)
		r = make_tables(session);
	return r ? vgpu_error_trace(r) : 0;
}

int session_init(struct session *session, struct worker_stats *stats,
	struct worker_use *use, struct flight *flight, int control,
	const struct control_assign *assign, const struct vgpu_window *window,
	const struct session_fds *fds)
{
	int r;

	session->channel = assign->channel;
	session->poll = assign->flags & CONTROL_ASSIGN_POLL;
	session->hugepages = assign->flags & CONTROL_ASSIGN_HUGEPAGES;
	session->doorbell = fds->doorbell;
	session->interrupt = fds->interrupt;
	session->control = control;
	session->window = *window;
	session->shm_size = assign->shm_size;
	session->area_off = assign->area_off;
	session->extents_off = assign->extents_off;
	if (assign->handles && assign->handles < OBJECTS_MAX)
		session->totals.n_max = assign->handles;
	session->totals.image_bytes_max =
		assign->image_memory ? assign->image_memory : IMAGES_HELD_MAX;
	if (session->driver->limit_launches && assign->launch_timeout)
		session->driver->limit_launches(assign->launch_timeout * 1000);
	session->stats = stats;
	session->use = use;
	session->flight = flight;
	flight_start(flight);
	session->area = (uint8_t *)(uintptr_t)(window->base + assign->area_off);
	device_memory_init(session);
	notices_init(session);
	words_init(session);
	marks_init(session);
	debts_init(session);
	faults_init(session);

	r = check_layout(assign, window);
	if (!r)
		r = device_memory_share(session, fds->quota, assign->quota_slot);
	if (!r)
		r = arena_init(
			session, fds->memory, assign->first_extent, assign->n_extents);
	if (r)
		return vgpu_error_trace(r);
	vgpu_ring_consumer_init(&session->consumer, session->area);
	return 0;
}

void session_deinit(struct session *session)
{
	uint32_t i;

	for (i = VGPU_HANDLE_CONTEXT + 1; i < _VGPU_HANDLE_N; i++)
		object_table_deinit(&session->objects[i]);
	for (i = 0; i < VGPU_SLOTS_MAX; i++)
		lane_free(session->lanes[i]);
	contexts_deinit(session);
	callbacks_deinit(session);
	functions_deinit(session);
	captures_deinit(session);
	uses_deinit(session);
	lookups_deinit(session);
	print_deinit(session);
	virtual_deinit(session);
	ipc_deinit(session);
	shares_deinit(session);
	ranges_deinit(&session->ranges);
	notices_deinit(session);
	device_memory_deinit(session);
	residency_deinit(session);
	mirror_deinit(session);
	managed_deinit(session);
	codes_deinit(session);
	store_deinit(session->store);
	arena_deinit(session);
	scratch_deinit(&session->runner.scratch);
	recorder_free(session->recorder);
	free(session->arena);
}

void session_end(struct session *session, uint32_t reason, const char *why)
{
	struct control_message message = {
		.type = CONTROL_ENDED,
		.ended.reason = reason,
	};
	enum vgpu_log_level level =
		reason == VGPU_REASON_NONE ? VGPU_LOG_INFO : VGPU_LOG_WARNING;

	vgpu_log(level, "the session on channel %u ends: %s", session->channel, why);
	print_tell_lost(session);
	recorder_close(session, reason);
	control_send(session->control, &message, NULL);
	/* Threads may be in driver calls: an orderly shutdown is impossible, and not
	 * needed. */
	_exit(reason == VGPU_REASON_HOST);
}
