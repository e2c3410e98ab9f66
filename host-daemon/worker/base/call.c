/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call, on whatever thread it runs
 *
 * A reply is packed straight into the slot in shared memory: it is output only, so
 * what the guest does to the slot meanwhile can only spoil what the guest reads.
 */

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "vgpu/g-calls.h"
#include "vgpu/log.h"
#include "vgpu/message.h"
#include "vgpu/pack.h"
#include "vgpu/rate.h"
#include "vgpu/unpack.h"
#include "vgpu/wake.h"
#include "worker/base/call.h"
#include "worker/base/reason.h"
#include "worker/base/session.h"
#include "worker/handle/copy.h"
#include "worker/output/driver-output.h"

/* Streams that are not objects: CU_STREAM_LEGACY and CU_STREAM_PER_THREAD. */
#define STREAM_NULL 0u
#define STREAM_LEGACY 1u
#define STREAM_PER_THREAD 2u

static struct vgpu_reply_slot *slot_of(struct call *call)
{
	struct vgpu_reply_slot *slots =
		(struct vgpu_reply_slot *)(call->session->area + VGPU_SLOTS_OFF);

	return &slots[call->lane->index];
}

static void publish(struct call *call, struct vgpu_reply_slot *slot, uint32_t size)
{
	__atomic_store_n(&slot->size, size, __ATOMIC_RELAXED);
	/* Partner: the guest's acquire load of its slot's sequence. */
	__atomic_store_n(&slot->sequence, call->frame->sequence, __ATOMIC_RELEASE);
	/* The guest sets waiting, then looks at sequence again; here it is the other
	 * way round, and whoever comes second sees the other. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&slot->waiting, __ATOMIC_RELAXED))
		return;
	if (call->session->interrupt < 0)
		vgpu_wake_shared_word(&slot->sequence, INT_MAX);
	else if (vgpu_wake_eventfd(call->session->interrupt))
		vgpu_log_debug("the guest cannot be interrupted");
}

void call_names_context(struct call *call, struct context *context)
{
	for (uint32_t i = 0; i < call->n_named; i++)
		if (call->named[i] == context)
			return;
	if (call->n_named < CALL_NAMED_MAX)
		call->named[call->n_named++] = context;
}

/* A reply that is nothing but field 1, the result. */
static uint32_t pack_bare(uint8_t *body, CUresult result)
{
	uint32_t rest = result, size = 0;

	if (!rest)
		return 0;
	body[size++] = 1 << 3;
	for (; rest >= 0x80; rest >>= 7)
		body[size++] = rest | 0x80;
	body[size++] = rest;
	return size;
}

static void reply_with(struct call *call, const ProtobufCMessage *reply, CUresult result)
{
	const struct vgpu_packer *packer = &vgpu_reply_packer[call->frame->call];
	struct vgpu_reply_slot *slot = slot_of(call);
	size_t size;

	/* Nobody looks at it after a call that succeeded. */
	if (__builtin_expect(result != CUDA_SUCCESS, 0))
		slot->reason = reason_settle(call, result);
	/* The description bounds every reply. */
	if (reply && packer->type == reply->descriptor) {
		assert(packer->bound(reply) <= VGPU_REPLY_MAX ||
			protobuf_c_message_get_packed_size(reply) <= VGPU_REPLY_MAX);
		size = packer->pack(reply, slot->body);
	} else if (reply) {
		assert(vgpu_message_bound(reply) <= VGPU_REPLY_MAX ||
			protobuf_c_message_get_packed_size(reply) <= VGPU_REPLY_MAX);
		size = vgpu_message_pack(reply, slot->body);
	} else {
		size = pack_bare(slot->body, result);
	}
	publish(call, slot, size);
}

/* Whether the driver says that a context is broken. */
static bool is_broken(struct call *call, struct context *context)
{
	const struct vgpu_driver *driver = call->driver;

	return driver->cuStreamQuery &&
	       context_enter(call->session, call->runner, context) == CUDA_SUCCESS &&
	       fence_is_fault(driver->cuStreamQuery(NULL));
}

/* A fault may be of the context that is current, or of one that the call is about: where
 * these are several, the driver knows which. */
static void note_fault(struct call *call)
{
	bool has_current = vgpu_call_flags[call->frame->call] & VGPU_CALL_F_CONTEXT;

	if (!fence_is_fault(call->result))
		return;
	if (has_current && call->context)
		call_names_context(call, call->context);
	if (call->n_named == 1) {
		fence_note_fault(call->session, call->named[0], call->result);
		return;
	}
	/* To ask would spoil captures; then who asks for the context itself is told. */
	if (captures_are_live(call->session))
		return;
	for (uint32_t i = 0; i < call->n_named; i++)
		if (is_broken(call, call->named[i]))
			fence_note_fault(call->session, call->named[i], call->result);
}

int call_finish(struct call *call, const ProtobufCMessage *reply, CUresult result)
{
	call->result = result;
	/* Whoever is told of a fault has it from memory at the next call. */
	note_fault(call);
	/* A caller that was answered may destroy the stream, whose entry is then that
	 * of another. */
	if (vgpu_call_flags[call->frame->call] & VGPU_CALL_F_STREAM_ORDERED &&
		call->stream) {
		fence_count(call->session, call->runner, call->stream);
		if (call->is_large)
			fence_want_mark(call->session, call->runner, call->stream);
	}
	if (call->frame->flags & VGPU_FRAME_REPLY || !call->runner->is_dispatcher)
		session_count_own(call->session, call->runner);
	if (call->frame->flags & VGPU_FRAME_REPLY) {
		/* Whoever waited for kernels finds what they printed. */
		if (vgpu_call_flags[call->frame->call] & VGPU_CALL_F_MAY_BLOCK)
			capture_collect();
		reply_with(call, reply, result);
	}
	/* What was said of a call that nobody waits for, or that succeeded all the same.
	 */
	reason_is_said = false;
	call->replied = true;
	return 0;
}

int call_violation(struct call *call, const char *reason)
{
	call->reason = reason;
	return -EBADMSG;
}

const ProtobufCMessage *call_unpack(
	struct call *call, const ProtobufCMessageDescriptor *descriptor)
{
	const struct vgpu_frame *frame = call->frame;
	const ProtobufCMessage *message = vgpu_unpack(&vgpu_request_unpacker[frame->call],
		descriptor, call->allocator, frame->size - sizeof(*frame), frame->body);

	if (!message)
		call_violation(call, "a message does not unpack");
	return message;
}

void *call_alloc(struct call *call, size_t size)
{
	void *memory = call->allocator->alloc(call->allocator->allocator_data, size);

	return memory ? memset(memory, 0, size) : NULL;
}

static CUresult no_such(enum vgpu_handle_kind kind)
{
	switch (kind) {
	case VGPU_HANDLE_CONTEXT:
		return CUDA_ERROR_INVALID_CONTEXT;
	/* The only error that the manual knows of these. */
	case VGPU_HANDLE_GRAPH:
	case VGPU_HANDLE_GRAPH_NODE:
	case VGPU_HANDLE_GRAPH_EXEC:
		return CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_INVALID_HANDLE;
	}
}

static struct object_table *table_of(struct call *call, enum vgpu_handle_kind kind)
{
	return kind == VGPU_HANDLE_CONTEXT ? &call->session->contexts.table
					   : &call->session->objects[kind];
}

static CUresult find_stream(struct call *call, uint64_t handle, struct stream **streamp)
{
	if (handle == STREAM_PER_THREAD)
		return lane_stream(call, streamp);
	if (handle > STREAM_PER_THREAD) {
		*streamp = (struct stream *)object_table_find(
			table_of(call, VGPU_HANDLE_STREAM), handle);
		return *streamp ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	}
	if (!call->context)
		return CUDA_ERROR_INVALID_CONTEXT;
	*streamp = &call->context->legacy;
	/* Set at first use, before anything can be owed to the stream. */
	if (!(*streamp)->context)
		(*streamp)->context = call->context;
	return CUDA_SUCCESS;
}

CUresult stream_entry(struct call *call, uint64_t handle, struct stream **streamp)
{
	CUresult result = find_stream(call, handle, streamp);

	if (result == CUDA_SUCCESS && (*streamp)->context)
		call_names_context(call, (*streamp)->context);
	return result;
}

CUresult object_entry(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	struct object **objectp)
{
	if (kind == VGPU_HANDLE_STREAM)
		return stream_entry(call, handle, (struct stream **)objectp);
	/* A kernel may stand wherever a function is asked for. */
	if (kind == VGPU_HANDLE_FUNCTION &&
		vgpu_handle_kind(handle) == VGPU_HANDLE_KERNEL)
		kind = VGPU_HANDLE_KERNEL;
	*objectp = object_table_find(table_of(call, kind), handle);
	if (!*objectp)
		return no_such(kind);
	/* What has an owner is in a context. */
	if ((*objectp)->owner)
		call_names_context(call, (struct context *)(*objectp)->owner);
	return CUDA_SUCCESS;
}

/* What is retained only now has become current in place of the call's own context. */
static CUresult name_context(struct call *call, struct context *context)
{
	CUresult result;

	call_names_context(call, context);
	result = context_ensure(call->session, call->runner, context);
	if (result == CUDA_SUCCESS &&
		vgpu_call_flags[call->frame->call] & VGPU_CALL_F_CONTEXT)
		result = context_enter(call->session, call->runner, call->context);
	return result;
}

CUresult object_get(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	bool null_ok, void **driver_handlep)
{
	struct object *object;
	CUresult result;

	if (!handle && null_ok && kind != VGPU_HANDLE_STREAM) {
		*driver_handlep = NULL;
		return CUDA_SUCCESS;
	}
	result = object_entry(call, kind, handle, &object);
	if (result != CUDA_SUCCESS)
		return result;
	if (kind == VGPU_HANDLE_STREAM)
		call->stream = (struct stream *)object;
	if (kind == VGPU_HANDLE_CONTEXT) {
		result = name_context(call, (struct context *)object);
		if (result != CUDA_SUCCESS)
			return result;
	}
	*driver_handlep = object->driver;
	return use_is_noted(call, kind, handle)
		       ? use_begin(call, kind, handle, object->driver, object->owner)
		       : CUDA_SUCCESS;
}

static CUresult no_object(const struct call *call, int r)
{
	if (r == OBJECTS_E_LIMIT)
		reason_say(VGPU_REPLY_REASON_LIMIT,
			"a process of this VM may have %u streams, events, kernels and "
			"other objects at once: handles = in vgpud.conf on the host sets "
			"that",
			call->session->totals.n_max);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Libraries and what comes from them directly outlive contexts, as graphs do; links have
 * state of the worker's that only their destruction frees. */
static bool is_free_standing(enum vgpu_handle_kind kind)
{
	return kind == VGPU_HANDLE_LIBRARY || kind == VGPU_HANDLE_KERNEL ||
	       kind == VGPU_HANDLE_LINK || kind == VGPU_HANDLE_GRAPH ||
	       kind == VGPU_HANDLE_GRAPH_NODE || kind == VGPU_HANDLE_GRAPH_EXEC;
}

CUresult object_add_like(struct call *call, enum vgpu_handle_kind kind,
	void *driver_handle, const struct object *parent, const struct object *like,
	uint64_t *handlep)
{
	CUresult result;

	pthread_mutex_lock(&call->session->contexts.lock);
	result = object_add_locked(call, kind, driver_handle, parent, like, handlep);
	pthread_mutex_unlock(&call->session->contexts.lock);
	return result;
}

CUresult object_add_locked(struct call *call, enum vgpu_handle_kind kind,
	void *driver_handle, const struct object *parent, const struct object *like,
	uint64_t *handlep)
{
	struct object *object;
	int r;

	if (!is_free_standing(kind) && !context_is_same(call))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	r = object_table_add(table_of(call, kind), driver_handle,
		is_free_standing(kind) ? NULL : call->context, parent, like, &object);
	if (r)
		return no_object(call, r);
	*handlep = object_handle(table_of(call, kind), object);
	return CUDA_SUCCESS;
}

CUresult object_add_child(struct call *call, enum vgpu_handle_kind kind,
	void *driver_handle, const struct object *parent, uint64_t *handlep)
{
	const struct stream stream = { .context = call->context, .is_entry = true };

	return object_add_like(call, kind, driver_handle, parent,
		kind == VGPU_HANDLE_STREAM ? &stream.object : NULL, handlep);
}

CUresult object_add(struct call *call, enum vgpu_handle_kind kind, void *driver_handle,
	uint64_t *handlep)
{
	return object_add_child(call, kind, driver_handle, NULL, handlep);
}

CUresult object_add_at(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	void *driver_handle, const struct object *like)
{
	struct object *object;
	int r;

	pthread_mutex_lock(&call->session->contexts.lock);
	r = context_is_same(call) ? object_table_add_at(table_of(call, kind), handle,
					    driver_handle, call->context, like, &object)
				  : OBJECTS_E_NO_OWNER;
	pthread_mutex_unlock(&call->session->contexts.lock);
	switch (r) {
	case 0:
		return CUDA_SUCCESS;
	case OBJECTS_E_NO_OWNER:
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	case OBJECTS_E_TAKEN:
	case OBJECTS_E_INVALID:
		return CUDA_ERROR_INVALID_HANDLE;
	default:
		return no_object(call, r);
	}
}

CUresult object_take(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	void **driver_handlep)
{
	return object_table_remove(table_of(call, kind), handle, driver_handlep)
		       ? CUDA_SUCCESS
		       : no_such(kind);
}

void object_forget_children(struct call *call, const struct object *parent)
{
	struct range range;
	uint32_t i;

	for (i = VGPU_HANDLE_CONTEXT + 1; i < _VGPU_HANDLE_N; i++)
		object_table_remove_owned(&call->session->objects[i], parent);
	while (!ranges_remove_owned(&call->session->ranges, parent, &range))
		;
}

CUresult range_check(struct call *call, uint64_t address, uint64_t size)
{
	return ranges_cover(&call->session->ranges, address, size) ||
			       arena_covers(call->session, address, size)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

void call_init(struct call *call, struct session *session, struct runner *runner,
	struct lane *lane, uint64_t context, const struct vgpu_frame *frame)
{
	scratch_reset(&runner->scratch);
	/* One by one: clearing all of it first costs more than the rest of this. What is
	 * beyond n_named is never read. */
	call->session = session;
	call->driver = &session->driver->table;
	call->lane = lane;
	call->runner = runner;
	call->context = context ? context_find(session, context) : NULL;
	call->context_generation = vgpu_handle_generation(context);
	call->context_life =
		call->context ? __atomic_load_n(&call->context->life, __ATOMIC_RELAXED)
			      : 0;
	call->frame = frame;
	call->allocator = &runner->scratch.allocator;
	call->result = CUDA_SUCCESS;
	call->stream = NULL;
	call->n_named = 0;
	call->reason = NULL;
	call->replied = false;
	call->is_large = false;
}

static CUresult enter(struct call *call, uint64_t context)
{
	if (context && !call->context)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return context_enter(call->session, call->runner, call->context);
}

/* What nobody waited for is told by the control page, the log and the counters. */
static void note_result(struct call *call)
{
	static struct rate rate;

	if (call->result == CUDA_SUCCESS || fence_is_fault(call->result) ||
		call->frame->flags & VGPU_FRAME_REPLY)
		return;
	session_count(call->session, refused_async, 1);
	if (rate_allows(&rate))
		vgpu_log_warning("%s was refused with %d, and has no reply",
			vgpu_call_name(call->frame->call), call->result);
}

int call_run(struct session *session, struct runner *runner, struct lane *lane,
	uint64_t context, const struct vgpu_frame *frame, const char **whyp)
{
	uint32_t flags = vgpu_call_flags[frame->call];
	CUresult result = CUDA_SUCCESS;
	struct call call;
	int r;

	runner->n_calls++;
	call_init(&call, session, runner, lane, context, frame);
	if (flags & VGPU_CALL_F_CONTEXT)
		result = enter(&call, context);
	if (result == CUDA_SUCCESS) {
		r = dispatch_call(&call);
	} else {
		copy_give_back(&call);
		r = call_finish(&call, NULL, result);
	}
	uses_end(&call);
	if (!r && call.result != CUDA_SUCCESS && !(frame->flags & VGPU_FRAME_REPLY))
		callback_give_back(&call);
	if (r) {
		*whyp = call.reason ? call.reason : "a call cannot be decoded";
		return r;
	}
	assert(call.replied);
	note_result(&call);
	return 0;
}
