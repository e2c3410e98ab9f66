/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies
 *
 * All but one are stream-ordered and without a reply. Addresses come from the guest, so
 * each range has to be within one allocation of this session or within its arena. A copy
 * from or to arena may request a write of a word after it, by which the guest sees that
 * its staging block is free again.
 */

#include "g-handlers.h"
#include "vgpu/checked.h"
#include "vgpu/g-calls.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/object-handles.h"
#include "worker/base/recorder.h"
#include "worker/base/session.h"
#include "worker/handle/copy.h"
#include "worker/memory/access.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/arena.h"
#include "worker/wait/words.h"

#define NO_WORD UINT32_MAX
/* The largest piece of a copy through staging memory; the driver copies one while the
 * dispatcher is idle. */
#define PIECE_MAX (512u << 10)

/*
 * Frees the staging block of a refused copy. If the copy has a reply, the guest does that
 * itself.
 */
static void give_back(struct call *call, uint32_t word, uint64_t value)
{
	if (word != NO_WORD && !(call->frame->flags & VGPU_FRAME_REPLY))
		word_write_now(call->session, word, value);
}

CUresult copy_stream(
	struct call *call, uint64_t handle, uint32_t word, uint64_t value, void **streamp)
{
	CUresult result = object_get(call, VGPU_HANDLE_STREAM, handle, false, streamp);

	if (result != CUDA_SUCCESS)
		give_back(call, word, value);
	return result;
}

CUresult copy_finish(struct call *call, CUstream stream, uint32_t word, uint64_t value,
	CUresult result)
{
	bool is_told = call->frame->flags & VGPU_FRAME_REPLY;
	CUresult written;

	/* Before the word, by which the guest sees that it may change the memory. */
	if (session_is_recorded(call->session) && result == CUDA_SUCCESS)
		recorder_output(call->session, stream);
	if (word == NO_WORD || (result != CUDA_SUCCESS && is_told))
		return result;
	written = word_write(call->session, stream, word, value);
	return result == CUDA_SUCCESS ? written : result;
}

static CUresult check_host(struct call *call, uint64_t address, uint64_t size)
{
	return arena_covers(call->session, address, size) ? CUDA_SUCCESS
							  : CUDA_ERROR_INVALID_VALUE;
}

CUresult handle_cuMemcpyHtoDAsync_v2(struct call *call,
	const Vgpu__CuMemcpyHtoDAsyncV2Request *request,
	Vgpu__CuMemcpyHtoDAsyncV2Reply *reply)
{
	CUresult result;
	void *stream;

	result = copy_stream(
		call, request->h_stream, request->word, request->word_value, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	/* A copy of 0 bytes follows a series of copies, to write their word. */
	if (!request->byte_count)
		return copy_finish(
			call, stream, request->word, request->word_value, CUDA_SUCCESS);
	result = access_check(call, request->dst_device, request->byte_count);
	if (result == CUDA_SUCCESS)
		result = check_host(call, request->src_host, request->byte_count);
	if (result == CUDA_SUCCESS)
		device_memory_pace_copy(call->session, request->byte_count);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemcpyHtoDAsync_v2(request->dst_device,
			(void *)(uintptr_t)request->src_host, request->byte_count,
			stream);
	if (result == CUDA_SUCCESS) {
		session_count(call->session, copies_h2d, 1);
		session_count(call->session, bytes_h2d, request->byte_count);
		call->runner->copies_piece = request->byte_count <= PIECE_MAX;
	}
	return copy_finish(call, stream, request->word, request->word_value, result);
}

CUresult handle_cuMemcpyDtoHAsync_v2(struct call *call,
	const Vgpu__CuMemcpyDtoHAsyncV2Request *request,
	Vgpu__CuMemcpyDtoHAsyncV2Reply *reply)
{
	CUresult result;
	void *stream;

	result = copy_stream(
		call, request->h_stream, request->word, request->word_value, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = access_check(call, request->src_device, request->byte_count);
	if (result == CUDA_SUCCESS)
		result = check_host(call, request->dst_host, request->byte_count);
	if (result == CUDA_SUCCESS)
		device_memory_pace_copy(call->session, request->byte_count);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemcpyDtoHAsync_v2(
			(void *)(uintptr_t)request->dst_host, request->src_device,
			request->byte_count, stream);
	if (result == CUDA_SUCCESS) {
		session_count(call->session, copies_d2h, 1);
		session_count(call->session, bytes_d2h, request->byte_count);
		call->runner->copies_piece = request->byte_count <= PIECE_MAX;
	}
	return copy_finish(call, stream, request->word, request->word_value, result);
}

CUresult handle_cuMemcpyDtoDAsync_v2(struct call *call,
	const Vgpu__CuMemcpyDtoDAsyncV2Request *request,
	Vgpu__CuMemcpyDtoDAsyncV2Reply *reply)
{
	CUresult result;
	void *stream;

	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	if (result == CUDA_SUCCESS)
		result = access_check(call, request->dst_device, request->byte_count);
	if (result == CUDA_SUCCESS)
		result = access_check(call, request->src_device, request->byte_count);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemcpyDtoDAsync_v2(request->dst_device,
			request->src_device, request->byte_count, stream);
	if (result == CUDA_SUCCESS)
		session_count(call->session, copies_d2d, 1);
	return result;
}

/* A box in the guest's description. */
struct box {
	struct access_side to;
	struct access_side from;
	uint64_t width;
	uint64_t height;
	uint64_t depth;
	bool is_rectangle; /* for the driver's function of two dimensions */
};

/* The box of a request that has the fields of a copy of three dimensions. */
#define BOX_OF(_request)                                                                 \
	{                                                                                \
		.to = { (_request)->dst, (_request)->dst_pitch, (_request)->dst_rows },  \
		.from = { (_request)->src, (_request)->src_pitch,                        \
			(_request)->src_rows },                                          \
		.width = (_request)->width, .height = (_request)->height,                \
		.depth = (_request)->depth,                                              \
	}

static CUresult check_box(struct call *call, const struct box *box)
{
	CUresult result;

	result = access_check_side(call, &box->to, box->width, box->height, box->depth);
	if (result != CUDA_SUCCESS)
		return result;
	return access_check_side(call, &box->from, box->width, box->height, box->depth);
}

/*
 * The kind of memory of a side. The driver completes a copy from host to host before it
 * returns, which the dispatcher must not wait for: if both sides are in the arena, which
 * the device can access too, both are passed as device memory.
 */
static CUmemorytype place(struct call *call, const struct access_side *side,
	const struct access_side *other)
{
	return arena_covers(call->session, side->address, 1) &&
			       !arena_covers(call->session, other->address, 1)
		       ? CU_MEMORYTYPE_HOST
		       : CU_MEMORYTYPE_DEVICE;
}

/* The structures of the API have the same field names for both sides, but for a
 * prefix. */
#define SET_SIDE(_copy, _prefix, _type, _side)                                           \
	do {                                                                             \
		(_copy)->_prefix##MemoryType = (_type);                                  \
		(_copy)->_prefix##Pitch = (_side)->pitch;                                \
		if ((_type) == CU_MEMORYTYPE_HOST)                                       \
			(_copy)->_prefix##Host = (void *)(uintptr_t)(_side)->address;    \
		else                                                                     \
			(_copy)->_prefix##Device = (_side)->address;                     \
	} while (0)

#define SET_SIDES(_copy, _call, _box)                                                    \
	do {                                                                             \
		const struct access_side *to_ = &(_box)->to, *from_ = &(_box)->from;     \
		SET_SIDE(_copy, src, place(_call, from_, to_), from_);                   \
		SET_SIDE(_copy, dst, place(_call, to_, from_), to_);                     \
	} while (0)

static CUresult count_box(struct call *call, const struct box *box, CUresult result)
{
	uint64_t size = box->width * box->height * box->depth;

	if (result != CUDA_SUCCESS)
		return result;
	if (place(call, &box->from, &box->to) == CU_MEMORYTYPE_HOST) {
		session_count(call->session, copies_h2d, 1);
		session_count(call->session, bytes_h2d, size);
		device_memory_pace_copy(call->session, size);
	} else if (place(call, &box->to, &box->from) == CU_MEMORYTYPE_HOST) {
		session_count(call->session, copies_d2h, 1);
		session_count(call->session, bytes_d2h, size);
		device_memory_pace_copy(call->session, size);
	} else {
		session_count(call->session, copies_d2d, 1);
	}
	return result;
}

static CUresult copy_rectangle(struct call *call, const struct box *box, CUstream stream)
{
	CUDA_MEMCPY2D copy = { .WidthInBytes = box->width, .Height = box->height };

	if (!call->driver->cuMemcpy2DAsync_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	SET_SIDES(&copy, call, box);
	return call->driver->cuMemcpy2DAsync_v2(&copy, stream);
}

static CUresult copy_box(struct call *call, const struct box *box, CUstream stream)
{
	CUDA_MEMCPY3D copy = {
		.srcHeight = box->from.rows,
		.dstHeight = box->to.rows,
		.WidthInBytes = box->width,
		.Height = box->height,
		.Depth = box->depth,
	};

	if (!call->driver->cuMemcpy3DAsync_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	SET_SIDES(&copy, call, box);
	return call->driver->cuMemcpy3DAsync_v2(&copy, stream);
}

static CUresult copy_staged_box(struct call *call, const struct box *box, uint64_t handle,
	uint32_t word, uint64_t value)
{
	CUresult result;
	void *stream;

	result = copy_stream(call, handle, word, value, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = check_box(call, box);
	if (result == CUDA_SUCCESS)
		result = box->is_rectangle ? copy_rectangle(call, box, stream)
					   : copy_box(call, box, stream);
	return copy_finish(call, stream, word, value, count_box(call, box, result));
}

CUresult handle_cuMemcpy2DAsync_v2(struct call *call,
	const Vgpu__CuMemcpy2DAsyncV2Request *request,
	Vgpu__CuMemcpy2DAsyncV2Reply *reply)
{
	const struct box box = {
		.to = { request->dst, request->dst_pitch, request->height },
		.from = { request->src, request->src_pitch, request->height },
		.width = request->width,
		.height = request->height,
		.depth = 1,
		.is_rectangle = true,
	};

	return copy_staged_box(
		call, &box, request->h_stream, request->word, request->word_value);
}

CUresult handle_cuMemcpy3DAsync_v2(struct call *call,
	const Vgpu__CuMemcpy3DAsyncV2Request *request,
	Vgpu__CuMemcpy3DAsyncV2Reply *reply)
{
	const struct box box = BOX_OF(request);

	return copy_staged_box(
		call, &box, request->h_stream, request->word, request->word_value);
}

/* The driver's contexts of a copy between two contexts. */
static CUresult get_contexts(struct call *call, uint64_t to, uint64_t from,
	CUcontext *to_contextp, CUcontext *from_contextp)
{
	void *to_context, *from_context;
	CUresult result;

	result = object_get(call, VGPU_HANDLE_CONTEXT, to, false, &to_context);
	if (result == CUDA_SUCCESS)
		result =
			object_get(call, VGPU_HANDLE_CONTEXT, from, false, &from_context);
	if (result != CUDA_SUCCESS)
		return result;
	*to_contextp = to_context;
	*from_contextp = from_context;
	return CUDA_SUCCESS;
}

CUresult handle_cuMemcpy3DPeerAsync(struct call *call,
	const Vgpu__CuMemcpy3DPeerAsyncRequest *request,
	Vgpu__CuMemcpy3DPeerAsyncReply *reply)
{
	const struct box box = BOX_OF(request);
	CUDA_MEMCPY3D_PEER copy = {
		.srcHeight = box.from.rows,
		.dstHeight = box.to.rows,
		.WidthInBytes = box.width,
		.Height = box.height,
		.Depth = box.depth,
	};
	CUresult result;
	void *stream;

	if (!call->driver->cuMemcpy3DPeerAsync)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	if (result == CUDA_SUCCESS)
		result = check_box(call, &box);
	if (result == CUDA_SUCCESS)
		result = get_contexts(call, request->dst_context, request->src_context,
			&copy.dstContext, &copy.srcContext);
	if (result != CUDA_SUCCESS)
		return result;
	SET_SIDES(&copy, call, &box);
	result = call->driver->cuMemcpy3DPeerAsync(&copy, stream);
	return count_box(call, &box, result);
}

static CUresult check_peers(struct call *call, uint64_t to, uint64_t from, uint64_t size)
{
	CUresult result = access_check(call, to, size);

	return result == CUDA_SUCCESS ? access_check(call, from, size) : result;
}

CUresult handle_cuMemcpyPeer(struct call *call, const Vgpu__CuMemcpyPeerRequest *request,
	Vgpu__CuMemcpyPeerReply *reply)
{
	CUcontext to_context, from_context;
	CUresult result;

	if (!call->driver->cuMemcpyPeer)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = check_peers(
		call, request->dst_device, request->src_device, request->byte_count);
	if (result == CUDA_SUCCESS)
		result = get_contexts(call, request->dst_context, request->src_context,
			&to_context, &from_context);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemcpyPeer(request->dst_device, to_context,
			request->src_device, from_context, request->byte_count);
	if (result == CUDA_SUCCESS)
		session_count(call->session, copies_d2d, 1);
	return result;
}

CUresult handle_cuMemcpyPeerAsync(struct call *call,
	const Vgpu__CuMemcpyPeerAsyncRequest *request,
	Vgpu__CuMemcpyPeerAsyncReply *reply)
{
	CUcontext to_context, from_context;
	CUresult result;
	void *stream;

	if (!call->driver->cuMemcpyPeerAsync)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_STREAM, request->h_stream, false, &stream);
	if (result == CUDA_SUCCESS)
		result = check_peers(call, request->dst_device, request->src_device,
			request->byte_count);
	if (result == CUDA_SUCCESS)
		result = get_contexts(call, request->dst_context, request->src_context,
			&to_context, &from_context);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuMemcpyPeerAsync(request->dst_device, to_context,
			request->src_device, from_context, request->byte_count, stream);
	if (result == CUDA_SUCCESS)
		session_count(call->session, copies_d2d, 1);
	return result;
}

/* The block of a copy in each of the messages that name one. */
#define GIVE_BACK(_call, _type, _descriptor)                                             \
	do {                                                                             \
		const _type *request_ = (const _type *)call_unpack(_call, &_descriptor); \
		if (request_)                                                            \
			give_back(_call, request_->word, request_->word_value);          \
	} while (0)

void copy_give_back(struct call *call)
{
	switch (call->frame->call) {
	case VGPU_CALL_cuMemcpyHtoDAsync_v2:
		GIVE_BACK(call, Vgpu__CuMemcpyHtoDAsyncV2Request,
			vgpu__cu_memcpy_hto_dasync_v2_request__descriptor);
		break;
	case VGPU_CALL_cuMemcpyDtoHAsync_v2:
		GIVE_BACK(call, Vgpu__CuMemcpyDtoHAsyncV2Request,
			vgpu__cu_memcpy_dto_hasync_v2_request__descriptor);
		break;
	case VGPU_CALL_cuMemcpy2DAsync_v2:
		GIVE_BACK(call, Vgpu__CuMemcpy2DAsyncV2Request,
			vgpu__cu_memcpy2_dasync_v2_request__descriptor);
		break;
	case VGPU_CALL_cuMemcpy3DAsync_v2:
		GIVE_BACK(call, Vgpu__CuMemcpy3DAsyncV2Request,
			vgpu__cu_memcpy3_dasync_v2_request__descriptor);
		break;
	case VGPU_CALL_vgpuCopyArray:
		GIVE_BACK(call, Vgpu__VgpuCopyArrayRequest,
			vgpu__vgpu_copy_array_request__descriptor);
		break;
	default:
		break;
	}
}
