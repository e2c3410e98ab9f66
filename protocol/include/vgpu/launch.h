/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Launch dimensions in a message: one field of fixed layout instead of seven, because the
 * cost of a message grows with the number of its fields. A launch may omit the axes after
 * the last one that is used: most launches with up to nine pointers then take two cache
 * lines of the ring.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct vgpu_launch_axis {
	uint32_t grid;
	uint32_t block;
};

struct vgpu_launch_dims {
	uint32_t shared_bytes;
	uint32_t flags; /* VGPU_LAUNCH_* */
	struct vgpu_launch_axis axis[3];
};

enum {
	VGPU_LAUNCH_COOPERATIVE = 1u << 0,
	_VGPU_LAUNCH_FLAGS = VGPU_LAUNCH_COOPERATIVE,
};

static_assert(sizeof(struct vgpu_launch_dims) == 32, "fixed size");

/* Written as one word, because it is about to be read as one, see vgpu_copy_words(). */
static inline struct vgpu_launch_axis vgpu_launch_axis_make(uint32_t grid, uint32_t block)
{
	const uint64_t word = (uint64_t)block << 32 | grid;
	struct vgpu_launch_axis axis;

	static_assert(sizeof(axis) == sizeof(word), "one word");
	memcpy(&axis, &word, sizeof(axis));
	return axis;
}

/* The same for the fields before the axes. */
static inline void vgpu_launch_dims_begin(
	struct vgpu_launch_dims *dims, uint32_t shared_bytes, uint32_t flags)
{
	const uint64_t word = (uint64_t)flags << 32 | shared_bytes;

	static_assert(
		offsetof(struct vgpu_launch_dims, axis) == sizeof(word), "one word");
	memcpy(dims, &word, sizeof(word));
}

static inline bool vgpu_launch_axis_is_used(const struct vgpu_launch_axis *axis)
{
	return axis->grid != 1 || axis->block != 1;
}

/* Returns: how many bytes of it have to travel. */
static inline size_t vgpu_launch_dims_size(const struct vgpu_launch_dims *dims)
{
	if (vgpu_launch_axis_is_used(&dims->axis[2]))
		return sizeof(*dims);
	return vgpu_launch_axis_is_used(&dims->axis[1])
		       ? offsetof(struct vgpu_launch_dims, axis[2])
		       : offsetof(struct vgpu_launch_dims, axis[1]);
}

/* Returns: false for a size that no dimensions have. */
static inline bool vgpu_launch_dims_read(
	struct vgpu_launch_dims *dims, const void *data, size_t size)
{
	if (size > sizeof(*dims) || size < offsetof(struct vgpu_launch_dims, axis[1]) ||
		size % sizeof(struct vgpu_launch_axis))
		return false;
	dims->axis[1] = dims->axis[2] = (struct vgpu_launch_axis){ 1, 1 };
	memcpy(dims, data, size);
	return true;
}

/* Largest parameter block of a kernel (CUDA C Programming Guide, "__global__ function
 * parameters": 32 764 bytes from compute capability 7.0). */
#define VGPU_LAUNCH_PARAMS_MAX 32764u
