/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Cubes: six square faces, found by a direction
 */

#include <stdint.h>

/* A place on a face: coordinates from 0 to 1. */
struct cube_place {
	uint32_t face;
	float at[2];
};

/* The longest component selects the face, the others the position on it. */
struct cube_place cube_find(const float direction[3]);

/* How the position on that face changes along a change of the direction. */
void cube_gradient(const float direction[3], uint32_t face, const float change[3],
	float gradient[2]);

/*
 * cube_neighbour() - the texel beyond one edge of a face
 * @facep: the face; becomes the one on which the texel is
 * @index: column and row, one of which is -1 or @n; become those on that face
 * @n: texels along an edge
 */
void cube_neighbour(uint32_t *facep, int64_t index[2], uint32_t n);
