/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls between shim and worker that no program sees
 */

#include "g-handlers.h"
#include "vgpu/g-calls.h"
#include "worker/call.h"
#include "worker/growth.h"
#include "worker/kernel.h"
#include "worker/session.h"

#define NAME_MAX_SIZE 256
#define UUID_SIZE 16
#define ATTRIBUTES_N 160

CUresult handle_vgpuHello(struct call *call, const Vgpu__VgpuHelloRequest *request,
	Vgpu__VgpuHelloReply *reply)
{
	reply->driver_version = call->session->driver_version;
	reply->n_devices = call->session->n_devices;
	reply->driver_name = (char *)driver_name(call->session->driver);
	return CUDA_SUCCESS;
}

static void ask_attributes(
	struct call *call, CUdevice device, int32_t *values, uint8_t *known)
{
	int value;

	for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX && i < ATTRIBUTES_N; i++) {
		if (!attribute_answer(i, &value) &&
			call->driver->cuDeviceGetAttribute(&value, i, device) !=
				CUDA_SUCCESS)
			continue;
		values[i] = value;
		known[i / 8] |= 1 << i % 8;
	}
}

CUresult handle_vgpuDeviceInfo(struct call *call,
	const Vgpu__VgpuDeviceInfoRequest *request, Vgpu__VgpuDeviceInfoReply *reply)
{
	char *name = call_alloc(call, NAME_MAX_SIZE);
	uint8_t *uuid = call_alloc(call, UUID_SIZE);
	uint8_t *known = call_alloc(call, ATTRIBUTES_N / 8);
	int32_t *values = call_alloc(call, ATTRIBUTES_N * sizeof(*values));
	size_t total = 0;
	CUresult result;

	if (!name || !uuid || !known || !values)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (request->device < 0 || request->device >= call->session->n_devices)
		return CUDA_ERROR_INVALID_DEVICE;
	result = call->driver->cuDeviceGetName(name, NAME_MAX_SIZE, request->device);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuDeviceTotalMem_v2(&total, request->device);
	if (result == CUDA_SUCCESS && call->driver->cuDeviceGetUuid_v2)
		result =
			call->driver->cuDeviceGetUuid_v2((CUuuid *)uuid, request->device);
	else if (result == CUDA_SUCCESS)
		result = call->driver->cuDeviceGetUuid((CUuuid *)uuid, request->device);
	if (result != CUDA_SUCCESS)
		return result;
	ask_attributes(call, request->device, values, known);
	reply->device_name = name;
	reply->uuid = (ProtobufCBinaryData){ UUID_SIZE, uuid };
	reply->total_mem = device_memory_limit(call->session, total);
	reply->attributes = values;
	reply->n_attributes = ATTRIBUTES_N;
	reply->known = (ProtobufCBinaryData){ ATTRIBUTES_N / 8, known };
	return CUDA_SUCCESS;
}

CUresult handle_vgpuLaneContext(struct call *call,
	const Vgpu__VgpuLaneContextRequest *request, Vgpu__VgpuLaneContextReply *reply)
{
	/* Also where it is none: calls that follow must not go to the one before. */
	call->lane->context = request->context;
	return !request->context || context_find(call->session, request->context)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult handle_vgpuLaneExit(struct call *call, const Vgpu__VgpuLaneExitRequest *request,
	Vgpu__VgpuLaneExitReply *reply)
{
	lane_exit(call->lane, call->runner);
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

	result = stream_entry(call, request->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	return fence_bind(call->session, stream, request->word);
}

CUresult handle_vgpuFunctionInfo(struct call *call,
	const Vgpu__VgpuFunctionInfoRequest *request, Vgpu__VgpuFunctionInfoReply *reply)
{
	return kernel_describe(call, request, reply);
}

CUresult handle_vgpuPrintFetch(struct call *call,
	const Vgpu__VgpuPrintFetchRequest *request, Vgpu__VgpuPrintFetchReply *reply)
{
	struct print_piece *piece = call_alloc(call, sizeof(*piece));

	if (!piece)
		return CUDA_ERROR_OUT_OF_MEMORY;
	print_fetch(call->session, piece);
	reply->position = piece->position;
	reply->lost = piece->lost;
	reply->is_error = piece->is_error;
	reply->text.data = (uint8_t *)piece->text;
	reply->text.len = piece->size;
	return CUDA_SUCCESS;
}
