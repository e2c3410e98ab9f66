/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Channel: this process's place in the shared memory
 */

#include "vgpu/ring.h"
#include "vgpu/version.h"

#include "wire/transport.h"
#include "wire/window.h"

struct shim_channel {
	struct shim_transport transport;
	struct shim_window window;
	uint32_t number;
	uint32_t claim; /* what this process claimed its entry with */

	/* Shared with the host, at their places in the window. */
	struct vgpu_channel_entry *entry;
	struct vgpu_channel_control *control;
	struct vgpu_word *words;
	uint64_t *records; /* by vgpu_record_slot() */
	uint8_t *slots;

	/* The first grant of arena. */
	uint32_t first_extent;
	uint32_t n_extents;

	/* Nonzero once the host was found to be gone; never reset. */
	uint32_t dead;
	/* When the worker answered last while the host itself was silent, and what it had
	 * taken from the ring by then. */
	uint64_t answered_ns;
	uint64_t answered_head;

	/* What is in force between this library and the host. */
	struct vgpu_version version;
};

/* The one channel of the process. */
extern struct shim_channel shim_channel;

/*
 * Opens a transport and a channel on it. Gives up after some seconds without a sign of
 * the host; waits longer for a host with a heartbeat, which may be starting many workers.
 *
 * Return: 0; -ENODEV without a host or a device; -EPROTO if the major versions of the
 * protocol differ; -ENOMEM if no window is free; -EAGAIN if the host has no room for one
 * more process; another -errno.
 */
int shim_channel_open(struct shim_channel *channel);

/* Closes the channel at the end of this process. Mappings stay: other threads may still
 * be returning from a call. */
void shim_channel_close(struct shim_channel *channel);

/* The same for a process that never got ready, with all mappings. */
void shim_channel_abandon(struct shim_channel *channel);

/* Maps extents that the host granted. */
int shim_channel_map_extents(struct shim_channel *channel, uint32_t first, uint32_t n);

/* Checks after a long wait whether the host is gone, and logs that once. Return: whether
 * it is. */
bool shim_channel_find_dead(struct shim_channel *channel);

/* Whether a capture of a stream is live anywhere in the process, see wait/capture.h. */
static inline bool shim_channel_has_capture(void)
{
	/* Partner: the worker's release store. It shares a cache line with n_faults,
	 * which is read before each call anyway. */
	return __builtin_expect(
		__atomic_load_n(&shim_channel.control->n_captures, __ATOMIC_ACQUIRE) &
			~VGPU_CAPTURES_NONE,
		0);
}

/* Whether the host asks for a reply to each call: for a capture, or because the device
 * memory of the process is elsewhere, and may not find room again. */
static inline bool shim_channel_wants_replies(void)
{
	/* Partner: as above. */
	return __builtin_expect(
		__atomic_load_n(&shim_channel.control->n_captures, __ATOMIC_ACQUIRE), 0);
}

/* Returns: how many faults work of the process met. */
static inline uint32_t shim_channel_n_faults(const struct shim_channel *channel)
{
	return __atomic_load_n(&channel->control->n_faults, __ATOMIC_ACQUIRE);
}

static inline struct vgpu_reply_slot *shim_channel_slot(
	const struct shim_channel *channel, uint32_t lane)
{
	return (struct vgpu_reply_slot *)(channel->slots +
					  (uint64_t)lane * VGPU_SLOT_SIZE);
}

/* Returns: the address of an extent. */
static inline void *shim_channel_extent(
	const struct shim_channel *channel, uint32_t extent)
{
	return shim_window_pointer(
		&channel->window, channel->transport.header->extents_off +
					  (uint64_t)extent * VGPU_EXTENT_SIZE);
}
