/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rights of devices to mapped memory, as cuMemSetAccess sends them
 */

#include <stdint.h>

#include "vgpu/cuda.h"

struct vgpu_right {
	int32_t device; /* the host's number, or -1: the guest's processors */
	uint32_t flags; /* CUmemAccess_flags */
};

static_assert(sizeof(struct vgpu_right) == 8, "fixed size");

/* At most so many in a message; max= of `rights` in driver-virtual.xml. */
#define VGPU_RIGHTS_MAX 64u
