/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Constant properties of a device, written to the arena by vgpuHello
 *
 * One structure per device, in the order of the host's numbers.
 */

#include <assert.h>
#include <stdint.h>

#define VGPU_DEVICE_NAME_MAX 256
#define VGPU_DEVICE_ATTRIBUTES_N 160

struct vgpu_device_info {
	char name[VGPU_DEVICE_NAME_MAX]; /* with its end */
	uint8_t uuid[16];
	uint64_t total_memory;
	uint8_t known[24]; /* a bit for each attribute that has a value */
	int32_t attributes[VGPU_DEVICE_ATTRIBUTES_N];
};

static_assert(sizeof(struct vgpu_device_info) == 944, "fixed size");
