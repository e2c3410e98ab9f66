/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers of 16 bits, IEEE 754 binary16
 */

#include <stdbool.h>

#include "exec/scalar.h"

SCALAR f32 half_to_f32(u16 h)
{
	u32 sign = (u32)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;

	if (e == 31)
		return make_f32(sign | 0x7f800000u | m << 13);
	if (e)
		return make_f32(sign | (e + 112) << 23 | m << 13);
	return make_f32(sign | bits_f32((f32)m * 0x1p-24f));
}

/* To nearest, ties to even. */
SCALAR u16 half_from_f32(f32 x)
{
	u32 u = bits_f32(x), sign = u >> 16 & 0x8000, a = u & 0x7fffffffu, r;

	if (a > 0x7f800000u)
		return 0x7fff;
	if (a >= 0x477ff000u)
		return (u16)(sign | 0x7c00);
	if (a < 0x38800000u) /* a multiple of 2^-24: the sum rounds */
		return (u16)(sign | (bits_f32(make_f32(a) + 0.5f) - 0x3f000000u));
	r = a - 0x38000000u;
	return (u16)(sign | (r + 0xfff + (r >> 13 & 1)) >> 13);
}
