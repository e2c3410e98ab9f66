// SPDX-License-Identifier: GPL-2.0
/*
 * The division of the shared memory as the driver believes it
 *
 * Whatever the header says, all that the driver maps or reads lies within the
 * BAR, and parts that processes map do not overlap those that belong to the
 * driver or to another process. This file is also built for user space, by
 * its test.
 */

#include <linux/errno.h>

#include "shm.h"

/* Both ends of a part that has to lie within [from, to). */
static int check_part(__u64 off, __u64 size, __u64 from, __u64 to)
{
	return off < from || off > to || size > to - off ? -EBADMSG : 0;
}

static int overlaps(__u64 off, __u64 size, __u64 other_off, __u64 other_size)
{
	return off < other_off + other_size && other_off < off + size;
}

/* Header, table, status and owners are before the first area. */
static int check_head(const struct vgpu_layout *layout)
{
	const __u64 from =
		VGPU_SHM_TABLE_OFF +
		layout->n_channels * sizeof(struct vgpu_channel_entry);

	if (layout->owners_off % sizeof(__u64) ||
	    check_part(layout->owners_off, layout->n_extents, from,
		       layout->area_off))
		return -EBADMSG;
	if (!layout->status_off)
		return 0;
	/* Processes map whole pages of it. */
	if (layout->status_off % VGPU_STATUS_ALIGN ||
	    layout->status_off < VGPU_STATUS_ALIGN ||
	    check_part(layout->status_off, VGPU_STATUS_SIZE, from,
		       layout->area_off) ||
	    overlaps(layout->status_off, VGPU_STATUS_SIZE, layout->owners_off,
		     layout->n_extents))
		return -EBADMSG;
	return 0;
}

static int check_rest(const struct vgpu_layout *layout)
{
	if (layout->area_off % VGPU_EXTENT_SIZE ||
	    layout->extents_off % VGPU_EXTENT_SIZE)
		return -EBADMSG;
	if (check_part(layout->area_off,
		       (__u64)layout->n_channels * VGPU_AREA_SIZE,
		       VGPU_EXTENT_SIZE, layout->extents_off))
		return -EBADMSG;
	return check_part(layout->extents_off,
			  (__u64)layout->n_extents * VGPU_EXTENT_SIZE,
			  layout->extents_off, layout->shm_size);
}

int vgpu_layout_check(struct vgpu_layout *layout,
		      const struct vgpu_shm_header *header, __u64 bar_size)
{
	if (header->magic != VGPU_SHM_MAGIC)
		return -ENODEV;
	if (header->protocol_version != VGPU_PROTOCOL_VERSION ||
	    !header->owners_off)
		return -EPROTO;
	*layout = (struct vgpu_layout){
		.shm_size = header->shm_size,
		.area_off = header->area_off,
		.extents_off = header->extents_off,
		.status_off = header->status_off,
		.owners_off = header->owners_off,
		.n_channels = header->n_channels,
		.n_extents = header->n_extents,
	};
	if (layout->shm_size > bar_size ||
	    layout->shm_size < VGPU_SHM_SIZE_MIN ||
	    layout->shm_size % VGPU_EXTENT_SIZE)
		return -EBADMSG;
	if (!layout->n_channels || layout->n_channels > VGPU_CHANNELS_MAX ||
	    !layout->n_extents)
		return -EBADMSG;
	/* The driver maps all before the extents at once. */
	if (layout->extents_off > VGPU_HEAD_SIZE_MAX ||
	    layout->extents_off > layout->shm_size)
		return -EBADMSG;
	return check_rest(layout) || check_head(layout) ? -EBADMSG : 0;
}
