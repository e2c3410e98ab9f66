/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a shared memory of some size is divided
 */

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"
#include "vgpud/layout.h"

TEST(every_size_has_room_for_what_it_promises)
{
	struct layout layout;

	for (uint64_t size = VGPU_SHM_SIZE_MIN; size <= LAYOUT_SIZE_MAX; size *= 2) {
		layout_init(&layout, size, VGPU_CHANNELS_MAX);
		check(layout.n_channels >= 1 && layout.n_channels <= VGPU_CHANNELS_MAX);
		check_eq(layout.extents_off % VGPU_EXTENT_SIZE, 0);
		check(layout_channel_off(layout.n_channels) <= layout.area_off);
		check_eq(layout_area_off(&layout, layout.n_channels), layout.extents_off);
		check_eq(layout_extent_off(&layout, layout.n_extents), size);
		check(layout.n_extents >= layout.n_channels * LAYOUT_GRANT_EXTENTS_MIN);
	}
	check_eq(layout.n_channels, VGPU_CHANNELS_MAX);
	layout_init(&layout, 1 << 30, 1);
	check_eq(layout.n_channels, 1);
	layout_init(&layout, VGPU_SHM_SIZE_MIN, VGPU_CHANNELS_MAX);
	check_eq(layout.n_channels, 1);
}

TEST(formatting_writes_the_header_and_empties_the_table)
{
	uint8_t junk[32768], zero[sizeof(junk)] = { 0 };
	struct vgpu_shm_header header;
	struct layout layout;
	int fd;

	memset(junk, 0xa5, sizeof(junk));
	layout_init(&layout, VGPU_SHM_SIZE_MIN, VGPU_CHANNELS_MAX);
	fd = memfd_create("test", MFD_CLOEXEC);
	check_eq(ftruncate(fd, layout.size), 0);
	check_eq(pwrite(fd, junk, sizeof(junk), 0), sizeof(junk));
	check_eq(pwrite(fd, junk, sizeof(junk), VGPU_OWNERS_OFF), sizeof(junk));
	check_eq(layout_format(&layout, fd, 77), 0);
	check_eq(pread(fd, &header, sizeof(header), 0), sizeof(header));
	check(header.magic == VGPU_SHM_MAGIC);
	check(!memcmp(&header, "VGPUSHM1", 8));
	check_eq(header.protocol_version, VGPU_PROTOCOL_VERSION);
	check_eq(header.n_channels, layout.n_channels);
	check_eq(header.shm_size, layout.size);
	check_eq(header.area_off, layout.area_off);
	check_eq(header.extents_off, layout.extents_off);
	check_eq(header.n_extents, layout.n_extents);
	check_eq(header.generation, 77);
	check_eq(header.n_requests, 0);
	check_eq(pread(fd, junk, sizeof(junk), VGPU_SHM_TABLE_OFF), sizeof(junk));
	check(!memcmp(junk, zero, VGPU_CHANNELS_MAX * sizeof(struct vgpu_channel_entry)));
	check_eq(header.owners_off, VGPU_OWNERS_OFF);
	check_eq(pread(fd, junk, layout.n_extents, VGPU_OWNERS_OFF), layout.n_extents);
	check(!memcmp(junk, zero, layout.n_extents));
	close(fd);
}

/* The clock that it is from may have been set back. */
TEST(the_generation_of_a_file_grows)
{
	static const struct {
		uint64_t given, expected;
	} steps[] = { { 77, 77 }, { 78, 78 }, { 78, 79 }, { 5, 80 },
		{ UINT64_MAX, UINT64_MAX }, { 5, 5 } };
	struct vgpu_shm_header header;
	struct layout layout;
	const int fd = memfd_create("test", MFD_CLOEXEC);

	layout_init(&layout, VGPU_SHM_SIZE_MIN, 1);
	check_eq(ftruncate(fd, layout.size), 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		check_eq(layout_format(&layout, fd, steps[i].given), 0);
		check_eq(pread(fd, &header, sizeof(header), 0), sizeof(header));
		check_eq(header.generation, steps[i].expected);
	}
	close(fd);
}

TEST(a_file_that_was_cut_gives_an_error_and_no_signal)
{
	struct layout layout;
	int fd;

	layout_init(&layout, VGPU_SHM_SIZE_MIN, 1);
	fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	check_eq(ftruncate(fd, 4096), 0);
	check_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	check(layout_format(&layout, fd, 1) < 0);
	close(fd);
}
