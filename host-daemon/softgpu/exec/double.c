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

HANDLER(MMA_F64)
{
	f64(*rows)[LANES] = (void *)w->block->matrix, d[4][LANES];
	uint32_t m = 8 * (ip->imm >> MATRIX_M & 7), k = ip->imm >> MATRIX_K & 1023;
	uint32_t down = m / 8, n_a = down * k / 4, n_b = k / 4;
	int mode = machine_round(ip->imm >> MATRIX_ROUND & 255);

	WHOLE_WARP;
	if (mode != FE_TONEAREST)
		fesetround(mode);
	for (uint32_t at = 0; at < 2 * down * LANES; at++) {
		uint32_t lane = at % LANES, i = at / LANES;
		uint32_t g = lane / 4, column = lane % 4 * 2 + i % 2;
		volatile f64 sum = rows[n_a + n_b + i][lane];

		for (uint32_t r = 0; r < k / 4; r++)
			for (uint32_t t = 0; t < 4; t++)
				sum = fma(rows[r * down + i / 2][4 * g + t],
					rows[n_a + r][4 * column + t], sum);
		d[i][lane] = sum != sum ? make_f64(UINT64_C(0x7fffffffffffffff)) : sum;
	}
	if (mode != FE_TONEAREST)
		fesetround(FE_TONEAREST);
	memcpy(rows, d, 2 * down * sizeof(d[0]));
	return ip + 1;
}
