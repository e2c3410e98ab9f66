/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Virtual memory: reserved addresses in the window, and memory mapped at them
 *
 * A piece of memory (struct allocation) has one handle of the driver from its creation
 * until neither the guest has a handle nor anything is mapped; the guest's handles are
 * counted here. It is charged to the VM once. Addresses that a guest may map at, unmap or
 * set rights of are those that it has reserved: all others in the window are the
 * worker's. What is mapped is in the session's ranges.
 *
 * Memory of the host is a piece of the arena, which the guest has and chooses: it is not
 * charged again, and has no handle of the driver (host-mapping.h).
 *
 * Lanes only: the lock is held during calls of the driver.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"
#include "vgpu/cuda.h"
#include "vgpu/right.h"
#include "worker/base/ranges.h"

struct call;
struct session;

/* Of a session: each takes memory of the worker, mappings also of the kernel. */
#define VIRTUAL_RESERVATIONS_MAX 4096u
#define VIRTUAL_MAPPINGS_MAX 16384u
/* Pieces of memory of the host, which take memory of the worker only. */
#define VIRTUAL_HOST_MAX 16384u

struct virtual_memory {
	pthread_mutex_t lock;
	struct ranges reservations;
	uint32_t n_reservations;
	uint32_t n_mappings;
	uint32_t n_host;    /* pieces of memory of the host */
	uint64_t n_created; /* memory of devices so far */
};

void virtual_init(struct session *session);
void virtual_deinit(struct session *session);

CUresult virtual_reserve(struct call *call, uint64_t size, uint64_t alignment,
	uint64_t hint, uint64_t *addressp);
CUresult virtual_unreserve(struct call *call, uint64_t address, uint64_t size);

/* Creates memory of a device, charged to the VM. @is_exportable: to other processes. */
CUresult virtual_create(struct call *call, uint64_t size, CUdevice device,
	bool is_exportable, uint64_t *handlep);

/* Makes a piece of the arena memory that can be mapped. */
CUresult virtual_create_host(
	struct call *call, uint64_t size, uint64_t arena_address, uint64_t *handlep);
CUresult virtual_release(struct call *call, uint64_t handle);

/* One handle more for what is mapped at an address. */
CUresult virtual_retain(struct call *call, uint64_t address, uint64_t *handlep);

/*
 * Makes memory available to other processes of the VM, as long as it is in use here, and
 * takes memory that another process made available.
 *
 * Return: CUDA_ERROR_INVALID_VALUE for memory that was not created for that, and for a
 * token without memory.
 */
CUresult virtual_export(
	struct call *call, uint64_t handle, uint8_t token[CONTROL_TOKEN_SIZE]);
CUresult virtual_import(
	struct call *call, const uint8_t token[CONTROL_TOKEN_SIZE], uint64_t *handlep);

CUresult virtual_properties(
	struct call *call, uint64_t handle, CUmemAllocationProp *prop);

/* Maps memory, without access for any device. *devicep: whose memory it is, or -1. */
CUresult virtual_map(struct call *call, uint64_t address, uint64_t size, uint64_t offset,
	uint64_t handle, CUdevice *devicep, bool *is_exportablep);
CUresult virtual_unmap(struct call *call, uint64_t address, uint64_t size);

/* @rights:	of devices; of the guest's processors (-1) where all memory is the host's
 */
CUresult virtual_set_access(struct call *call, uint64_t address, uint64_t size,
	const struct vgpu_right *rights, size_t n);
CUresult virtual_get_access(
	struct call *call, uint64_t address, int32_t device, unsigned long long *flagsp);
