/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cubes
 */

#include <math.h>

#include "exec/cube.h"

/*
 * Of each face: the component of a direction that is the longest, those across and down,
 * and their signs.
 */
static const struct face {
	uint8_t major, s, t;
	int8_t major_sign, s_sign, t_sign;
} faces[6] = {
	{ 0, 2, 1, 1, -1, -1 },
	{ 0, 2, 1, -1, 1, -1 },
	{ 1, 0, 2, 1, 1, 1 },
	{ 1, 0, 2, -1, 1, -1 },
	{ 2, 0, 1, 1, 1, -1 },
	{ 2, 0, 1, -1, -1, -1 },
};

static uint32_t find_face(const float r[3])
{
	float x = fabsf(r[0]), y = fabsf(r[1]), z = fabsf(r[2]);

	if (x >= y && x >= z)
		return r[0] < 0 ? 1 : 0;
	if (y >= z)
		return r[1] < 0 ? 3 : 2;
	return r[2] < 0 ? 5 : 4;
}

struct cube_place cube_find(const float direction[3])
{
	struct cube_place place = { .face = find_face(direction) };
	const struct face *f = &faces[place.face];
	float longest = fabsf(direction[f->major]);

	place.at[0] = (f->s_sign * direction[f->s] / longest + 1.0f) * 0.5f;
	place.at[1] = (f->t_sign * direction[f->t] / longest + 1.0f) * 0.5f;
	return place;
}

/* The derivative of component / longest. */
void cube_gradient(
	const float direction[3], uint32_t face, const float change[3], float gradient[2])
{
	const struct face *f = &faces[face % 6];
	float longest = fabsf(direction[f->major]);
	float change_of_longest = f->major_sign * change[f->major];
	float s = f->s_sign * direction[f->s], t = f->t_sign * direction[f->t];

	gradient[0] = 0.5f *
		      (f->s_sign * change[f->s] * longest - s * change_of_longest) /
		      (longest * longest);
	gradient[1] = 0.5f *
		      (f->t_sign * change[f->t] * longest - t * change_of_longest) /
		      (longest * longest);
}

/*
 * The direction of the texel's centre, on the plane of the face and beyond its edge,
 * leads to the texel of the next face that touches it. In doubles: with many texels that
 * is close to the texel's edge.
 */
void cube_neighbour(uint32_t *facep, int64_t index[2], uint32_t n)
{
	const struct face *f = &faces[*facep % 6];
	double direction[3], longest, at[2];
	float rounded[3];

	direction[f->major] = f->major_sign;
	direction[f->s] =
		f->s_sign * (2.0 * (double)index[0] + 1.0 - (double)n) / (double)n;
	direction[f->t] =
		f->t_sign * (2.0 * (double)index[1] + 1.0 - (double)n) / (double)n;
	for (unsigned int i = 0; i < 3; i++)
		rounded[i] = (float)direction[i];
	*facep = find_face(rounded);
	f = &faces[*facep];
	longest = fabs(direction[f->major]);
	at[0] = (f->s_sign * direction[f->s] / longest + 1.0) * 0.5;
	at[1] = (f->t_sign * direction[f->t] / longest + 1.0) * 0.5;
	for (unsigned int i = 0; i < 2; i++) {
		index[i] = (int64_t)(at[i] * (double)n);
		index[i] = index[i] < n ? index[i] : (int64_t)n - 1;
	}
}
