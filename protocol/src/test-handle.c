/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests: handles and checked arithmetic
 */

#include "test.h"
#include "vgpu/checked.h"
#include "vgpu/handle.h"
#include "vgpu/hello.h"

TEST(handle_gives_back_what_it_was_made_of)
{
	uint64_t handle = vgpu_handle_make(7, 12345, UINT32_MAX);

	check_eq(vgpu_handle_kind(handle), 7);
	check_eq(vgpu_handle_index(handle), 12345);
	check_eq(vgpu_handle_generation(handle), UINT32_MAX);
}

TEST(smallest_handle_is_above_every_special_value)
{
	check(vgpu_handle_make(0, 0, 1) > 0xffff);
}

TEST(number_with_bits_above_the_kind_has_no_kind)
{
	check_eq(vgpu_handle_kind(vgpu_handle_make(7, 1, 1) | 1ull << 63), 0);
	check_eq(vgpu_handle_kind(2), 0);
}

TEST(range_check_survives_the_integer_limits)
{
	check(vgpu_range_within(4096, 0, 0, 4096));
	check(!vgpu_range_within(4097, 0, 0, 4096));
	check(!vgpu_range_within(UINT64_MAX, 2, 0, 4096));
	check(!vgpu_range_within(8, UINT64_MAX, 0, 4096));
	check(!vgpu_range_within(0, 1, 1, UINT64_MAX));
	check(vgpu_range_within(1, UINT64_MAX - 1, 1, UINT64_MAX - 1));
}

TEST(window_check_refuses_what_cannot_be_mapped)
{
	uint64_t shm = 1ull << 30;

	check(vgpu_window_is_sane(0x100000000000ull, 0x400000000000ull, shm));
	check(vgpu_window_is_sane(0x550000000000ull, 0x5000000000ull, shm));
	check(!vgpu_window_is_sane(0, 1ull << 40, shm));
	check(!vgpu_window_is_sane(
		1ull << 46, 1ull << 46 | 1ull << 45 | 1ull << 44, shm));
	check(!vgpu_window_is_sane(0x100000000000ull, UINT64_MAX & ~0x1fffffull, shm));
	check(!vgpu_window_is_sane(0x100000001000ull, 1ull << 40, shm));
	check(!vgpu_window_is_sane(0x100000000000ull, shm, shm));
	/* The shared memory and the least of the device fill it, or wrap around. */
	shm = (1ull << 40) - VGPU_WINDOW_DEVICE_MIN;
	check(vgpu_window_is_sane(0x100000000000ull, 1ull << 40, shm));
	check(!vgpu_window_is_sane(0x100000000000ull, 1ull << 40, shm + 1));
	check(!vgpu_window_is_sane(0x100000000000ull, 1ull << 40, UINT64_MAX));
	shm = -VGPU_WINDOW_DEVICE_MIN;
	check(!vgpu_window_is_sane(0x100000000000ull, 1ull << 40, shm));
	check(!vgpu_window_is_sane(0x100000000000ull, 0, shm));
}
