/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: video instructions
 *
 * Sources are bytes, halves or whole registers, widened by their sign; what is computed
 * has room for every result, and is cut only after it was saturated and combined with
 * the third operand. One lane at a time: they are rare.
 */

#include "exec/warp.h"

typedef __int128 wide;

SCALAR wide bounded(wide x, wide low, wide high)
{
	return x < low ? low : x > high ? high : x;
}

SCALAR wide extended(u32 x, unsigned int bits, bool is_signed)
{
	u32 up = 32 - bits;

	return is_signed ? (wide)((s32)(x << up) >> up) : (wide)(x << up >> up);
}

static wide saturated(wide x, unsigned int bits, bool is_signed)
{
	wide half = (wide)1 << (bits - 1);

	return is_signed ? bounded(x, -half, half - 1) : bounded(x, 0, 2 * half - 1);
}

static bool compared(wide a, wide b, unsigned int cmp)
{
	switch (cmp) {
	case 0:
		return a == b;
	case 1:
		return a != b;
	case 2:
		return a < b;
	case 3:
		return a <= b;
	case 4:
		return a > b;
	default:
		return a >= b;
	}
}

static wide computed(wide a, wide b, u64 imm)
{
	u32 shift;

	switch ((enum video_op)(imm & VIDEO_OP)) {
	case VIDEO_SUB:
		return a - b;
	case VIDEO_ABSDIFF:
		return a < b ? b - a : a - b;
	case VIDEO_MIN:
		return a < b ? a : b;
	case VIDEO_MAX:
		return a > b ? a : b;
	case VIDEO_SHL:
	case VIDEO_SHR:
		shift = imm & VIDEO_WRAP ? (u32)b & 31 : b > 32 ? 32 : (u32)b;
		if ((imm & VIDEO_OP) == VIDEO_SHR)
			return a >> shift;
		return a * ((wide)1 << shift);
	case VIDEO_SET:
		return compared(a, b, imm >> VIDEO_CMP_SHIFT & 7);
	case VIDEO_AVRG:
		return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
	default:
		return a + b;
	}
}

/* Of a part as enum video numbers them: its width and where it begins. */
SCALAR unsigned int part_bits(unsigned int part)
{
	return !part ? 32 : part <= 4 ? 8 : 16;
}

SCALAR unsigned int part_shift(unsigned int part)
{
	return !part ? 0 : part <= 4 ? (part - 1) * 8 : (part - 5) * 16;
}

SCALAR wide part_of(u32 x, unsigned int part, bool is_signed)
{
	return extended(x >> part_shift(part), part_bits(part), is_signed);
}

static u32 video(u32 a, u32 b, u32 c, u64 imm)
{
	unsigned int part = imm >> VIDEO_PART_D_SHIFT & 7, bits = part_bits(part);
	wide x = computed(part_of(a, imm >> VIDEO_PART_A_SHIFT & 7, imm & VIDEO_SIGNED_A),
		part_of(b, imm >> VIDEO_PART_B_SHIFT & 7, imm & VIDEO_SIGNED_B), imm);
	wide third = extended(c, 32, imm & VIDEO_SIGNED_D);
	u32 mask = bits == 32 ? UINT32_MAX : (1u << bits) - 1;

	if (imm & VIDEO_SAT)
		x = saturated(x, bits, imm & VIDEO_SIGNED_D);
	switch (imm >> VIDEO_SECOND_SHIFT & 3) {
	case 1:
		x += third;
		break;
	case 2:
		x = x < third ? x : third;
		break;
	case 3:
		x = x > third ? x : third;
		break;
	default:
		break;
	}
	if (!part)
		return (u32)x;
	return ((u32)x & mask) << part_shift(part) | (c & ~(mask << part_shift(part)));
}

/* a * b + c; a negation is a complement and a 1 that is added, as in the ISA's text. */
static u32 video_mad(u32 a, u32 b, u32 c, u64 imm)
{
	bool is_signed = imm & (VIDEO_SIGNED_A | VIDEO_SIGNED_B | VIDEO_NEGATE_PRODUCT |
				       VIDEO_NEGATE_C);
	wide x = part_of(a, imm >> VIDEO_PART_A_SHIFT & 7, imm & VIDEO_SIGNED_A) *
		 part_of(b, imm >> VIDEO_PART_B_SHIFT & 7, imm & VIDEO_SIGNED_B);
	wide third = extended(imm & VIDEO_NEGATE_C ? ~c : c, 32, is_signed);

	if (imm & VIDEO_NEGATE_PRODUCT)
		x = ~x;
	x += third;
	x += !!(imm & (VIDEO_PLUS_ONE | VIDEO_NEGATE_PRODUCT | VIDEO_NEGATE_C));
	x >>= imm >> VIDEO_SCALE_SHIFT & 15;
	return (u32)(imm & VIDEO_SAT ? saturated(x, 32, is_signed) : x);
}

static u32 video_lanes(u32 a, u32 b, u32 c, u64 imm, unsigned int n)
{
	unsigned int bits = 32 / n;
	u64 both = (u64)b << 32 | a;
	bool sums = imm >> VIDEO_SECOND_SHIFT & 3;
	u32 r = c, mask = (1u << bits) - 1;

	for (unsigned int i = 0; i < n; i++) {
		unsigned int from_a = imm >> (VIDEO_FROM_A_SHIFT + 3 * i) & 7;
		unsigned int from_b = imm >> (VIDEO_FROM_B_SHIFT + 3 * i) & 7;
		wide x;

		if (!(imm >> (VIDEO_MASK_SHIFT + i) & 1))
			continue;
		x = computed(extended((u32)(both >> from_a * bits), bits,
				     imm & VIDEO_SIGNED_A),
			extended(
				(u32)(both >> from_b * bits), bits, imm & VIDEO_SIGNED_B),
			imm);
		if (imm & VIDEO_SAT)
			x = saturated(x, bits, imm & VIDEO_SIGNED_D);
		if (sums)
			r += (u32)x;
		else
			r = (r & ~(mask << i * bits)) | ((u32)x & mask) << i * bits;
	}
	return r;
}

#define HANDLER_VIDEO(_name, _result)                                                    \
	HANDLER(_name)                                                                   \
	{                                                                                \
		const u32 *a = REG(u32, ip->a), *b = REG(u32, ip->b);                    \
		const u32 *c = REG(u32, ip->c);                                          \
		u32 *d = REG(u32, ip->d);                                                \
		const u64 imm = ip->imm;                                                 \
                                                                                         \
		EACH_SET_LANE(i, mask)                                                   \
		d[i] = _result;                                                          \
		return ip + 1;                                                           \
	}

HANDLER_VIDEO(VIDEO, video(a[i], b[i], c[i], imm))
HANDLER_VIDEO(VIDEO_MAD, video_mad(a[i], b[i], c[i], imm))
HANDLER_VIDEO(VIDEO_2, video_lanes(a[i], b[i], c[i], imm, 2))
HANDLER_VIDEO(VIDEO_4, video_lanes(a[i], b[i], c[i], imm, 4))
