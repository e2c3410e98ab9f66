/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of random calls: virtual memory
 */

#include <stddef.h>
#include <unistd.h>

/* Inside the project, or as programs have it. */
#ifdef VGPU_CUDA_INTERNAL
#include "vgpu/cuda.h"
#else
#include <cuda.h>
#endif

#include "calls-virtual.h"
#include "slots.h"

#define PIECE ((size_t)2 << 20)
#define N_PIECES 8u
#define POSIX CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static const CUmemLocation first_device = { .type = CU_MEM_LOCATION_TYPE_DEVICE };
static const CUmemLocation host = { .type = CU_MEM_LOCATION_TYPE_HOST };

static CUdeviceptr reserved; /* 0: the driver has no virtual memory */

void calls_virtual_start(void)
{
	if (cuMemAddressReserve(&reserved, N_PIECES * PIECE, 0, 0, 0))
		reserved = 0;
}

void calls_virtual_clear(void)
{
	for (unsigned int i = 0; i < N_PIECES; i++)
		cuMemUnmap(reserved + i * PIECE, PIECE);
}

uint64_t calls_virtual_piece(uint8_t x)
{
	return reserved + x % N_PIECES * PIECE;
}

static CUmemGenericAllocationHandle a_handle(uint8_t x)
{
	return (uintptr_t)slot_get(SLOT_ALLOCATION, x);
}

static void put_handle(uint8_t x, CUmemGenericAllocationHandle handle)
{
	slot_put(SLOT_ALLOCATION, x, (void *)(uintptr_t)handle);
}

void calls_virtual_reserve(uint8_t a, uint8_t b)
{
	CUdeviceptr made;

	if (cuMemAddressReserve(&made, (1 + a % 8) * PIECE, 0, calls_virtual_piece(b), 0))
		return;
	cuMemMap(made, PIECE, 0, a_handle(b), 0);
	cuMemUnmap(made, PIECE);
	cuMemAddressFree(made, (1 + a % 8) * PIECE);
}

void calls_virtual_create(uint8_t a, uint8_t b)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = b % 4 ? CU_MEM_HANDLE_TYPE_NONE : POSIX,
		.location = { .type = b % 8 == 7 ? CU_MEM_LOCATION_TYPE_HOST
						 : CU_MEM_LOCATION_TYPE_DEVICE },
	};
	CUmemGenericAllocationHandle made;

	if (!cuMemCreate(&made, PIECE, &prop, 0))
		put_handle(a, made);
}

void calls_virtual_release(uint8_t a, uint8_t b)
{
	slot_destroy(SLOT_ALLOCATION, a, b);
}

void calls_virtual_map(uint8_t a, uint8_t b)
{
	const CUmemAccessDesc desc = {
		.location = b % 16 == 14 ? host : first_device,
		.flags = b % 16 == 15 ? CU_MEM_ACCESS_FLAGS_PROT_READ
				      : CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};

	cuMemMap(calls_virtual_piece(a), PIECE, 0, a_handle(b), 0);
	cuMemSetAccess(calls_virtual_piece(a), PIECE, &desc, 1);
}

void calls_virtual_unmap(uint8_t a, uint8_t b)
{
	cuMemUnmap(calls_virtual_piece(a), b % 8 ? PIECE : 2 * PIECE);
}

/* Sends memory to itself. */
static void share(uint8_t a, uint8_t b)
{
	CUmemGenericAllocationHandle handle;
	int fd;

	if (cuMemExportToShareableHandle(&fd, a_handle(a), POSIX, 0))
		return;
	if (!cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, POSIX))
		put_handle(b, handle);
	close(fd);
}

void calls_virtual_ask(uint8_t a, uint8_t b)
{
	CUmemGenericAllocationHandle handle;
	unsigned long long flags;
	CUmemAllocationProp prop;

	switch (b % 4) {
	case 0:
		if (!cuMemRetainAllocationHandle(
			    &handle, (void *)(uintptr_t)calls_virtual_piece(a)))
			put_handle(b / 4, handle);
		break;
	case 1:
		cuMemGetAccess(&flags, &first_device, calls_virtual_piece(a));
		cuMemGetAccess(&flags, &host, calls_virtual_piece(a));
		cuMemGetAllocationPropertiesFromHandle(&prop, a_handle(a));
		break;
	default:
		share(a, b / 4);
		break;
	}
}
