/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls between shim and worker that are not part of CUDA
 */

#include <string.h>

#include "g-handlers.h"
#include "vgpu/g-calls.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/lane.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/reason.h"
#include "worker/base/session.h"
#include "worker/code/kernel.h"
#include "worker/handle/device-info.h"
#include "worker/memory/arena.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/growth.h"
#include "worker/output/driver-output.h"
#include "worker/output/print.h"
#include "worker/stream/capture.h"
#include "worker/wait/debts.h"
#include "worker/wait/marks.h"
#include "worker/wait/meter.h"

/* Bytes of vgpu_device_info.known. */
#define KNOWN_SIZE (VGPU_DEVICE_ATTRIBUTES_N / 8)

/* Describes as many devices as the guest has memory for. */
static CUresult tell_devices(struct call *call, const Vgpu__VgpuHelloRequest *request,
	Vgpu__VgpuHelloReply *reply)
{
	uint8_t *place = (uint8_t *)(uintptr_t)request->destination;
	uint64_t n = request->room / sizeof(struct vgpu_device_info);
	struct vgpu_device_info info;

	if (n > (uint64_t)call->session->n_devices)
		n = (uint64_t)call->session->n_devices;
	if (!n)
		return CUDA_SUCCESS;
	if (!arena_covers(call->session, request->destination, n * sizeof(info)))
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < n; i++) {
		CUresult result = device_info_get((int)i, &info);

		if (result != CUDA_SUCCESS)
			return result;
		info.total_memory = device_memory_limit(call->session, info.total_memory);
		memcpy(place + i * sizeof(info), &info, sizeof(info));
	}
	reply->n_told = (uint32_t)n;
	return CUDA_SUCCESS;
}

CUresult handle_vgpuHello(struct call *call, const Vgpu__VgpuHelloRequest *request,
	Vgpu__VgpuHelloReply *reply)
{
	reply->driver_version = call->session->driver_version;
	reply->n_devices = call->session->n_devices;
	reply->driver_name = (char *)driver_name(call->session->driver);
	return tell_devices(call, request, reply);
}

CUresult handle_vgpuDeviceInfo(struct call *call,
	const Vgpu__VgpuDeviceInfoRequest *request, Vgpu__VgpuDeviceInfoReply *reply)
{
	struct vgpu_device_info *info = call_alloc(call, sizeof(*info));
	CUresult result;

	if (!info)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = device_info_get(request->device, info);
	if (result != CUDA_SUCCESS)
		return result;
	reply->device_name = info->name;
	reply->uuid = (ProtobufCBinaryData){ sizeof(info->uuid), info->uuid };
	reply->total_mem = device_memory_limit(call->session, info->total_memory);
	reply->attributes = info->attributes;
	reply->n_attributes = VGPU_DEVICE_ATTRIBUTES_N;
	reply->known = (ProtobufCBinaryData){ KNOWN_SIZE, info->known };
	return CUDA_SUCCESS;
}

CUresult handle_vgpuLaneContext(struct call *call,
	const Vgpu__VgpuLaneContextRequest *request, Vgpu__VgpuLaneContextReply *reply)
{
	/* Also for an unknown handle: later calls must not use the previous context. */
	call->lane->context = request->context;
	return !request->context || context_find(call->session, request->context)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_CONTEXT;
}

/* The guest thread ended: destroys its streams. */
static void end_streams(struct lane *lane, struct runner *runner)
{
	struct session *session = lane->session;
	uint32_t i;

	for (i = 0; i < lane->n_streams; i++) {
		struct stream *stream = lane->streams[i];

		if (!stream->context)
			continue;
		marks_forget(session, stream);
		debts_forget(session, stream);
		meter_leave_stream(session, runner, stream);
		capture_remove(session, stream, false);
		if (context_enter(session, runner, stream->context) == CUDA_SUCCESS)
			session->driver->table.cuStreamDestroy_v2(stream->object.driver);
		stream->context = NULL;
	}
	lane->context = 0;
}

CUresult handle_vgpuLaneExit(struct call *call, const Vgpu__VgpuLaneExitRequest *request,
	Vgpu__VgpuLaneExitReply *reply)
{
	/* The driver would assign a capture that is left to the next guest thread of the
	 * lane. */
	captures_leave_lane(call, call->lane);
	end_streams(call->lane, call->runner);
	return CUDA_SUCCESS;
}

CUresult handle_vgpuArenaGrow(struct call *call,
	const Vgpu__VgpuArenaGrowRequest *request, Vgpu__VgpuArenaGrowReply *reply)
{
	if (growth_request(call->session, request->n_extents, &reply->first_extent,
		    &reply->n_granted))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return arena_register_growth(call->session, call->runner);
}

CUresult handle_vgpuStreamWord(struct call *call,
	const Vgpu__VgpuStreamWordRequest *request, Vgpu__VgpuStreamWordReply *reply)
{
	struct stream *stream;
	CUresult result;

	result = object_find_stream(call, request->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	return mark_bind(call->session, stream, request->word);
}

CUresult handle_vgpuFunctionInfo(struct call *call,
	const Vgpu__VgpuFunctionInfoRequest *request, Vgpu__VgpuFunctionInfoReply *reply)
{
	return kernel_describe(call, request, reply);
}

CUresult handle_vgpuFunctionAttributes(struct call *call,
	const Vgpu__VgpuFunctionAttributesRequest *request,
	Vgpu__VgpuFunctionAttributesReply *reply)
{
	return kernel_attributes(call, request, reply);
}

CUresult handle_vgpuReasonFetch(struct call *call,
	const Vgpu__VgpuReasonFetchRequest *request, Vgpu__VgpuReasonFetchReply *reply)
{
	char *text = call_alloc(call, VGPU_REASON_TEXT_MAX);

	if (!text)
		return CUDA_ERROR_OUT_OF_MEMORY;
	reply->text.data = (uint8_t *)text;
	reply->text.len = reason_get(call->lane, text);
	return CUDA_SUCCESS;
}

CUresult handle_vgpuPrintFetch(struct call *call,
	const Vgpu__VgpuPrintFetchRequest *request, Vgpu__VgpuPrintFetchReply *reply)
{
	struct print_piece *piece = call_alloc(call, sizeof(*piece));

	if (!piece)
		return CUDA_ERROR_OUT_OF_MEMORY;
	driver_output_collect();
	print_fetch(call->session, piece);
	reply->position = piece->position;
	reply->lost = piece->lost;
	reply->is_error = piece->is_error;
	reply->text.data = (uint8_t *)piece->text;
	reply->text.len = piece->size;
	return CUDA_SUCCESS;
}
