/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Placement: device memory of NVIDIA's driver at addresses that the worker chooses
 *
 * Chunks of physical memory (cuMemCreate) are mapped at addresses in the device part of W
 * (cuMemAddressReserve, cuMemMap). An allocation of at least one chunk's granularity has
 * separate chunks; smaller ones share a slab of one granule, divided into units. Without
 * these calls, or if an address in W cannot be reserved, there is no placement and
 * cuMemAlloc is tried instead.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

struct mover_list;
struct mover_piece;
struct placement;
struct session;

/* Return: NULL if the driver cannot. */
struct placement *placement_new(struct session *session);
struct placement *placement_free(struct placement *placement);

/* In what unit an allocation of that size takes memory. */
uint64_t placement_unit(const struct placement *placement, uint64_t size);

CUresult placement_take(
	struct placement *placement, CUdevice device, uint64_t size, uint64_t *addressp);
/* Reserves addresses without memory. Return: as cuMemAddressReserve(). */
CUresult placement_reserve(struct placement *placement, uint64_t size, uint64_t alignment,
	uint64_t hint, uint64_t *addressp);
CUresult placement_unreserve(struct placement *placement, uint64_t address);

/*
 * Gives a reservation's addresses to the worker, which maps memory of the host there, or
 * back to the driver. Nothing is mapped in it.
 *
 * Return: CUDA_ERROR_OUT_OF_MEMORY if another mapping of the process is there; then the
 * addresses stay where they were.
 */
CUresult placement_lend(struct placement *placement, uint64_t address, bool is_lent);
bool placement_is_lent(struct placement *placement, uint64_t address);

/*
 * Exports the chunk that holds an address: the allocation, or a slab with other small
 * ones around it.
 *
 * @fdp:	a descriptor for cuMemImportFromShareableHandle(), the caller's
 *
 * Return: CUDA_ERROR_NOT_SUPPORTED if the device cannot export memory.
 */
CUresult placement_export(struct placement *placement, uint64_t address, uint64_t *basep,
	uint64_t *sizep, int *fdp);

/* All work that uses the memory is complete. */
CUresult placement_release(struct placement *placement, uint64_t address);

/*
 * Memory that goes away for a while, see mover.h
 *
 * Its addresses stay reserved. What was released in the meantime is no failure.
 */

/* Adds the memory of these devices that no other process may use. Return: 0 or -ENOMEM.
 */
int placement_list(
	struct placement *placement, uint64_t devices, struct mover_list *list);

/* Whether a piece was not released since then, and of what device it is. */
bool placement_has(
	struct placement *placement, const struct mover_piece *piece, CUdevice *devicep);

/* Copies between memory, in a context of its device that is current, and the host. */
CUresult placement_copy(struct placement *placement, const struct mover_piece *piece,
	uint64_t at, void *host, uint64_t size, bool is_out);

/* Take the memory that a piece is in away, and make some there again; once for all pieces
 * in it. After a failure to take it away it is there as before. */
CUresult placement_drop(struct placement *placement, const struct mover_piece *piece);
CUresult placement_make(struct placement *placement, const struct mover_piece *piece);
