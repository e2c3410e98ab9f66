/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ranges: the allocation that contains an address
 *
 * Device allocations, pinned and managed memory and the variables of modules, ordered by
 * address. Pointer attributes are answered from here, and copies find out which of their
 * sides are on the device.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

struct shim_context;

enum shim_range_kind {
	SHIM_RANGE_DEVICE,
	SHIM_RANGE_PINNED,
	SHIM_RANGE_REGISTERED, /* of cuMemHostRegister, where the device has it */
	SHIM_RANGE_VARIABLE,
	SHIM_RANGE_MANAGED,	     /* of cuMemAllocManaged */
	SHIM_RANGE_MANAGED_VARIABLE, /* of a module or library, in the arena too */
	SHIM_RANGE_MAPPED,	     /* of cuMemMap; of no context */
};

struct shim_range {
	uint64_t base;
	uint64_t size;
	enum shim_range_kind kind;
	struct shim_context *context;
	unsigned int flags; /* pinned, registered: of the call */
	CUdevice device; /* mapped: whose memory it is, or SHIM_NO_DEVICE: the host's */
	uint64_t closed_to; /* mapped, bit n: device n may not both read and write it */
	uint64_t arena;	    /* mapped, of cuMemCreate on the host: its place there */
	bool is_exportable; /* mapped: to other processes */
	bool syncs;	    /* calls that are not asynchronous wait for their work */
	uint64_t owner;	    /* variable: the module or library; mapped: the pool */
	uint64_t id;	    /* no other allocation of the process has it */
};

static inline bool shim_range_is_managed(const struct shim_range *range)
{
	return range->kind == SHIM_RANGE_MANAGED ||
	       range->kind == SHIM_RANGE_MANAGED_VARIABLE;
}

/* Whether the program has it too, in memory that was pinned for it. */
static inline bool shim_range_is_on_host(const struct shim_range *range)
{
	return range->kind == SHIM_RANGE_PINNED || range->kind == SHIM_RANGE_REGISTERED;
}

/* Adds a range; one that is there already stays as it is. Return: false without memory.
 */
bool shim_range_add(const struct shim_range *range);

/* Finds the range that contains an address. */
bool shim_range_find(uint64_t address, struct shim_range *rangep);

/*
 * Whether [address, address + size) is within one range, or within mappings without gaps
 * between.
 *
 * @is_deniedp:	whether a device is denied any of them: then the host, which knows the
 *		device, may refuse to use them
 */
bool shim_range_holds(uint64_t address, uint64_t size, bool *is_deniedp);

/* Returns: the same, and no device is denied any: the host cannot refuse a copy. */
static inline bool shim_range_covers(uint64_t address, uint64_t size)
{
	bool is_denied;

	return shim_range_holds(address, size, &is_denied) && !is_denied;
}

/* Returns: whether a variable is there although the address is not in the window. The
 * driver of a host may place variables of modules anywhere. */
bool shim_range_is_variable(uint64_t address);

/* Removes the range that begins there. */
bool shim_range_remove(
	uint64_t base, enum shim_range_kind kind, struct shim_range *rangep);

/* Notes whether devices (bit n: device n) may both read and write mappings. */
void shim_range_set_access(
	uint64_t address, uint64_t size, uint64_t devices, bool is_open);

/* Notes to which pool a mapping belongs, or 0. Return: false where no mapping begins. */
bool shim_range_set_owner(uint64_t base, uint64_t owner);

/* Finds the first mapping of memory on the host that begins in [from, to), but not those
 * of pools. */
bool shim_range_find_on_host(uint64_t from, uint64_t to, struct shim_range *rangep);

/* Removes the mappings that begin in [address, address + size). */
void shim_range_drop_mapped(uint64_t address, uint64_t size);

/* Says whether calls wait for their work on the range that holds the address. Return:
 * false where there is none. */
bool shim_range_set_syncs(uint64_t address, bool wanted);

/* Returns: whether they wait for work on either of two addresses. */
bool shim_range_syncs(uint64_t a, uint64_t b);

/* Removes all ranges of a context (pinned and managed memory is returned to the arena),
 * or of a module. */
void shim_range_drop_context(const struct shim_context *context);
void shim_range_drop_owner(uint64_t owner);
