/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dimensions of launches
 */

#include "test.h"
#include "vgpu/launch.h"

static size_t size_of(struct vgpu_launch_axis y, struct vgpu_launch_axis z)
{
	const struct vgpu_launch_dims dims = { .axis = { { 7, 5 }, y, z } };

	return vgpu_launch_dims_size(&dims);
}

TEST(axes_travel_up_to_the_last_that_is_used)
{
	const struct vgpu_launch_axis one = { 1, 1 };

	check_eq(size_of(one, one), 16);
	check_eq(size_of((struct vgpu_launch_axis){ 2, 1 }, one), 24);
	check_eq(size_of((struct vgpu_launch_axis){ 1, 2 }, one), 24);
	check_eq(size_of(one, (struct vgpu_launch_axis){ 2, 1 }), 32);
	check_eq(size_of(one, (struct vgpu_launch_axis){ 1, 2 }), 32);
	/* Values that no device accepts have to reach one, to be refused. */
	check_eq(size_of((struct vgpu_launch_axis){ 0, 1 }, one), 24);
	check_eq(size_of(one, (struct vgpu_launch_axis){ 1, 0 }), 32);
}

TEST(defaults_of_omitted_dimensions_are_one)
{
	const struct vgpu_launch_dims dims = { .shared_bytes = 48,
		.flags = VGPU_LAUNCH_COOPERATIVE,
		.axis = { { 2, 3 }, { 4, 5 }, { 6, 7 } } };

	for (size_t size = 16; size <= sizeof(dims); size += 8) {
		struct vgpu_launch_dims read;
		size_t n_axes = (size - 8) / 8;

		memset(&read, 0xff, sizeof(read));
		check(vgpu_launch_dims_read(&read, &dims, size));
		check_eq(read.shared_bytes, 48);
		check_eq(read.flags, VGPU_LAUNCH_COOPERATIVE);
		for (size_t i = 0; i < 3; i++) {
			check_eq(read.axis[i].grid, i < n_axes ? dims.axis[i].grid : 1);
			check_eq(read.axis[i].block, i < n_axes ? dims.axis[i].block : 1);
		}
	}
}

TEST(no_other_size_is_read)
{
	const uint8_t bytes[64] = {};
	struct vgpu_launch_dims read;

	for (size_t size = 0; size <= sizeof(bytes); size++)
		check_eq(vgpu_launch_dims_read(&read, bytes, size),
			size == 16 || size == 24 || size == 32);
}
