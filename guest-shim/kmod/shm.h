/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _VGPU_SHM_H
#define _VGPU_SHM_H

/*
 * The division of the shared memory as the driver believes it
 */

#include <linux/types.h>

#include "vgpu/ring-layout.h"

/* Private to the driver, checked once. */
struct vgpu_layout {
	__u64 shm_size;
	__u64 area_off;
	__u64 extents_off;
	__u64 status_off; /* 0: there is none */
	__u64 owners_off;
	__u32 n_channels;
	__u32 n_extents;
};

/*
 * Takes the layout from a private copy of the header.
 *
 * @bar_size:	all that there is
 *
 * Return: 0; -ENODEV: not a memory of vgpud; -EPROTO: of another version, or
 * of one without the table of owners; -EBADMSG: its parts overlap or do not
 * fit.
 */
int vgpu_layout_check(struct vgpu_layout *layout,
		      const struct vgpu_shm_header *header, __u64 bar_size);

#endif
