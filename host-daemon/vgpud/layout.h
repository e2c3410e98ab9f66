/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Layout: the division of a shared memory
 */

#include <stdint.h>

#include "vgpu/ring-layout.h"

/* The shared memory, followed by device memory, has to fit into the smallest window. */
#define LAYOUT_SIZE_MAX (256ull << 30)

/* Arena of a new channel; with less than the minimum a guest process does not work. */
#define LAYOUT_GRANT_EXTENTS 32u
#define LAYOUT_GRANT_EXTENTS_MIN 16u

/* The minimum of memory per channel. */
#define LAYOUT_SHARE_SIZE                                                                \
	(VGPU_AREA_SIZE + (uint64_t)LAYOUT_GRANT_EXTENTS_MIN * VGPU_EXTENT_SIZE)

struct layout {
	uint64_t size;
	uint64_t area_off;
	uint64_t extents_off;
	uint32_t n_channels;
	uint32_t n_extents;
};

/* Return: the number of channels that fit into that size. */
uint64_t layout_n_channels(uint64_t size);

/* Return: the smallest power of two into which that many channels fit. */
uint64_t layout_size_for(uint32_t n_channels);

/* The size is a power of two from VGPU_SHM_SIZE_MIN to LAYOUT_SIZE_MAX. */
void layout_init(struct layout *layout, uint64_t size, uint32_t n_channels_max);

/*
 * Writes the header and clears the channel table of a shared memory. Uses pwrite(), so
 * that a truncated file is an error and not a signal.
 *
 * Return: 0 or -errno.
 */
int layout_format(const struct layout *layout, int fd, uint64_t generation);

static inline uint64_t layout_channel_off(uint32_t channel)
{
	return VGPU_SHM_TABLE_OFF + (uint64_t)channel * sizeof(struct vgpu_channel_entry);
}

static inline uint64_t layout_area_off(const struct layout *layout, uint32_t channel)
{
	return layout->area_off + (uint64_t)channel * VGPU_AREA_SIZE;
}

static inline uint64_t layout_extent_off(const struct layout *layout, uint32_t extent)
{
	return layout->extents_off + (uint64_t)extent * VGPU_EXTENT_SIZE;
}
