/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Guard: maps of files that others can cut short
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

/* Watches over a map from now on. One thread alone may use guards. */
void guard_begin(struct guard *guard, void *map, size_t size);
/* Before the map is unmapped. Works on one that has not begun. */
void guard_end(struct guard *guard);
