/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mover of a driver that maps memory at addresses of ours
 *
 * Its memory is physical memory of cuMemCreate at reserved addresses: that of linear
 * allocations (placement.c), and what the guest has created and mapped (virtual-away.c).
 * It is copied by the driver, unmapped and released; other memory is created, mapped at
 * the same addresses and filled when it comes back.
 *
 * A device is idle if all streams of all of its contexts are complete. Their number is
 * bounded by that of objects, and a query of one takes a microsecond or less.
 */

#include <errno.h>

#include "vgpu/error.h"
#include "vgpu/handle.h"
#include "vgpu/log.h"
#include "vgpu/rate.h"
#include "worker/base/context.h"
#include "worker/base/lane.h"
#include "worker/base/session.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/mover.h"
#include "worker/memory/placement.h"
#include "worker/memory/virtual-away.h"

static bool is_capable(const struct vgpu_driver *driver)
{
	return driver->cuStreamQuery && driver->cuCtxSynchronize &&
	       driver->cuMemcpyDtoH_v2 && driver->cuMemcpyHtoD_v2;
}

/* Return: the context of an index that has the driver's and no fault, or NULL. */
static struct context *context_at(const struct session *session, uint32_t index)
{
	struct context *context =
		(struct context *)object_table_entry(&session->contexts.table, index);

	return context &&
			       __atomic_load_n(
				       &context->object.generation, __ATOMIC_ACQUIRE) &&
			       __atomic_load_n(
				       &context->object.driver, __ATOMIC_ACQUIRE) &&
			       !__atomic_load_n(&context->is_leaving, __ATOMIC_RELAXED) &&
			       !__atomic_load_n(&context->fault, __ATOMIC_RELAXED)
		       ? context
		       : NULL;
}

/* Green contexts are left out: the memory is their home's. */
static struct context *find_context(const struct session *session, CUdevice device)
{
	const uint32_t n = session->contexts.table.n_used;

	for (uint32_t i = 0; i < n; i++) {
		struct context *context = context_at(session, i);

		if (context && !context->home && context->device == device)
			return context;
	}
	return NULL;
}

static uint64_t devices_with_context(const struct session *session)
{
	uint64_t devices = 0;

	for (CUdevice i = 0; i < session->n_devices; i++)
		if (find_context(session, i))
			devices |= UINT64_C(1) << i;
	return devices;
}

/*
 * Whether work is under way
 */

/* Those of streams whose context has no fault. */
static bool is_stream_idle(struct session *session, struct stream *stream)
{
	struct context *context = stream->context;

	if (!context || !__atomic_load_n(&context->object.driver, __ATOMIC_ACQUIRE) ||
		__atomic_load_n(&context->fault, __ATOMIC_RELAXED))
		return true;
	return context_enter(session, &session->runner, context) == CUDA_SUCCESS &&
	       session->driver->table.cuStreamQuery(stream->object.driver) ==
		       CUDA_SUCCESS;
}

static bool are_streams_idle(struct session *session)
{
	const struct object_table *table = &session->objects[VGPU_HANDLE_STREAM];

	for (uint32_t i = 0; i < table->n_used; i++) {
		struct object *object = object_table_entry(table, i);

		if (object && __atomic_load_n(&object->generation, __ATOMIC_ACQUIRE) &&
			!is_stream_idle(session, (struct stream *)object))
			return false;
	}
	return true;
}

/* Default streams of threads. */
static bool are_lanes_idle(struct session *session)
{
	for (uint32_t i = 0; i < VGPU_SLOTS_MAX; i++) {
		const struct lane *lane =
			__atomic_load_n(&session->lanes[i], __ATOMIC_ACQUIRE);
		const uint32_t n =
			lane ? __atomic_load_n(&lane->n_streams, __ATOMIC_ACQUIRE) : 0;

		for (uint32_t k = 0; k < n; k++)
			if (!is_stream_idle(session, lane->streams[k]))
				return false;
	}
	return true;
}

/* Those of contexts. The driver knows about work of others, and does not wait: there is
 * none. */
static bool are_contexts_idle(struct session *session)
{
	const struct vgpu_driver *driver = &session->driver->table;
	const uint32_t n = session->contexts.table.n_used;

	for (uint32_t i = 0; i < n; i++) {
		struct context *context = context_at(session, i);

		if (context && (context_enter(session, &session->runner, context) !=
					       CUDA_SUCCESS ||
				       driver->cuStreamQuery(NULL) != CUDA_SUCCESS ||
				       driver->cuCtxSynchronize() != CUDA_SUCCESS))
			return false;
	}
	return true;
}

static int list(struct session *session, struct mover_list *list)
{
	uint64_t devices;
	bool is_idle;
	int r;

	if (!is_capable(&session->driver->table))
		return vgpu_error_origin(-ENOTSUP);
	devices = devices_with_context(session);
	is_idle = are_streams_idle(session) && are_lanes_idle(session) &&
		  are_contexts_idle(session);
	context_leave_green(session, &session->runner);
	if (!is_idle)
		return -EBUSY;
	r = placement_list(session->memory->placement, devices, list);
	if (!r)
		r = virtual_list(session, devices, list);
	return r ? vgpu_error_trace(r) : 0;
}

/*
 * Moving
 */

static bool has(
	struct session *session, const struct mover_piece *piece, CUdevice *devicep)
{
	return piece->is_of_vm
		       ? virtual_has(session, piece, devicep)
		       : placement_has(session->memory->placement, piece, devicep);
}

static CUresult copy_in_context(struct session *session, const struct mover_piece *piece,
	uint64_t at, void *host, uint64_t size, bool is_out)
{
	const struct vgpu_driver *driver = &session->driver->table;

	if (!piece->is_of_vm)
		return placement_copy(
			session->memory->placement, piece, at, host, size, is_out);
	return is_out ? driver->cuMemcpyDtoH_v2(host, piece->address + at, size)
		      : driver->cuMemcpyHtoD_v2(piece->address + at, host, size);
}

/* Enters a context of a device: if the guest has none any more, the primary one. Memory
 * that it has created outlives contexts. */
static CUresult enter(struct session *session, CUdevice device)
{
	struct context *context = find_context(session, device);

	if (!context)
		context = context_find(session,
			vgpu_handle_make(VGPU_HANDLE_CONTEXT, (uint32_t)device, 1));
	return context_enter(session, &session->runner, context);
}

static CUresult copy(struct session *session, const struct mover_piece *piece,
	uint64_t at, void *host, uint64_t size, bool is_out)
{
	CUdevice device = 0;
	CUresult result;

	if (!has(session, piece, &device))
		return CUDA_SUCCESS;
	result = enter(session, device);
	return result == CUDA_SUCCESS
		       ? copy_in_context(session, piece, at, host, size, is_out)
		       : result;
}

/* Whether the piece before is in the same memory. */
static bool is_next(const struct mover_list *list, size_t i)
{
	const struct mover_piece *piece = &list->pieces[i];

	return i && piece[-1].id == piece->id && piece[-1].is_of_vm == piece->is_of_vm;
}

static CUresult drop_one(struct session *session, const struct mover_piece *piece)
{
	return piece->is_of_vm ? virtual_drop(session, piece)
			       : placement_drop(session->memory->placement, piece);
}

static void drop(struct session *session, struct mover_list *list)
{
	static struct rate rate;
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < list->n; i++) {
		if (!is_next(list, i))
			result = drop_one(session, &list->pieces[i]);
		if (result == CUDA_SUCCESS)
			list->pieces[i].is_gone = true;
		else if (!is_next(list, i) && rate_allows(&rate))
			vgpu_log_error("the driver keeps device memory at %#llx: %d",
				(unsigned long long)list->pieces[i].address, result);
	}
}

static CUresult make(struct session *session, const struct mover_list *list)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < list->n && result == CUDA_SUCCESS; i++) {
		const struct mover_piece *piece = &list->pieces[i];

		if (!is_next(list, i))
			result = piece->is_of_vm
					 ? virtual_make(session, piece)
					 : placement_make(
						   session->memory->placement, piece);
	}
	return result;
}

const struct mover mover_of_driver = {
	.list = list,
	.copy = copy,
	.drop = drop,
	.make = make,
};
