/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floating-point operations on the engine, one row each
 */

#include <fenv.h>
#include <stdio.h>

#include "exec-harness.h"
#include "exec-rows.h"
#include "test.h"

#define B32 "%d, %a, %b;"
#define B3 "%d, %a, %b, %c;"
#define SETP(_op) "setp." _op " %p, %a, %b; selp.u32 %d, 7, 9, %p;"

static f32 z(f32 x)
{
	return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}

static f32 clamp01(f32 x)
{
	return isnan(x) ? 0 : x <= 0 ? 0 : x > 1 ? 1 : x;
}

static f64 rounded(int mode, int op, f64 a, f64 b, bool single)
{
	volatile f32 x = (f32)a, y = (f32)b, r = 0;
	volatile f64 u = a, v = b, s = 0;

	fesetround(mode);
	switch (op) {
	case '+':
		r = x + y;
		s = u + v;
		break;
	case '*':
		r = x * y;
		s = u * v;
		break;
	case '/':
		r = x / y;
		s = u / v;
		break;
	default:
		r = sqrtf(x);
		s = sqrt(u);
		break;
	}
	fesetround(FE_TONEAREST);
	return single ? r : s;
}

static f64 least(f64 a, f64 b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	if (a == b)
		return signbit(a) ? a : b;
	return a < b ? a : b;
}

static f64 most(f64 a, f64 b)
{
	return -least(-a, -b);
}

static s64 to_integer(f64 x, s64 low, s64 high)
{
	if (isnan(x))
		return 0;
	return x <= (f64)low ? low : x >= (f64)high ? high : (s64)x;
}

static u64 to_unsigned(f64 x, u64 high)
{
	if (isnan(x) || x <= 0)
		return 0;
	return x >= (f64)high ? high : (u64)x;
}

/* Halves by the compiler's own type. */
static f32 from_half(u16 h)
{
	_Float16 x;

	memcpy(&x, &h, sizeof(x));
	return (f32)x;
}

static u16 to_half(f64 x)
{
	_Float16 h = (_Float16)x;
	u16 r;

	memcpy(&r, &h, sizeof(r));
	return isnan(x) ? 0x7fff : r;
}

static u16 half_result(f64 x)
{
	return to_half(x);
}

static u16 to_bf16(f32 x)
{
	u32 u;

	memcpy(&u, &x, sizeof(u));
	return isnan(x) ? 0x7fff : (u16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#define EXACT_ROWS(X)                                                                    \
	X(add_f32, "add.f32 " B32, f32, f32, f32, f32, a + b)                            \
	X(sub_f32, "sub.f32 " B32, f32, f32, f32, f32, a - b)                            \
	X(mul_f32, "mul.f32 " B32, f32, f32, f32, f32, a *b)                             \
	X(fma_f32, "fma.rn.f32 " B3, f32, f32, f32, f32, fmaf(a, b, c))                  \
	X(mad_f32, "mad.rn.f32 " B3, f32, f32, f32, f32, fmaf(a, b, c))                  \
	X(add_ftz, "add.ftz.f32 " B32, f32, f32, f32, f32, z(z(a) + z(b)))               \
	X(sub_ftz, "sub.rn.ftz.f32 " B32, f32, f32, f32, f32, z(z(a) - z(b)))            \
	X(mul_ftz, "mul.ftz.f32 " B32, f32, f32, f32, f32, z(z(a) * z(b)))               \
	X(fma_ftz, "fma.rn.ftz.f32 " B3, f32, f32, f32, f32, z(fmaf(z(a), z(b), z(c))))  \
	X(add_sat, "add.sat.f32 " B32, f32, f32, f32, f32, clamp01(a + b))               \
	X(fma_sat, "fma.rn.ftz.sat.f32 " B3, f32, f32, f32, f32,                         \
		clamp01(z(fmaf(z(a), z(b), z(c)))))                                      \
	X(add_rz, "add.rz.f32 " B32, f32, f32, f32, f32,                                 \
		rounded(FE_TOWARDZERO, '+', a, b, true))                                 \
	X(mul_rm, "mul.rm.f32 " B32, f32, f32, f32, f32,                                 \
		rounded(FE_DOWNWARD, '*', a, b, true))                                   \
	X(div_rp, "div.rp.f32 " B32, f32, f32, f32, f32,                                 \
		rounded(FE_UPWARD, '/', a, b, true))                                     \
	X(sqrt_rz, "sqrt.rz.f32 %d, %a;", f32, f32, f32, f32,                            \
		rounded(FE_TOWARDZERO, 's', a, 0, true))                                 \
	X(sub_rp_f64, "sub.rp.f64 " B32, f64, f64, f64, f64,                             \
		rounded(FE_UPWARD, '+', a, -b, false))                                   \
	X(mul_rz_f64, "mul.rz.f64 " B32, f64, f64, f64, f64,                             \
		rounded(FE_TOWARDZERO, '*', a, b, false))                                \
	X(div_f32, "div.rn.f32 " B32, f32, f32, f32, f32, a / b)                         \
	X(div_ftz, "div.rn.ftz.f32 " B32, f32, f32, f32, f32, z(z(a) / z(b)))            \
	X(rcp_f32, "rcp.rn.f32 %d, %a;", f32, f32, f32, f32, 1 / a)                      \
	X(sqrt_f32, "sqrt.rn.f32 %d, %a;", f32, f32, f32, f32, sqrtf(a))                 \
	X(min_f32, "min.f32 " B32, f32, f32, f32, f32, least(a, b))                      \
	X(max_f32, "max.f32 " B32, f32, f32, f32, f32, most(a, b))                       \
	X(min_nan, "min.NaN.f32 " B32, f32, f32, f32, f32,                               \
		isnan(a) || isnan(b) ? NAN : least(a, b))                                \
	X(max_ftz, "max.ftz.f32 " B32, f32, f32, f32, f32, most(z(a), z(b)))             \
	X(abs_f32, "abs.f32 %d, %a;", f32, f32, f32, f32, fabsf(a))                      \
	X(neg_f32, "neg.ftz.f32 %d, %a;", f32, f32, f32, f32, -z(a))                     \
	X(copysign_f32, "copysign.f32 " B32, f32, f32, f32, f32, copysignf(b, a))        \
	X(add_f64, "add.f64 " B32, f64, f64, f64, f64, a + b)                            \
	X(sub_f64, "sub.f64 " B32, f64, f64, f64, f64, a - b)                            \
	X(mul_f64, "mul.f64 " B32, f64, f64, f64, f64, a *b)                             \
	X(div_f64, "div.rn.f64 " B32, f64, f64, f64, f64, a / b)                         \
	X(fma_f64, "fma.rn.f64 " B3, f64, f64, f64, f64, fma(a, b, c))                   \
	X(sqrt_f64, "sqrt.rn.f64 %d, %a;", f64, f64, f64, f64, sqrt(a))                  \
	X(rcp_f64, "rcp.rn.f64 %d, %a;", f64, f64, f64, f64, 1 / a)                      \
	X(min_f64, "min.f64 " B32, f64, f64, f64, f64, least(a, b))                      \
	X(max_f64, "max.f64 " B32, f64, f64, f64, f64, most(a, b))                       \
	X(abs_f64, "abs.f64 %d, %a;", f64, f64, f64, f64, fabs(a))                       \
	X(neg_f64, "neg.f64 %d, %a;", f64, f64, f64, f64, -a)                            \
	X(setp_eq, SETP("eq.f32"), u32, f32, f32, f32, a == b ? 7 : 9)                   \
	X(setp_ne, SETP("ne.f32"), u32, f32, f32, f32, a<b || a> b ? 7 : 9)              \
	X(setp_lt, SETP("lt.f32"), u32, f32, f32, f32, a < b ? 7 : 9)                    \
	X(setp_le, SETP("le.f32"), u32, f32, f32, f32, a <= b ? 7 : 9)                   \
	X(setp_gt, SETP("gt.ftz.f32"), u32, f32, f32, f32, z(a) > z(b) ? 7 : 9)          \
	X(setp_ge, SETP("ge.f32"), u32, f32, f32, f32, a >= b ? 7 : 9)                   \
	X(setp_equ, SETP("equ.f32"), u32, f32, f32, f32, !(a < b || a > b) ? 7 : 9)      \
	X(setp_neu, SETP("neu.f32"), u32, f32, f32, f32, a != b ? 7 : 9)                 \
	X(setp_ltu, SETP("ltu.f32"), u32, f32, f32, f32, !(a >= b) ? 7 : 9)              \
	X(setp_leu, SETP("leu.f64"), u32, f64, f64, f64, !(a > b) ? 7 : 9)               \
	X(setp_gtu, SETP("gtu.f64"), u32, f64, f64, f64, !(a <= b) ? 7 : 9)              \
	X(setp_geu, SETP("geu.f64"), u32, f64, f64, f64, !(a < b) ? 7 : 9)               \
	X(setp_num, SETP("num.f64"), u32, f64, f64, f64, isnan(a) || isnan(b) ? 9 : 7)   \
	X(setp_nan, SETP("nan.f32"), u32, f32, f32, f32, isnan(a) || isnan(b) ? 7 : 9)   \
	X(set_f32, "set.gt.f32.f32 %d, %a, %b;", f32, f32, f32, f32,                     \
		a > b ? 1.0f : 0.0f)                                                     \
	X(testp_finite, "testp.finite.f32 %p, %a; selp.u32 %d, 1, 0, %p;", u32, f32,     \
		f32, f32, isfinite(a) != 0)                                              \
	X(testp_normal, "testp.normal.f64 %p, %a; selp.u32 %d, 1, 0, %p;", u32, f64,     \
		f64, f64, isnormal(a) != 0)                                              \
	X(testp_subnormal, "testp.subnormal.f32 %p, %a; selp.u32 %d, 1, 0, %p;", u32,    \
		f32, f32, f32, fpclassify(a) == FP_SUBNORMAL)                            \
	X(testp_infinite, "testp.infinite.f64 %p, %a; selp.u32 %d, 1, 0, %p;", u32, f64, \
		f64, f64, isinf(a) != 0)                                                 \
	X(cvt_s32_rzi, "cvt.rzi.s32.f32 %d, %a;", s32, f32, f32, f32,                    \
		to_integer(a, INT32_MIN, INT32_MAX))                                     \
	X(cvt_s32_rni, "cvt.rni.s32.f32 %d, %a;", s32, f32, f32, f32,                    \
		to_integer(rint(a), INT32_MIN, INT32_MAX))                               \
	X(cvt_s32_rmi, "cvt.rmi.ftz.s32.f32 %d, %a;", s32, f32, f32, f32,                \
		to_integer(floor(z(a)), INT32_MIN, INT32_MAX))                           \
	X(cvt_s32_rpi, "cvt.rpi.s32.f32 %d, %a;", s32, f32, f32, f32,                    \
		to_integer(ceil(a), INT32_MIN, INT32_MAX))                               \
	X(cvt_u32_rzi, "cvt.rzi.u32.f32 %d, %a;", u32, f32, f32, f32,                    \
		to_unsigned(a, UINT32_MAX))                                              \
	X(cvt_u32_rni, "cvt.rni.u32.f32 %d, %a;", u32, f32, f32, f32,                    \
		to_unsigned(rint(a), UINT32_MAX))                                        \
	X(cvt_s64_rzi, "cvt.rzi.s64.f32 %d, %a;", s64, f32, f32, f32,                    \
		isnan(a) ? INT64_MIN : to_integer(a, INT64_MIN, INT64_MAX))              \
	X(cvt_u64_f64, "cvt.rzi.u64.f64 %d, %a;", u64, f64, f64, f64,                    \
		isnan(a) ? 1ull << 63 : to_unsigned(a, UINT64_MAX))                      \
	X(cvt_s32_f64, "cvt.rzi.s32.f64 %d, %a;", s32, f64, f64, f64,                    \
		isnan(a) ? INT32_MIN : to_integer(a, INT32_MIN, INT32_MAX))              \
	X(cvt_u32_f64, "cvt.rni.u32.f64 %d, %a;", u32, f64, f64, f64,                    \
		isnan(a) ? 1u << 31 : to_unsigned(rint(a), UINT32_MAX))                  \
	X(cvt_u8_f32, "cvt.rzi.u8.f32 %d, %a;", u32, f32, f32, f32, to_unsigned(a, 255)) \
	X(cvt_s8_f32, "cvt.rni.s8.f32 %d, %a;", s32, f32, f32, f32,                      \
		to_integer(rint(a), -128, 127))                                          \
	X(cvt_f32_s32, "cvt.rn.f32.s32 %d, %a;", f32, s32, s32, s32, (f32)a)             \
	X(cvt_f32_u32, "cvt.rn.f32.u32 %d, %a;", f32, u32, u32, u32, (f32)a)             \
	X(cvt_f32_s64, "cvt.rn.f32.s64 %d, %a;", f32, s64, u32, u32, (f32)a)             \
	X(cvt_f32_u64, "cvt.rn.f32.u64 %d, %a;", f32, u64, u32, u32, (f32)a)             \
	X(cvt_f32_s16, "cvt.rn.f32.s16 %d, %a;", f32, s16, u32, u32, (f32)a)             \
	X(cvt_f32_u8, "cvt.rn.f32.u8 %d, %a;", f32, u32, u32, u32, (f32)(u8)a)           \
	X(cvt_f64_s32, "cvt.rn.f64.s32 %d, %a;", f64, s32, u32, u32, (f64)a)             \
	X(cvt_f64_u64, "cvt.rn.f64.u64 %d, %a;", f64, u64, u32, u32, (f64)a)             \
	X(cvt_f64_f32, "cvt.f64.f32 %d, %a;", f64, f32, u32, u32, (f64)a)                \
	X(cvt_f32_f64, "cvt.rn.f32.f64 %d, %a;", f32, f64, u32, u32, (f32)a)             \
	X(cvt_f32_rint, "cvt.rni.f32.f32 %d, %a;", f32, f32, u32, u32, rintf(a))         \
	X(cvt_f32_floor, "cvt.rmi.f32.f32 %d, %a;", f32, f32, u32, u32, floorf(a))       \
	X(cvt_f64_trunc, "cvt.rzi.f64.f64 %d, %a;", f64, f64, u32, u32, trunc(a))        \
	X(cvt_f32_sat, "cvt.sat.f32.f32 %d, %a;", f32, f32, u32, u32, clamp01(a))        \
	X(cvt_f16_f32, "cvt.rn.f16.f32 %d, %a;", u16, f32, u32, u32, to_half(a))         \
	X(cvt_f32_f16, "cvt.f32.f16 %d, %a;", f32, u16, u32, u32, from_half(a))          \
	X(cvt_bf16_f32, "cvt.rn.bf16.f32 %d, %a;", u16, f32, u32, u32, to_bf16(a))       \
	X(cvt_f16x2, "cvt.rn.f16x2.f32 %d, %a, %b;", u32, f32, f32, u32,                 \
		to_half(b) | (u32)to_half(a) << 16)                                      \
	X(add_f16, "add.f16 " B32, u16, u16, u16, u16,                                   \
		half_result((f64)from_half(a) + from_half(b)))                           \
	X(mul_f16, "mul.f16 " B32, u16, u16, u16, u16,                                   \
		half_result((f64)from_half(a) * from_half(b)))                           \
	X(add_f16x2, "add.f16x2 " B32, u32, u32, u32, u32,                               \
		half_result((f64)from_half((u16)a) + from_half((u16)b)) |                \
			(u32)half_result((f64)from_half((u16)(a >> 16)) +                \
					 from_half((u16)(b >> 16)))                      \
				<< 16)

EXACT_ROWS(ROW_REFERENCE)

#define ROW_TOLERANCE 0
static const struct row exact_rows[] = { EXACT_ROWS(ROW_ENTRY) };
#undef ROW_TOLERANCE

TEST(floating_point_operations_give_what_c_gives)
{
	rows_run(exact_rows, sizeof(exact_rows) / sizeof(exact_rows[0]));
}

/* Far outside of where sin and cos are documented the true value is still given. */
#define APPROXIMATE_ROWS(X)                                                              \
	X(rcp_approx, "rcp.approx.f32 %d, %a;", f32, f32, f32, f32, 1.0 / a)             \
	X(div_full, "div.full.f32 " B32, f32, f32, f32, f32, (f64)a / b)                 \
	X(sqrt_approx, "sqrt.approx.f32 %d, %a;", f32, f32, f32, f32, sqrt(a))           \
	X(rsqrt_approx, "rsqrt.approx.f32 %d, %a;", f32, f32, f32, f32, 1.0 / sqrt(a))   \
	X(ex2_approx, "ex2.approx.f32 %d, %a;", f32, f32, f32, f32, exp2((f64)a))        \
	X(lg2_approx, "lg2.approx.f32 %d, %a;", f32, f32, f32, f32, log2((f64)a))        \
	X(sin_approx, "sin.approx.f32 %d, %a;", f32, f32, f32, f32, sin((f64)a))         \
	X(cos_approx, "cos.approx.f32 %d, %a;", f32, f32, f32, f32, cos((f64)a))         \
	X(tanh_approx, "tanh.approx.f32 %d, %a;", f32, f32, f32, f32, tanh((f64)a))

APPROXIMATE_ROWS(ROW_REFERENCE)

#define ROW_TOLERANCE 0x1p-21
static const struct row approximate_rows[] = { APPROXIMATE_ROWS(ROW_ENTRY) };

TEST(approximate_operations_come_close)
{
	rows_run(
		approximate_rows, sizeof(approximate_rows) / sizeof(approximate_rows[0]));
}

/* For any input NaN the result is the same on every machine. */
TEST(every_operation_on_f32_gives_the_one_nan)
{
	static const char *const texts[] = {
		"add.f32 %o, %f, %g;",
		"add.ftz.f32 %o, %f, %g;",
		"sub.f32 %o, %g, %f;",
		"mul.f32 %o, %f, %g;",
		"mul.ftz.f32 %o, %f, %g;",
		"div.rn.f32 %o, %g, %f;",
		"fma.rn.f32 %o, %g, %g, %f;",
		"fma.rn.ftz.f32 %o, %g, %f, %g;",
		"sqrt.rn.f32 %o, %f;",
		"rsqrt.approx.f32 %o, %f;",
		"rcp.rn.f32 %o, %f;",
		"ex2.approx.f32 %o, %f;",
		"min.NaN.f32 %o, %f, %g;",
		"min.f32 %o, %f, %f;",
	};
	static const uint32_t nans[] = { 0xffc12345, 0x7f812345 };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char ptx[1024];
		__attribute__((__cleanup__(rig_freep))) struct rig *rig = NULL;
		struct {
			uint32_t *out;
			uint32_t x;
		} params;

		snprintf(ptx, sizeof(ptx),
			".version 8.8\n.target sm_120\n.address_size 64\n"
			".visible .entry k(.param .u64 p, .param .f32 x) {\n"
			".reg .f32 %%f, %%g, %%o; .reg .b64 %%d;\n"
			"ld.param.u64 %%d, [p]; ld.param.f32 %%f, [x];\n"
			"mov.f32 %%g, 0f40000000; %s st.global.f32 [%%d], %%o; ret; }\n",
			texts[i]);
		rig = rig_new(ptx);
		params.out = rig_alloc(rig, 4);
		for (int k = 0; k < 2; k++) {
			params.x = nans[k];
			rig_launch(rig, "k", 1, 1, &params, 12);
			if (*params.out != 0x7fffffff)
				test_fail(__FILE__, __LINE__, "%s gives %#x", texts[i],
					*params.out);
		}
	}
}
