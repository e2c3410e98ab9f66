/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed blocks: BC6H and BC7, whose texels belong to one to three subsets
 *
 * A mode in the first bits says how the others are divided. Each subset has a line
 * between two colours, and each texel an index into it. In every subset one texel, the
 * anchor, has an index whose highest bit is 0 and not stored.
 */

#include <string.h>

#include "exec/half.h"
#include "exec/texel-block.h"

enum { TEXELS = 16 };

/* The subset of each texel, from the first at the lowest bit. */
static const uint16_t partitions_of_two[64] = {
	0xcccc,
	0x8888,
	0xeeee,
	0xecc8,
	0xc880,
	0xfeec,
	0xfec8,
	0xec80,
	0xc800,
	0xffec,
	0xfe80,
	0xe800,
	0xffe8,
	0xff00,
	0xfff0,
	0xf000,
	0xf710,
	0x008e,
	0x7100,
	0x08ce,
	0x008c,
	0x7310,
	0x3100,
	0x8cce,
	0x088c,
	0x3110,
	0x6666,
	0x366c,
	0x17e8,
	0x0ff0,
	0x718e,
	0x399c,
	0xaaaa,
	0xf0f0,
	0x5a5a,
	0x33cc,
	0x3c3c,
	0x55aa,
	0x9696,
	0xa55a,
	0x73ce,
	0x13c8,
	0x324c,
	0x3bdc,
	0x6996,
	0xc33c,
	0x9966,
	0x0660,
	0x0272,
	0x04e4,
	0x4e40,
	0x2720,
	0xc936,
	0x936c,
	0x39c6,
	0x639c,
	0x9336,
	0x9cc6,
	0x817e,
	0xe718,
	0xccf0,
	0x0fcc,
	0x7744,
	0xee22,
};

/* Two bits for each texel. */
static const uint32_t partitions_of_three[64] = {
	0xaa685050,
	0x6a5a5040,
	0x5a5a4200,
	0x5450a0a8,
	0xa5a50000,
	0xa0a05050,
	0x5555a0a0,
	0x5a5a5050,
	0xaa550000,
	0xaa555500,
	0xaaaa5500,
	0x90909090,
	0x94949494,
	0xa4a4a4a4,
	0xa9a59450,
	0x2a0a4250,
	0xa5945040,
	0x0a425054,
	0xa5a5a500,
	0x55a0a0a0,
	0xa8a85454,
	0x6a6a4040,
	0xa4a45000,
	0x1a1a0500,
	0x0050a4a4,
	0xaaa59090,
	0x14696914,
	0x69691400,
	0xa08585a0,
	0xaa821414,
	0x50a4a450,
	0x6a5a0200,
	0xa9a58000,
	0x5090a0a8,
	0xa8a09050,
	0x24242424,
	0x00aa5500,
	0x24924924,
	0x24499224,
	0x50a50a50,
	0x500aa550,
	0xaaaa4444,
	0x66660000,
	0xa5a0a5a0,
	0x50a050a0,
	0x69286928,
	0x44aaaa44,
	0x66666600,
	0xaa444444,
	0x54a854a8,
	0x95809580,
	0x96969600,
	0xa85454a8,
	0x80959580,
	0xaa141414,
	0x96960000,
	0xaaaa1414,
	0xa05050a0,
	0xa0a5a5a0,
	0x96000000,
	0x40804080,
	0xa9a8a9a8,
	0xaaaaaa44,
	0x2a4a5254,
};

/* The texel that is the anchor of the second of two subsets; of the first it is 0. */
static const uint8_t anchors_of_two[64] = {
	15,
	15,
	15,
	15,
	15,
	15,
	15,
	15,
	15,
	15,
	15,
	15,
	15,
	15,
	15,
	15,
	15,
	2,
	8,
	2,
	2,
	8,
	8,
	15,
	2,
	8,
	2,
	2,
	8,
	8,
	2,
	2,
	15,
	15,
	6,
	8,
	2,
	8,
	15,
	15,
	2,
	8,
	2,
	2,
	2,
	15,
	15,
	6,
	6,
	2,
	6,
	8,
	15,
	15,
	2,
	2,
	15,
	15,
	15,
	15,
	15,
	2,
	2,
	15,
};

/* Of the second and of the third of three. */
static const uint8_t anchors_of_three[2][64] = {
	{
		3,
		3,
		15,
		15,
		8,
		3,
		15,
		15,
		8,
		8,
		6,
		6,
		6,
		5,
		3,
		3,
		3,
		3,
		8,
		15,
		3,
		3,
		6,
		10,
		5,
		8,
		8,
		6,
		8,
		5,
		15,
		15,
		8,
		15,
		3,
		5,
		6,
		10,
		8,
		15,
		15,
		3,
		15,
		5,
		15,
		15,
		15,
		15,
		3,
		15,
		5,
		5,
		5,
		8,
		5,
		10,
		5,
		10,
		8,
		13,
		15,
		12,
		3,
		3,
	},
	{
		15,
		8,
		8,
		3,
		15,
		15,
		3,
		8,
		15,
		15,
		15,
		15,
		15,
		15,
		15,
		8,
		15,
		8,
		15,
		3,
		15,
		8,
		15,
		8,
		3,
		15,
		6,
		10,
		15,
		15,
		10,
		8,
		15,
		3,
		15,
		10,
		10,
		8,
		9,
		10,
		6,
		15,
		8,
		15,
		3,
		6,
		6,
		8,
		15,
		3,
		15,
		15,
		15,
		15,
		15,
		15,
		15,
		15,
		15,
		15,
		3,
		15,
		15,
		8,
	},
};

static const uint8_t weights[5][16] = {
	[2] = { 0, 21, 43, 64 },
	[3] = { 0, 9, 18, 27, 37, 46, 55, 64 },
	[4] = { 0, 4, 9, 13, 17, 21, 26, 30, 34, 38, 43, 47, 51, 55, 60, 64 },
};

/*
 * Bits of a block, from the first on
 */

struct bits {
	uint64_t words[2];
	unsigned int at;
};

static struct bits bits_of(const uint8_t *bytes)
{
	struct bits bits = {};

	for (unsigned int i = 0; i < 16; i++)
		bits.words[i / 8] |= (uint64_t)bytes[i] << 8 * (i % 8);
	return bits;
}

/* The next @n bits, at most 16; those behind the block are 0. */
static unsigned int take(struct bits *bits, unsigned int n)
{
	unsigned int at = bits->at, shift = at % 64;
	uint64_t word = at < 128 ? bits->words[at / 64] >> shift : 0;

	if (at < 64 && shift)
		word |= bits->words[1] << (64 - shift);
	bits->at += n;
	return (unsigned int)(word & ((1u << n) - 1));
}

static unsigned int subset_of(
	unsigned int n_subsets, unsigned int partition, unsigned int texel)
{
	if (n_subsets == 3)
		return partitions_of_three[partition] >> 2 * texel & 3;
	return n_subsets == 2 ? partitions_of_two[partition] >> texel & 1 : 0;
}

static bool is_anchor(unsigned int n_subsets, unsigned int partition, unsigned int texel)
{
	if (!texel)
		return true;
	if (n_subsets == 3)
		return texel == anchors_of_three[0][partition] ||
		       texel == anchors_of_three[1][partition];
	return n_subsets == 2 && texel == anchors_of_two[partition];
}

/* The index of a texel, after those of all texels before it; takes all of them. */
static unsigned int take_index(struct bits *bits, unsigned int n_subsets,
	unsigned int partition, unsigned int size, unsigned int texel)
{
	unsigned int index = 0, found = 0;

	for (unsigned int i = 0; i < TEXELS; i++) {
		index = take(bits, size - is_anchor(n_subsets, partition, i));
		found = i == texel ? index : found;
	}
	return found;
}

static int mix(int a, int b, unsigned int weight)
{
	return ((64 - (int)weight) * a + (int)weight * b + 32) >> 6;
}

/*
 * BC6H
 */

enum { COLOURS = 3, ENDS = 4 };

/* Ends of the lines of both subsets; a number is colour * ENDS + end. */
enum end { R0, R1, R2, R3, G0, G1, G2, G3, B0, B1, B2, B3 };

struct field {
	uint8_t end;
	uint8_t low; /* its lowest bit */
	uint8_t n;   /* bits */
};

/* clang-format off */
static const struct half_mode {
	uint8_t bits;		/* of the first end of a colour */
	uint8_t more[COLOURS];	/* of the others */
	bool is_relative;	/* these are differences from the first */
	uint8_t n_subsets;
	struct field fields[24];
} half_modes[14] = {
	{ 10, { 5, 5, 5 }, true, 2,
		{ { G2, 4, 1 }, { B2, 4, 1 }, { B3, 4, 1 }, { R0, 0, 10 }, { G0, 0, 10 },
			{ B0, 0, 10 }, { R1, 0, 5 }, { G3, 4, 1 }, { G2, 0, 4 },
			{ G1, 0, 5 }, { B3, 0, 1 }, { G3, 0, 4 }, { B1, 0, 5 },
			{ B3, 1, 1 }, { B2, 0, 4 }, { R2, 0, 5 }, { B3, 2, 1 },
			{ R3, 0, 5 }, { B3, 3, 1 } } },
	{ 7, { 6, 6, 6 }, true, 2,
		{ { G2, 5, 1 }, { G3, 4, 1 }, { G3, 5, 1 }, { R0, 0, 7 }, { B3, 0, 1 },
			{ B3, 1, 1 }, { B2, 4, 1 }, { G0, 0, 7 }, { B2, 5, 1 },
			{ B3, 2, 1 }, { G2, 4, 1 }, { B0, 0, 7 }, { B3, 3, 1 },
			{ B3, 5, 1 }, { B3, 4, 1 }, { R1, 0, 6 }, { G2, 0, 4 },
			{ G1, 0, 6 }, { G3, 0, 4 }, { B1, 0, 6 }, { B2, 0, 4 },
			{ R2, 0, 6 }, { R3, 0, 6 } } },
	{ 11, { 5, 4, 4 }, true, 2,
		{ { R0, 0, 10 }, { G0, 0, 10 }, { B0, 0, 10 }, { R1, 0, 5 },
			{ R0, 10, 1 }, { G2, 0, 4 }, { G1, 0, 4 }, { G0, 10, 1 },
			{ B3, 0, 1 }, { G3, 0, 4 }, { B1, 0, 4 }, { B0, 10, 1 },
			{ B3, 1, 1 }, { B2, 0, 4 }, { R2, 0, 5 }, { B3, 2, 1 },
			{ R3, 0, 5 }, { B3, 3, 1 } } },
	{ 11, { 4, 5, 4 }, true, 2,
		{ { R0, 0, 10 }, { G0, 0, 10 }, { B0, 0, 10 }, { R1, 0, 4 },
			{ R0, 10, 1 }, { G3, 4, 1 }, { G2, 0, 4 }, { G1, 0, 5 },
			{ G0, 10, 1 }, { G3, 0, 4 }, { B1, 0, 4 }, { B0, 10, 1 },
			{ B3, 1, 1 }, { B2, 0, 4 }, { R2, 0, 4 }, { B3, 0, 1 },
			{ B3, 2, 1 }, { R3, 0, 4 }, { G2, 4, 1 }, { B3, 3, 1 } } },
	{ 11, { 4, 4, 5 }, true, 2,
		{ { R0, 0, 10 }, { G0, 0, 10 }, { B0, 0, 10 }, { R1, 0, 4 },
			{ R0, 10, 1 }, { B2, 4, 1 }, { G2, 0, 4 }, { G1, 0, 4 },
			{ G0, 10, 1 }, { B3, 0, 1 }, { G3, 0, 4 }, { B1, 0, 5 },
			{ B0, 10, 1 }, { B2, 0, 4 }, { R2, 0, 4 }, { B3, 1, 1 },
			{ B3, 2, 1 }, { R3, 0, 4 }, { B3, 4, 1 }, { B3, 3, 1 } } },
	{ 9, { 5, 5, 5 }, true, 2,
		{ { R0, 0, 9 }, { B2, 4, 1 }, { G0, 0, 9 }, { G2, 4, 1 }, { B0, 0, 9 },
			{ B3, 4, 1 }, { R1, 0, 5 }, { G3, 4, 1 }, { G2, 0, 4 },
			{ G1, 0, 5 }, { B3, 0, 1 }, { G3, 0, 4 }, { B1, 0, 5 },
			{ B3, 1, 1 }, { B2, 0, 4 }, { R2, 0, 5 }, { B3, 2, 1 },
			{ R3, 0, 5 }, { B3, 3, 1 } } },
	{ 8, { 6, 5, 5 }, true, 2,
		{ { R0, 0, 8 }, { G3, 4, 1 }, { B2, 4, 1 }, { G0, 0, 8 }, { B3, 2, 1 },
			{ G2, 4, 1 }, { B0, 0, 8 }, { B3, 3, 1 }, { B3, 4, 1 },
			{ R1, 0, 6 }, { G2, 0, 4 }, { G1, 0, 5 }, { B3, 0, 1 },
			{ G3, 0, 4 }, { B1, 0, 5 }, { B3, 1, 1 }, { B2, 0, 4 },
			{ R2, 0, 6 }, { R3, 0, 6 } } },
	{ 8, { 5, 6, 5 }, true, 2,
		{ { R0, 0, 8 }, { B3, 0, 1 }, { B2, 4, 1 }, { G0, 0, 8 }, { G2, 5, 1 },
			{ G2, 4, 1 }, { B0, 0, 8 }, { G3, 5, 1 }, { B3, 4, 1 },
			{ R1, 0, 5 }, { G3, 4, 1 }, { G2, 0, 4 }, { G1, 0, 6 },
			{ G3, 0, 4 }, { B1, 0, 5 }, { B3, 1, 1 }, { B2, 0, 4 },
			{ R2, 0, 5 }, { B3, 2, 1 }, { R3, 0, 5 }, { B3, 3, 1 } } },
	{ 8, { 5, 5, 6 }, true, 2,
		{ { R0, 0, 8 }, { B3, 1, 1 }, { B2, 4, 1 }, { G0, 0, 8 }, { B2, 5, 1 },
			{ G2, 4, 1 }, { B0, 0, 8 }, { B3, 5, 1 }, { B3, 4, 1 },
			{ R1, 0, 5 }, { G3, 4, 1 }, { G2, 0, 4 }, { G1, 0, 5 },
			{ B3, 0, 1 }, { G3, 0, 4 }, { B1, 0, 6 }, { B2, 0, 4 },
			{ R2, 0, 5 }, { B3, 2, 1 }, { R3, 0, 5 }, { B3, 3, 1 } } },
	{ 6, { 6, 6, 6 }, false, 2,
		{ { R0, 0, 6 }, { G3, 4, 1 }, { B3, 0, 1 }, { B3, 1, 1 }, { B2, 4, 1 },
			{ G0, 0, 6 }, { G2, 5, 1 }, { B2, 5, 1 }, { B3, 2, 1 },
			{ G2, 4, 1 }, { B0, 0, 6 }, { G3, 5, 1 }, { B3, 3, 1 },
			{ B3, 5, 1 }, { B3, 4, 1 }, { R1, 0, 6 }, { G2, 0, 4 },
			{ G1, 0, 6 }, { G3, 0, 4 }, { B1, 0, 6 }, { B2, 0, 4 },
			{ R2, 0, 6 }, { R3, 0, 6 } } },
	{ 10, { 10, 10, 10 }, false, 1,
		{ { R0, 0, 10 }, { G0, 0, 10 }, { B0, 0, 10 }, { R1, 0, 10 },
			{ G1, 0, 10 }, { B1, 0, 10 } } },
	{ 11, { 9, 9, 9 }, true, 1,
		{ { R0, 0, 10 }, { G0, 0, 10 }, { B0, 0, 10 }, { R1, 0, 9 },
			{ R0, 10, 1 }, { G1, 0, 9 }, { G0, 10, 1 }, { B1, 0, 9 },
			{ B0, 10, 1 } } },
	{ 12, { 8, 8, 8 }, true, 1,
		{ { R0, 0, 10 }, { G0, 0, 10 }, { B0, 0, 10 }, { R1, 0, 8 },
			{ R0, 11, 1 }, { R0, 10, 1 }, { G1, 0, 8 }, { G0, 11, 1 },
			{ G0, 10, 1 }, { B1, 0, 8 }, { B0, 11, 1 }, { B0, 10, 1 } } },
	{ 16, { 4, 4, 4 }, true, 1,
		{ { R0, 0, 10 }, { G0, 0, 10 }, { B0, 0, 10 }, { R1, 0, 4 },
			{ R0, 15, 1 }, { R0, 14, 1 }, { R0, 13, 1 }, { R0, 12, 1 },
			{ R0, 11, 1 }, { R0, 10, 1 }, { G1, 0, 4 }, { G0, 15, 1 },
			{ G0, 14, 1 }, { G0, 13, 1 }, { G0, 12, 1 }, { G0, 11, 1 },
			{ G0, 10, 1 }, { B1, 0, 4 }, { B0, 15, 1 }, { B0, 14, 1 },
			{ B0, 13, 1 }, { B0, 12, 1 }, { B0, 11, 1 }, { B0, 10, 1 } } },
};
/* clang-format on */

/* Return: NULL of the modes that are reserved. */
static const struct half_mode *take_half_mode(struct bits *bits)
{
	static const uint8_t longer[32] = { [2] = 3,
		[6] = 4,
		[10] = 5,
		[14] = 6,
		[18] = 7,
		[22] = 8,
		[26] = 9,
		[30] = 10,
		[3] = 11,
		[7] = 12,
		[11] = 13,
		[15] = 14 };
	unsigned int mode = take(bits, 2);

	if (mode < 2)
		return &half_modes[mode];
	mode |= take(bits, 3) << 2;
	return longer[mode] ? &half_modes[longer[mode] - 1] : NULL;
}

static int extend(int x, unsigned int bits)
{
	return (int)((unsigned int)x << (32 - bits)) >> (32 - bits);
}

/* The ends with all their bits, as the mode and the sign have them. */
static void take_ends(
	struct bits *bits, const struct half_mode *mode, bool is_signed, int ends[12])
{
	const unsigned int n_ends = 2u * mode->n_subsets, mask = (1u << mode->bits) - 1;

	for (unsigned int i = 0; i < 24 && mode->fields[i].n; i++) {
		const struct field *field = &mode->fields[i];

		ends[field->end] |= (int)(take(bits, field->n) << field->low);
	}
	for (unsigned int c = 0; c < COLOURS; c++) {
		int *end = &ends[ENDS * c];

		for (unsigned int k = 1; mode->is_relative && k < n_ends; k++)
			end[k] = (int)((unsigned int)(end[0] +
						      extend(end[k], mode->more[c])) &
				       mask);
		for (unsigned int k = 0; is_signed && k < n_ends; k++)
			end[k] = extend(end[k], mode->bits);
	}
}

/* To 16 bits, or 15 and a sign. */
static int widen(int x, unsigned int bits, bool is_signed)
{
	int size = x < 0 ? -x : x, most;

	if (bits >= (is_signed ? 16 : 15))
		return x;
	most = (1 << (is_signed ? bits - 1 : bits)) - 1;
	if (size >= most)
		size = is_signed ? 0x7fff : 0xffff;
	else if (size)
		size = is_signed ? ((size << 15) + 0x4000) >> (bits - 1)
				 : ((size << 16) + 0x8000) >> bits;
	return x < 0 ? -size : size;
}

/* The bits of a float of 16 bits: at most the largest finite one. */
static uint16_t half_bits(int x, bool is_signed)
{
	if (!is_signed)
		return (uint16_t)((unsigned int)x * 31 >> 6);
	return (uint16_t)(x < 0 ? 0x8000 | (unsigned int)-x * 31 >> 5
				: (unsigned int)x * 31 >> 5);
}

void texel_block_read_bc6h(
	const uint8_t *bytes, unsigned int number, bool is_signed, float to[4])
{
	struct bits bits = bits_of(bytes);
	const struct half_mode *mode = take_half_mode(&bits);
	unsigned int partition = 0, size, weight, subset;
	int ends[12] = {};

	if (!mode)
		return;
	take_ends(&bits, mode, is_signed, ends);
	if (mode->n_subsets == 2)
		partition = take(&bits, 5);
	size = mode->n_subsets == 2 ? 3 : 4;
	subset = subset_of(mode->n_subsets, partition, number);
	weight = weights[size]
			[take_index(&bits, mode->n_subsets, partition, size, number)];
	for (unsigned int c = 0; c < COLOURS; c++) {
		const int *end = &ends[ENDS * c + 2 * subset];
		int a = widen(end[0], mode->bits, is_signed);
		int b = widen(end[1], mode->bits, is_signed);

		to[c] = half_to_f32(half_bits(mix(a, b, weight), is_signed));
	}
}

/*
 * BC7
 */

static const struct byte_mode {
	uint8_t n_subsets;
	uint8_t partition; /* bits, as all that follow */
	uint8_t rotation;
	uint8_t selection;
	uint8_t colour;
	uint8_t alpha;
	uint8_t shared[2]; /* lowest bits: of each end, of each subset */
	uint8_t index;
	uint8_t second; /* index of alpha */
} byte_modes[8] = {
	{ 3, 4, 0, 0, 4, 0, { 1, 0 }, 3, 0 },
	{ 2, 6, 0, 0, 6, 0, { 0, 1 }, 3, 0 },
	{ 3, 6, 0, 0, 5, 0, { 0, 0 }, 2, 0 },
	{ 2, 6, 0, 0, 7, 0, { 1, 0 }, 2, 0 },
	{ 1, 0, 2, 1, 5, 6, { 0, 0 }, 2, 3 },
	{ 1, 0, 2, 0, 7, 8, { 0, 0 }, 2, 2 },
	{ 1, 0, 0, 0, 7, 7, { 1, 0 }, 4, 0 },
	{ 2, 6, 0, 0, 5, 5, { 1, 0 }, 2, 0 },
};

/* A number of @n bits as one of 8: its upper bits are repeated below. */
static unsigned int repeat(unsigned int x, unsigned int n)
{
	x <<= 8 - n;
	return x | x >> n;
}

/* Ends of lines, two for each subset, with red, green, blue and alpha. */
static void take_byte_ends(
	struct bits *bits, const struct byte_mode *mode, unsigned int ends[6][4])
{
	const unsigned int n = 2u * mode->n_subsets;
	unsigned int shared, low = mode->shared[0] | mode->shared[1];

	for (unsigned int c = 0; c < 4; c++)
		for (unsigned int i = 0; i < n; i++)
			ends[i][c] = take(bits, c < 3 ? mode->colour : mode->alpha);
	for (unsigned int i = 0; low && i < n; i += 1 + mode->shared[1]) {
		shared = take(bits, 1);
		for (unsigned int k = 0; k < 4; k++) {
			ends[i][k] = ends[i][k] << 1 | shared;
			if (mode->shared[1])
				ends[i + 1][k] = ends[i + 1][k] << 1 | shared;
		}
	}
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int c = 0; c < 3; c++)
			ends[i][c] = repeat(ends[i][c], mode->colour + low);
		ends[i][3] = mode->alpha ? repeat(ends[i][3], mode->alpha + low) : 255;
	}
}

void texel_block_read_bc7(const uint8_t *bytes, unsigned int number, float to[4])
{
	struct bits bits = bits_of(bytes);
	unsigned int partition, rotation, selection, indices[2], sizes[2], subset;
	unsigned int ends[6][4];
	const struct byte_mode *mode;

	memset(to, 0, 4 * sizeof(*to));
	if (!bytes[0])
		return; /* a mode that is reserved */
	mode = &byte_modes[__builtin_ctz(bytes[0])];
	take(&bits, (unsigned int)__builtin_ctz(bytes[0]) + 1);
	partition = take(&bits, mode->partition);
	rotation = take(&bits, mode->rotation);
	selection = take(&bits, mode->selection);
	take_byte_ends(&bits, mode, ends);
	subset = subset_of(mode->n_subsets, partition, number);
	sizes[0] = sizes[1] = mode->index;
	indices[0] = indices[1] =
		take_index(&bits, mode->n_subsets, partition, mode->index, number);
	if (mode->second) {
		sizes[1] = mode->second;
		indices[1] = take_index(&bits, 1, 0, mode->second, number);
	}
	for (unsigned int c = 0; c < 4; c++) {
		/* Colours have the first index and alpha the second, or the reverse. */
		unsigned int k = (c == 3) ^ selection;
		int a = (int)ends[2 * subset][c], b = (int)ends[2 * subset + 1][c];

		to[c] = (float)mix(a, b, weights[sizes[k]][indices[k]]) / 255.0f;
	}
	if (rotation) {
		float alpha = to[3];

		to[3] = to[rotation - 1];
		to[rotation - 1] = alpha;
	}
}
