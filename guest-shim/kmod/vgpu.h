/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _VGPU_H
#define _VGPU_H

/*
 * What the files of the driver share
 *
 * struct vgpu		one device, from probe() until the last file is closed
 * struct vgpu_client	one open file
 * struct vgpu_channel	the place of one process in the shared memory
 *
 * Everything in the BAR may change at any time: words are read once, by
 * READ_ONCE() or into a private copy, and decisions rest on private state.
 *
 * Locks, in the order in which they are taken:
 *
 *	mmap_lock	of a process; the kernel's
 *	vgpu->lock	clients, channels, owners; may sleep, but touches no
 *			memory of a process
 *	vgpu->map_lock	taken for writing to set `dead` or `revoked`, for
 *			reading while pages are inserted: after that store no
 *			page is inserted, so that removing them once suffices
 *
 * vgpu->chunk_lock is taken alone. It is held while memory is added to the
 * kernel, which takes the locks of CPU hot-plug, under which others take
 * mmap_lock: so it must never be taken under mmap_lock, nor under a lock that
 * is.
 *
 * Whoever reads the shared memory without vgpu->lock is inside
 * vgpu_enter(), and remove() waits for all of these.
 */

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/memremap.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "shm.h"

/* Struct pages are made for so much at a time: 1 MiB of them. */
#define VGPU_CHUNK_SIZE (64ul << 20)

struct vgpu_client;

struct vgpu_channel {
	/* Under vgpu->lock. */
	struct vgpu_client *client; /* NULL: none, or it is draining */
	u32 claim;		    /* 0: the entry is not ours */
	bool is_draining; /* pages of it are in use although it has ended */

	/* Of its vector, and of its waiters. */
	struct wait_queue_head wait;
	atomic64_t n_interrupts;
	bool has_vector;
};

struct vgpu {
	struct kref ref;
	struct pci_dev *pci;
	struct miscdevice misc;
	int number;
	char name[16];
	u8 boot_id[16];

	struct vgpu_layout layout;
	u64 generation;
	u64 bar; /* physical address of the shared memory */
	void __iomem *registers;
	void *head; /* all before the extents, in the kernel, cached */
	u8 *owners; /* of each extent: 0, or 1 + channel; private */
	unsigned int n_chunks;
	unsigned int n_vectors;

	struct mutex chunk_lock; /* see above */
	struct dev_pagemap **chunks;

	struct mutex lock; /* see above */
	struct list_head clients;
	struct vgpu_channel channels[VGPU_CHANNELS_MAX];
	struct delayed_work drain;
	unsigned int drain_ms;
	bool is_stale; /* the host has another layout now */

	struct rw_semaphore map_lock; /* see above */
	bool dead;		      /* the device is gone */
};

struct vgpu_client {
	struct vgpu *vgpu;
	struct file *file;
	struct list_head node; /* in vgpu->clients */

	/* Under vgpu->lock; the channel is stored last. */
	struct vgpu_channel *channel;
	u32 claim;    /* of the channel, which others may have later */
	bool is_open; /* the entry was OPEN once */
	/* Who opened the channel. */
	struct pid *process;
	struct mm_struct *mm;

	bool revoked;	   /* set under map_lock; never cleared */
	atomic64_t n_read; /* interrupts that read() has reported */
};

/* Keeps remove() from unmapping the shared memory. Return: false if it did. */
bool vgpu_enter(struct vgpu *vgpu, int *idx);
void vgpu_leave(int idx);

void vgpu_put(struct vgpu *vgpu);

/*
 * pages.c
 */

/* Makes struct pages for a range of the shared memory. */
int vgpu_pages_add(struct vgpu *vgpu, u64 off, u64 size);
/* Maps the head into the kernel. */
int vgpu_pages_map_head(struct vgpu *vgpu);
/* Waits until nobody uses a page, after all were taken out of processes. */
void vgpu_pages_wait(struct vgpu *vgpu);
/* Takes the struct pages back. */
void vgpu_pages_remove(struct vgpu *vgpu);
/* Whether no process and no transfer uses a page of the range. */
bool vgpu_pages_are_idle(struct vgpu *vgpu, u64 off, u64 size);
/* Takes a range out of all processes that map it by that file. */
void vgpu_pages_zap(struct file *file, u64 off, u64 size);
int vgpu_pages_mmap(struct vgpu_client *client, struct vm_area_struct *vma);

/*
 * channel.c
 */

struct vgpu_ioc_extents;
struct vgpu_ioc_offer;
struct vgpu_ioc_state;

/* The calls of vgpu-uapi.h, in vgpu_enter(). */
int vgpu_channel_offer(struct vgpu_client *client,
		       struct vgpu_ioc_offer *offer);
int vgpu_channel_state(struct vgpu_client *client,
		       struct vgpu_ioc_state *state);
int vgpu_channel_accept(struct vgpu_client *client,
			const struct vgpu_ioc_extents *extents);

/* The entry's state word, read once. */
u32 vgpu_channel_peek(struct vgpu_client *client);

/* Whether the channel may map that range; under vgpu->lock. */
bool vgpu_channel_has(struct vgpu_client *client, u64 off, u64 size);

/* Ends the channel of a client; under vgpu->lock. */
void vgpu_channel_close(struct vgpu_client *client);
/* Ends all of them. */
void vgpu_channel_close_all(struct vgpu *vgpu);
/* Tells the host of channels whose pages have come back. */
void vgpu_channel_drain(struct work_struct *work);
/* The same where all pages are known to be idle. */
void vgpu_channel_finish_all(struct vgpu *vgpu);

/* Writes the driver's boot id, or none: then the host sends no interrupts. */
void vgpu_channel_write_boot_id(struct vgpu *vgpu, const u8 *boot_id);
/*
 * Waits until the host has ended all channels and has seen that there is no
 * boot id. QEMU (7.2) still watches the eventfds of a device that is gone, and
 * crashes under TCG when one is signalled. The time is bounded: a host may
 * not answer.
 */
void vgpu_channel_wait_for_host(struct vgpu *vgpu);

void vgpu_ring(struct vgpu *vgpu, u32 doorbell);

static inline u32 vgpu_channel_index(struct vgpu *vgpu,
				     struct vgpu_channel *channel)
{
	return channel - vgpu->channels;
}

static inline u64 vgpu_area_off(struct vgpu *vgpu, u32 index)
{
	return vgpu->layout.area_off + (u64)index * VGPU_AREA_SIZE;
}

static inline u64 vgpu_extent_off(struct vgpu *vgpu, u32 extent)
{
	return vgpu->layout.extents_off + (u64)extent * VGPU_EXTENT_SIZE;
}

/*
 * file.c
 */

extern const struct file_operations vgpu_fops;

#endif
