/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: peers
 *
 * Devices are numbered as the program sees them; the host has its own numbers.
 */

#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "code/memo.h"
#include "g-remote.h"
#include "process/call.h"
#include "process/context.h"
#include "process/device.h"

/* As the description says. */
#define CAPABILITIES_AT_A_TIME 64u

CUresult shim_cuDeviceGetP2PAttribute(
	int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuDeviceGetP2PAttribute);

	if (value && srcDevice == dstDevice)
		return shim_call_error(&call, CUDA_ERROR_INVALID_DEVICE);
	return shim_remote_cuDeviceGetP2PAttribute(value, attrib, srcDevice, dstDevice);
}

static CUresult ask_capabilities(
	const Vgpu__CuDeviceGetP2PAtomicCapabilitiesRequest *request,
	unsigned int *capabilities, size_t n)
{
	struct shim_call call =
		SHIM_CALL_INIT(VGPU_CALL_cuDeviceGetP2PAtomicCapabilities);
	const Vgpu__CuDeviceGetP2PAtomicCapabilitiesReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	result = shim_memo_call(&call, &request->base,
		&vgpu__cu_device_get_p2_patomic_capabilities_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuDeviceGetP2PAtomicCapabilitiesReply *)message;
	if (reply->n_capabilities != n)
		return CUDA_ERROR_UNKNOWN;
	memcpy(capabilities, reply->capabilities, n * sizeof(*capabilities));
	return CUDA_SUCCESS;
}

CUresult shim_cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
	const CUatomicOperation *operations, unsigned int count, CUdevice srcDevice,
	CUdevice dstDevice)
{
	Vgpu__CuDeviceGetP2PAtomicCapabilitiesRequest request =
		VGPU__CU_DEVICE_GET_P2_PATOMIC_CAPABILITIES_REQUEST__INIT;
	struct shim_call call =
		SHIM_CALL_INIT(VGPU_CALL_cuDeviceGetP2PAtomicCapabilities);
	CUresult result = CUDA_SUCCESS;

	if (!capabilities || !operations || !count)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	if (shim_is_ready() && (srcDevice == dstDevice || !shim_device_get(srcDevice) ||
				       !shim_device_get(dstDevice)))
		return shim_call_error(&call, CUDA_ERROR_INVALID_DEVICE);
	request.src_device = shim_device_to_host(srcDevice);
	request.dst_device = shim_device_to_host(dstDevice);
	for (unsigned int i = 0, n; i < count && result == CUDA_SUCCESS; i += n) {
		n = count - i < CAPABILITIES_AT_A_TIME ? count - i
						       : CAPABILITIES_AT_A_TIME;
		request.wanted.data = (uint8_t *)&operations[i];
		request.wanted.len = n * sizeof(*operations);
		result = ask_capabilities(&request, &capabilities[i], n);
	}
	return result;
}

/* Whether the context can be a peer of the current one at all. */
static CUresult check_peer(struct shim_call *call, CUcontext peer)
{
	CUresult result = shim_call_check(call->id);
	const struct shim_context *context;

	if (result != CUDA_SUCCESS)
		return result;
	context = shim_context_find(peer);
	if (context == shim_thread_context(shim_thread_get()))
		return CUDA_ERROR_INVALID_CONTEXT;
	return shim_context_check(context) == CUDA_SUCCESS ? CUDA_SUCCESS
							   : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult shim_cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuCtxEnablePeerAccess);
	CUresult result = check_peer(&call, peerContext);

	if (result != CUDA_SUCCESS)
		return result;
	return shim_remote_cuCtxEnablePeerAccess(peerContext, Flags);
}

CUresult shim_cuCtxDisablePeerAccess(CUcontext peerContext)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuCtxDisablePeerAccess);
	CUresult result = check_peer(&call, peerContext);

	return result == CUDA_SUCCESS ? shim_remote_cuCtxDisablePeerAccess(peerContext)
				      : result;
}
