/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integer operations on the engine, one row each
 */

#include "exec-rows.h"
#include "test.h"

typedef unsigned __int128 u128;
typedef __int128 s128;

#define B32 "%d, %a, %b;"
#define B3 "%d, %a, %b, %c;"
#define SETP(_op) "setp." _op " %p, %a, %b; selp.u32 %d, 7, 9, %p;"

static u64 bit_range(u64 a, u32 pos, u32 len, u32 size, bool is_signed)
{
	u64 r = 0, sign;

	pos &= 255;
	len &= 255;
	if (!len)
		return 0;
	sign = is_signed ? a >> (pos + len - 1 < size ? pos + len - 1 : size - 1) & 1 : 0;
	for (u32 i = 0; i < size; i++) {
		u64 bit = i < len && pos + i < size ? a >> (pos + i) & 1 : sign;

		r |= bit << i;
	}
	return r;
}

static u64 bit_insert(u64 a, u64 b, u32 pos, u32 len, u32 size)
{
	pos &= 255;
	len &= 255;
	for (u32 i = 0; i < len && pos + i < size; i++) {
		b &= ~(UINT64_C(1) << (pos + i));
		b |= (a >> i & 1) << (pos + i);
	}
	return b;
}

static u32 highest_bit(u64 a, u32 size)
{
	for (u32 i = size; i-- > 0;)
		if (a >> i & 1)
			return i;
	return UINT32_MAX;
}

static u64 reversed(u64 a, u32 size)
{
	u64 r = 0;

	for (u32 i = 0; i < size; i++)
		r |= (a >> i & 1) << (size - 1 - i);
	return r;
}

static u32 permuted(u32 a, u32 b, u32 c)
{
	u8 bytes[8], out[4];
	u32 r;

	memcpy(bytes, &a, 4);
	memcpy(bytes + 4, &b, 4);
	for (int i = 0; i < 4; i++) {
		u8 x = bytes[c >> (4 * i) & 7];

		out[i] = c >> (4 * i) & 8 ? (x & 0x80 ? 0xff : 0) : x;
	}
	memcpy(&r, out, 4);
	return r;
}

static u32 looked_up(u32 a, u32 b, u32 c, u32 lut)
{
	u32 r = 0;

	for (int i = 0; i < 32; i++) {
		u32 at = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);

		r |= (lut >> at & 1) << i;
	}
	return r;
}

static u32 dotted(u32 a, u32 b, u32 c, bool sa, bool sb)
{
	for (int i = 0; i < 4; i++) {
		s32 x = sa ? (s8)(a >> 8 * i) : (u8)(a >> 8 * i);
		s32 y = sb ? (s8)(b >> 8 * i) : (u8)(b >> 8 * i);

		c += (u32)(x * y);
	}
	return c;
}

static s64 clamped(s128 x, s64 low, s64 high)
{
	return x < low ? low : x > high ? high : (s64)x;
}

static s64 quotient(s64 a, s64 b)
{
	return b == 0 ? -1 : b == -1 ? (s64)(0 - (u64)a) : a / b;
}

static s64 rest(s64 a, s64 b)
{
	return b == 0 ? a : b == -1 ? 0 : a % b;
}

static u64 distance(s128 a, s128 b)
{
	return (u64)(a < b ? b - a : a - b);
}

#define ROWS(X)                                                                          \
	X(add_s16, "add.s16 " B32, u16, u16, u16, u16, a + b)                            \
	X(add_u32, "add.u32 " B32, u32, u32, u32, u32, a + b)                            \
	X(add_s64, "add.s64 " B32, u64, u64, u64, u64, a + b)                            \
	X(add_sat, "add.sat.s32 " B32, s32, s32, s32, s32,                               \
		clamped((s128)a + b, INT32_MIN, INT32_MAX))                              \
	X(sub_u16, "sub.u16 " B32, u16, u16, u16, u16, a - b)                            \
	X(sub_s32, "sub.s32 " B32, u32, u32, u32, u32, a - b)                            \
	X(sub_u64, "sub.u64 " B32, u64, u64, u64, u64, a - b)                            \
	X(sub_sat, "sub.sat.s32 " B32, s32, s32, s32, s32,                               \
		clamped((s128)a - b, INT32_MIN, INT32_MAX))                              \
	X(add_immediate, "add.s32 %d, %a, -77;", u32, u32, u32, u32, a - 77)             \
	X(add_u16x2, "add.u16x2 " B32, u32, u32, u32, u32,                               \
		(u16)(a + b) | (u32)(u16)((a >> 16) + (b >> 16)) << 16)                  \
	X(mul_lo_u16, "mul.lo.u16 " B32, u16, u16, u16, u16, (u32)a *b)                  \
	X(mul_lo_s32, "mul.lo.s32 " B32, u32, u32, u32, u32, a *b)                       \
	X(mul_lo_u64, "mul.lo.u64 " B32, u64, u64, u64, u64, a *b)                       \
	X(mul_hi_u16, "mul.hi.u16 " B32, u16, u16, u16, u16, (u32)a *b >> 16)            \
	X(mul_hi_s16, "mul.hi.s16 " B32, s16, s16, s16, s16, ((s32)a * b) >> 16)         \
	X(mul_hi_u32, "mul.hi.u32 " B32, u32, u32, u32, u32, (u64)a *b >> 32)            \
	X(mul_hi_s32, "mul.hi.s32 " B32, s32, s32, s32, s32, ((s64)a * b) >> 32)         \
	X(mul_hi_u64, "mul.hi.u64 " B32, u64, u64, u64, u64, (u128)a *b >> 64)           \
	X(mul_hi_s64, "mul.hi.s64 " B32, s64, s64, s64, s64, ((s128)a * b) >> 64)        \
	X(mul_wide_u16, "mul.wide.u16 " B32, u32, u16, u16, u16, (u32)a *b)              \
	X(mul_wide_s16, "mul.wide.s16 " B32, s32, s16, s16, s16, (s32)a *b)              \
	X(mul_wide_u32, "mul.wide.u32 " B32, u64, u32, u32, u32, (u64)a *b)              \
	X(mul_wide_s32, "mul.wide.s32 " B32, s64, s32, s32, s32, (s64)a *b)              \
	X(mad_lo_s32, "mad.lo.s32 " B3, u32, u32, u32, u32, a *b + c)                    \
	X(mad_lo_u16, "mad.lo.u16 " B3, u16, u16, u16, u16, (u32)a *b + c)               \
	X(mad_lo_u64, "mad.lo.u64 " B3, u64, u64, u64, u64, a *b + c)                    \
	X(mad_hi_u32, "mad.hi.u32 " B3, u32, u32, u32, u32, (u32)((u64)a * b >> 32) + c) \
	X(mad_hi_s64, "mad.hi.s64 " B3, u64, s64, s64, u64,                              \
		(u64)(((s128)a * b) >> 64) + c)                                          \
	X(mad_wide_u16, "mad.wide.u16 " B3, u32, u16, u16, u32, (u32)a *b + c)           \
	X(mad_wide_s32, "mad.wide.s32 " B3, u64, s32, s32, u64, (u64)((s64)a * b) + c)   \
	X(div_u16, "div.u16 " B32, u16, u16, u16, u16, b ? a / b : 0xffff)               \
	X(div_s16, "div.s16 " B32, s16, s16, s16, s16, quotient(a, b))                   \
	X(div_u32, "div.u32 " B32, u32, u32, u32, u32, b ? a / b : UINT32_MAX)           \
	X(div_s32, "div.s32 " B32, s32, s32, s32, s32, quotient(a, b))                   \
	X(div_u64, "div.u64 " B32, u64, u64, u64, u64, b ? a / b : UINT64_MAX)           \
	X(div_s64, "div.s64 " B32, s64, s64, s64, s64, quotient(a, b))                   \
	X(rem_u16, "rem.u16 " B32, u16, u16, u16, u16, b ? a % b : a)                    \
	X(rem_s16, "rem.s16 " B32, s16, s16, s16, s16, rest(a, b))                       \
	X(rem_u32, "rem.u32 " B32, u32, u32, u32, u32, b ? a % b : a)                    \
	X(rem_s32, "rem.s32 " B32, s32, s32, s32, s32, rest(a, b))                       \
	X(rem_u64, "rem.u64 " B32, u64, u64, u64, u64, b ? a % b : a)                    \
	X(rem_s64, "rem.s64 " B32, s64, s64, s64, s64, rest(a, b))                       \
	X(min_u16, "min.u16 " B32, u16, u16, u16, u16, a < b ? a : b)                    \
	X(min_s16, "min.s16 " B32, s16, s16, s16, s16, a < b ? a : b)                    \
	X(min_u32, "min.u32 " B32, u32, u32, u32, u32, a < b ? a : b)                    \
	X(min_s32, "min.s32 " B32, s32, s32, s32, s32, a < b ? a : b)                    \
	X(min_u64, "min.u64 " B32, u64, u64, u64, u64, a < b ? a : b)                    \
	X(min_s64, "min.s64 " B32, s64, s64, s64, s64, a < b ? a : b)                    \
	X(max_u16, "max.u16 " B32, u16, u16, u16, u16, a > b ? a : b)                    \
	X(max_s16, "max.s16 " B32, s16, s16, s16, s16, a > b ? a : b)                    \
	X(max_u32, "max.u32 " B32, u32, u32, u32, u32, a > b ? a : b)                    \
	X(max_s32, "max.s32 " B32, s32, s32, s32, s32, a > b ? a : b)                    \
	X(max_u64, "max.u64 " B32, u64, u64, u64, u64, a > b ? a : b)                    \
	X(max_s64, "max.s64 " B32, s64, s64, s64, s64, a > b ? a : b)                    \
	X(neg_s16, "neg.s16 %d, %a;", u16, u16, u16, u16, 0 - a)                         \
	X(neg_s32, "neg.s32 %d, %a;", u32, u32, u32, u32, 0 - a)                         \
	X(neg_s64, "neg.s64 %d, %a;", u64, u64, u64, u64, 0 - a)                         \
	X(abs_s16, "abs.s16 %d, %a;", u16, s16, u16, u16, a < 0 ? 0 - a : a)             \
	X(abs_s32, "abs.s32 %d, %a;", u32, s32, u32, u32, a < 0 ? 0 - (u32)a : (u32)a)   \
	X(abs_s64, "abs.s64 %d, %a;", u64, s64, u64, u64, a < 0 ? 0 - (u64)a : (u64)a)   \
	X(sad_u16, "sad.u16 " B3, u16, u16, u16, u16, distance(a, b) + c)                \
	X(sad_s16, "sad.s16 " B3, u16, s16, s16, u16, distance(a, b) + c)                \
	X(sad_u32, "sad.u32 " B3, u32, u32, u32, u32, distance(a, b) + c)                \
	X(sad_s32, "sad.s32 " B3, u32, s32, s32, u32, distance(a, b) + c)                \
	X(sad_u64, "sad.u64 " B3, u64, u64, u64, u64, distance(a, b) + c)                \
	X(sad_s64, "sad.s64 " B3, u64, s64, s64, u64, distance(a, b) + c)                \
	X(and_b16, "and.b16 " B32, u16, u16, u16, u16, a &b)                             \
	X(and_b32, "and.b32 " B32, u32, u32, u32, u32, a &b)                             \
	X(and_b64, "and.b64 " B32, u64, u64, u64, u64, a &b)                             \
	X(or_b32, "or.b32 " B32, u32, u32, u32, u32, a | b)                              \
	X(or_b64, "or.b64 " B32, u64, u64, u64, u64, a | b)                              \
	X(xor_b32, "xor.b32 " B32, u32, u32, u32, u32, a ^ b)                            \
	X(xor_b64, "xor.b64 " B32, u64, u64, u64, u64, a ^ b)                            \
	X(not_b32, "not.b32 %d, %a;", u32, u32, u32, u32, ~a)                            \
	X(not_b64, "not.b64 %d, %a;", u64, u64, u64, u64, ~a)                            \
	X(cnot_b16, "cnot.b16 %d, %a;", u16, u16, u16, u16, a == 0)                      \
	X(cnot_b32, "cnot.b32 %d, %a;", u32, u32, u32, u32, a == 0)                      \
	X(cnot_b64, "cnot.b64 %d, %a;", u64, u64, u64, u64, a == 0)                      \
	X(shl_b16, "shl.b16 " B32, u16, u16, u32, u32, b > 15 ? 0 : a << b)              \
	X(shl_b32, "shl.b32 " B32, u32, u32, u32, u32, b > 31 ? 0 : a << b)              \
	X(shl_b64, "shl.b64 " B32, u64, u64, u32, u32, b > 63 ? 0 : a << b)              \
	X(shr_u16, "shr.u16 " B32, u16, u16, u32, u32, b > 15 ? 0 : a >> b)              \
	X(shr_s16, "shr.s16 " B32, s16, s16, u32, u32, a >> (b > 15 ? 15 : b))           \
	X(shr_b32, "shr.b32 " B32, u32, u32, u32, u32, b > 31 ? 0 : a >> b)              \
	X(shr_s32, "shr.s32 " B32, s32, s32, u32, u32, a >> (b > 31 ? 31 : b))           \
	X(shr_u64, "shr.u64 " B32, u64, u64, u32, u32, b > 63 ? 0 : a >> b)              \
	X(shr_s64, "shr.s64 " B32, s64, s64, u32, u32, a >> (b > 63 ? 63 : b))           \
	X(popc_b32, "popc.b32 %d, %a;", u32, u32, u32, u32, __builtin_popcount(a))       \
	X(popc_b64, "popc.b64 %d, %a;", u32, u64, u32, u32, __builtin_popcountll(a))     \
	X(clz_b32, "clz.b32 %d, %a;", u32, u32, u32, u32, 31 - highest_bit(a, 32))       \
	X(clz_b64, "clz.b64 %d, %a;", u32, u64, u32, u32, 63 - highest_bit(a, 64))       \
	X(brev_b32, "brev.b32 %d, %a;", u32, u32, u32, u32, reversed(a, 32))             \
	X(brev_b64, "brev.b64 %d, %a;", u64, u64, u32, u32, reversed(a, 64))             \
	X(bfind_u32, "bfind.u32 %d, %a;", u32, u32, u32, u32, highest_bit(a, 32))        \
	X(bfind_s32, "bfind.s32 %d, %a;", u32, s32, u32, u32,                            \
		highest_bit((u32)(a < 0 ? ~a : a), 32))                                  \
	X(bfind_u64, "bfind.u64 %d, %a;", u32, u64, u32, u32, highest_bit(a, 64))        \
	X(bfind_s64, "bfind.s64 %d, %a;", u32, s64, u32, u32,                            \
		highest_bit((u64)(a < 0 ? ~a : a), 64))                                  \
	X(bfind_shift, "bfind.shiftamt.u32 %d, %a;", u32, u32, u32, u32,                 \
		a ? 31 - highest_bit(a, 32) : UINT32_MAX)                                \
	X(bfe_u32, "bfe.u32 " B3, u32, u32, u32, u32, bit_range(a, b, c, 32, false))     \
	X(bfe_s32, "bfe.s32 " B3, u32, u32, u32, u32, bit_range(a, b, c, 32, true))      \
	X(bfe_u64, "bfe.u64 " B3, u64, u64, u32, u32, bit_range(a, b, c, 64, false))     \
	X(bfe_s64, "bfe.s64 " B3, u64, u64, u32, u32, bit_range(a, b, c, 64, true))      \
	X(bfi_b32, "bfi.b32 %d, %a, %b, %c, 9;", u32, u32, u32, u32,                     \
		bit_insert(a, b, c, 9, 32))                                              \
	X(bfi_b64, "bfi.b64 %d, %a, %b, 13, %c;", u64, u64, u64, u32,                    \
		bit_insert(a, b, 13, c, 64))                                             \
	X(prmt_b32, "prmt.b32 " B3, u32, u32, u32, u32, permuted(a, b, c))               \
	X(prmt_f4e, "prmt.b32.f4e " B3, u32, u32, u32, u32,                              \
		((u64)b << 32 | a) >> 8 * (c & 3))                                       \
	X(prmt_rc8, "prmt.b32.rc8 " B3, u32, u32, u32, u32,                              \
		(a >> 8 * (c & 3) & 255) * 0x01010101u)                                  \
	X(shf_l_wrap, "shf.l.wrap.b32 " B3, u32, u32, u32, u32,                          \
		((u64)b << 32 | a) << (c & 31) >> 32)                                    \
	X(shf_l_clamp, "shf.l.clamp.b32 " B3, u32, u32, u32, u32,                        \
		((u64)b << 32 | a) << (c > 32 ? 32 : c) >> 32)                           \
	X(shf_r_wrap, "shf.r.wrap.b32 " B3, u32, u32, u32, u32,                          \
		((u64)b << 32 | a) >> (c & 31))                                          \
	X(shf_r_clamp, "shf.r.clamp.b32 " B3, u32, u32, u32, u32,                        \
		((u64)b << 32 | a) >> (c > 32 ? 32 : c))                                 \
	X(lop3_96, "lop3.b32 %d, %a, %b, %c, 0x96;", u32, u32, u32, u32, a ^ b ^ c)      \
	X(lop3_ca, "lop3.b32 %d, %a, %b, %c, 0xca;", u32, u32, u32, u32,                 \
		looked_up(a, b, c, 0xca))                                                \
	X(bmsk_clamp, "bmsk.clamp.b32 " B32, u32, u32, u32, u32,                         \
		((UINT64_C(1) << (b > 32 ? 32 : b)) - 1) << (a > 32 ? 32 : a))           \
	X(bmsk_wrap, "bmsk.wrap.b32 " B32, u32, u32, u32, u32,                           \
		((UINT64_C(1) << (b & 31)) - 1) << (a & 31))                             \
	X(dp4a_s32_s32, "dp4a.s32.s32 " B3, u32, u32, u32, u32, dotted(a, b, c, 1, 1))   \
	X(dp4a_u32_s32, "dp4a.u32.s32 " B3, u32, u32, u32, u32, dotted(a, b, c, 0, 1))   \
	X(add_carry, "add.cc.u32 %r5, %a, %b; addc.u32 %d, %c, 0;", u32, u32, u32, u32,  \
		c + (u32)(((u64)a + b) >> 32))                                           \
	X(sub_borrow, "sub.cc.u32 %r5, %a, %b; subc.u32 %d, %c, 5;", u32, u32, u32, u32, \
		c - 5 - (a < b))                                                         \
	X(mad_carry, "mad.lo.cc.u32 %r5, %a, %b, %c; madc.hi.u32 %d, %a, %b, 3;", u32,   \
		u32, u32, u32, (u32)(((u64)a * b + c) >> 32) + 3)                        \
	X(selp_b64, "setp.ne.u64 %p, %c, 0; selp.b64 %d, %a, %b, %p;", u64, u64, u64,    \
		u64, c ? a : b)                                                          \
	X(slct_s32, "slct.u32.s32 " B3, u32, u32, u32, s32, c >= 0 ? a : b)              \
	X(set_lt, "set.lt.u32.s32 %d, %a, %b;", u32, s32, s32, u32,                      \
		a < b ? UINT32_MAX : 0)                                                  \
	X(setp_eq_b16, SETP("eq.b16"), u32, u16, u16, u16, a == b ? 7 : 9)               \
	X(setp_ne_s32, SETP("ne.s32"), u32, s32, s32, u16, a != b ? 7 : 9)               \
	X(setp_lt_s16, SETP("lt.s16"), u32, s16, s16, u16, a < b ? 7 : 9)                \
	X(setp_le_u16, SETP("le.u16"), u32, u16, u16, u16, a <= b ? 7 : 9)               \
	X(setp_gt_s32, SETP("gt.s32"), u32, s32, s32, u16, a > b ? 7 : 9)                \
	X(setp_ge_u32, SETP("ge.u32"), u32, u32, u32, u16, a >= b ? 7 : 9)               \
	X(setp_lo_u32, SETP("lo.u32"), u32, u32, u32, u16, a < b ? 7 : 9)                \
	X(setp_hs_u64, SETP("hs.u64"), u32, u64, u64, u16, a >= b ? 7 : 9)               \
	X(setp_lt_s64, SETP("lt.s64"), u32, s64, s64, u16, a < b ? 7 : 9)                \
	X(setp_and,                                                                      \
		"setp.eq.u32 %q, %c, 0; setp.lt.and.s32 %p, %a, %b, !%q;"                \
		"selp.u32 %d, 1, 2, %p;",                                                \
		u32, s32, s32, u32, a < b && c ? 1 : 2)                                  \
	X(setp_both,                                                                     \
		"setp.eq.u32 %p, %c, 0; setp.gt.xor.s32 %p|%q, %a, %b, %p;"              \
		"selp.u32 %d, 2, 0, %p; selp.u32 %r5, 1, 0, %q;"                         \
		"or.b32 %d, %d, %r5;",                                                   \
		u32, s32, s32, u32,                                                      \
		((a > b) != (c == 0) ? 2 : 0) | ((a <= b) != (c == 0) ? 1 : 0))          \
	X(logic_pred,                                                                    \
		"setp.lt.s32 %p, %a, %b; setp.ne.u32 %q, %c, 0; not.pred %q, %q;"        \
		"or.pred %p, %p, %q; selp.u32 %d, 5, 6, %p;",                            \
		u32, s32, s32, u32, a < b || !c ? 5 : 6)                                 \
	X(cvt_u64_u32, "cvt.u64.u32 %d, %a;", u64, u32, u32, u32, a)                     \
	X(cvt_s64_s32, "cvt.s64.s32 %d, %a;", s64, s32, u32, u32, a)                     \
	X(cvt_s64_s16, "cvt.s64.s16 %d, %a;", s64, s16, u32, u32, a)                     \
	X(cvt_u32_u64, "cvt.u32.u64 %d, %a;", u32, u64, u32, u32, a)                     \
	X(cvt_u16_u32, "cvt.u16.u32 %d, %a;", u16, u32, u32, u32, a)                     \
	X(cvt_s32_s8, "cvt.s32.s8 %d, %a;", s32, u32, u32, u32, (s8)a)                   \
	X(cvt_u32_u8, "cvt.u32.u8 %d, %a;", u32, u32, u32, u32, (u8)a)                   \
	X(cvt_s16_s8, "cvt.s16.s8 %d, %a;", s16, u16, u32, u32, (s8)a)                   \
	X(cvt_u8_u64, "cvt.u8.u64 %h0, %a; cvt.u32.u16 %d, %h0;", u32, u64, u32, u32,    \
		(u8)a)                                                                   \
	X(cvt_sat_u8, "cvt.sat.u8.s32 %d, %a;", u32, s32, u32, u32, clamped(a, 0, 255))  \
	X(cvt_sat_s16, "cvt.sat.s16.s64 %d, %a;", s16, s64, u32, u32,                    \
		clamped(a, -32768, 32767))                                               \
	X(cvt_sat_u32, "cvt.sat.u32.u64 %d, %a;", u32, u64, u32, u32,                    \
		a > UINT32_MAX ? UINT32_MAX : a)                                         \
	X(unpack_b64, "mov.b64 {%r5, %r6}, %a; sub.u32 %d, %r6, %r5;", u32, u64, u32,    \
		u32, (u32)(a >> 32) - (u32)a)                                            \
	X(pack_b64, "mov.b64 %d, {%a, %b};", u64, u32, u32, u32, a | (u64)b << 32)       \
	X(unpack_b32, "mov.b32 {%h0, %h1}, %a; mov.b32 %d, {%h1, %h0};", u32, u32, u32,  \
		u32, a << 16 | a >> 16)                                                  \
	X(unpack_4,                                                                      \
		"mov.b64 {%h0, %h1, %h2, %h3}, %a; mov.b64 %d, {%h3, %h2, %h1, %h0};",   \
		u64, u64, u32, u32,                                                      \
		a << 48 | (a & 0xffff0000u) << 16 | (a >> 16 & 0xffff0000u) | a >> 48)   \
	X(mov_v2,                                                                        \
		"mov.v2.u32 %pair, {%a, %b}; mov.v2.u32 {%r5, %r6}, %pair;"              \
		"mov.v2.u32 {%r5, %r6}, {%r6, %r5}; sub.u32 %d, %r5, %r6;",              \
		u32, u32, u32, u32, b - a)                                               \
	X(mov_v4,                                                                        \
		"mov.v4.u16 %four, {%a, 7, %a, %b}; sub.u16 %d, %four.w, %four.z;"       \
		"add.u16 %d, %d, %four.y;",                                              \
		u16, u16, u16, u32, (u16)(b - a + 7))                                    \
	X(vadd, "vadd.u32.u32.s32 %d, %a, %b;", u32, u32, s32, u32, a + (u32)b)          \
	X(vsub_add, "vsub.u32.u32.u32.add " B3, u32, u32, u32, u32, a - b + c)           \
	X(vadd_min, "vadd.s32.u32.s32.min " B3, s32, u32, s32, s32,                      \
		(s64)a + b < c ? (s64)a + b : c) /* the sum has 34 bits */               \
	X(vsub_max, "vsub.u32.s32.s32.max " B3, u32, s32, s32, u32,                      \
		(s64)a - b > (s64)c ? (s64)a - b : (s64)c)

ROWS(ROW_REFERENCE)

#define ROW_TOLERANCE 0

static const struct row rows[] = { ROWS(ROW_ENTRY) };

TEST(integer_operations_give_what_c_gives)
{
	rows_run(rows, sizeof(rows) / sizeof(rows[0]));
}
