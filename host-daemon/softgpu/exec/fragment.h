/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fragments: how a warp's registers hold a matrix
 *
 * A register of 32 bits holds one or several adjacent elements, "e" below. A matrix is
 * cut into tiles of 8 rows (A) or 8 columns (B) by 4 e elements along k; a tile is one
 * register of each lane. Lane 4 g + t has the elements t e to t e + e - 1 of row or
 * column g. Tiles are numbered along the rows first in A, along k first in B. C and D are
 * cut into tiles of 8 by 8, numbered along the rows first, of which a lane has two
 * adjacent elements: columns 2 t and 2 t + 1 of row g. These are the fragments that PTX
 * defines for mma, and those of wmma, which it leaves open, follow the same rule.
 *
 * An exception are the fragments of m8n8k4 of f16: see product.c.
 */

#include <stdbool.h>
#include <stdint.h>

#include "exec/ops.h"

#define MATRIX_K_MAX 128 /* but of bits */

/* Returns: elements in a register. */
static inline uint32_t matrix_elements(unsigned int type)
{
	switch (type) {
	case MATRIX_F16:
	case MATRIX_BF16:
		return 2;
	case MATRIX_E4M3:
	case MATRIX_E5M2:
	case MATRIX_U8:
	case MATRIX_S8:
		return 4;
	case MATRIX_U4:
	case MATRIX_S4:
		return 8;
	case MATRIX_B1:
		return 32;
	default:
		return 1;
	}
}

/* Returns: the size of an element in bits. */
static inline uint32_t matrix_bits(unsigned int type)
{
	return type == MATRIX_F64 ? 64 : 32 / matrix_elements(type);
}

/* Returns: registers of a fragment; @m, @n and @k in elements. */
static inline uint32_t matrix_registers(
	unsigned int role, unsigned int type, uint32_t m, uint32_t n, uint32_t k)
{
	uint32_t e = matrix_elements(type);

	if (role == MATRIX_ROLE_C)
		return m * n / 32 / e;
	return (role == MATRIX_ROLE_A ? m : n) / 8 * (k / (4 * e));
}

/* The lines of a matrix in memory that MATRIX_LOAD and MATRIX_STORE access: its rows or
 * its columns, of @sizep bytes. */
static inline void matrix_lines(uint64_t imm, uint32_t *np, uint32_t *sizep)
{
	uint64_t shape = imm >> MATRIX_SHAPE;
	uint32_t m = 8 * (shape >> MATRIX_M & 7), n = 8 * (shape >> MATRIX_N & 7);
	uint32_t k = shape >> MATRIX_K & 1023, role = imm >> MATRIX_ROLE & 3;
	uint32_t rows = role == MATRIX_ROLE_B ? k : m;
	uint32_t columns = role == MATRIX_ROLE_A ? k : n;
	bool by_columns = imm >> MATRIX_COL & 1;

	*np = by_columns ? columns : rows;
	*sizep = (by_columns ? rows : columns) * matrix_bits(imm >> MATRIX_TYPE & 15) / 8;
}
