/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Quarantine: freed memory that is not used again for a while, so that an access to it is
 * found
 *
 * Guarded by the lock of the memory. What is held does not count against the limit.
 */

#include <stdint.h>

#include "mem/part.h"

/* The memory that a program can hold beyond its limit by this. */
#define QUARANTINE_SIZE_MAX (64ull << 20)
#define QUARANTINE_MAX 256u

struct memory;

struct quarantine {
	struct quarantine_entry {
		struct part *part;
		uint64_t address;
		uint64_t size;
	} entries[QUARANTINE_MAX];
	uint32_t first, n; /* the oldest one, how many */
	uint64_t size;	   /* of all */
};

/* Takes memory that has ended; gives back what has been held longest. */
void quarantine_put(
	struct memory *memory, struct part *part, uint64_t address, uint64_t size);

/* Gives back all. Return: whether there was any. */
bool quarantine_flush(struct memory *memory);
