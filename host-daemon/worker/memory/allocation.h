/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Allocation: a piece of memory that the guest has created and maps where it likes
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "worker/base/ranges.h"
#include "worker/memory/backing.h"
#include "worker/memory/share.h"

/* The object of a handle, and the owner of its ranges; under the lock of struct
 * virtual_memory. */
struct allocation {
	struct backing backing; /* the driver's; mapped in parts, unless it moves */
	uint64_t arena_address; /* of memory of the host, or 0 */
	uint64_t size;
	uint64_t id; /* never used twice */
	CUdevice device;
	uint32_t n_handles; /* of the guest */
	uint32_t n_mappings;
	uint64_t handle; /* the guest's, if it has any */
	bool is_exportable;
	bool is_import;	    /* of another process, which pays for it */
	struct share share; /* if other processes have its token */
};

/* Of a range of mapped memory. */
static inline struct allocation *allocation_of(const struct range *range)
{
	return (struct allocation *)range->owner;
}

/* With which memory of a device is created. */
static inline CUmemAllocationProp allocation_properties(
	const struct allocation *allocation)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = allocation->is_exportable
						? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
						: CU_MEM_HANDLE_TYPE_NONE,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, allocation->device },
	};
}
