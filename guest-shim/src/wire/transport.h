/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Transport: how a guest process reaches the host
 *
 * Each transport provides a descriptor by which the shared memory is mapped, doorbells, a
 * means of sleeping until the host wrote a word, and whether the host is still alive. The
 * rest of the shim does not know which one is in use.
 *
 * Tried in this order: the socket named by VGPU_SOCKET, and no other if it is set; else
 * the kernel driver's /dev/vgpu0; where there is none, the ivshmem device through sysfs.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/hello.h"

struct shim_transport;

#define SHIM_GONE UINT64_MAX

struct shim_transport_ops {
	const char *name;

	/* Fills the transport. Return: 0 or -errno; a failure leaks nothing. */
	int (*open)(struct shim_transport *transport);

	/*
	 * Only where the kernel keeps the entries: sends the hello to the host, copies
	 * the own entry with the host's answer, and makes extents that were granted ready
	 * to be mapped. The first returns as the calls of kmod/vgpu-uapi.h, the second
	 * cannot fail: an entry that is lost is DEAD.
	 */
	int (*offer)(struct shim_transport *transport,
		const struct vgpu_channel_entry *hello, uint32_t *numberp);
	void (*read_entry)(
		struct shim_transport *transport, struct vgpu_channel_entry *entry);
	int (*accept)(struct shim_transport *transport, uint32_t first, uint32_t n);

	/* Wakes the consumer of that number (VGPU_DOORBELL_*). */
	void (*doorbell)(struct shim_transport *transport, uint32_t number);

	/* Whether the host can end a sleep, and so needs to know of it. */
	bool can_be_woken;

	/* Sleeps until *word may differ from `seen`, for at most `timeout_us`. The caller
	 * has published that it sleeps, and checks the word again after any return. */
	void (*sleep)(struct shim_transport *transport, const uint32_t *word,
		uint32_t seen, uint32_t timeout_us);

	/* Returns: the time since the host was last seen alive, in ns, or SHIM_GONE if it
	 * is certainly gone. Any thread may ask. */
	uint64_t (*silence_ns)(struct shim_transport *transport);

	void (*close)(struct shim_transport *transport);
};

struct shim_transport {
	const struct shim_transport_ops *ops;
	int shm_fd;
	/* Header and channel table, mapped for as long as the transport is open. */
	struct vgpu_shm_header *header;
	uint64_t header_size;
	uint64_t shm_size;

	/* Device: the addresses of the head, and of the shared memory once a window was
	 * offered; the own entry as it was last read; whether the device was found to be
	 * removed. */
	uint64_t head;
	uint64_t base;
	struct vgpu_channel_entry entry;
	bool is_removed;
	uint32_t uapi_version; /* of the kernel's driver */

	/* Socket. */
	int socket_fd;
	int doorbell_fds[2];

	/* Sysfs: the registers of BAR0, or NULL. */
	volatile uint32_t *registers;

	/* Sysfs and device: the heartbeat last seen, and its time. */
	uint64_t heartbeat;
	uint64_t heartbeat_ns;
};

extern const struct shim_transport_ops shim_transport_socket;
extern const struct shim_transport_ops shim_transport_sysfs;
extern const struct shim_transport_ops shim_transport_device;

/* Of sysfs: looks for the device in a folder like /sys/bus/pci/devices. Return: as open.
 */
int shim_transport_sysfs_open(struct shim_transport *transport, const char *devices);

/* Of the kernel driver: looks for its files in a folder like /dev. Return: as open;
 * -ENOENT where there is none. */
int shim_transport_device_open(struct shim_transport *transport, const char *folder);

/*
 * Opens the first transport that works; each one tried is logged with its result.
 *
 * Return: 0, -ENODEV where there is none, -EPROTO where the host speaks another version
 * of the protocol (both are logged), or another -errno.
 */
int shim_transport_open(struct shim_transport *transport);
void shim_transport_close(struct shim_transport *transport);

/* For the transports: maps and checks header and table through transport->shm_fd. */
int shim_transport_map_header(struct shim_transport *transport, uint64_t size);

/* The same for a mapping of VGPU_EXTENT_SIZE bytes that exists, and is taken over in any
 * case. */
int shim_transport_take_header(
	struct shim_transport *transport, void *map, uint64_t size);

/* As silence_ns, by the heartbeat. */
uint64_t shim_transport_heartbeat_ns(struct shim_transport *transport);
void shim_transport_begin_heartbeat(struct shim_transport *transport);

static inline struct vgpu_channel_entry *shim_transport_table(
	struct shim_transport *transport)
{
	return (struct vgpu_channel_entry *)((uint8_t *)transport->header +
					     VGPU_SHM_TABLE_OFF);
}
