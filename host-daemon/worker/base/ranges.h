/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ranges: the device addresses that the guest may use
 *
 * A sorted array of the live allocations. Lanes add and remove, all threads look up. The
 * lock is held for a binary search or for moving the array's tail, never during a driver
 * call, so the dispatcher never waits for a driver.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum range_kind {
	RANGE_MEMORY, /* allocated by device_memory_alloc() */
	RANGE_GLOBAL, /* a variable of a module or library */
	RANGE_MAPPED, /* mapped memory; its owner is the memory */
};

struct range {
	uint64_t start;
	uint64_t size;
	enum range_kind kind;
	/* The range is removed with either of these: its context; for globals, the module
	 * or library. */
	const void *owner;
	const void *parent;
};

struct ranges {
	pthread_mutex_t lock;
	struct range *items;
	size_t n_items;
	size_t max;
};

enum {
	_RANGES_E_SUCCESS,
	RANGES_E_OVERLAP,  /* with a live range (or empty, or beyond 2^64) */
	RANGES_E_UNKNOWN,  /* no range starts there */
	RANGES_E_NO_OWNER, /* its context was destroyed; set by callers */
};

void ranges_init(struct ranges *ranges);
void ranges_deinit(struct ranges *ranges);

/* Return: 0, RANGES_E_OVERLAP or -ENOMEM. */
int ranges_add(struct ranges *ranges, const struct range *range);

/*
 * Removes the range of that kind that starts at `start`.
 *
 * Return: 0 (and the range), or RANGES_E_UNKNOWN.
 */
int ranges_remove(struct ranges *ranges, enum range_kind kind, uint64_t start,
	struct range *rangep);

/*
 * Removes one range of that owner or parent; call it until it finds none.
 *
 * Return: 0 (and the range), or RANGES_E_UNKNOWN.
 */
int ranges_remove_owned(struct ranges *ranges, const void *owner, struct range *rangep);

/* Removes all ranges of that kind that overlap [start, start + size). */
void ranges_remove_overlapping(
	struct ranges *ranges, enum range_kind kind, uint64_t start, uint64_t size);

/* Finds the range that holds an address, or the next one. Return: whether there is one.
 */
bool ranges_find(struct ranges *ranges, uint64_t address, struct range *rangep);

/* Whether [start, start + size) is within one range, or within mappings without gaps
 * between; an empty one needs only start. */
bool ranges_cover(struct ranges *ranges, uint64_t start, uint64_t size);

/*
 * First fit for address space that this table manages alone.
 *
 * Return: the lowest multiple of `alignment` in [base, limit) at which `size` bytes are
 *	   free, or 0.
 */
uint64_t ranges_find_gap(struct ranges *ranges, uint64_t base, uint64_t limit,
	uint64_t size, uint64_t alignment);
