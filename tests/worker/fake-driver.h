/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fake driver: for tests of the worker
 *
 * A driver that only checks its arguments: each handle must be one that it created, of
 * the right kind and not destroyed, each address must be memory of its own or registered
 * with it. Anything else fails the test, because the worker passed on an unchecked value
 * of the guest.
 */

#include "driver/driver.h"

#define FAKE_PARAM_SIZE 20u /* of each kernel: a pointer and three numbers */
#define FAKE_PARAMS 4u
#define FAKE_MEMORY (1ull << 30)
#define FAKE_GLOBAL_SIZE 64u

/* The calls that the driver received, for tests. */
struct fake_counts {
	unsigned int launches;
	unsigned int attributes; /* of all launches */
	unsigned int copies;
	unsigned int fills;
	unsigned int word_writes;
	unsigned int streams_made;
	unsigned int streams_gone;
	unsigned int set_current;
	unsigned int registered;
	unsigned int retains;
	unsigned int releases;
	uint64_t last_word_value;
	CUresult next_launch; /* what the next launch answers */
};

extern struct fake_counts fake_counts;

/* Makes the driver forget all. Memory is handed out in [base, base + FAKE_MEMORY). */
void fake_driver_init(struct driver *driver, uint64_t base);
