/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Mover: how the memory of a driver leaves the device and comes back
 *
 * residency.c decides when, and where the bytes are meanwhile. There are two movers: that
 * of softgpu, whose memory is the worker's own, and that of a driver which is asked to
 * unmap and map again what placement.c and virtual.c have mapped.
 *
 * For the dispatcher, between calls. Lanes may free memory at the same time while it
 * comes back, but not while it goes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/cuda.h"

struct session;

/* Bytes at addresses of a device; pieces of the same memory follow each other. */
struct mover_piece {
	uint64_t address;
	uint64_t size;
	uint64_t id;	/* of the memory that it is in, never used twice */
	bool is_of_vm;	/* of memory of cuMemCreate; for the mover */
	bool is_gone;	/* its bytes are elsewhere: */
	uint64_t place; /* there; of residency.c */
};

struct mover_list {
	struct mover_piece *pieces;
	size_t n;
	size_t max;
	void *native; /* the mover's, freed with the list */
};

struct mover {
	/*
	 * Lists what can go, if no work is under way.
	 *
	 * Return: 0, -EBUSY, -ENOTSUP or -ENOMEM. The list is freed by the caller in any
	 * case.
	 */
	int (*list)(struct session *session, struct mover_list *list);

	/*
	 * Copies bytes from a piece, or back; back into nothing if it was freed.
	 *
	 * @at:		of the piece
	 */
	CUresult (*copy)(struct session *session, const struct mover_piece *piece,
		uint64_t at, void *host, uint64_t size, bool is_out);

	/* Gives the memory to others after all bytes were copied, and marks the pieces
	 * that are gone. Those whose memory the driver keeps remain as they were. Again
	 * after a failure on the way back, when there is memory for some. */
	void (*drop)(struct session *session, struct mover_list *list);

	/*
	 * Makes memory for all pieces that are gone and were not freed; NULL: there is
	 * some.
	 *
	 * Return: the driver's result. After a failure drop() follows.
	 */
	CUresult (*make)(struct session *session, const struct mover_list *list);
};

extern const struct mover mover_of_softgpu, mover_of_driver;

/* Adds a piece. Return: 0 or -ENOMEM. */
int mover_list_add(struct mover_list *list, const struct mover_piece *piece);
void mover_list_deinit(struct mover_list *list);
