/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * IPC: allocations of device memory that other processes of the VM may open
 *
 * The pages that hold an allocation are shared (share.h): its own, or those of several
 * small ones. The share ends when all allocations that were exported from it are freed;
 * processes that have opened it keep the memory.
 *
 * The lock comes after those of the memory, and is not held during calls of the driver
 * that free memory.
 */

#include <pthread.h>
#include <stdint.h>

#include "worker/memory/share.h"
#include "vgpu/cuda.h"

struct call;
struct session;

/* Pages that are shared. */
struct ipc_pages {
	struct ipc_pages *next;
	uint64_t base;
	uint64_t size;
	uint32_t n_users;
	struct share share;
};

/* An allocation that was exported. */
struct ipc_user {
	struct ipc_user *next;
	uint64_t address;
	struct ipc_pages *pages;
};

struct ipc {
	pthread_mutex_t lock;
	struct ipc_pages *pages;
	struct ipc_user *users;
};

void ipc_init(struct session *session);
void ipc_deinit(struct session *session);

/* What another process needs to open an allocation. */
struct ipc_export {
	uint8_t token[CONTROL_TOKEN_SIZE]; /* of the pages */
	uint64_t pages_size;
	uint64_t offset; /* of the allocation in the pages */
	uint64_t size;
};

/*
 * Exports the allocation that holds an address.
 *
 * Return: CUDA_ERROR_INVALID_VALUE if none of cuMemAlloc() does; CUDA_ERROR_NOT_SUPPORTED
 * by a device that cannot export.
 */
CUresult ipc_export(struct call *call, uint64_t address, struct ipc_export *exported);

/* An allocation is about to be freed. */
void ipc_forget(struct session *session, uint64_t address);
