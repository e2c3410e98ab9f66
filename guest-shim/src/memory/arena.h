/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Arena: the part of the shared memory that the host granted to this process
 *
 * Runs of extents, the first of which begins with the staging blocks; the rest is one
 * heap, for pinned memory and for images on their way to the host. The device accesses it
 * directly, at the same addresses.
 */

#include <stddef.h>
#include <stdint.h>

/* Takes over the first grant. Return: 0 or -errno. */
int shim_arena_setup(void);

/* Allocates page-aligned memory; asks the host for more extents where none is left.
 * Return: NULL when it refuses. */
void *shim_arena_alloc(uint64_t size);

/* The same, of zeros, as is new memory of the system that a driver pins: programs rely on
 * it without knowing. */
void *shim_arena_alloc_zeroed(uint64_t size);

/* The same from the start of an extent, so that the host can map it at another address:
 * its pages may be as large. */
void *shim_arena_alloc_extents(uint64_t size);

/* Gives it back. Neither host nor device may use it any more. */
void shim_arena_free(void *pointer);
