/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Mirrors: pages of managed variables that the guest has in the arena
 *
 * A reply to a look-up of a managed variable that the host's driver has placed outside
 * the arena carries up to VGPU_MIRROR_PIECES_MAX of these. The guest maps each at its
 * address. Addresses, sizes and offsets are multiples of VGPU_MIRROR_PAGE.
 */

#include <stdint.h>

#define VGPU_MIRROR_PAGE 4096u
/* A variable has one, or more if it shares pages with others. */
#define VGPU_MIRROR_PIECES_MAX 4u

struct vgpu_mirror_piece {
	uint64_t address; /* of the variable's page, in the guest too */
	uint64_t size;	  /* in bytes */
	uint64_t offset;  /* in the shared memory */
};

_Static_assert(sizeof(struct vgpu_mirror_piece) == 24, "driver-module.xml says so");
