/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers: the memory of other devices
 *
 * Copies can access all memory. A kernel can access that of its own device, memory shared
 * by host and devices, and that of devices with a context to which its own context has
 * been given access. An entry of a context that has ended since is ignored when the space
 * is next built.
 */

#include "api/api.h"

/* Whether what was in the other context then is there still. */
static bool peer_is_live(const struct peer *peer)
{
	return peer->context && object_hold(peer->context, OBJECT_CONTEXT) &&
	       context_is_active(peer->context) &&
	       context_generation(peer->context) == peer->generation;
}

/* Devices whose memory the context reaches: bit n is device n. */
static uint32_t peer_devices(CUcontext context)
{
	uint32_t devices = 1u << context->device;

	for (uint32_t i = 0; i < CONTEXT_PEERS_MAX; i++)
		if (peer_is_live(&context->peers[i]))
			devices |= 1u << context->peers[i].context->device;
	return devices;
}

void context_make_space(CUcontext context)
{
	memory_space(&softgpu_device.memory, (uint32_t)context->device,
		(1u << softgpu_device.n_devices) - 1, &context->space);
	context_open_space(context);
}

static bool space_has(const struct softgpu_space *space, uint64_t base)
{
	for (uint32_t i = 0; i < space->n_windows; i++)
		if (space->windows[i].base == base)
			return true;
	return false;
}

/* Blocks may begin meanwhile, in other threads. Each takes a copy, in which a window is
 * either all there or has no size. */
void context_open_space(CUcontext context)
{
	struct softgpu_space all, reached;

	memory_space(&softgpu_device.memory, (uint32_t)context->device,
		(1u << softgpu_device.n_devices) - 1, &all);
	memory_space(&softgpu_device.memory, (uint32_t)context->device,
		peer_devices(context), &reached);
	for (uint32_t i = 0; i < all.n_windows; i++) {
		bool is_reached = space_has(&reached, all.windows[i].base);

		__atomic_store_n(&context->space.windows[i].size,
			is_reached ? all.windows[i].size : 0, __ATOMIC_RELEASE);
	}
}

CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	API_CALL;
	CUresult result;

	result = device_get(dev);
	if (!result)
		result = device_get(peerDev);
	if (result)
		return result;
	if (!canAccessPeer)
		return CUDA_ERROR_INVALID_VALUE;
	/* A device is no peer of itself. */
	*canAccessPeer = dev != peerDev;
	return CUDA_SUCCESS;
}

static CUresult peer_check_devices(CUdevice from, CUdevice to)
{
	CUresult result;

	result = device_get(from);
	if (!result)
		result = device_get(to);
	if (result)
		return result;
	return from == to ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(
	int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice)
{
	API_CALL;
	CUresult result;

	result = peer_check_devices(srcDevice, dstDevice);
	if (result)
		return result;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attrib) {
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
		*value = 1;
		return CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
	case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
		*value = 0;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

#define BOTH_SIGNS (CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED)
#define BOTH_SIZES (CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64)
#define WRAPPING                                                                         \
	(CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_SCALAR_32 |                \
		CU_ATOMIC_CAPABILITY_REDUCTION)

/* All memory is reached alike, so these are the operations of kernels. */
static const unsigned int capabilities_of[CU_ATOMIC_OPERATION_MAX] = {
	[CU_ATOMIC_OPERATION_INTEGER_ADD... CU_ATOMIC_OPERATION_INTEGER_MAX] =
		BOTH_SIGNS | BOTH_SIZES | CU_ATOMIC_CAPABILITY_REDUCTION,
	[CU_ATOMIC_OPERATION_INTEGER_INCREMENT] = WRAPPING,
	[CU_ATOMIC_OPERATION_INTEGER_DECREMENT] = WRAPPING,
	[CU_ATOMIC_OPERATION_AND... CU_ATOMIC_OPERATION_XOR] =
		BOTH_SIGNS | BOTH_SIZES | CU_ATOMIC_CAPABILITY_REDUCTION,
	[CU_ATOMIC_OPERATION_EXCHANGE... CU_ATOMIC_OPERATION_CAS] =
		BOTH_SIGNS | BOTH_SIZES,
	[CU_ATOMIC_OPERATION_FLOAT_ADD] =
		CU_ATOMIC_CAPABILITY_SIGNED | BOTH_SIZES | CU_ATOMIC_CAPABILITY_REDUCTION,
};

CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
	const CUatomicOperation *operations, unsigned int count, CUdevice srcDevice,
	CUdevice dstDevice)
{
	API_CALL;
	CUresult result;

	result = peer_check_devices(srcDevice, dstDevice);
	if (result)
		return result;
	if (!capabilities || !operations || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count; i++)
		if ((unsigned int)operations[i] >= CU_ATOMIC_OPERATION_MAX)
			return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count; i++)
		capabilities[i] = capabilities_of[operations[i]];
	return CUDA_SUCCESS;
}

/* With device.lock. Return: the entry of the peer as it is now, or NULL. */
static struct peer *peer_find(CUcontext context, CUcontext peer)
{
	for (uint32_t i = 0; i < CONTEXT_PEERS_MAX; i++)
		if (context->peers[i].context == peer && peer_is_live(&context->peers[i]))
			return &context->peers[i];
	return NULL;
}

/* With device.lock: entries of contexts that have ended since are free. */
static struct peer *peer_free_entry(CUcontext context)
{
	for (uint32_t i = 0; i < CONTEXT_PEERS_MAX; i++)
		if (!peer_is_live(&context->peers[i]))
			return &context->peers[i];
	return NULL;
}

static CUresult peer_check(CUcontext *peerp, CUcontext *contextp)
{
	CUgreenCtx green;
	CUresult result;

	result = context_current(contextp);
	if (result)
		return result;
	*peerp = context_hold(*peerp, &green);
	if (!*peerp || !context_is_active(*peerp) || *peerp == *contextp)
		return CUDA_ERROR_INVALID_CONTEXT;
	return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	API_CALL;
	CUcontext context;
	struct peer *peer;
	CUresult result;

	result = peer_check(&peerContext, &context);
	if (result)
		return result;
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (peerContext->device == context->device)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	/* The engine reads the space at the start of each block. */
	result = sched_context_wait(&context->sched);
	if (result)
		return result;
	pthread_mutex_lock(&softgpu_device.lock);
	peer = peer_free_entry(context);
	if (peer_find(context, peerContext)) {
		result = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	} else if (!peer) {
		result = CUDA_ERROR_TOO_MANY_PEERS;
	} else {
		*peer = (struct peer){ peerContext, context_generation(peerContext) };
		context_open_space(context);
	}
	pthread_mutex_unlock(&softgpu_device.lock);
	return result;
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext)
{
	API_CALL;
	CUcontext context;
	struct peer *peer;
	CUresult result;

	result = peer_check(&peerContext, &context);
	if (result)
		return result;
	result = sched_context_wait(&context->sched);
	if (result)
		return result;
	pthread_mutex_lock(&softgpu_device.lock);
	peer = peer_find(context, peerContext);
	if (!peer) {
		result = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	} else {
		*peer = (struct peer){ 0 };
		context_open_space(context);
	}
	pthread_mutex_unlock(&softgpu_device.lock);
	return result;
}
