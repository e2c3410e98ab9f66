/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ranges: disjoint address ranges, found by any address inside
 *
 * A sorted array: finding is a binary search, inserting moves the rest. A program has
 * thousands of allocations at most, its allocators cache the others.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The host follows the devices. */
#define RANGE_HOST_ACCESS 8u

/* Flags of mappings. */
#define RANGE_ON_HOST 1u
#define RANGE_SHARED 2u

struct physical;

enum range_kind {
	RANGE_DEVICE,	  /* cuMemAlloc */
	RANGE_MANAGED,	  /* cuMemAllocManaged */
	RANGE_MODULE,	  /* the variables of one module */
	RANGE_HOST,	  /* cuMemHostAlloc */
	RANGE_REGISTERED, /* cuMemHostRegister */
	RANGE_DRIVER,	  /* the driver's own: kernels reach it, calls do not */
	RANGE_ARRAY,	  /* as that, and it counts: under textures */
	RANGE_MAPPED,	  /* cuMemMap */
	RANGE_HEAP,	  /* as an array's: what kernels allocate from */
	_RANGE_N,
};

struct range {
	uint64_t address;
	uint64_t size; /* as asked for */
	enum range_kind kind;
	unsigned int flags; /* of the call that made it, or of a mapping */
	void *owner;	    /* context */
	uint32_t device;    /* whose memory it is, unless host and devices share it */
	uint64_t id;	    /* never used twice */
	/* Of a mapping: its memory, a reference, and what each device may do. */
	struct physical *physical;
	uint8_t access[RANGE_HOST_ACCESS + 1]; /* SOFTGPU_READ, SOFTGPU_WRITE */
};

struct ranges {
	struct range *entries;
	size_t n_entries;
	size_t n_allocated;
};

void ranges_deinit(struct ranges *ranges);

/* Return: 0 or -ENOMEM. The caller has made sure that it overlaps no other. */
int ranges_insert(struct ranges *ranges, const struct range *range);
void ranges_remove(struct ranges *ranges, const struct range *entry);

/* Return: the entry that holds the address, valid until the next change, or NULL. */
const struct range *ranges_find(const struct ranges *ranges, uint64_t address);

/* Return: whether any entry has a byte in [address, address + size). */
bool ranges_overlap(const struct ranges *ranges, uint64_t address, uint64_t size);
