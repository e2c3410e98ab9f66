/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Device memory: linear allocations at addresses in the window
 *
 * Guest pointers are device pointers, so every allocation has to be in the device part of
 * W, after the shared memory. softgpu and the null driver know that range and place
 * memory themselves; of NVIDIA's driver, physical chunks are mapped at addresses chosen
 * here (placement.h). The record of allocations, their contexts and sizes is kept here
 * alone, without queries to the driver.
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
/* No allocation takes less, whatever the driver. */
#define DEVICE_MEMORY_UNIT 512u

struct device_memory {
	pthread_mutex_t lock;	 /* guards the rest */
	uint64_t used;		 /* bytes charged */
	struct quota_page *page; /* shared by the VM's workers; NULL: no limit */
	uint32_t slot;		 /* of this worker in the page */
	uint64_t n_changes;	 /* of the page's limits that apply; dispatcher's */
	uint64_t copy_bandwidth; /* bytes a second, 0: no limit; atomic */

	struct placement *placement; /* NULL: the driver places memory in W by itself */
};

void device_memory_init(struct session *session);
void device_memory_deinit(struct session *session);

/* Maps the page by which the VM's workers share its quota. Takes ownership of the
 * descriptor, or -1. Return: 0 or -errno. */
int device_memory_share(struct session *session, int fd, uint32_t slot);

/* Applies limits of the page that were changed, to the objects and launches of the
 * session as well. For the dispatcher, between calls. */
void device_memory_follow_limits(struct session *session);

/* Waits before a copy between guest and device as long as copy-bandwidth demands. */
void device_memory_pace_copy(struct session *session, uint64_t size);

/* Charges memory of a device before its allocation, so that two lanes cannot exceed the
 * limit. Return: false beyond the limit. */
bool device_memory_charge(struct session *session, CUdevice device, uint64_t size);
void device_memory_refund(struct session *session, CUdevice device, uint64_t size);

/*
 * Whether the driver is to be asked again for memory of a device that was charged: it had
 * none, and with device-memory-total others have made room since then.
 *
 * @result:	of the driver
 * @n_triesp:	0 before the first one
 */
bool device_memory_may_retry(struct session *session, CUresult result, CUdevice device,
	uint64_t size, uint32_t *n_triesp);

/* For softgpu (struct softgpu_config): memory that it takes without a call for it. */
int device_memory_charge_driver(void *session, uint32_t device, uint64_t size);
void device_memory_refund_driver(void *session, uint32_t device, uint64_t size);

/* What an allocation of that size is charged: what it takes of the device, in units of
 * DEVICE_MEMORY_UNIT, or of the driver's where it has pages for itself. Saturates. */
uint64_t device_memory_cost(const struct session *session, uint64_t size);

/* Reports which memory is used up, the VM's or the device's. Return:
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult device_memory_refuse(
	const struct session *session, uint64_t size, bool is_quota);

/* The limit of all workers of the VM together; UINT64_MAX: none. */
uint64_t device_memory_quota(const struct session *session);

/* The bytes by which the VM's use exceeds its limit now. Any worker's charge that will be
 * withdrawn counts for the moment. */
uint64_t device_memory_excess(struct session *session);

CUresult device_memory_alloc(struct call *call, uint64_t size, uint64_t *addressp);
CUresult device_memory_free(struct call *call, uint64_t address);

/* Makes [address, address + size), which the driver owns, usable by the guest. */
CUresult device_memory_publish_global(
	struct call *call, uint64_t address, uint64_t size, const void *parent);

/* The device memory as reported to the guest. The context is current. */
CUresult device_memory_info(struct call *call, size_t *freep, size_t *totalp);
uint64_t device_memory_limit(const struct session *session, uint64_t total);

/* Frees all memory of a context, which is current in the driver. */
void device_memory_free_all(struct session *session, const struct context *context);

/* Removes all memory of a destroyed context. */
void device_memory_forget(struct session *session, const struct context *context);
