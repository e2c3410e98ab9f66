/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Heap: the memory of malloc() in device code
 *
 * One for each context, of CU_LIMIT_MALLOC_HEAP_SIZE bytes of device memory that are
 * allocated, and counted, when a kernel allocates for the first time; they are freed with
 * the context. Another one has the parameters of launches by kernels. A buddy system
 * whose tables are outside of device memory: whatever a kernel writes, and whatever it
 * frees, they stay consistent. Freeing a number that is not the start of an allocated
 * piece has no effect.
 *
 * The lock guards everything; kernels of several threads allocate concurrently.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The smallest piece is 64 bytes; the largest heap has 2^30 of them. */
#define HEAP_UNIT_SHIFT 6
#define HEAP_ORDERS 31

struct heap {
	pthread_mutex_t lock;
	bool is_begun; /* the size is settled, whether there is memory or not */
	uint64_t base; /* device address, 0: no memory */
	uint32_t n_units;
	/* By unit: of the first one of a piece its order and state; lists of free. */
	uint8_t *pieces;
	uint32_t *next, *previous;
	uint32_t first[HEAP_ORDERS]; /* unit + 1, 0: none */
};

void heap_init(struct heap *heap);

/* The memory itself belongs to its owner's device memory and is freed with that. */
void heap_reset(struct heap *heap);
void heap_deinit(struct heap *heap);

/* Return: whether a kernel has allocated, so that the size cannot change any more. */
bool heap_has_begun(struct heap *heap);

/* Return: whether the address is in the memory that it gives out. */
bool heap_holds(struct heap *heap, uint64_t address);

/* Gives the heap its memory: units of 64 bytes from @base on. Return: 0 or -ENOMEM. */
int heap_begin(struct heap *heap, uint64_t base, uint64_t size);

/* With the lock. Return: an address aligned to 64 bytes, 0 where there is no room. */
uint64_t heap_take(struct heap *heap, uint64_t size);
void heap_give(struct heap *heap, uint64_t address);
