/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: products of matrices of doubles
 *
 * As in product.c, but each step is a fused multiply-add, which PTX demands here, in the
 * rounding mode of the instruction.
 */

#include <fenv.h>

#include "exec/warp.h"
#include "ptx/isa.h"

static int machine_round(unsigned int round)
{
	switch (round) {
	case PTX_ROUND_RZ:
		return FE_TOWARDZERO;
	case PTX_ROUND_RM:
		return FE_DOWNWARD;
	case PTX_ROUND_RP:
		return FE_UPWARD;
	default:
		return FE_TONEAREST;
	}
}

/* Not inlined: the compiler must not move it across the changes of the rounding mode. */
static __attribute__((__noinline__)) void multiply(const f64 (*a)[LANES],
	const f64 (*b)[LANES], f64 (*c)[LANES], uint32_t down, uint32_t k)
{
	for (uint32_t row = 0; row < 8 * down; row++) {
		uint32_t tile = row / 8, g = row % 8;
		f64 sums[8];

		for (uint32_t j = 0; j < 8; j++)
			sums[j] = c[2 * tile + j % 2][4 * g + j / 2];
		for (uint32_t r = 0; r < k / 4; r++)
			for (uint32_t t = 0; t < 4; t++) {
				f64 x = a[r * down + tile][4 * g + t];

				for (uint32_t j = 0; j < 8; j++)
					sums[j] = fma(x, b[r][4 * j + t], sums[j]);
			}
		for (uint32_t j = 0; j < 8; j++)
			c[2 * tile + j % 2][4 * g + j / 2] = sums[j];
	}
}

HANDLER(MMA_F64)
{
	f64(*rows)[LANES] = (void *)w->block->matrix;
	uint32_t down = ip->imm >> MATRIX_M & 7, k = ip->imm >> MATRIX_K & 1023;
	f64(*b)[LANES] = rows + down * k / 4, (*c)[LANES] = b + k / 4;
	int mode = machine_round(ip->imm >> MATRIX_ROUND & 255);

	WHOLE_WARP;
	if (mode != FE_TONEAREST)
		fesetround(mode);
	multiply(rows, b, c, down, k);
	if (mode != FE_TONEAREST)
		fesetround(FE_TONEAREST);
	for (uint32_t i = 0; i < 2 * down; i++)
		for (uint32_t lane = 0; lane < LANES; lane++) {
			f64 x = c[i][lane];

			rows[i][lane] =
				x != x ? make_f64(UINT64_C(0x7fffffffffffffff)) : x;
		}
	return ip + 1;
}
