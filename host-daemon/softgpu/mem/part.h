/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Part: the addresses of one device, or those shared by host and devices
 *
 * Small allocations share chunks, large ones take whole pages followed by one closed
 * page: a kernel that runs over the end of an array faults as it does on hardware.
 *
 * Guarded by the lock of the memory.
 */

#include <stddef.h>
#include <stdint.h>

#include "mem/spans.h"
#include "mem/window.h"

struct chunk;
struct physical;

/* Pages that lie in a file, which other processes may map. */
struct part_share {
	uint64_t address;
	uint64_t size;
	uint32_t device;
	struct physical *physical; /* a reference */
};

struct part {
	struct window window;
	struct spans spans; /* free pages */
	struct chunk **chunks;
	size_t n_chunks;
	struct part_share *shares;
	size_t n_shares;
	uint64_t used; /* counts against the limit */
};

/* Whole pages that hold so many bytes. */
uint64_t part_pages(uint64_t size);

/* Takes a window at a base, or with size 0 one of the wanted size anywhere. Return: 0 or
 * -ENOMEM. */
int part_init(struct part *part, uint64_t base, uint64_t size, uint64_t wanted,
	uint32_t n_maps);
void part_deinit(struct part *part);

/* Takes addresses with memory, and gives them back. Return: 0 or -ENOMEM. */
int part_take(struct part *part, uint64_t size, uint64_t *addressp);
/* Return: the reference of a share that has ended, which is the caller's, or NULL. */
struct physical *part_give(struct part *part, uint64_t address, uint64_t size);

/* The whole pages of an allocation, or the chunk that it shares. */
struct part_share part_pages_of(const struct part *part, uint64_t address, uint64_t size);

/* Return: the share of these pages, or NULL. */
struct part_share *part_find_share(const struct part *part, uint64_t address);

/* Puts a file, which has what the pages hold, in their place, as long as they are not
 * given back. Takes ownership of the reference. Return: 0 or -ENOMEM. */
int part_share(struct part *part, const struct part_share *share, int fd);

/*
 * Takes addresses without guard pages around.
 *
 * @alignment:	of the address: a power of two, at least a page
 * @hint:	taken if these addresses are free and aligned, 0: anywhere
 *
 * Return: 0 or -ENOMEM.
 */
int part_take_range(struct part *part, uint64_t size, uint64_t alignment, uint64_t hint,
	uint64_t *addressp);
void part_give_range(struct part *part, uint64_t address, uint64_t size);
