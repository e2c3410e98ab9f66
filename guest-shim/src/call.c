/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call: check, pack, submit, wait, unpack
 *
 * The only user of ring and protobuf-c. A message is packed into the thread's own buffer
 * and copied to the ring under the lock: so the lock is never held while memory of the
 * program is read, which may fault or be slow, and only for the time of a small copy. How
 * long a packed message can get is known from the description, so it need not be
 * measured.
 *
 * Whoever finds the ring full waits without the lock. Thread cancellation is off from the
 * first touch of shared state to the last: an abandoned lock would stop all threads.
 */

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "vgpu/log.h"
#include "vgpu/ring.h"

#include "vgpu/g-driver.pb-c.h"

#include "call.h"
#include "context.h"
#include "environment.h"
#include "lock.h"
#include "print.h"
#include "stream.h"
#include "wait.h"

static struct {
	struct shim_lock lock;
	struct vgpu_ring_producer producer;
} ring;

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
	vgpu_ring_producer_init(&ring.producer, shim_channel.control);
	return 0;
}

/*
 * Puts a frame on the ring. What is ordered by a stream is counted under the same lock,
 * so that the count has the order of the ring.
 *
 * Return: false where the host is gone.
 */
static bool submit(const struct shim_thread *thread, uint16_t id, uint16_t flags,
	uint32_t body_size, struct shim_stream *stream)
{
	uint32_t size = (uint32_t)sizeof(struct vgpu_frame) + body_size;
	struct shim_wait wait = {};
	struct vgpu_frame *frame;
	bool is_asleep;

	shim_lock(&ring.lock);
	while (!(frame = vgpu_ring_reserve(&ring.producer, size))) {
		shim_unlock(&ring.lock);
		if (!shim_wait_turn(&wait, &shim_channel))
			return false;
		shim_lock(&ring.lock);
	}
	*frame = (struct vgpu_frame){
		.size = size,
		.call = id,
		.flags = flags,
		.lane = thread->lane,
		.sequence = thread->sequence,
	};
	memcpy(frame->body, thread->message, body_size);
	if (stream)
		shim_stream_count(stream, flags & VGPU_FRAME_REPLY);
	is_asleep = vgpu_ring_commit(&ring.producer, size);
	shim_unlock(&ring.lock);

	if (is_asleep)
		shim_channel.transport.ops->doorbell(&shim_channel.transport,
			VGPU_DOORBELL_CHANNEL(shim_channel.number));
	return true;
}

static uint32_t pack(
	struct shim_thread *thread, const ProtobufCMessage *message, uint16_t id)
{
	assert(vgpu_call_request_max[id] <=
		sizeof(thread->message) - sizeof(struct vgpu_frame));
	return (uint32_t)protobuf_c_message_pack(message, thread->message);
}

/* Lets the worker know what is current in this thread, if it does not know yet. */
static bool submit_context(struct shim_thread *thread)
{
	Vgpu__VgpuLaneContextRequest request = VGPU__VGPU_LANE_CONTEXT_REQUEST__INIT;
	uint64_t handle = shim_context_handle(shim_thread_context(thread));

	if (__builtin_expect(handle == thread->lane_context, 1))
		return true;
	request.context = handle;
	thread->sequence++;
	if (!submit(thread, VGPU_CALL_vgpuLaneContext, 0,
		    pack(thread, &request.base, VGPU_CALL_vgpuLaneContext), NULL))
		return false;
	thread->lane_context = handle;
	return true;
}

/* A driver that lets text out in calls that wait has to be called, fault or none. */
static bool ends_by_fault(struct shim_thread *thread, uint16_t id)
{
	if (vgpu_call_flags[id] & VGPU_CALL_F_MAY_BLOCK &&
		shim_print_is_owed(&shim_channel))
		return false;
	shim_print_check(thread, &shim_channel);
	return true;
}

/* What every call checks before anything else. */
static CUresult begin(uint16_t id, struct shim_thread **threadp)
{
	struct shim_thread *thread;
	CUresult fault;

	if (!shim_is_ready())
		return shim_why_not_ready();
	thread = shim_thread_get();
	if (!thread)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (__builtin_expect(thread->is_in_callback, 0))
		return CUDA_ERROR_NOT_PERMITTED;
	if (vgpu_call_flags[id] & VGPU_CALL_F_CONTEXT) {
		CUresult result = shim_context_check(shim_thread_context(thread));

		if (result != CUDA_SUCCESS)
			return result;
		fault = shim_context_fault(shim_thread_context(thread));
		if (__builtin_expect(fault, 0) && ends_by_fault(thread, id))
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

static CUresult receive(struct shim_thread *thread,
	const ProtobufCMessageDescriptor *reply_type, const ProtobufCMessage **replyp)
{
	struct vgpu_reply_slot *slot = shim_channel_slot(&shim_channel, thread->lane);
	const struct reply_head *reply;

	if (!shim_wait_reply(&shim_channel, slot, thread->sequence))
		return SHIM_ERROR_HOST_GONE;
	shim_thread_reset_arena(thread);
	reply = (const struct reply_head *)protobuf_c_message_unpack(reply_type,
		&thread->allocator, slot->size <= VGPU_REPLY_MAX ? slot->size : 0,
		slot->body);
	if (!reply) {
		vgpu_log_error("the reply to a call cannot be read");
		return CUDA_ERROR_UNKNOWN;
	}
	if (replyp)
		*replyp = &reply->base;
	return (CUresult)reply->result;
}

static CUresult exchange(struct shim_thread *thread, uint16_t id,
	const ProtobufCMessage *request, const ProtobufCMessageDescriptor *reply_type,
	const ProtobufCMessage **replyp, struct shim_stream *stream)
{
	int cancel_state;
	CUresult result = SHIM_ERROR_HOST_GONE;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	if (submit_context(thread)) {
		uint32_t size = pack(thread, request, id);

		thread->sequence++;
		if (submit(thread, id, VGPU_FRAME_REPLY, size, stream)) {
			result = receive(thread, reply_type, replyp);
			if (stream)
				shim_stream_note_answer(stream);
		}
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
	result = exchange(thread, call->id, request, reply_type, replyp, NULL);
	if (vgpu_call_flags[call->id] & VGPU_CALL_F_MAY_BLOCK)
		shim_print_check(thread, &shim_channel);
	return result;
}

static CUresult send(struct shim_thread *thread, uint16_t id,
	const ProtobufCMessage *request, struct shim_stream *stream)
{
	int cancel_state;
	bool is_sent = false;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	if (submit_context(thread)) {
		uint32_t size = pack(thread, request, id);

		thread->sequence++;
		is_sent = submit(thread, id, 0, size, stream);
	}
	pthread_setcancelstate(cancel_state, NULL);
	return is_sent ? CUDA_SUCCESS : SHIM_ERROR_HOST_GONE;
}

CUresult shim_call_async(
	struct shim_call *call, const ProtobufCMessage *request, CUstream handle)
{
	struct shim_stream *stream = NULL;
	struct shim_thread *thread = NULL;
	CUresult result;

	result = begin(call->id, &thread);
	if (result != CUDA_SUCCESS)
		return result;
	if (vgpu_call_flags[call->id] & VGPU_CALL_F_STREAM_ORDERED) {
		result = shim_stream_admit(thread, handle, &stream);
		if (result != CUDA_SUCCESS)
			return result;
	}
	if (call->wants_result || shim_environment.is_synchronous)
		return exchange(thread, call->id, request, &vgpu__any_reply__descriptor,
			NULL, stream);
	return send(thread, call->id, request, stream);
}

CUresult shim_call_error(struct shim_call *call, CUresult error)
{
	struct shim_thread *thread = NULL;
	CUresult result = begin(call->id, &thread);

	return result == CUDA_SUCCESS ? error : result;
}

CUresult shim_call_refused(enum vgpu_call id)
{
	static uint8_t was_logged[_VGPU_CALL_N];

	SHIM_CHECK_READY();
	if (!__atomic_exchange_n(&was_logged[id], 1, __ATOMIC_RELAXED))
		vgpu_log_warning("%s is not supported", vgpu_call_name(id));
	return CUDA_ERROR_NOT_SUPPORTED;
}

void shim_call_lane_exit(struct shim_thread *thread)
{
	Vgpu__VgpuLaneExitRequest request = VGPU__VGPU_LANE_EXIT_REQUEST__INIT;

	thread->sequence++;
	submit(thread, VGPU_CALL_vgpuLaneExit, 0,
		pack(thread, &request.base, VGPU_CALL_vgpuLaneExit), NULL);
}
