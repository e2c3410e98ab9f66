/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Virtual memory that is away for a while, see mover.h
 *
 * It moves if there is one mapping of all of it, which its device may read and write, and
 * no other process has a token of it. The rights of all devices are as before afterwards.
 * No thread of the guest maps or unmaps what is away: it comes back first.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

struct mover_list;
struct mover_piece;
struct session;

/* The same as of placement.h. */
int virtual_list(struct session *session, uint64_t devices, struct mover_list *list);
bool virtual_has(
	struct session *session, const struct mover_piece *piece, CUdevice *devicep);
CUresult virtual_drop(struct session *session, const struct mover_piece *piece);
CUresult virtual_make(struct session *session, const struct mover_piece *piece);
