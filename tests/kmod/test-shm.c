/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Headers that lie to the guest's driver
 *
 * Each field of a header gets each of a set of values, two fields at a time. What the
 * driver accepts must fit into the BAR, and its parts must not overlap.
 */

#include <errno.h>
#include <string.h>

#include "kmod/shm.h"
#include "vgpu/status.h"

#include "test.h"

#define BAR_SIZE (1ull << 30)
#define N_CHANNELS 8u

static struct vgpu_shm_header honest(void)
{
	const uint64_t extents_off = VGPU_EXTENT_SIZE + N_CHANNELS * VGPU_AREA_SIZE;

	return (struct vgpu_shm_header){
		.magic = VGPU_SHM_MAGIC,
		.protocol_version = VGPU_PROTOCOL_VERSION,
		.n_channels = N_CHANNELS,
		.shm_size = BAR_SIZE,
		.area_off = VGPU_EXTENT_SIZE,
		.extents_off = extents_off,
		.n_extents = (BAR_SIZE - extents_off) / VGPU_EXTENT_SIZE,
		.status_off = VGPU_STATUS_OFF,
		.owners_off = VGPU_OWNERS_OFF,
	};
}

TEST(an_honest_header_is_taken_over)
{
	const struct vgpu_shm_header header = honest();
	struct vgpu_layout layout;

	check_eq(vgpu_layout_check(&layout, &header, BAR_SIZE), 0);
	check_eq(layout.n_channels, N_CHANNELS);
	check_eq(layout.extents_off, header.extents_off);
	check_eq(layout.status_off, VGPU_STATUS_OFF);
}

TEST(another_device_is_left_alone_and_another_version_refused)
{
	struct vgpu_shm_header header = honest();
	struct vgpu_layout layout;

	header.protocol_version++;
	check_eq(vgpu_layout_check(&layout, &header, BAR_SIZE), -EPROTO);
	header = honest();
	header.owners_off = 0;
	check_eq(vgpu_layout_check(&layout, &header, BAR_SIZE), -EPROTO);
	header.magic++;
	check_eq(vgpu_layout_check(&layout, &header, BAR_SIZE), -ENODEV);
}

TEST(a_memory_larger_than_its_bar_is_refused)
{
	const struct vgpu_shm_header header = honest();
	struct vgpu_layout layout;

	check_eq(vgpu_layout_check(&layout, &header, BAR_SIZE / 2), -EBADMSG);
	check_eq(vgpu_layout_check(&layout, &header, 4096), -EBADMSG);
}

struct part {
	__uint128_t from;
	__uint128_t to;
};

static struct part part(uint64_t off, uint64_t n, uint64_t size)
{
	return (struct part){ off, (__uint128_t)n * size + off };
}

/* With 128 bits, so that nothing wraps. */
static bool is_sound(const struct vgpu_layout *layout)
{
	const struct part parts[] = {
		part(0, 1, VGPU_SHM_TABLE_OFF),
		part(VGPU_SHM_TABLE_OFF, layout->n_channels,
			sizeof(struct vgpu_channel_entry)),
		part(layout->status_off, layout->status_off ? 1 : 0, VGPU_STATUS_SIZE),
		part(layout->owners_off, layout->n_extents, 1),
		part(layout->area_off, layout->n_channels, VGPU_AREA_SIZE),
		part(layout->extents_off, layout->n_extents, VGPU_EXTENT_SIZE),
	};
	const size_t n = sizeof(parts) / sizeof(parts[0]);

	for (size_t i = 0; i < n; i++) {
		if (parts[i].to > layout->shm_size)
			return false;
		for (size_t j = 0; j < i; j++)
			if (parts[i].from < parts[j].to && parts[j].from < parts[i].to &&
				parts[i].from != parts[i].to)
				return false;
	}
	return layout->shm_size <= BAR_SIZE && layout->n_channels <= VGPU_CHANNELS_MAX &&
	       layout->extents_off <= VGPU_HEAD_SIZE_MAX &&
	       layout->status_off % VGPU_STATUS_ALIGN == 0;
}

static const uint64_t values[] = {
	0,
	1,
	8,
	32,
	4095,
	4096,
	4097,
	8192,
	12288,
	65536,
	1 << 20,
	(1 << 20) + 4096,
	(2 << 20) - 4096,
	2 << 20,
	(2 << 20) + 8,
	4 << 20,
	34 << 20,
	126 << 20,
	128 << 20,
	BAR_SIZE - (2 << 20),
	BAR_SIZE,
	BAR_SIZE + (2 << 20),
	1ull << 32,
	(1ull << 32) - 1,
	1ull << 63,
	UINT64_MAX,
	UINT64_MAX - 4095,
	UINT64_MAX - (2 << 20) + 1,
	UINT64_MAX - (4 << 20) + 1,
};

#define N_VALUES (sizeof(values) / sizeof(values[0]))
#define N_FIELDS 7

static void set_field(struct vgpu_shm_header *header, int field, uint64_t value)
{
	switch (field) {
	case 0:
		header->n_channels = (uint32_t)value;
		break;
	case 1:
		header->shm_size = value;
		break;
	case 2:
		header->area_off = value;
		break;
	case 3:
		header->extents_off = value;
		break;
	case 4:
		header->n_extents = (uint32_t)value;
		break;
	case 5:
		header->status_off = value;
		break;
	default:
		header->owners_off = value;
	}
}

/* All values of two fields. Returns: how many headers were accepted. */
static unsigned int try_pair(int one, int other)
{
	unsigned int n_accepted = 0;

	for (size_t i = 0; i < N_VALUES * N_VALUES; i++) {
		struct vgpu_shm_header header = honest();
		struct vgpu_layout layout;

		set_field(&header, one, values[i / N_VALUES]);
		set_field(&header, other, values[i % N_VALUES]);
		if (vgpu_layout_check(&layout, &header, BAR_SIZE))
			continue;
		n_accepted++;
		if (!is_sound(&layout))
			test_fail(__FILE__, __LINE__, "fields %d and %d: %#llx, %#llx",
				one, other, (unsigned long long)values[i / N_VALUES],
				(unsigned long long)values[i % N_VALUES]);
	}
	return n_accepted;
}

TEST(no_two_false_fields_make_the_driver_leave_the_bar)
{
	unsigned int n_accepted = 0;

	for (int one = 0; one < N_FIELDS; one++)
		for (int other = 0; other < N_FIELDS; other++)
			n_accepted += try_pair(one, other);
	/* Smaller memories, other places: the test has something to judge. */
	check(n_accepted > 100);
}
