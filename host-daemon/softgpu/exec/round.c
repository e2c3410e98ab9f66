/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: floating point with a directed rounding mode
 *
 * The machine's rounding mode is set around the loop over the lanes; this file is
 * compiled with -frounding-math. Rare in real code, so it is not optimised.
 */

#include <fenv.h>

#include "exec/warp.h"
#include "ptx/isa.h"

static int enter_round(uint64_t imm)
{
	int saved = fegetround();

	switch (imm & 255) {
	case PTX_ROUND_RZ:
		fesetround(FE_TOWARDZERO);
		break;
	case PTX_ROUND_RM:
		fesetround(FE_DOWNWARD);
		break;
	case PTX_ROUND_RP:
		fesetround(FE_UPWARD);
		break;
	default:
		break;
	}
	return saved;
}

static inline f32 in_f32(f32 x, uint64_t imm)
{
	return imm & ROUND_FTZ ? ftz(x) : x;
}

static inline f32 out_f32(f32 x, uint64_t imm)
{
	x = imm & ROUND_FTZ ? ftz(x) : x;
	return imm & ROUND_SAT ? sat_f32(x) : canon(x);
}

static inline f64 in_f64(f64 x, uint64_t imm)
{
	return x;
}

static inline f64 out_f64(f64 x, uint64_t imm)
{
	return imm & ROUND_SAT ? sat_f64(x) : x;
}

/* volatile: the compiler must not move the operation across the mode changes. */
#define HANDLER_ROUND(_name, _T, _expr)                                                  \
	HANDLER(ROUND_##_name)                                                           \
	{                                                                                \
		const uint64_t imm = ip->imm;                                            \
		_T *d = REG(_T, ip->d);                                                  \
		const _T *pa = REG(_T, ip->a), *pb = REG(_T, ip->b);                     \
		const _T *pc = REG(_T, ip->c);                                           \
		int saved = enter_round(imm);                                            \
                                                                                         \
		(void)pb, (void)pc;                                                      \
		EACH_SET_LANE(i, mask)                                                   \
		{                                                                        \
			volatile _T a = in_##_T(pa[i], imm), b = in_##_T(pb[i], imm);    \
			volatile _T c = in_##_T(pc[i], imm), r;                          \
                                                                                         \
			if (imm & ROUND_NEGATE)                                          \
				b = -b;                                                  \
			(void)b, (void)c;                                                \
			r = _expr;                                                       \
			d[i] = out_##_T(r, imm);                                         \
		}                                                                        \
		fesetround(saved);                                                       \
		return ip + 1;                                                           \
	}

HANDLER_ROUND(ADD_F32, f32, a + b)
HANDLER_ROUND(MUL_F32, f32, a *b)
HANDLER_ROUND(FMA_F32, f32, fmaf(a, b, c))
HANDLER_ROUND(DIV_F32, f32, a / b)
HANDLER_ROUND(SQRT_F32, f32, sqrtf(a))
HANDLER_ROUND(ADD_F64, f64, a + b)
HANDLER_ROUND(MUL_F64, f64, a *b)
HANDLER_ROUND(FMA_F64, f64, fma(a, b, c))
HANDLER_ROUND(DIV_F64, f64, a / b)
HANDLER_ROUND(SQRT_F64, f64, sqrt(a))
