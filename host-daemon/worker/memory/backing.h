/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Backing: physical memory of a driver that can be taken away from its addresses
 *
 * The addresses are reserved, and remain so. Memory is one whole mapping of one handle of
 * cuMemCreate. Each state can be left again: a call of the driver that fails leaves the
 * memory mapped, or not, and the next call goes on from there.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/g-driver.h"
#include "vgpu/handle.h"

struct backing {
	CUmemGenericAllocationHandle memory; /* with has_memory */
	bool has_memory;
	bool is_mapped;
	/* Rights of each device, CUmemAccess_flags. */
	uint8_t access[VGPU_DEVICES_MAX];
};

/* What to create, and where to map it. */
struct backing_place {
	uint64_t address;
	uint64_t size;
	CUmemAllocationProp prop;
};

/*
 * Creates memory as far as there is none, maps it as far as it is not mapped, and gives
 * devices their rights.
 *
 * Return: the driver's result. After a failure nothing is mapped.
 */
CUresult backing_make(const struct vgpu_driver *driver, struct backing *backing,
	const struct backing_place *place);

/*
 * Unmaps and releases the memory.
 *
 * Return: the driver's result. After a failure all is as before, unless memory that
 * cannot be released cannot be mapped again either: that is kept for backing_make().
 */
CUresult backing_drop(const struct vgpu_driver *driver, struct backing *backing,
	const struct backing_place *place);
