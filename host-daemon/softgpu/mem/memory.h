/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory: everything a device address can point to
 *
 * Two kinds of windows: device memory, which is allocated here, and a host window whose
 * pages become accessible by registration. Without a host window, memory that
 * cuMemHostAlloc() returns comes from the device window as well.
 *
 * One lock guards the tables; kernels read the page maps without it. Device memory counts
 * against the limit, rounded up to the size that it occupies.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/engine.h"
#include "mem/part.h"
#include "mem/physical.h"
#include "mem/quarantine.h"
#include "mem/ranges.h"
#include "mem/window.h"

/* Conditions of memory_alloc(), memory_free(), memory_register(), and of virtual.h. */
enum {
	_MEMORY_E_SUCCESS,
	MEMORY_E_FULL,	  /* beyond the limit, or the window is */
	MEMORY_E_UNKNOWN, /* no allocation of that kind starts there */
	MEMORY_E_OUTSIDE, /* neither in the host window nor at reserved addresses */
	MEMORY_E_TWICE,	  /* part of it is registered, or mapped, already */
	MEMORY_E_USED,	  /* something is mapped there */
};

/* The engine's spaces have room for all of them, what they share, and the host. */
#define MEMORY_DEVICES_MAX 8u
_Static_assert(MEMORY_DEVICES_MAX + 2 <= SOFTGPU_WINDOWS_MAX, "a space holds all");
_Static_assert(MEMORY_DEVICES_MAX <= WINDOW_MAPS_MAX, "a map for each");
_Static_assert(MEMORY_DEVICES_MAX <= RANGE_HOST_ACCESS, "rights for each");

/* Of so many allocations it is known that they were freed, for descriptions. */
#define MEMORY_ENDED_MAX 256u

struct memory_ended {
	uint64_t address;
	uint64_t size;
};

/* What kernels of one device ask for with checked memory. */
struct memory_view {
	struct memory *memory;
	uint32_t device;
};

/* Who is asked for memory that no call has named, as in struct softgpu_config; NULL:
 * nobody. With the lock of the memory. */
struct memory_charging {
	int (*charge)(void *data, uint32_t device, uint64_t size);
	void (*refund)(void *data, uint32_t device, uint64_t size);
	void *data;
};

struct memory {
	struct window host;
	/* To the byte, with unused memory around each allocation, and freed memory is not
	 * used again for a while; set before the first allocation. */
	bool is_checked;
	uint64_t limit;			 /* of each device */
	struct memory_charging charging; /* set before the first allocation */
	uint32_t n_devices;
	uint32_t n_parts;

	pthread_mutex_t lock; /* for all below */
	struct ranges ranges;
	struct ranges reservations; /* virtual.c's */
	struct physicals physicals;
	struct memory_view views[MEMORY_DEVICES_MAX];
	struct part parts[MEMORY_DEVICES_MAX + 1];
	uint64_t next_id;
	uint64_t n_ends; /* atomic: of allocations and registrations */
	struct quarantine quarantine;
	struct memory_ended ended[MEMORY_ENDED_MAX]; /* the last ones, by n_ends */
};

/* Changes whenever something ends: what memory_covers() found before may be untrue. */
static inline uint64_t memory_ends(const struct memory *memory)
{
	return __atomic_load_n(&memory->n_ends, __ATOMIC_ACQUIRE);
}

/*
 * Return: 0 or -ENOMEM. A base of 0 means a window of our own; the sizes are
 * multiples of SOFTGPU_PAGE_SIZE.
 */
int memory_init(struct memory *memory, uint32_t n_devices, uint64_t limit, uint64_t base,
	uint64_t size, uint64_t host_base, uint64_t host_size);
void memory_deinit(struct memory *memory);

/* Keeps what nothing has written (struct softgpu_window), of allocations for devices.
 * Before the first one. Return: 0 or -ENOMEM. */
int memory_watch(struct memory *memory);

/* The memory that kernels of a device with access to those devices may use: bit n is
 * device n. */
void memory_space(struct memory *memory, uint32_t device, uint32_t devices,
	struct softgpu_space *space);

/**
 * memory_alloc() - allocate device or host memory
 * @template:	size, kind, flags, owner and device are used
 * @addressp:	aligned to 512 bytes; contents are undefined
 *
 * Return: 0, -ENOMEM, MEMORY_E_FULL.
 */
int memory_alloc(struct memory *memory, const struct range *template, uint64_t *addressp);

/* Return: 0 or MEMORY_E_UNKNOWN. No kernel or copy may be using it any more. */
int memory_free(struct memory *memory, uint64_t address, unsigned int kinds);
#define MEMORY_KIND(_kind) (1u << (_kind))

/* Frees all that an owner has, registrations included. */
void memory_free_owner(struct memory *memory, const void *owner);

/* Return: 0, -ENOMEM, MEMORY_E_OUTSIDE, MEMORY_E_TWICE, or MEMORY_E_USED if there is
 * memory of another kind. */
int memory_register(struct memory *memory, const struct range *template);
int memory_unregister(struct memory *memory, uint64_t address);

/* Return: whether something is allocated or registered at that address. */
bool memory_find(struct memory *memory, uint64_t address, struct range *rangep);

/*
 * Describes an address, as what it is: "16 bytes past the end of an allocation of 4096
 * bytes at 0x7f0000000000". For any address, whose memory may have ended.
 */
void memory_describe(struct memory *memory, uint64_t address, char *text, size_t size);

/*
 * Return: whether copies of a device may access all of [address, address + size), to read
 * or write (SOFTGPU_READ, SOFTGPU_WRITE): it is within one allocation, or in adjacent
 * registrations or mappings. Empty ranges are valid anywhere.
 */
bool memory_covers(struct memory *memory, uint32_t device, unsigned int access,
	uint64_t address, uint64_t size);

/*
 * Sharing allocations with other processes
 *
 * The pages of an allocation, or the chunk that small ones share, become a file that
 * others map; they are ordinary memory again when all of them are given back.
 */

struct memory_share {
	uint64_t address; /* of the pages */
	uint64_t size;
	uint32_t device;
	int fd; /* the caller's, or -1: they are not shared yet */
};

/* Return: 0, or MEMORY_E_UNKNOWN: no device memory is allocated there. */
int memory_find_share(
	struct memory *memory, uint64_t address, struct memory_share *share);

/*
 * Puts a file in the place of pages; what they hold is copied, so that nothing may write
 * them meanwhile.
 *
 * @physical:	of that size, and with is_import, because the allocations count already;
 *		the reference is the memory's if it succeeds
 *
 * Return: 0, -ENOMEM, or MEMORY_E_UNKNOWN or MEMORY_E_TWICE if the pages are not what
 * memory_find_share() has found.
 */
int memory_share(struct memory *memory, uint64_t address,
	const struct memory_share *share, struct physical *physical);

/* Return: whether it is an address of device memory, allocated or not. */
bool memory_is_device(const struct memory *memory, uint64_t address);

/* The part without a device. */
struct part *memory_shared(struct memory *memory);

void memory_info(
	struct memory *memory, uint32_t device, uint64_t *freep, uint64_t *totalp);
