/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: memory of other processes
 *
 * A handle names the pages of an allocation by a token, and the place of the allocation
 * in them. To open it, the pages are imported and mapped like memory of cuMemCreate(),
 * once for all allocations in them.
 */

#include <string.h>

#include "vgpu/checked.h"
#include "vgpu/g-driver.pb-c.h"

#include "entry/ipc.h"
#include "memory/range.h"
#include "process/call.h"
#include "process/context.h"
#include "process/device.h"
#include "process/thread.h"

#define MAGIC 0x63706976u /* "vipc" */

/* What is in a CUipcMemHandle, which is opaque to programs. */
struct contents {
	uint32_t magic;
	int32_t device; /* the host's number */
	uint8_t token[SHIM_TOKEN_SIZE];
	uint64_t process; /* a random number of the one that exports */
	uint64_t pages_size;
	uint64_t offset;
	uint64_t size;
};

_Static_assert(sizeof(struct contents) <= sizeof(CUipcMemHandle), "it fits in");

CUresult shim_cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	Vgpu__CuIpcGetMemHandleRequest request =
		VGPU__CU_IPC_GET_MEM_HANDLE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuIpcGetMemHandle);
	struct contents contents = { .magic = MAGIC };
	const Vgpu__CuIpcGetMemHandleReply *reply;
	const ProtobufCMessage *message;
	struct shim_range range;
	CUresult result;

	if (!pHandle || !shim_range_find(dptr, &range) || range.kind != SHIM_RANGE_DEVICE)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.dptr = dptr;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_ipc_get_mem_handle_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuIpcGetMemHandleReply *)message;
	if (reply->token.len != sizeof(contents.token))
		return CUDA_ERROR_UNKNOWN;
	memcpy(contents.token, reply->token.data, sizeof(contents.token));
	contents.device = shim_device_to_host(range.context->device);
	contents.pages_size = reply->pages_size;
	contents.offset = reply->offset;
	contents.size = reply->size;
	contents.process = shim_ipc_process();
	memset(pHandle, 0, sizeof(*pHandle));
	memcpy(pHandle, &contents, sizeof(contents));
	return CUDA_SUCCESS;
}

/* The handle is another process's: it may be anything. */
static CUresult check(const struct contents *contents)
{
	if (contents->magic != MAGIC || !contents->size ||
		!vgpu_range_within(
			contents->offset, contents->size, 0, contents->pages_size))
		return CUDA_ERROR_INVALID_VALUE;
	/* CUDA Runtime API, cudaIpcOpenMemHandle: for memory of the same process. */
	return contents->process == shim_ipc_process() ? CUDA_ERROR_INVALID_CONTEXT
						       : CUDA_SUCCESS;
}

CUresult shim_cuIpcOpenMemHandle_v2(
	CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	struct shim_context *context;
	struct contents contents;
	CUresult result;
	uint64_t base;

	SHIM_CHECK_READY();
	if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	context = shim_thread_context(shim_thread_get());
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	memcpy(&contents, &handle, sizeof(contents));
	result = check(&contents);
	if (result != CUDA_SUCCESS)
		return result;
	/* Another process may see other devices. */
	if (!shim_device_get(shim_device_from_host(contents.device)))
		return CUDA_ERROR_INVALID_DEVICE;
	result = shim_ipc_open(
		contents.token, contents.pages_size, context->device, &base);
	if (result == CUDA_SUCCESS)
		*pdptr = base + contents.offset;
	return result;
}

CUresult shim_cuIpcOpenMemHandle(
	CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	return shim_cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

CUresult shim_cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	SHIM_CHECK_READY();
	return shim_ipc_close(dptr);
}
