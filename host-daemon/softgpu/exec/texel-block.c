/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed blocks: the formats with one line of colours for all texels
 */

#include <string.h>

#include "exec/texel-block.h"

uint32_t texel_block_size(unsigned int block)
{
	switch (block) {
	case TEXEL_BLOCK_BC1:
	case TEXEL_BLOCK_BC4_UNSIGNED:
	case TEXEL_BLOCK_BC4_SIGNED:
		return 8;
	default:
		return block > TEXEL_BLOCK_NONE && block < _TEXEL_BLOCK_N ? 16 : 0;
	}
}

static uint64_t load(const uint8_t *bytes)
{
	uint64_t word = 0;

	for (unsigned int i = 0; i < 8; i++)
		word |= (uint64_t)bytes[i] << 8 * i;
	return word;
}

static void unpack_565(unsigned int colour, float to[3])
{
	to[0] = (float)(colour >> 11 & 31) / 31.0f;
	to[1] = (float)(colour >> 5 & 63) / 63.0f;
	to[2] = (float)(colour & 31) / 31.0f;
}

/*
 * Two colours of 16 bits and two bits for each texel. The order of the colours says
 * whether there are two between them, or one and a transparent black.
 */
static void read_colour(
	const uint8_t *bytes, unsigned int number, bool is_opaque, float to[4])
{
	uint64_t word = load(bytes);
	unsigned int first = word & 0xffff, second = word >> 16 & 0xffff;
	unsigned int index = word >> (32 + 2 * number) & 3;
	float a[3], b[3], weight;

	to[3] = 1.0f;
	unpack_565(first, a);
	unpack_565(second, b);
	if (is_opaque || first > second) {
		static const float weights[4] = { 0.0f, 1.0f, 1.0f / 3.0f, 2.0f / 3.0f };

		weight = weights[index];
	} else if (index == 3) {
		memset(to, 0, 4 * sizeof(*to));
		return;
	} else {
		weight = index == 2 ? 0.5f : (float)index;
	}
	for (unsigned int i = 0; i < 3; i++)
		to[i] = (1.0f - weight) * a[i] + weight * b[i];
}

/*
 * Two numbers of 8 bits and three bits for each texel. The order of the numbers says
 * whether there are six between them, or four and the ends of the range.
 */
static float read_number(const uint8_t *bytes, unsigned int number, bool is_signed)
{
	uint64_t word = load(bytes);
	unsigned int index = word >> (16 + 3 * number) & 7, steps;
	int first = bytes[0], second = bytes[1];
	float most = 255.0f, a, b;

	if (is_signed) {
		first = (int8_t)bytes[0];
		second = (int8_t)bytes[1];
		most = 127.0f;
	}
	steps = first > second ? 7 : 5;
	/* -128 is -127. */
	a = (float)(first < -127 ? -127 : first) / most;
	b = (float)(second < -127 ? -127 : second) / most;
	if (index < 2)
		return index ? b : a;
	if (index - 1 >= steps)
		return index == 7 ? 1.0f : is_signed ? -1.0f : 0.0f;
	return a + (b - a) * (float)(index - 1) / (float)steps;
}

void texel_block_read(
	unsigned int block, const uint8_t *bytes, unsigned int number, float to[4])
{
	to[0] = to[1] = to[2] = 0.0f;
	to[3] = 1.0f;
	switch (block) {
	case TEXEL_BLOCK_BC1:
		read_colour(bytes, number, false, to);
		break;
	case TEXEL_BLOCK_BC2:
		read_colour(bytes + 8, number, true, to);
		to[3] = (float)(load(bytes) >> 4 * number & 15) / 15.0f;
		break;
	case TEXEL_BLOCK_BC3:
		read_colour(bytes + 8, number, true, to);
		to[3] = read_number(bytes, number, false);
		break;
	case TEXEL_BLOCK_BC4_UNSIGNED:
	case TEXEL_BLOCK_BC4_SIGNED:
		to[0] = read_number(bytes, number, block == TEXEL_BLOCK_BC4_SIGNED);
		break;
	case TEXEL_BLOCK_BC5_UNSIGNED:
	case TEXEL_BLOCK_BC5_SIGNED:
		to[0] = read_number(bytes, number, block == TEXEL_BLOCK_BC5_SIGNED);
		to[1] = read_number(bytes + 8, number, block == TEXEL_BLOCK_BC5_SIGNED);
		break;
	case TEXEL_BLOCK_BC6H_UNSIGNED:
	case TEXEL_BLOCK_BC6H_SIGNED:
		texel_block_read_bc6h(
			bytes, number, block == TEXEL_BLOCK_BC6H_SIGNED, to);
		break;
	case TEXEL_BLOCK_BC7:
		texel_block_read_bc7(bytes, number, to);
		break;
	default:
		break;
	}
}
