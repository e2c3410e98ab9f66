/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout: the division of a shared memory
 */

#include <assert.h>
#include <stddef.h>
#include <unistd.h>

#include "vgpu/error.h"
#include "vgpu/status.h"
#include "vgpu/version.h"
#include "vgpud/huge-file.h"
#include "vgpud/layout.h"

uint64_t layout_n_channels(uint64_t size)
{
	return (size - VGPU_EXTENT_SIZE) / LAYOUT_SHARE_SIZE;
}

uint64_t layout_size_for(uint32_t n_channels)
{
	uint64_t size = VGPU_SHM_SIZE_MIN;

	while (layout_n_channels(size) < n_channels)
		size *= 2;
	return size;
}

void layout_init(struct layout *layout, uint64_t size, uint32_t n_channels_max)
{
	uint64_t n_channels = layout_n_channels(size);

	assert(size >= VGPU_SHM_SIZE_MIN && size <= LAYOUT_SIZE_MAX);
	assert(n_channels_max >= 1 && n_channels_max <= VGPU_CHANNELS_MAX);
	layout->size = size;
	layout->n_channels = n_channels < n_channels_max ? n_channels : n_channels_max;
	layout->area_off = VGPU_EXTENT_SIZE;
	layout->extents_off = layout_area_off(layout, layout->n_channels);
	layout->n_extents = (size - layout->extents_off) / VGPU_EXTENT_SIZE;
}

static int write_at(int fd, const void *data, size_t size, uint64_t offset)
{
	ssize_t n;

	if (huge_file_is(fd))
		return huge_file_write(fd, data, size, offset);
	n = pwrite(fd, data, size, offset);
	if (n < 0)
		return vgpu_error_origin(-errno);
	return (size_t)n == size ? 0 : vgpu_error_origin(-EIO);
}

/* The table is at most 1 MiB long, see below. */
static int clear_owners(const struct layout *layout, int fd)
{
	static const uint8_t no_owners[4096];
	uint64_t left = layout->n_extents, off = VGPU_OWNERS_OFF, size;
	int r = 0;

	for (; !r && left; left -= size, off += size) {
		size = left < sizeof(no_owners) ? left : sizeof(no_owners);
		r = write_at(fd, no_owners, size, off);
	}
	return r;
}

static_assert(VGPU_OWNERS_OFF + LAYOUT_SIZE_MAX / VGPU_EXTENT_SIZE <= VGPU_EXTENT_SIZE,
	"the table ends before the first area");

/* It grows in a file that has a later one: by a clock that was set back since. */
static uint64_t grow(uint64_t generation, int fd)
{
	struct vgpu_shm_header old;

	if (pread(fd, &old, sizeof(old), 0) != (ssize_t)sizeof(old) ||
		old.magic != VGPU_SHM_MAGIC || old.generation < generation ||
		old.generation == UINT64_MAX)
		return generation;
	return old.generation + 1;
}

int layout_format(const struct layout *layout, int fd, uint64_t generation)
{
	static const struct vgpu_channel_entry no_entries[VGPU_CHANNELS_MAX];
	struct vgpu_shm_header header = {
		.protocol_version = VGPU_PROTOCOL_VERSION,
		.n_channels = layout->n_channels,
		.shm_size = layout->size,
		.area_off = layout->area_off,
		.extents_off = layout->extents_off,
		.n_extents = layout->n_extents,
		.protocol_minor = vgpu_version.minor,
		.features = vgpu_version.features,
		.status_off = VGPU_STATUS_OFF,
		.heartbeat = 1,
		.generation = grow(generation, fd),
		.owners_off = VGPU_OWNERS_OFF,
	};
	static const uint8_t no_status[offsetof(struct vgpu_status, devices)];
	const uint64_t magic = VGPU_SHM_MAGIC;
	int r;

	/* The magic number is cleared first and written last: a guest that reads it
	 * meanwhile does not take the memory for a valid one. */
	r = write_at(fd, &header, sizeof(header), 0);
	if (r)
		return vgpu_error_trace(r);
	r = write_at(fd, no_entries, sizeof(no_entries), VGPU_SHM_TABLE_OFF);
	if (r)
		return vgpu_error_trace(r);
	r = write_at(fd, no_status, sizeof(no_status), VGPU_STATUS_OFF);
	if (r)
		return vgpu_error_trace(r);
	r = clear_owners(layout, fd);
	if (r)
		return vgpu_error_trace(r);
	r = write_at(fd, &magic, sizeof(magic), offsetof(struct vgpu_shm_header, magic));
	return r ? vgpu_error_trace(r) : 0;
}
