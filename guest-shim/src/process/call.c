/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call: check, pack, submit, wait, unpack
 *
 * The only user of the ring. A message of the library's own memory is packed straight
 * into it, under the lock. Any other is packed into the thread's buffer first and copied:
 * the lock is never held while memory of the program is read, which may fault or be slow.
 * A thread that finds the ring full waits without the lock.
 *
 * An abandoned lock would stop all threads, so no thread is cancelled while it holds it:
 * there is no cancellation point inside, and one that asked to be cancelled at any place
 * is made to wait for such a point.
 */

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "vgpu/log.h"
#include "vgpu/message.h"
#include "vgpu/pack.h"
#include "vgpu/reason.h"
#include "vgpu/ring.h"
#include "vgpu/unpack.h"

#include "vgpu/g-driver.pb-c.h"

#include "process/call.h"
#include "process/context.h"
#include "process/environment.h"
#include "process/host-reason.h"
#include "process/print.h"
#include "process/stream.h"
#include "wire/lock.h"
#include "wire/wait.h"

/* A step of a call without a reply, of which there are many: none is a call of a
 * function. */
#define STEP static inline __attribute__((__always_inline__))

/* Frames for a host that was rung for and has not taken any since, after which it is rung
 * for once more. */
#define RING_EVERY 64u

static struct {
	struct shim_lock lock;
	struct vgpu_ring_producer producer;
	/* Atomic: where the host's head was when it was rung for last, and how many
	 * frames were put on the ring since without ringing. */
	uint64_t rang_at;
	uint32_t n_silent;
} ring;

#define NEVER UINT64_MAX

/* What every reply message begins with: field 1 of all of them is the result. */
struct reply_head {
	ProtobufCMessage base;
	int32_t result;
};

static_assert(offsetof(Vgpu__AnyReply, result) == offsetof(struct reply_head, result),
	"every reply begins alike");

int shim_call_setup(void)
{
	shim_wait_setup();
	ring.lock = (struct shim_lock)SHIM_LOCK_INIT;
	ring.rang_at = NEVER;
	vgpu_ring_producer_init(&ring.producer, shim_channel.control);
	return 0;
}

/* Waits until the ring has room, without the lock. Return: NULL where the host is gone.
 */
static __attribute__((__noinline__)) struct vgpu_frame *wait_for_room(
	const struct shim_thread *thread, uint32_t size)
{
	struct vgpu_frame *frame = NULL;
	struct shim_wait wait = { .is_together = thread->pace.n_together };
	bool is_alive = true;
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	while (!frame && is_alive) {
		shim_unlock(&ring.lock);
		is_alive = shim_wait_turn(&wait, &shim_channel);
		shim_lock(&ring.lock);
		if (is_alive)
			frame = vgpu_ring_reserve(&ring.producer, size);
	}
	pthread_setcancelstate(cancel_state, NULL);
	return frame;
}

/*
 * Rings for a host that sleeps, unless it was rung for already: while it wakes up, each
 * launch of a burst would ring. It has taken nothing since if its head is where it was.
 * If that ring was lost, the next waiting thread rings again, as does this now and then.
 */
static __attribute__((__noinline__)) void wake_host(void)
{
	/* Partner: the store in vgpu_ring_release(), before the host sleeps. */
	const uint64_t head =
		__atomic_load_n(&ring.producer.control->head, __ATOMIC_ACQUIRE);
	int cancel_state;

	if (head == __atomic_load_n(&ring.rang_at, __ATOMIC_RELAXED) &&
		__atomic_add_fetch(&ring.n_silent, 1, __ATOMIC_RELAXED) < RING_EVERY)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	shim_channel.transport.ops->doorbell(
		&shim_channel.transport, VGPU_DOORBELL_CHANNEL(shim_channel.number));
	pthread_setcancelstate(cancel_state, NULL);
	/* Only now: a thread stopped between the two would keep others from ringing. */
	__atomic_store_n(&ring.n_silent, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ring.rang_at, head, __ATOMIC_RELAXED);
}

/* Fills the frame reserved and publishes it. */
STEP void put(struct vgpu_frame *frame, const struct shim_thread *thread, uint16_t id,
	uint16_t flags, const ProtobufCMessage *message, size_t packed)
{
	uint32_t size;

	if (vgpu_request_packer[id].type)
		packed = vgpu_request_packer[id].pack(message, frame->body);
	else if (vgpu_call_flags[id] & VGPU_CALL_F_IN_PLACE)
		packed = vgpu_message_pack(message, frame->body);
	else
		memcpy(frame->body, thread->message, packed);
	size = (uint32_t)(sizeof(*frame) + packed);
	*frame = (struct vgpu_frame){
		.size = size,
		.call = id,
		.flags = flags,
		.lane = thread->lane,
		.sequence = thread->sequence,
	};
	vgpu_ring_commit(&ring.producer, size);
}

/*
 * Puts a call on the ring. What is ordered by a stream is counted under the same lock,
 * so that the count has the order of the ring.
 *
 * Return: false where the host is gone.
 */
STEP bool submit_here(struct shim_thread *thread, uint16_t id, uint16_t flags,
	const ProtobufCMessage *message, struct shim_stream *stream)
{
	struct vgpu_frame *frame;
	uint32_t size = sizeof(*frame);
	size_t packed = 0;
	int cancel_type;

	assert(vgpu_call_request_max[id] <= sizeof(thread->message) - sizeof(*frame));
	if (vgpu_request_packer[id].type)
		size += (uint32_t)vgpu_request_packer[id].bound(message);
	else if (vgpu_call_flags[id] & VGPU_CALL_F_IN_PLACE)
		size += (uint32_t)vgpu_message_bound(message);
	else
		size += (uint32_t)(packed = vgpu_message_pack(message, thread->message));

	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancel_type);
	thread->sequence++;
	shim_lock(&ring.lock);
	frame = vgpu_ring_reserve(&ring.producer, size);
	if (__builtin_expect(!frame, 0))
		frame = wait_for_room(thread, size);
	if (frame) {
		put(frame, thread, id, flags, message, packed);
		if (stream)
			shim_stream_count(stream, flags & VGPU_FRAME_REPLY);
	}
	shim_unlock(&ring.lock);
	if (frame && __builtin_expect(vgpu_ring_is_asleep(&ring.producer), 0)) {
		wake_host();
		thread->pace.rang = true;
	}
	if (__builtin_expect(cancel_type != PTHREAD_CANCEL_DEFERRED, 0))
		pthread_setcanceltype(cancel_type, NULL);
	return frame;
}

static __attribute__((__noinline__)) bool submit(struct shim_thread *thread, uint16_t id,
	uint16_t flags, const ProtobufCMessage *message, struct shim_stream *stream)
{
	return submit_here(thread, id, flags, message, stream);
}

static __attribute__((__noinline__)) bool send_context(
	struct shim_thread *thread, uint64_t handle)
{
	Vgpu__VgpuLaneContextRequest request = VGPU__VGPU_LANE_CONTEXT_REQUEST__INIT;

	request.context = handle;
	if (!submit(thread, VGPU_CALL_vgpuLaneContext, 0, &request.base, NULL))
		return false;
	thread->lane_context = handle;
	return true;
}

/* Lets the worker know what is current in this thread, if it does not know yet. */
STEP bool submit_context(struct shim_thread *thread)
{
	uint64_t handle = shim_context_handle(shim_thread_top(thread));

	return __builtin_expect(handle == thread->lane_context, 1) ||
	       send_context(thread, handle);
}

/* Fetches what kernels printed before a fault ends a call. Return: false where the call
 * is sent all the same, because the driver prints only in calls that wait. */
static bool end_by_fault(struct shim_thread *thread, uint16_t id)
{
	if (vgpu_call_flags[id] & VGPU_CALL_F_MAY_BLOCK &&
		shim_print_is_owed(&shim_channel))
		return false;
	shim_print_check(thread, &shim_channel);
	return true;
}

/* What every call checks before anything else. */
STEP CUresult begin(uint16_t id, struct shim_thread **threadp)
{
	struct shim_thread *thread;
	CUresult fault;

	if (!shim_is_ready())
		return shim_why_not_ready();
	if (__builtin_expect(vgpu_call_flags[id] & VGPU_CALL_F_LATER, 0) &&
		vgpu_call_minor[id] > shim_channel.version.minor)
		return shim_call_refused(id, "the host's release is older");
	thread = shim_thread_get();
	if (!thread)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (shim_thread_must_not_call())
		return CUDA_ERROR_NOT_PERMITTED;
	if (vgpu_call_flags[id] & VGPU_CALL_F_CONTEXT) {
		CUresult result = shim_context_check(shim_thread_context(thread));

		if (result != CUDA_SUCCESS)
			return result;
		fault = shim_context_fault(shim_thread_context(thread));
		if (__builtin_expect(fault, 0) && end_by_fault(thread, id))
			return fault;
	}
	if (__builtin_expect(__atomic_load_n(&shim_channel.dead, __ATOMIC_RELAXED), 0))
		return SHIM_ERROR_HOST_GONE;
	if (__builtin_expect(!thread->has_lane, 0) &&
		shim_thread_take_lane(thread, &shim_channel))
		return SHIM_ERROR_HOST_GONE;
	*threadp = thread;
	return CUDA_SUCCESS;
}

static bool await_reply(struct shim_thread *thread, const struct shim_call *call,
	struct vgpu_reply_slot *slot)
{
	if (call->rests)
		return shim_wait_rest(&shim_channel, slot, thread->sequence);
	return shim_wait_reply(
		&shim_channel, &thread->pace, slot, thread->sequence, call->parks);
}

/* @reasonp:	set where there is a reply: whether the host knows why the call failed */
static CUresult receive(struct shim_thread *thread, const struct shim_call *call,
	const ProtobufCMessageDescriptor *reply_type, const ProtobufCMessage **replyp,
	uint32_t *reasonp)
{
	struct vgpu_reply_slot *slot = shim_channel_slot(&shim_channel, thread->lane);
	const struct reply_head *reply;

	if (!await_reply(thread, call, slot))
		return SHIM_ERROR_HOST_GONE;
	shim_thread_reset_arena(thread);
	*reasonp = slot->reason;
	reply = (const struct reply_head *)vgpu_unpack(&vgpu_reply_unpacker[call->id],
		reply_type, &thread->allocator,
		slot->size <= VGPU_REPLY_MAX ? slot->size : 0, slot->body);
	if (!reply) {
		vgpu_log_error("the reply to a call cannot be read");
		return CUDA_ERROR_UNKNOWN;
	}
	if (replyp)
		*replyp = &reply->base;
	return (CUresult)reply->result;
}

/* Fetches the host's sentence for a call that failed there, whose reply the caller is yet
 * to read, and says it. @kind: enum vgpu_reply_reason */
static __attribute__((__noinline__)) void tell_reason(
	struct shim_thread *thread, uint16_t id, CUresult result, uint32_t kind)
{
	Vgpu__VgpuReasonFetchRequest request = VGPU__VGPU_REASON_FETCH_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuReasonFetch);
	uint32_t kept = thread->arena_kept;
	const ProtobufCMessage *reply;

	if (!shim_host_reason_is_wanted(result, kind))
		return;
	thread->arena_kept = thread->arena_used;
	if (shim_call_sync(&call, &request.base,
		    &vgpu__vgpu_reason_fetch_reply__descriptor, &reply) == CUDA_SUCCESS)
		shim_host_reason_tell(id, result, kind,
			&((const Vgpu__VgpuReasonFetchReply *)reply)->text);
	thread->arena_kept = kept;
}

static __attribute__((__noinline__)) CUresult exchange(struct shim_thread *thread,
	const struct shim_call *call, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, const ProtobufCMessage **replyp,
	struct shim_stream *stream)
{
	int cancel_state;
	CUresult result = SHIM_ERROR_HOST_GONE;
	uint32_t reason = VGPU_REPLY_REASON_NONE;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	if (submit_context(thread) &&
		submit(thread, call->id, VGPU_FRAME_REPLY, request, stream)) {
		result = receive(thread, call, reply_type, replyp, &reason);
		if (stream)
			shim_stream_note_answer(stream);
		/* The host writes it for calls that failed. */
		if (__builtin_expect(result != CUDA_SUCCESS, 0) && reason)
			tell_reason(thread, call->id, result, reason);
	}
	pthread_setcancelstate(cancel_state, NULL);
	return result;
}

CUresult shim_call_sync(struct shim_call *call, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, const ProtobufCMessage **replyp)
{
	struct shim_thread *thread = NULL;
	CUresult result;

	if (replyp)
		*replyp = NULL;
	result = begin(call->id, &thread);
	if (result != CUDA_SUCCESS)
		return result;
	result = exchange(thread, call, request, reply_type, replyp, NULL);
	if (vgpu_call_flags[call->id] & VGPU_CALL_F_MAY_BLOCK)
		shim_print_check(thread, &shim_channel);
	return result;
}

CUresult shim_call_async(
	struct shim_call *call, const ProtobufCMessage *request, CUstream handle)
{
	struct shim_thread *thread = call->thread;
	struct shim_stream *stream = NULL;
	CUresult result;

	if (!thread) {
		result = begin(call->id, &thread);
		if (result != CUDA_SUCCESS)
			return result;
	}
	if (vgpu_call_flags[call->id] & VGPU_CALL_F_STREAM_ORDERED) {
		result = shim_stream_admit(thread, handle, &stream);
		if (result != CUDA_SUCCESS)
			return result;
	}
	if (call->wants_result || shim_environment.is_synchronous ||
		shim_channel_wants_replies())
		return exchange(thread, call, request, &vgpu__any_reply__descriptor, NULL,
			stream);
	return submit_context(thread) && submit_here(thread, call->id, 0, request, stream)
		       ? CUDA_SUCCESS
		       : SHIM_ERROR_HOST_GONE;
}

CUresult shim_call_begin(struct shim_call *call)
{
	return begin(call->id, &call->thread);
}

CUresult shim_call_check(enum vgpu_call id)
{
	struct shim_thread *thread;

	return begin((uint16_t)id, &thread);
}

CUresult shim_call_error(const struct shim_call *call, CUresult error)
{
	CUresult result = shim_call_check(call->id);

	return result == CUDA_SUCCESS ? error : result;
}

CUresult shim_call_invalid(enum vgpu_call id)
{
	CUresult result = shim_call_check(id);

	return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult shim_call_refused(enum vgpu_call id, const char *why)
{
	static uint8_t was_logged[_VGPU_CALL_N];

	SHIM_CHECK_READY();
	if (!__atomic_exchange_n(&was_logged[id], 1, __ATOMIC_RELAXED))
		vgpu_log_warning("%s is not supported%s%s", vgpu_call_name(id),
			why ? ": " : "", why ? why : "");
	return CUDA_ERROR_NOT_SUPPORTED;
}

void shim_call_lane_exit(struct shim_thread *thread)
{
	Vgpu__VgpuLaneExitRequest request = VGPU__VGPU_LANE_EXIT_REQUEST__INIT;

	submit(thread, VGPU_CALL_vgpuLaneExit, 0, &request.base, NULL);
}
