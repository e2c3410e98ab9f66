/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: memory of other processes
 *
 * A handle names the pages of an allocation by a token, and the place of the allocation
 * in them. To open it, the pages are imported and mapped like memory of cuMemCreate(),
 * once for all allocations in them.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "vgpu/checked.h"
#include "vgpu/g-driver.pb-c.h"

#include "entry/share.h"
#include "memory/range.h"
#include "process/call.h"
#include "process/context.h"
#include "process/device.h"
#include "process/thread.h"
#include "wire/lock.h"

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

/* Pages that are mapped. */
struct pages {
	struct pages *next;
	uint8_t token[SHIM_TOKEN_SIZE];
	uint64_t base;
	uint64_t size;
	uint32_t n_opens;
};

static struct {
	struct shim_lock lock;
	struct pages *pages;
	uint64_t process; /* 0: not known yet */
} ipc;

/* Return: 0 if there are no random numbers. */
static uint64_t process(void)
{
	uint64_t number = 0;

	SHIM_LOCKED(&ipc.lock);
	if (!ipc.process && getrandom(&number, sizeof(number), 0) == sizeof(number))
		ipc.process = number;
	return ipc.process;
}

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
	contents.process = process();
	memset(pHandle, 0, sizeof(*pHandle));
	memcpy(pHandle, &contents, sizeof(contents));
	return CUDA_SUCCESS;
}

/* With the lock. */
static struct pages *find(const uint8_t token[SHIM_TOKEN_SIZE])
{
	struct pages *pages;

	for (pages = ipc.pages; pages; pages = pages->next)
		if (!memcmp(pages->token, token, SHIM_TOKEN_SIZE))
			break;
	return pages;
}

static bool open_again(const struct contents *contents, uint64_t *basep)
{
	struct pages *pages;

	SHIM_LOCKED(&ipc.lock);
	pages = find(contents->token);
	if (!pages)
		return false;
	pages->n_opens++;
	*basep = pages->base;
	return true;
}

/* Return: false if another thread has mapped them in between. */
static bool add(struct pages *pages)
{
	SHIM_LOCKED(&ipc.lock);
	if (find(pages->token))
		return false;
	pages->next = ipc.pages;
	ipc.pages = pages;
	return true;
}

static void unmap(uint64_t base, uint64_t size)
{
	shim_cuMemUnmap(base, size);
	shim_cuMemAddressFree(base, size);
}

/* The context's device may use the memory of its own and of a peer. */
static CUresult open_to(CUdevice device, uint64_t base, uint64_t size)
{
	const CUmemAccessDesc right = {
		{ CU_MEM_LOCATION_TYPE_DEVICE, device },
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};

	return shim_cuMemSetAccess(base, size, &right, 1);
}

static CUresult map(const struct contents *contents, CUdevice device, uint64_t *basep)
{
	const uint64_t size = contents->pages_size;
	CUmemGenericAllocationHandle memory;
	CUdeviceptr base = 0;
	CUresult result;

	result = shim_share_import(contents->token, &memory);
	if (result != CUDA_SUCCESS)
		return result;
	result = shim_cuMemAddressReserve(&base, size, 0, 0, 0);
	if (result == CUDA_SUCCESS) {
		result = shim_cuMemMap(base, size, 0, memory, 0);
		if (result == CUDA_SUCCESS)
			result = open_to(device, base, size);
		if (result != CUDA_SUCCESS)
			unmap(base, size);
	}
	/* Mapped memory stays as long as it is. */
	shim_cuMemRelease(memory);
	*basep = base;
	return result;
}

static CUresult open_new(
	const struct contents *contents, CUdevice device, uint64_t *basep)
{
	struct pages *pages = malloc(sizeof(*pages));
	CUresult result;

	if (!pages)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*pages = (struct pages){ .size = contents->pages_size, .n_opens = 1 };
	memcpy(pages->token, contents->token, sizeof(pages->token));
	result = map(contents, device, &pages->base);
	if (result == CUDA_SUCCESS) {
		*basep = pages->base;
		if (add(pages))
			return CUDA_SUCCESS;
		unmap(pages->base, pages->size);
		result = open_again(contents, basep) ? CUDA_SUCCESS
						     : CUDA_ERROR_INVALID_VALUE;
	}
	free(pages);
	return result;
}

/* The handle is another process's: it may be anything. */
static CUresult check(const struct contents *contents)
{
	if (contents->magic != MAGIC || !contents->size ||
		!vgpu_range_within(
			contents->offset, contents->size, 0, contents->pages_size))
		return CUDA_ERROR_INVALID_VALUE;
	/* CUDA Runtime API, cudaIpcOpenMemHandle: for memory of the same process. */
	return contents->process == process() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
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
	if (open_again(&contents, &base))
		result = open_to(context->device, base, contents.pages_size);
	else
		result = open_new(&contents, context->device, &base);
	if (result == CUDA_SUCCESS)
		*pdptr = base + contents.offset;
	return result;
}

CUresult shim_cuIpcOpenMemHandle(
	CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	return shim_cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

/* Gives up one use. Return: whether the address is in such pages. *lastp: they are to be
 * unmapped, and have been taken out of the list. */
static bool close_one(uint64_t address, struct pages **lastp)
{
	struct pages **link = &ipc.pages;

	SHIM_LOCKED(&ipc.lock);
	while (*link && !vgpu_range_within(address, 1, (*link)->base, (*link)->size))
		link = &(*link)->next;
	if (!*link)
		return false;
	if (!--(*link)->n_opens) {
		*lastp = *link;
		*link = (*link)->next;
	}
	return true;
}

CUresult shim_cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	struct pages *last = NULL;

	SHIM_CHECK_READY();
	if (!close_one(dptr, &last))
		return CUDA_ERROR_INVALID_VALUE;
	if (last)
		unmap(last->base, last->size);
	free(last);
	return CUDA_SUCCESS;
}
