/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: conversions without a loop of their own
 *
 * One lane at a time: the source is converted to an integer of 65 bits or a double, which
 * represent each value of each source type exactly, and that to the destination. Rounding
 * to a narrower float uses the machine's rounding mode.
 */

#include <fenv.h>

#include "exec/warp.h"
#include "ptx/isa.h"

struct value {
	bool is_float;
	bool negative; /* of an integer: of the s64, else `integer` is unsigned */
	u64 integer;
	f64 real;
};

/* Floats of 8 bits and less. */
static bool is_small(unsigned int type)
{
	return type >= PTX_TYPE_E4M3 && type <= PTX_TYPE_UE8M0;
}

static bool type_is_float(unsigned int type)
{
	return type == PTX_TYPE_F16 || type == PTX_TYPE_BF16 || type == PTX_TYPE_TF32 ||
	       type == PTX_TYPE_F32 || type == PTX_TYPE_F64 || is_small(type);
}

static f64 f64_from_half(u16 h)
{
	int e = h >> 10 & 31;
	f64 m = h & 1023, r;

	if (e == 31)
		r = h & 1023 ? (f64)NAN : (f64)INFINITY;
	else
		r = e ? ldexp(m + 1024, e - 25) : ldexp(m, -24);
	return h & 0x8000 ? -r : r;
}

/* Floats of fewer bits than a double: of the mantissa, and the least and greatest value.
 */
struct format {
	int mantissa;
	int low;
	f64 greatest;
};

static struct format format_of(unsigned int type)
{
	switch (type) {
	case PTX_TYPE_F16:
		return (struct format){ 10, -14, 65504.0 };
	case PTX_TYPE_BF16:
		return (struct format){ 7, -126, 0x1.fep127 };
	case PTX_TYPE_E4M3:
		return (struct format){ 3, -6, 448.0 };
	case PTX_TYPE_E5M2:
		return (struct format){ 2, -14, 57344.0 };
	case PTX_TYPE_E2M3:
		return (struct format){ 3, 0, 7.5 };
	case PTX_TYPE_E3M2:
		return (struct format){ 2, -2, 28.0 };
	case PTX_TYPE_E2M1:
		return (struct format){ 1, 0, 6.0 };
	default:
		return (struct format){ 10, -126, 0x1.ffcp127 }; /* TF32 */
	}
}

/*
 * A double as a float of fewer bits, by the machine's current rounding mode or, for RNA,
 * to nearest with ties away from zero. On overflow the result is infinite unless the mode
 * rounds to the largest finite number.
 */
static f64 narrow(f64 x, const struct format *format, unsigned int round)
{
	int e;

	if (x == 0 || !isfinite(x))
		return x;
	(void)frexp(x, &e);
	e = e - 1 < format->low ? format->low : e - 1;
	x = ldexp(x, format->mantissa - e);
	x = round == PTX_ROUND_RNA ? trunc(x + copysign(0.5, x)) : nearbyint(x);
	x = ldexp(x, e - format->mantissa);
	if (fabs(x) <= format->greatest)
		return x;
	if (round == PTX_ROUND_RZ || round == (x < 0 ? PTX_ROUND_RP : PTX_ROUND_RM))
		return copysign(format->greatest, x);
	return copysign((f64)INFINITY, x);
}

static u16 half_bits(f64 x)
{
	u16 sign = signbit(x) ? 0x8000 : 0;
	f64 a = fabs(x);
	int e;

	if (isnan(x))
		return 0x7fff;
	if (a >= 65536.0)
		return (u16)(sign | 0x7c00);
	if (a < 0x1p-14)
		return (u16)(sign | (u16)ldexp(a, 24));
	(void)frexp(a, &e);
	return (u16)(sign | (u16)((e + 14) << 10) | ((u16)ldexp(a, 11 - e) & 1023));
}

/* Bits of a small float, the sign included. */
static int small_size(unsigned int type)
{
	return type == PTX_TYPE_E2M1 ? 4 : type <= PTX_TYPE_E5M2 ? 8 : 6;
}

/* The value is one of the format; only two formats have a NaN. */
static u64 small_bits(unsigned int type, f64 x)
{
	struct format format = format_of(type);
	u64 sign = signbit(x) ? UINT64_C(1) << (small_size(type) - 1) : 0;
	f64 a = fabs(x);
	int e;

	if (isnan(x))
		return 0x7f;
	if (a < ldexp(1, format.low))
		return sign | (u64)ldexp(a, format.mantissa - format.low);
	(void)frexp(a, &e);
	/* The leading bit of the mantissa adds one to the exponent. */
	return sign | (((u64)(e - 1 - format.low) << format.mantissa) +
			      (u64)ldexp(a, format.mantissa - e + 1));
}

static f64 f64_from_small(unsigned int type, u64 bits)
{
	struct format format = format_of(type);
	u64 sign = bits >> (small_size(type) - 1) & 1;
	u64 a = bits & ((UINT64_C(1) << (small_size(type) - 1)) - 1);
	u64 m = a & ((UINT64_C(1) << format.mantissa) - 1);
	int e = (int)(a >> format.mantissa);
	f64 r;

	if ((type == PTX_TYPE_E4M3 && a == 0x7f) || (type == PTX_TYPE_E5M2 && a > 0x7c))
		return (f64)NAN;
	if (type == PTX_TYPE_E5M2 && a == 0x7c)
		return sign ? -(f64)INFINITY : (f64)INFINITY;
	r = ldexp((f64)(e ? m + (UINT64_C(1) << format.mantissa) : m),
		(e ? e - 1 : 0) + format.low - format.mantissa);
	return sign ? -r : r;
}

/* A power of two without a sign; what is less than the least becomes that. */
static u64 scale_bits(f64 x, unsigned int round, bool satfinite)
{
	f64 a = fabs(x);
	int e;

	if (isnan(x))
		return 255;
	if (a <= 0x1p-127)
		return 0;
	if (a > 0x1p127 && (isinf(a) || round == PTX_ROUND_RP || a >= 0x1p128))
		return satfinite ? 254 : 255;
	(void)frexp(a, &e);
	e--;
	return (u64)(e + 127 + (round == PTX_ROUND_RP && a > ldexp(1, e)));
}

static struct value load(unsigned int type, u64 bits, bool flush)
{
	struct value v = { .is_float = type_is_float(type) };

	switch (type) {
	case PTX_TYPE_F16:
		v.real = f64_from_half((u16)bits);
		return v;
	case PTX_TYPE_BF16:
		v.real = make_f32((u32)bits << 16);
		return v;
	case PTX_TYPE_F32:
		v.real = flush ? ftz(make_f32((u32)bits)) : make_f32((u32)bits);
		return v;
	case PTX_TYPE_F64:
		v.real = make_f64(bits);
		return v;
	case PTX_TYPE_E4M3:
	case PTX_TYPE_E5M2:
	case PTX_TYPE_E2M3:
	case PTX_TYPE_E3M2:
	case PTX_TYPE_E2M1:
		v.real = f64_from_small(type, bits);
		return v;
	case PTX_TYPE_UE8M0:
		bits &= 255;
		v.real = bits == 255 ? (f64)NAN : ldexp(1, (int)bits - 127);
		return v;
	case PTX_TYPE_S8:
		v.integer = (u64)(s64)(s8)bits;
		break;
	case PTX_TYPE_S16:
		v.integer = (u64)(s64)(s16)bits;
		break;
	case PTX_TYPE_S32:
		v.integer = (u64)(s64)(s32)bits;
		break;
	case PTX_TYPE_S64:
		v.integer = bits;
		break;
	default:
		v.integer = bits & (UINT64_MAX >> (64 - 8 * ptx_type_size(type)));
		return v;
	}
	v.negative = (s64)v.integer < 0;
	return v;
}

/* NaN as an integer: 0 where both types are narrow, else the sign bit alone. */
static u64 nan_integer(unsigned int to, unsigned int from)
{
	unsigned int bits = 8 * ptx_type_size(to);

	return from == PTX_TYPE_F64 || bits == 64 ? UINT64_C(1) << (bits - 1) : 0;
}

static u64 saturate(unsigned int type, unsigned int from, const struct value *v)
{
	unsigned int bits = 8 * ptx_type_size(type);
	bool is_signed = type >= PTX_TYPE_S8 && type <= PTX_TYPE_S64;
	u64 high = UINT64_MAX >> (64 - bits + is_signed), low = is_signed ? ~high : 0;

	if (!v->is_float) {
		if (v->negative)
			return !is_signed		    ? 0
			       : (s64)v->integer < (s64)low ? low
							    : v->integer;
		return v->integer > high ? high : v->integer;
	}
	if (isnan(v->real))
		return nan_integer(type, from);
	if (v->real >= ldexp(1, (int)(bits - is_signed)))
		return high;
	if (v->real <= (is_signed ? -ldexp(1, (int)bits - 1) : 0))
		return low;
	return is_signed ? (u64)(s64)v->real : (u64)v->real;
}

static f64 integral(f64 x, unsigned int round)
{
	switch (round) {
	case PTX_ROUND_RNI:
	case PTX_ROUND_RN:
		return rint(x);
	case PTX_ROUND_RMI:
	case PTX_ROUND_RM:
		return floor(x);
	case PTX_ROUND_RPI:
	case PTX_ROUND_RP:
		return ceil(x);
	default:
		return trunc(x);
	}
}

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

/* An integer as a double; one of more than 53 bits keeps its lowest bit as "or more". */
static f64 odd_integer(const struct value *v)
{
	u64 m = v->negative ? 0 - v->integer : v->integer;
	f64 r = m >> 53 ? (f64)(m >> 11 | !!(m & 2047)) * 2048 : (f64)m;

	return v->negative ? -r : r;
}

static bool is_narrow(unsigned int type)
{
	return type == PTX_TYPE_F16 || type == PTX_TYPE_BF16 || type == PTX_TYPE_TF32 ||
	       is_small(type);
}

/* The value as a float of the type, in a double, which holds each of them. */
static f64 rounded(unsigned int type, const struct value *v, unsigned int round)
{
	int mode = machine_round(round), saved = FE_TONEAREST;
	struct format format = format_of(type);
	volatile f64 wide;
	volatile f32 single;

	/* Outside of handlers it is to nearest, and reading it takes long. */
	if (mode != saved)
		fesetround(mode);
	/* An integer is converted to float directly: through double it would be rounded
	 * twice. */
	if (is_narrow(type)) {
		wide = narrow(v->is_float ? v->real : odd_integer(v), &format, round);
	} else if (type == PTX_TYPE_F64) {
		wide = v->is_float   ? v->real
		       : v->negative ? (f64)(s64)v->integer
				     : (f64)v->integer;
	} else {
		wide = v->real;
		single = v->is_float   ? (f32)wide
			 : v->negative ? (f32)(s64)v->integer
				       : (f32)v->integer;
		wide = single;
	}
	if (mode != saved)
		fesetround(saved);
	return wide;
}

static u64 store_float(
	unsigned int type, const struct value *v, unsigned int round, u64 imm)
{
	f64 x;

	if (type == PTX_TYPE_UE8M0)
		return scale_bits(v->real, round, imm & CONVERT_SATFINITE);
	x = rounded(type, v, round);
	if (imm & CONVERT_SAT)
		x = sat_f64(x);
	if (imm & CONVERT_RELU && x <= 0)
		x = 0;
	if (imm & CONVERT_SATFINITE && fabs(x) > format_of(type).greatest)
		x = copysign(format_of(type).greatest, x);
	switch (type) {
	case PTX_TYPE_E4M3:
	case PTX_TYPE_E5M2:
		return small_bits(type, x);
	case PTX_TYPE_E2M3:
	case PTX_TYPE_E3M2:
	case PTX_TYPE_E2M1:
		return small_bits(type, isnan(x) ? format_of(type).greatest : x);
	case PTX_TYPE_F16:
		return half_bits(x);
	case PTX_TYPE_BF16:
		return isnan(x) ? 0x7fff : bits_f32((f32)x) >> 16;
	case PTX_TYPE_F32:
	case PTX_TYPE_TF32:
		if (isnan(x))
			return 0x7fffffff;
		return bits_f32(imm & CONVERT_FTZ ? ftz((f32)x) : (f32)x);
	default:
		return bits_f64(x);
	}
}

static u64 convert(u64 bits, u64 imm)
{
	unsigned int to = imm >> CONVERT_TO & 255, from = imm >> CONVERT_FROM & 255;
	unsigned int round = imm >> CONVERT_ROUND & 255;
	struct value v = load(from, bits, imm & CONVERT_FTZ);

	if (v.is_float && (round >= PTX_ROUND_RNI || !type_is_float(to)))
		v.real = integral(v.real, round);
	if (type_is_float(to))
		return store_float(to, &v, round, imm);
	if (v.is_float || imm & CONVERT_SAT)
		return saturate(to, from, &v);
	return v.integer;
}

/* A narrow result fills the register: a signed one by its sign. */
static u64 widen(u64 bits, unsigned int to)
{
	switch (to) {
	case PTX_TYPE_U8:
		return (u8)bits;
	case PTX_TYPE_S8:
		return (u64)(s64)(s8)bits;
	case PTX_TYPE_U16:
		return (u16)bits;
	case PTX_TYPE_S16:
		return (u64)(s64)(s16)bits;
	case PTX_TYPE_U32:
		return (u32)bits;
	case PTX_TYPE_S32:
		return (u64)(s64)(s32)bits;
	default:
		return bits;
	}
}

#define HANDLER_CONVERT(_name, _D, _A)                                                   \
	HANDLER(_name)                                                                   \
	{                                                                                \
		_D *d = REG(_D, ip->d);                                                  \
		const _A *a = REG(_A, ip->a);                                            \
                                                                                         \
		EACH_SET_LANE(i, mask)                                                   \
		d[i] = (_D)widen(convert(a[i], ip->imm), ip->imm & 255);                 \
		return ip + 1;                                                           \
	}

HANDLER_CONVERT(CVT_32_32, u32, u32)
HANDLER_CONVERT(CVT_32_64, u32, u64)
HANDLER_CONVERT(CVT_64_32, u64, u32)
HANDLER_CONVERT(CVT_64_64, u64, u64)
