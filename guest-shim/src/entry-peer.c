/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: peers
 *
 * Devices are numbered as the program sees them; the host has its own numbers.
 */

#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "call.h"
#include "context.h"
#include "device.h"

/* As the description says. */
#define CAPABILITIES_AT_A_TIME 64u

SHIM_EXPORT CUresult cuDeviceCanAccessPeer(
	int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	Vgpu__CuDeviceCanAccessPeerRequest request =
		VGPU__CU_DEVICE_CAN_ACCESS_PEER_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuDeviceCanAccessPeer);
	const ProtobufCMessage *reply;
	CUresult result;

	if (!canAccessPeer)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	if (shim_is_ready() && (!shim_device_get(dev) || !shim_device_get(peerDev)))
		return shim_call_error(&call, CUDA_ERROR_INVALID_DEVICE);
	request.dev = shim_device_to_host(dev);
	request.peer_dev = shim_device_to_host(peerDev);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_device_can_access_peer_reply__descriptor, &reply);
	if (result == CUDA_SUCCESS)
		*canAccessPeer = ((const Vgpu__CuDeviceCanAccessPeerReply *)reply)
					 ->can_access_peer;
	return result;
}

SHIM_EXPORT CUresult cuDeviceGetP2PAttribute(
	int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice)
{
	Vgpu__CuDeviceGetP2PAttributeRequest request =
		VGPU__CU_DEVICE_GET_P2_PATTRIBUTE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuDeviceGetP2PAttribute);
	const ProtobufCMessage *reply;
	CUresult result;

	if (!value)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	if (shim_is_ready() && (srcDevice == dstDevice || !shim_device_get(srcDevice) ||
				       !shim_device_get(dstDevice)))
		return shim_call_error(&call, CUDA_ERROR_INVALID_DEVICE);
	request.attrib = attrib;
	request.src_device = shim_device_to_host(srcDevice);
	request.dst_device = shim_device_to_host(dstDevice);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_device_get_p2_pattribute_reply__descriptor, &reply);
	if (result == CUDA_SUCCESS)
		*value = ((const Vgpu__CuDeviceGetP2PAttributeReply *)reply)->value;
	return result;
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

	result = shim_call_sync(&call, &request->base,
		&vgpu__cu_device_get_p2_patomic_capabilities_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuDeviceGetP2PAtomicCapabilitiesReply *)message;
	if (reply->n_capabilities != n)
		return CUDA_ERROR_UNKNOWN;
	memcpy(capabilities, reply->capabilities, n * sizeof(*capabilities));
	return CUDA_SUCCESS;
}

SHIM_EXPORT CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
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
	CUresult result = shim_call_error(call, CUDA_SUCCESS);
	const struct shim_context *context;

	if (result != CUDA_SUCCESS)
		return result;
	context = shim_context_find(peer);
	if (context == shim_thread_context(shim_thread_get()))
		return CUDA_ERROR_INVALID_CONTEXT;
	return shim_context_check(context) == CUDA_SUCCESS ? CUDA_SUCCESS
							   : CUDA_ERROR_INVALID_CONTEXT;
}

SHIM_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	Vgpu__CuCtxEnablePeerAccessRequest request =
		VGPU__CU_CTX_ENABLE_PEER_ACCESS_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuCtxEnablePeerAccess);
	CUresult result = check_peer(&call, peerContext);

	if (result != CUDA_SUCCESS)
		return result;
	request.peer_context = (uint64_t)(uintptr_t)peerContext;
	request.flags = Flags;
	return shim_call_sync(&call, &request.base,
		&vgpu__cu_ctx_enable_peer_access_reply__descriptor, NULL);
}

SHIM_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peerContext)
{
	Vgpu__CuCtxDisablePeerAccessRequest request =
		VGPU__CU_CTX_DISABLE_PEER_ACCESS_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuCtxDisablePeerAccess);
	CUresult result = check_peer(&call, peerContext);

	if (result != CUDA_SUCCESS)
		return result;
	request.peer_context = (uint64_t)(uintptr_t)peerContext;
	return shim_call_sync(&call, &request.base,
		&vgpu__cu_ctx_disable_peer_access_reply__descriptor, NULL);
}
