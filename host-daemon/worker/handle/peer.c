/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on peers
 *
 * Memory placed by the worker is mapped for one device only, whatever peer access a
 * context has. So with such a driver devices report that they are not peers. Copies
 * between them work nevertheless.
 */

#include <string.h>

#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/base/object-handles.h"
#include "worker/base/session.h"
#include "worker/memory/device-memory.h"

/* Maximum in one reply, as in the description. */
#define CAPABILITIES_AT_A_TIME 64u

static bool can_be_peers(const struct call *call)
{
	return !call->session->memory->placement;
}

CUresult handle_cuDeviceCanAccessPeer(struct call *call,
	const Vgpu__CuDeviceCanAccessPeerRequest *request,
	Vgpu__CuDeviceCanAccessPeerReply *reply)
{
	int can_access = 0;
	CUresult result;

	if (!call->driver->cuDeviceCanAccessPeer)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = call->driver->cuDeviceCanAccessPeer(
		&can_access, request->dev, request->peer_dev);
	reply->can_access_peer = can_access && can_be_peers(call);
	return result;
}

CUresult handle_cuDeviceGetP2PAttribute(struct call *call,
	const Vgpu__CuDeviceGetP2PAttributeRequest *request,
	Vgpu__CuDeviceGetP2PAttributeReply *reply)
{
	int value = 0;
	CUresult result;

	if (!call->driver->cuDeviceGetP2PAttribute)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = call->driver->cuDeviceGetP2PAttribute(
		&value, request->attrib, request->src_device, request->dst_device);
	reply->value =
		can_be_peers(call) || request->attrib ==
					      CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK
			? value
			: 0;
	return result;
}

CUresult handle_cuDeviceGetP2PAtomicCapabilities(struct call *call,
	const Vgpu__CuDeviceGetP2PAtomicCapabilitiesRequest *request,
	Vgpu__CuDeviceGetP2PAtomicCapabilitiesReply *reply)
{
	const ProtobufCBinaryData *wanted = &request->wanted;
	CUatomicOperation *operations;
	CUresult result;
	size_t n = wanted->len / sizeof(*operations);

	if (!call->driver->cuDeviceGetP2PAtomicCapabilities)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!n || n > CAPABILITIES_AT_A_TIME || wanted->len % sizeof(*operations))
		return CUDA_ERROR_INVALID_VALUE;
	operations = call_alloc(call, wanted->len);
	reply->capabilities = call_alloc(call, n * sizeof(*reply->capabilities));
	if (!operations || !reply->capabilities)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(operations, wanted->data, wanted->len);
	result = call->driver->cuDeviceGetP2PAtomicCapabilities(reply->capabilities,
		operations, (unsigned int)n, request->src_device, request->dst_device);
	if (result != CUDA_SUCCESS)
		return result;
	if (!can_be_peers(call))
		memset(reply->capabilities, 0, n * sizeof(*reply->capabilities));
	reply->n_capabilities = n;
	return CUDA_SUCCESS;
}

/* Looks up the driver's context of a peer. The lane's context remains current. */
static CUresult get_peer(struct call *call, uint64_t handle, CUcontext *contextp)
{
	CUresult result;
	void *context;

	result = object_get(call, VGPU_HANDLE_CONTEXT, handle, false, &context);
	if (result != CUDA_SUCCESS)
		return result;
	*contextp = context;
	return CUDA_SUCCESS;
}

CUresult handle_cuCtxEnablePeerAccess(struct call *call,
	const Vgpu__CuCtxEnablePeerAccessRequest *request,
	Vgpu__CuCtxEnablePeerAccessReply *reply)
{
	CUcontext context;
	CUresult result;

	if (!call->driver->cuCtxEnablePeerAccess)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = get_peer(call, request->peer_context, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!can_be_peers(call))
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	return call->driver->cuCtxEnablePeerAccess(context, request->flags);
}

CUresult handle_cuCtxDisablePeerAccess(struct call *call,
	const Vgpu__CuCtxDisablePeerAccessRequest *request,
	Vgpu__CuCtxDisablePeerAccessReply *reply)
{
	CUcontext context;
	CUresult result;

	if (!call->driver->cuCtxDisablePeerAccess)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = get_peer(call, request->peer_context, &context);
	if (result != CUDA_SUCCESS)
		return result;
	return can_be_peers(call) ? call->driver->cuCtxDisablePeerAccess(context)
				  : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
