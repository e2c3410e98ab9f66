/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Virtual memory: reserved addresses, and physical memory mapped at them
 *
 * Reservations are among the addresses that all devices share, because each device may be
 * given access to a mapping or not. What is mapped is in the ranges of the memory, so
 * that whoever looks up an address finds it there.
 *
 * The functions take the lock of the memory. Sizes and addresses of mappings are
 * multiples of VIRTUAL_GRANULARITY, which they check.
 */

#include <stdint.h>

#include "mem/memory.h"

#define VIRTUAL_GRANULARITY (2ull << 20)

/*
 * Reserves addresses.
 *
 * @alignment:	a power of two; 0: VIRTUAL_GRANULARITY
 * @hint:	preferred address, or 0
 *
 * Return: 0, -ENOMEM, -EINVAL, MEMORY_E_FULL.
 */
int virtual_reserve(struct memory *memory, uint64_t size, uint64_t alignment,
	uint64_t hint, uint64_t *addressp);

/* Gives a whole reservation back. Return: 0, MEMORY_E_UNKNOWN, or MEMORY_E_USED while
 * something is mapped there. */
int virtual_free(struct memory *memory, uint64_t address, uint64_t size);

/*
 * Maps memory at reserved addresses, without access for any device.
 *
 * Return: 0, -ENOMEM, -EINVAL for a piece that the memory does not have, MEMORY_E_OUTSIDE
 * where the addresses are not of one reservation, MEMORY_E_TWICE.
 */
int virtual_map(struct memory *memory, uint64_t address, uint64_t size, uint64_t offset,
	struct physical *physical);

/* Unmaps whole mappings. Return: 0, -ENOMEM, MEMORY_E_UNKNOWN. */
int virtual_unmap(struct memory *memory, uint64_t address, uint64_t size);

/*
 * Sets what kernels and copies of a device may do with whole mappings, or the program
 * itself (RANGE_HOST_ACCESS), of which a note is all that is kept.
 *
 * @access:	SOFTGPU_READ and SOFTGPU_WRITE, or 0
 *
 * Return: 0, MEMORY_E_UNKNOWN.
 */
int virtual_set_access(struct memory *memory, uint64_t address, uint64_t size,
	uint32_t device, uint8_t access);

/* Return: whether something is mapped there; then what a device or the host may do. */
bool virtual_get_access(
	struct memory *memory, uint64_t address, uint32_t device, uint8_t *accessp);

/* Return: whether whole mappings are there, of which none or all are on the host. */
bool virtual_is_whole(
	struct memory *memory, uint64_t address, uint64_t size, bool *on_hostp);

/* Return: a reference to what is mapped at an address, or NULL. */
struct physical *virtual_find(struct memory *memory, uint64_t address);
