/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Compressed blocks: 4 x 4 texels in 8 or 16 bytes, in the formats BC1 to BC7
 */

#include <stdbool.h>
#include <stdint.h>

#define TEXEL_BLOCK_SIDE 4u

enum texel_block {
	TEXEL_BLOCK_NONE,
	TEXEL_BLOCK_BC1,
	TEXEL_BLOCK_BC2,
	TEXEL_BLOCK_BC3,
	TEXEL_BLOCK_BC4_UNSIGNED,
	TEXEL_BLOCK_BC4_SIGNED,
	TEXEL_BLOCK_BC5_UNSIGNED,
	TEXEL_BLOCK_BC5_SIGNED,
	TEXEL_BLOCK_BC6H_UNSIGNED,
	TEXEL_BLOCK_BC6H_SIGNED,
	TEXEL_BLOCK_BC7,
	_TEXEL_BLOCK_N,
};

/* Return: bytes of a block; 0 of NONE. */
uint32_t texel_block_size(unsigned int block);

/*
 * texel_block_read() - decode one texel
 * @bytes: of the block
 * @number: of the texel, row by row
 * @to: red, green, blue and alpha; those that the format lacks are 0, 0, 0 and 1
 */
void texel_block_read(
	unsigned int block, const uint8_t *bytes, unsigned int number, float to[4]);

/* texel-subset.c: the formats whose texels belong to subsets with own colours. */
void texel_block_read_bc6h(
	const uint8_t *bytes, unsigned int number, bool is_signed, float to[4]);
void texel_block_read_bc7(const uint8_t *bytes, unsigned int number, float to[4]);
