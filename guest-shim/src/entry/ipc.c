/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IPC: memory of other processes that is mapped here
 */

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "vgpu/checked.h"

#include "entry/ipc.h"
#include "entry/share.h"
#include "process/call.h"
#include "wire/lock.h"

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

uint64_t shim_ipc_process(void)
{
	uint64_t number = 0;
	ssize_t n = getrandom(&number, sizeof(number), GRND_NONBLOCK);

	SHIM_LOCKED(&ipc.lock);
	if (!ipc.process && n == sizeof(number))
		ipc.process = number;
	return ipc.process;
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

static bool open_again(const uint8_t token[SHIM_TOKEN_SIZE], uint64_t *basep)
{
	struct pages *pages;

	SHIM_LOCKED(&ipc.lock);
	pages = find(token);
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

/* The device may use memory of its own and of a peer. */
static CUresult open_to(CUdevice device, uint64_t base, uint64_t size)
{
	const CUmemAccessDesc right = {
		{ CU_MEM_LOCATION_TYPE_DEVICE, device },
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};

	return shim_cuMemSetAccess(base, size, &right, 1);
}

CUresult shim_ipc_map(CUmemGenericAllocationHandle memory, uint64_t size, CUdevice device,
	uint64_t *basep)
{
	CUdeviceptr base = 0;
	CUresult result;

	result = shim_cuMemAddressReserve(&base, size, 0, 0, 0);
	if (result != CUDA_SUCCESS)
		return result;
	result = shim_cuMemMap(base, size, 0, memory, 0);
	if (result == CUDA_SUCCESS)
		result = open_to(device, base, size);
	if (result != CUDA_SUCCESS)
		unmap(base, size);
	*basep = base;
	return result;
}

static CUresult import(const uint8_t token[SHIM_TOKEN_SIZE], uint64_t size,
	CUdevice device, uint64_t *basep)
{
	CUmemGenericAllocationHandle memory;
	CUresult result;

	result = shim_share_import(token, &memory);
	if (result != CUDA_SUCCESS)
		return result;
	result = shim_ipc_map(memory, size, device, basep);
	/* Mapped memory stays as long as it is. */
	shim_cuMemRelease(memory);
	return result;
}

static CUresult open_new(const uint8_t token[SHIM_TOKEN_SIZE], uint64_t size,
	CUdevice device, uint64_t *basep)
{
	struct pages *pages = malloc(sizeof(*pages));
	CUresult result;

	if (!pages)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*pages = (struct pages){ .size = size, .n_opens = 1 };
	memcpy(pages->token, token, sizeof(pages->token));
	result = import(token, size, device, &pages->base);
	if (result == CUDA_SUCCESS) {
		*basep = pages->base;
		if (add(pages))
			return CUDA_SUCCESS;
		unmap(pages->base, pages->size);
		result = open_again(token, basep) ? CUDA_SUCCESS
						  : CUDA_ERROR_INVALID_VALUE;
	}
	free(pages);
	return result;
}

CUresult shim_ipc_open(const uint8_t token[SHIM_TOKEN_SIZE], uint64_t size,
	CUdevice device, uint64_t *basep)
{
	return open_again(token, basep) ? open_to(device, *basep, size)
					: open_new(token, size, device, basep);
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

CUresult shim_ipc_close(uint64_t address)
{
	struct pages *last = NULL;

	if (!close_one(address, &last))
		return CUDA_ERROR_INVALID_VALUE;
	if (last)
		unmap(last->base, last->size);
	free(last);
	return CUDA_SUCCESS;
}
