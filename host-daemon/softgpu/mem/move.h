/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Move: memory of devices that somebody puts elsewhere for a while
 *
 * Its addresses remain allocated; its pages go back to the system, which gives out none
 * that has not been zeroed, and read as zeros until they are filled again.
 */

#include <stdbool.h>
#include <stddef.h>

#include "mem/memory.h"
#include "softgpu.h"

/*
 * Lists the memory that can be moved: not that which other processes share, and of
 * physical memory that which is mapped as a whole.
 *
 * @piecesp:	to be freed
 *
 * Return: 0, -ENOMEM, or -ENOTSUP if there is memory that the program reaches itself, or
 * memory is checked.
 */
int move_list(struct memory *memory, struct softgpu_piece **piecesp, size_t *n_piecesp);

/* Gives the pages of all that move_list() lists back. The caller has seen to it that
 * nothing was allocated or freed since then. */
void move_drop(
	struct memory *memory, const struct softgpu_piece *pieces, size_t n_pieces);

/* Return: whether it is still allocated. */
bool move_has(struct memory *memory, const struct softgpu_piece *piece);
