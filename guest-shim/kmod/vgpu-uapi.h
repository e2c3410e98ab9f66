/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
#ifndef _VGPU_UAPI_H
#define _VGPU_UAPI_H

/*
 * /dev/vgpuN: what programs see of the driver
 *
 * An open file has at most one channel, and loses it for good when the
 * process that opened the channel exits or executes another program, when
 * the last descriptor and the last mapping are gone, or when the device is
 * removed or its host starts afresh. Offsets are those of the shared memory
 * (vgpu/ring-layout.h), for mmap() too. A program may map, always MAP_SHARED:
 *
 *	header		offset 0, one page, read-only
 *	status		its offset and VGPU_STATUS_SIZE are in the header,
 *			read-only
 *	area		of the own channel, once it is open
 *	extents		that were accepted by VGPU_IOC_ACCEPT
 *
 * A mapping is not inherited by a forked child. After the loss of the
 * channel it gives SIGBUS.
 *
 * Reserved fields and unknown flags must be 0, else the result is EINVAL.
 * After removal of the device everything but close() fails with ENODEV, and
 * poll() reports POLLERR | POLLHUP.
 */

#include <linux/ioctl.h>
#include <linux/types.h>

/* Grows with each addition; nothing that was released changes. */
#define VGPU_UAPI_VERSION 2

#define VGPU_IOC_TYPE 0xe7

/* The host can interrupt the guest; without that a wait polls. */
#define VGPU_INFO_F_INTERRUPTS 1u

struct vgpu_ioc_info {
	__u32 uapi_version;
	__u32 protocol_version; /* VGPU_PROTOCOL_VERSION of the driver */
	__u32 flags;		/* VGPU_INFO_F_* */
	__u32 n_extents;
	__u64 shm_size;
	__u64 extents_off;
	__u64 status_off; /* 0: there is none */
};

/*
 * Claims a channel, if the file has none, and sends the hello to the host,
 * also with another window after the host refused the first. The driver adds
 * who asks. The answer comes by VGPU_IOC_STATE.
 *
 * EAGAIN: no channel is free; EBUSY: the channel does not wait for a hello;
 * ECONNRESET: the file has lost its channel; ESTALE: the host was set up
 * anew in another layout, which the driver takes over when it is bound again.
 */
struct vgpu_ioc_offer {
	__u32 protocol_version;
	__u32 api_version;
	__u64 features;
	__u64 window_base;
	__u64 window_size;
	__u32 channel;	      /* out: its number */
	__u32 protocol_minor; /* since version 2 of this interface; before: 0 */
};

/*
 * What the channel's entry says now. Of a file that has lost its channel the
 * state is DEAD. ENOTCONN: there was no offer; EPROTO: the host names a
 * place of another channel.
 */
struct vgpu_ioc_state {
	__u32 state;  /* enum vgpu_channel_state */
	__u32 reason; /* enum vgpu_channel_reason */
	__u32 host_protocol_version;
	__u32 host_api_version;
	__u64 host_features;
	__u64 detail;
	__u64 area_off;
	__u32 first_extent;
	__u32 n_extents;
	__u32 worker_pid;
	__u32 host_protocol_minor; /* since version 2; before: 0 */
};

/*
 * Accepts extents that the host has granted to the channel, which can be
 * mapped from then on, until the channel is lost.
 *
 * ENOTCONN: the channel is not open; EACCES: the host has not granted all of
 * them to it, or another channel has one; EINVAL: there are no such extents.
 */
struct vgpu_ioc_extents {
	__u32 first;
	__u32 n;
};

/* Wait for the entry's state word instead of a word of the area. */
#define VGPU_WAIT_F_STATE 1u

/*
 * Sleeps until a 32-bit word differs from `seen`; of an open channel, also
 * until its state changes. `offset` names a word of the own area, or is 0
 * for the state.
 *
 * ETIMEDOUT; EINTR: a signal came.
 */
struct vgpu_ioc_wait {
	__u64 offset;
	__u32 seen;
	__u32 timeout_us;
	__u32 flags; /* VGPU_WAIT_F_* */
	__u32 reserved;
};

#define VGPU_IOC_INFO _IOR(VGPU_IOC_TYPE, 0, struct vgpu_ioc_info)
#define VGPU_IOC_OFFER _IOWR(VGPU_IOC_TYPE, 1, struct vgpu_ioc_offer)
#define VGPU_IOC_STATE _IOR(VGPU_IOC_TYPE, 2, struct vgpu_ioc_state)
#define VGPU_IOC_ACCEPT _IOW(VGPU_IOC_TYPE, 3, struct vgpu_ioc_extents)
#define VGPU_IOC_WAIT _IOW(VGPU_IOC_TYPE, 4, struct vgpu_ioc_wait)
/* Rings the doorbell of the own channel. ENOTCONN: it is not open. */
#define VGPU_IOC_RING _IO(VGPU_IOC_TYPE, 5)

/*
 * read() takes the number of interrupts of the channel since the last
 * read(), 8 bytes, and waits for the first of them; poll() reports POLLIN
 * while there are any.
 */

#endif
