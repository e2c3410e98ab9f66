/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Guard: mappings of files that another process can truncate
 */

#include <signal.h>
#include <stddef.h>

#include <sys/queue.h>

struct guard {
	LIST_ENTRY(guard) entry;
	void *map;
	size_t size;
	volatile sig_atomic_t is_broken; /* zeroes are mapped in place of the file */
};

/* Protects a mapping from now on. Only one thread may use guards. */
void guard_begin(struct guard *guard, void *map, size_t size);
/* Call before unmapping. Has no effect on a guard that was not begun. */
void guard_end(struct guard *guard);
