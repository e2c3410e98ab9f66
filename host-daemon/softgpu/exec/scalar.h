/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The computation of one lane
 *
 * Plain functions over C types, without branches where that lets the compiler vectorise
 * the loop around them. Each has the result that PTX defines for every input: no
 * undefined behaviour of C may occur, because masked-out lanes are computed too.
 */

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef int8_t s8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
typedef float f32;
typedef double f64;

/* The layout of a value of the type in a slot. */
typedef u32 lane_u8, lane_s8, lane_u16, lane_s16, lane_u32, lane_s32;
typedef u64 lane_u64, lane_s64;
typedef f32 lane_f32;
typedef f64 lane_f64;

#define SCALAR static inline __attribute__((always_inline))

SCALAR u32 bits_f32(f32 x)
{
	u32 u;

	memcpy(&u, &x, sizeof(u));
	return u;
}

SCALAR f32 make_f32(u32 u)
{
	f32 x;

	memcpy(&x, &u, sizeof(x));
	return x;
}

SCALAR u64 bits_f64(f64 x)
{
	u64 u;

	memcpy(&u, &x, sizeof(u));
	return u;
}

SCALAR f64 make_f64(u64 u)
{
	f64 x;

	memcpy(&x, &u, sizeof(x));
	return x;
}

/*
 * Integers
 */

SCALAR u32 sat_add(s32 a, s32 b)
{
	s64 sum = (s64)a + b;

	return (u32)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
}

SCALAR u32 sat_sub(s32 a, s32 b)
{
	s64 sum = (s64)a - b;

	return (u32)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
}

/* Division by zero gives all ones, the remainder is the dividend: as GPUs do. */
SCALAR u32 udiv_32(u32 a, u32 b)
{
	return b ? a / b : UINT32_MAX;
}

SCALAR u32 urem_32(u32 a, u32 b)
{
	return b ? a % b : a;
}

SCALAR u32 sdiv_32(s32 a, s32 b)
{
	return b == 0 ? UINT32_MAX : b == -1 ? 0u - (u32)a : (u32)(a / b);
}

SCALAR u32 srem_32(s32 a, s32 b)
{
	return b == 0 ? (u32)a : b == -1 ? 0 : (u32)(a % b);
}

SCALAR u64 udiv_64(u64 a, u64 b)
{
	return b ? a / b : UINT64_MAX;
}

SCALAR u64 urem_64(u64 a, u64 b)
{
	return b ? a % b : a;
}

SCALAR u64 sdiv_64(s64 a, s64 b)
{
	return b == 0 ? UINT64_MAX : b == -1 ? 0u - (u64)a : (u64)(a / b);
}

SCALAR u64 srem_64(s64 a, s64 b)
{
	return b == 0 ? (u64)a : b == -1 ? 0 : (u64)(a % b);
}

SCALAR u64 umulhi_64(u64 a, u64 b)
{
	return (u64)(((unsigned __int128)a * b) >> 64);
}

SCALAR u64 smulhi_64(s64 a, s64 b)
{
	return (u64)(((__int128)a * b) >> 64);
}

SCALAR u32 shl_32(u32 a, u32 n)
{
	return n > 31 ? 0 : a << (n & 31);
}

SCALAR u64 shl_64(u64 a, u32 n)
{
	return n > 63 ? 0 : a << (n & 63);
}

SCALAR u32 shr_32(u32 a, u32 n)
{
	return n > 31 ? 0 : a >> (n & 31);
}

SCALAR u64 shr_64(u64 a, u32 n)
{
	return n > 63 ? 0 : a >> (n & 63);
}

SCALAR u32 sar_32(s32 a, u32 n)
{
	return (u32)(a >> (n > 31 ? 31 : n));
}

SCALAR u64 sar_64(s64 a, u32 n)
{
	return (u64)(a >> (n > 63 ? 63 : n));
}

SCALAR u32 clz_32(u32 a)
{
	return a ? (u32)__builtin_clz(a) : 32;
}

SCALAR u32 clz_64(u64 a)
{
	return a ? (u32)__builtin_clzll(a) : 64;
}

SCALAR u32 popc_32(u32 a)
{
	a -= (a >> 1) & 0x55555555u;
	a = (a & 0x33333333u) + ((a >> 2) & 0x33333333u);
	a = (a + (a >> 4)) & 0x0f0f0f0fu;
	return (a * 0x01010101u) >> 24;
}

SCALAR u32 brev_32(u32 a)
{
	a = ((a >> 1) & 0x55555555u) | ((a & 0x55555555u) << 1);
	a = ((a >> 2) & 0x33333333u) | ((a & 0x33333333u) << 2);
	a = ((a >> 4) & 0x0f0f0f0fu) | ((a & 0x0f0f0f0fu) << 4);
	a = ((a >> 8) & 0x00ff00ffu) | ((a & 0x00ff00ffu) << 8);
	return a >> 16 | a << 16;
}

SCALAR u64 brev_64(u64 a)
{
	return (u64)brev_32((u32)a) << 32 | brev_32((u32)(a >> 32));
}

/* Position of the highest bit that differs from the sign; all ones if none. */
SCALAR u32 bfind_64(u64 a, u64 sign, u32 top, u64 shiftamt)
{
	u64 v = sign ? ~a : a;
	u32 at = v ? 63 - (u32)__builtin_clzll(v) : UINT32_MAX;

	return at == UINT32_MAX || !shiftamt ? at : top - at;
}

SCALAR u64 bfe_u64(u64 a, u32 pos, u32 len, u32 size)
{
	u64 field;

	pos &= 255;
	len &= 255;
	if (pos >= size || !len)
		return 0;
	field = a >> pos;
	return len >= 64 ? field : field & ((UINT64_C(1) << len) - 1);
}

SCALAR u64 bfe_s64(s64 a, u32 pos, u32 len, u32 size)
{
	u64 field;
	u32 top, have;

	pos &= 255;
	len &= 255;
	if (!len)
		return 0;
	if (pos >= size)
		return a < 0 ? UINT64_MAX : 0;
	top = pos + len > size ? size : pos + len;
	have = top - pos;
	field = (u64)(a >> pos);
	return have >= 64 ? field : (u64)((s64)(field << (64 - have)) >> (64 - have));
}

SCALAR u64 bfi_64(u64 a, u64 b, u32 pos, u32 len, u32 size)
{
	u64 mask;

	pos &= 255;
	len &= 255;
	if (pos >= size || !len)
		return b;
	mask = (len >= 64 ? UINT64_MAX : (UINT64_C(1) << len) - 1) << pos;
	return (b & ~mask) | ((a << pos) & mask);
}

/* Bytes of b:a picked by the nibbles of the selector; bit 3 spreads the sign. */
SCALAR u32 prmt_32(u32 a, u32 b, u32 selector)
{
	u64 bytes = (u64)b << 32 | a;
	u32 r = 0;

	for (u32 i = 0; i < 4; i++) {
		u32 sel = selector >> (4 * i);
		u32 byte = (u32)(bytes >> (8 * (sel & 7))) & 255;

		byte = sel & 8 ? (byte & 128 ? 255 : 0) : byte;
		r |= byte << (8 * i);
	}
	return r;
}

/* The other modes of prmt, as selectors of the first: by mode and c's low bits. */
SCALAR u32 prmt_selector(u32 mode, u32 c)
{
	static const u16 selectors[6][4] = {
		{ 0x3210, 0x4321, 0x5432, 0x6543 }, /* f4e */
		{ 0x5670, 0x6701, 0x7012, 0x0123 }, /* b4e */
		{ 0x0000, 0x1111, 0x2222, 0x3333 }, /* rc8 */
		{ 0x3210, 0x3211, 0x3222, 0x3333 }, /* ecl */
		{ 0x0000, 0x1110, 0x2210, 0x3210 }, /* ecr */
		{ 0x1010, 0x3232, 0x1010, 0x3232 }, /* rc16 */
	};

	return selectors[mode][c & 3];
}

SCALAR u32 lop3_32(u32 a, u32 b, u32 c, u64 lut)
{
	u32 r = 0;

	for (u32 i = 0; i < 8; i++)
		r |= (0u - (u32)(lut >> i & 1)) & (i & 4 ? a : ~a) & (i & 2 ? b : ~b) &
		     (i & 1 ? c : ~c);
	return r;
}

SCALAR u32 shf_l(u32 a, u32 b, u32 n)
{
	return (u32)(((u64)b << 32 | a) << n >> 32);
}

SCALAR u32 shf_r(u32 a, u32 b, u32 n)
{
	return (u32)(((u64)b << 32 | a) >> n);
}

SCALAR u32 bmsk_32(u32 a, u32 b, u64 clamp)
{
	a = clamp ? (a > 32 ? 32 : a) : a & 31;
	b = clamp ? (b > 32 ? 32 : b) : b & 31;
	return (u32)(((UINT64_C(1) << b) - 1) << a);
}

SCALAR u32 szext_32(u32 a, u32 n, u64 clamp, bool is_signed)
{
	if (!clamp)
		n &= 31;
	if (n > 31)
		return a;
	if (!n)
		return 0;
	a <<= 32 - n;
	return is_signed ? (u32)((s32)a >> (32 - n)) : a >> (32 - n);
}

/* The position of the n-th set bit from base on (upwards if n > 0). */
SCALAR u32 fns_32(u32 mask, u32 base, s32 n)
{
	s64 step = n < 0 ? -1 : 1, left = n < 0 ? -(s64)n : n;

	if (n == 0)
		return base < 32 && mask >> base & 1 ? base : UINT32_MAX;
	for (s64 at = base; at >= 0 && at < 32; at += step)
		if (mask >> at & 1 && --left == 0)
			return (u32)at;
	return UINT32_MAX;
}

/* imm: bit 0 a is signed, bit 1 b is signed */
SCALAR u32 dp4a_32(u32 a, u32 b, u32 c, u64 imm)
{
	for (u32 i = 0; i < 32; i += 8) {
		s32 x = imm & 1 ? (s8)(a >> i) : (s32)(a >> i & 255);
		s32 y = imm & 2 ? (s8)(b >> i) : (s32)(b >> i & 255);

		c += (u32)(x * y);
	}
	return c;
}

/* imm: as dp4a, bit 2 the high half of b */
SCALAR u32 dp2a_32(u32 a, u32 b, u32 c, u64 imm)
{
	b >>= imm & 4 ? 16 : 0;
	for (u32 i = 0; i < 2; i++) {
		s32 x = imm & 1 ? (s16)(a >> 16 * i) : (s32)(a >> 16 * i & 65535);
		s32 y = imm & 2 ? (s8)(b >> 8 * i) : (s32)(b >> 8 * i & 255);

		c += (u32)(x * y);
	}
	return c;
}

/*
 * Floating point
 */

SCALAR f32 ftz(f32 x)
{
	u32 u = bits_f32(x);

	return make_f32(u & 0x7f800000u ? u : u & 0x80000000u);
}

/* The one NaN that operations on floats of 32 bits give. */
SCALAR f32 canon(f32 x)
{
	return x != x ? make_f32(0x7fffffffu) : x;
}

/* The reciprocal of a divisor above 2^126 is 0 where it is taken by itself. */
SCALAR f32 approx_divisor(f32 b)
{
	u32 a = bits_f32(b) & 0x7fffffffu;

	return a > 0x7e800000u && a < 0x7f800000u
		       ? make_f32((bits_f32(b) & 0x80000000u) | 0x7f800000u)
		       : b;
}

SCALAR f32 sat_f32(f32 x)
{
	x = x > 0.0f ? x : 0.0f; /* also NaN and -0 */
	return x < 1.0f ? x : 1.0f;
}

SCALAR f64 sat_f64(f64 x)
{
	x = x > 0.0 ? x : 0.0;
	return x < 1.0 ? x : 1.0;
}

SCALAR f32 abs_f32(f32 x)
{
	return make_f32(bits_f32(x) & 0x7fffffffu);
}

SCALAR f32 neg_f32(f32 x)
{
	return make_f32(bits_f32(x) ^ 0x80000000u);
}

SCALAR f64 abs_f64(f64 x)
{
	return make_f64(bits_f64(x) & INT64_MAX);
}

SCALAR f64 neg_f64(f64 x)
{
	return make_f64(bits_f64(x) ^ (UINT64_C(1) << 63));
}

/* -0 is below +0; of a number and a NaN the number; of two NaN the canonical one. */
SCALAR f32 min_f32(f32 a, f32 b)
{
	u32 equal = bits_f32(a) | bits_f32(b); /* -0 if either is */
	f32 r = a < b ? a : b;

	r = a == b ? make_f32(equal) : r;
	r = b != b ? a : a != a ? b : r;
	return r != r ? make_f32(0x7fffffffu) : r;
}

SCALAR f32 max_f32(f32 a, f32 b)
{
	u32 equal = bits_f32(a) & bits_f32(b);
	f32 r = a > b ? a : b;

	r = a == b ? make_f32(equal) : r;
	r = b != b ? a : a != a ? b : r;
	return r != r ? make_f32(0x7fffffffu) : r;
}

SCALAR f32 nan_f32(f32 a, f32 b, f32 r)
{
	return a != a || b != b ? make_f32(0x7fffffffu) : r;
}

SCALAR f64 min_f64(f64 a, f64 b)
{
	u64 equal = bits_f64(a) | bits_f64(b);
	f64 r = a < b ? a : b;

	r = a == b ? make_f64(equal) : r;
	r = b != b ? a : a != a ? b : r;
	return r != r ? make_f64(UINT64_C(0x7fffffffffffffff)) : r;
}

SCALAR f64 max_f64(f64 a, f64 b)
{
	u64 equal = bits_f64(a) & bits_f64(b);
	f64 r = a > b ? a : b;

	r = a == b ? make_f64(equal) : r;
	r = b != b ? a : a != a ? b : r;
	return r != r ? make_f64(UINT64_C(0x7fffffffffffffff)) : r;
}

#ifdef __FMA__
SCALAR f32 fma_f32(f32 a, f32 b, f32 c)
{
	return __builtin_fmaf(a, b, c);
}
#else
/*
 * The product of two floats is exact in double. The sum is rounded to odd by means of its
 * own rounding error, so that rounding it to float is correct.
 */
SCALAR f32 fma_f32(f32 a, f32 b, f32 c)
{
	f64 p = (f64)a * b, s = p + c, t = s - p;
	f64 error = (p - (s - t)) + (c - t);
	u64 bits = bits_f64(s), away = (error > 0) == (s > 0) ? 1 : UINT64_MAX;
	u64 odd = bits & 1 ? bits : bits + away;

	return (f32)(error > 0 || error < 0 ? make_f64(odd) : s);
}
#endif

/*
 * For operands of at most 26 bits, whose product is exact: the sum rounded to odd, so
 * that rounding it once more, to anything narrow, is correct.
 */
SCALAR f64 fma_odd_f64(f64 a, f64 b, f64 c)
{
	f64 p = a * b, s = p + c, t = s - p;
	f64 error = (p - (s - t)) + (c - t);
	u64 bits = bits_f64(s), away = (error > 0) == (s > 0) ? 1 : UINT64_MAX;
	u64 odd = bits & 1 ? bits : bits + away;

	return error > 0 || error < 0 ? make_f64(odd) : s;
}

SCALAR f64 fma_f64(f64 a, f64 b, f64 c)
{
	return __builtin_fma(a, b, c);
}

SCALAR u32 s32_from_f32(f32 x)
{
	return x >= 2147483648.0f    ? 0x7fffffffu
	       : x >= -2147483648.0f ? (u32)(s32)x
	       : x == x		     ? 0x80000000u
				     : 0;
}

SCALAR u32 u32_from_f32(f32 x)
{
	return x >= 4294967296.0f ? 0xffffffffu : x > -1.0f ? (u32)(s64)x : 0;
}

SCALAR u32 s32_from_f64(f64 x)
{
	return x >= 2147483648.0   ? 0x7fffffffu
	       : x > -2147483649.0 ? (u32)(s32)x
				   : 0x80000000u;
}

/*
 * rcp and rsqrt.approx.ftz.f64 see and give the upper half of a number only: 20 bits of
 * its mantissa. Subnormal numbers are zeros on the way in and out.
 */
SCALAR f64 upper_in(f64 x)
{
	u64 u = bits_f64(x) & UINT64_C(0xffffffff00000000);

	return make_f64(u & UINT64_C(0x7ff0000000000000) ? u : u & UINT64_C(1) << 63);
}

SCALAR f64 upper_out(f64 x)
{
	u64 u = bits_f64(x);

	if (x != x)
		return make_f64(UINT64_C(0x7fffffff00000000));
	u = (u + 0x80000000u) & UINT64_C(0xffffffff00000000);
	return make_f64(u & UINT64_C(0x7ff0000000000000) ? u : u & UINT64_C(1) << 63);
}

/* Of a zero infinity with its sign. */
SCALAR f64 rsqrt_upper(f64 x)
{
	return upper_out(x == 0 ? 1.0 / x : 1.0 / __builtin_sqrt(x));
}

SCALAR u32 testp_f32(f32 x, u64 finite, u64 infinite, u64 number, u64 normal)
{
	u32 u = bits_f32(x) & 0x7fffffffu;

	return (finite && u < 0x7f800000u) || (infinite && u == 0x7f800000u) ||
	       (number && u <= 0x7f800000u) ||
	       (normal && u >= 0x00800000u && u < 0x7f800000u);
}
