/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Device memory: linear allocations at addresses in the window
 *
 * Guest pointers are device pointers, so every allocation has to be in the device part of
 * W, after the shared memory. Our drivers know that range and place memory themselves;
 * others are asked for physical chunks that are mapped at addresses chosen here
 * (placement.h). Allocations, their contexts and sizes are recorded here alone; the
 * driver is never asked.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/quota.h"
#include "vgpu/cuda.h"

struct call;
struct context;
struct placement;
struct session;

/* Rows of cuMemAllocPitch start at multiples of this, as on current devices. */
#define DEVICE_MEMORY_PITCH 512u

struct device_memory {
	pthread_mutex_t lock;	 /* for what follows */
	uint64_t used;		 /* bytes charged */
	struct quota_page *page; /* of all workers of the VM; NULL: no limit, no others */
	uint32_t slot;		 /* of the page, this worker's */

	struct placement *placement; /* NULL: the driver places memory in W by itself */
};

void device_memory_init(struct session *session);
void device_memory_deinit(struct session *session);

/* Takes up the page by which the VM's workers keep its quota. The descriptor, or -1, is
 * its own. Returns: 0 or -errno. */
int device_memory_share(struct session *session, int fd, uint32_t slot);

/* Counts memory before it is asked for, so that two lanes cannot pass the limit. Return:
 * whether it may be. */
bool device_memory_charge(struct session *session, uint64_t size);
void device_memory_refund(struct session *session, uint64_t size);

CUresult device_memory_alloc(struct call *call, uint64_t size, uint64_t *addressp);
CUresult device_memory_free(struct call *call, uint64_t address);

/* Makes [address, address + size), which the driver owns, usable by the guest. */
CUresult device_memory_publish_global(
	struct call *call, uint64_t address, uint64_t size, const void *parent);

/* The device memory that the guest sees. The context is current. */
CUresult device_memory_info(struct call *call, size_t *freep, size_t *totalp);
uint64_t device_memory_limit(const struct session *session, uint64_t total);

/* Frees all memory of a context, which is current in the driver. */
void device_memory_free_all(struct session *session, const struct context *context);

/* Forgets all memory of a context that is gone. */
void device_memory_forget(struct session *session, const struct context *context);
