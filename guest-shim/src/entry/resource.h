/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Device resources: what the library knows of a CUdevResource and of a descriptor
 *
 * A CUdevResource has the driver's own data in its padding. Those stay on the host. Here
 * the padding says where the resource comes from: a device or a green context, and the
 * arguments of the split that it is a part of. The host repeats these calls when a green
 * context is created, so it need not keep what it has handed out. A split returns the
 * same for the same arguments.
 *
 * CUDA has no call that destroys a descriptor: they live as long as the process.
 */

#include <stddef.h>
#include <stdint.h>

#include "vgpu/cuda.h"

/* Groups of one split. No GPU has so many multiprocessors. */
#define SHIM_RESOURCE_GROUPS_MAX 256u

struct shim_origin {
	uint32_t mark;
	CUdevice device; /* the program's number */
	uint64_t green;	 /* handle of a green context, 0: all of the device */
	uint64_t split;	 /* the number of the split in this process, 0: the whole */
	uint32_t use_flags;
	uint32_t min_count;
	uint32_t n_groups;
	uint32_t part; /* n_groups: what the groups have left over */
};

struct shim_resource_desc {
	struct shim_resource_desc *next;
	struct shim_origin origin;
	uint32_t n_parts; /* 0: the whole */
	uint16_t parts[SHIM_RESOURCE_GROUPS_MAX + 1];
};

struct shim_resource_counts {
	uint32_t n_sms;
	uint32_t n_sms_min;
	uint32_t alignment;
};

/* Fills in a resource. */
void shim_resource_set(CUdevResource *resource, const struct shim_origin *origin,
	const struct shim_resource_counts *counts);

/* Return: NULL for what cuDevResourceGenerateDesc has not returned. */
const struct shim_resource_desc *shim_resource_desc_find(CUdevResourceDesc handle);
