/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: fragments of matrices, from and to memory and between lanes
 *
 * A matrix in memory is a list of lines, its rows or its columns, at a distance that the
 * instruction has. Each line is checked and copied as a whole. PTX wants it aligned to
 * the size of a lane's fragment, CUDA to 16 bytes: the less strict of these counts.
 */

#include "exec/fragment.h"
#include "exec/memory.h"

#define LINE_ALIGN_MAX 16u
#define LINES_MAX 32
#define LINE_SIZE_MAX 128 /* 32 elements of 32 bits */
#define ROW_SIZE 16	  /* of a matrix of 8 by 8 elements of 16 bits */

HANDLER(MATRIX_PUT)
{
	uint32_t(*to)[LANES] = w->block->matrix + ip->off;

	memcpy(to[0], REG(uint32_t, ip->a), SLOT_BYTES);
	memcpy(to[1], REG(uint32_t, ip->b), SLOT_BYTES);
	memcpy(to[2], REG(uint32_t, ip->c), SLOT_BYTES);
	memcpy(to[3], REG(uint32_t, ip->e), SLOT_BYTES);
	memcpy(to[4], REG(uint32_t, ip->f), SLOT_BYTES);
	return ip + 1;
}

HANDLER(MATRIX_PUT_64)
{
	uint64_t(*to)[LANES] = (uint64_t(*)[LANES])w->block->matrix + ip->off;

	memcpy(to[0], REG(uint64_t, ip->a), sizeof(to[0]));
	memcpy(to[1], REG(uint64_t, ip->b), sizeof(to[0]));
	memcpy(to[2], REG(uint64_t, ip->c), sizeof(to[0]));
	memcpy(to[3], REG(uint64_t, ip->e), sizeof(to[0]));
	memcpy(to[4], REG(uint64_t, ip->f), sizeof(to[0]));
	return ip + 1;
}

/* An instruction that found a part of the warp has ended the kernel: all or none. */
#define HANDLER_TAKE(_name, _R)                                                          \
	HANDLER(_name)                                                                   \
	{                                                                                \
		const _R(*from)[LANES] = (const _R(*)[LANES])w->block->matrix + ip->imm; \
                                                                                         \
		if (!mask)                                                               \
			return ip + 1;                                                   \
		memcpy(REG(_R, ip->d), from[0], sizeof(from[0]));                        \
		memcpy(REG(_R, ip->a), from[1], sizeof(from[0]));                        \
		memcpy(REG(_R, ip->b), from[2], sizeof(from[0]));                        \
		memcpy(REG(_R, ip->c), from[3], sizeof(from[0]));                        \
		return ip + 1;                                                           \
	}

HANDLER_TAKE(MATRIX_TAKE, uint32_t)
HANDLER_TAKE(MATRIX_TAKE_64, uint64_t)

/*
 * 8 by 8 elements of 16 bits
 */

static void transpose(const uint16_t from[64], uint16_t to[64])
{
	for (int row = 0; row < 8; row++)
		for (int column = 0; column < 8; column++)
			to[column * 8 + row] = from[row * 8 + column];
}

/* Returns: where a lane's row is, or NULL with *codep set: only shared memory has them.
 */
static void *find_row(
	struct warp *w, const struct insn *ip, uint32_t lane, uint64_t *atp, int *codep)
{
	bool is_generic = !(ip->reserved >> ACCESS_SPACE_SHIFT & 3);

	*atp = generic_address(ip, REG(uint64_t, ip->a)[lane]);
	if (*atp - SOFTGPU_GENERIC_SHARED >= SOFTGPU_GENERIC_RANGE) {
		*codep = is_generic ? SOFTGPU_ERROR_INVALID_ADDRESS_SPACE
				    : SOFTGPU_ERROR_ILLEGAL_ADDRESS;
		return NULL;
	}
	return warp_resolve(w, lane, *atp, ROW_SIZE, ROW_SIZE - 1,
		SOFTGPU_READ | SOFTGPU_WRITE, codep);
}

/* Lanes 8 i to 8 i + 7 have the addresses of the rows of matrix i. */
HANDLER(LDMATRIX)
{
	uint32_t *d[4] = { REG(uint32_t, ip->d), REG(uint32_t, ip->b),
		REG(uint32_t, ip->e), REG(uint32_t, ip->f) };
	uint32_t n = ip->reserved & MATRIX_COUNT, words[4][LANES];
	uint64_t at;
	int code;

	WHOLE_WARP;
	for (uint32_t row = 0; row < 8 * n; row++) {
		const void *from = find_row(w, ip, row, &at, &code);

		if (!from)
			return warp_fault(w, ip, code, row, at, fault_sentence(code));
		memcpy(&words[row / 8][row % 8 * 4], from, ROW_SIZE);
	}
	for (uint32_t i = 0; i < n; i++)
		if (ip->reserved & MATRIX_TRANS)
			transpose((uint16_t *)words[i], (uint16_t *)d[i]);
		else
			memcpy(d[i], words[i], sizeof(words[i]));
	return ip + 1;
}

HANDLER(STMATRIX)
{
	const uint32_t *s[4] = { REG(uint32_t, ip->b), REG(uint32_t, ip->c),
		REG(uint32_t, ip->e), REG(uint32_t, ip->f) };
	uint32_t n = ip->reserved & MATRIX_COUNT, words[LANES];
	void *to[LANES];
	uint64_t at;
	int code;

	WHOLE_WARP;
	for (uint32_t row = 0; row < 8 * n; row++) {
		to[row] = find_row(w, ip, row, &at, &code);
		if (!to[row])
			return warp_fault(w, ip, code, row, at, fault_sentence(code));
	}
	for (uint32_t i = 0; i < n; i++) {
		memcpy(words, s[i], sizeof(words));
		if (ip->reserved & MATRIX_TRANS)
			transpose((const uint16_t *)s[i], (uint16_t *)words);
		for (uint32_t row = 0; row < 8; row++)
			memcpy(to[8 * i + row], &words[row * 4], ROW_SIZE);
	}
	return ip + 1;
}

/*
 * Bytes, in rows of 16 elements. A matrix of 8 rows is distributed as one of 8 by 8
 * elements of 16 bits is. One of 16 is transposed: lanes 4 j to 4 j + 3 have column j and
 * column j + 8, two rows after the other of both in a register, and the next two in the
 * second one. The one that is stored is transposed, too, and has half of that.
 */

#define BYTE_ROWS_MAX 32u

/* Gives each element of a row a byte, in whose lower bits it is. */
static void unpack_row(uint8_t row[ROW_SIZE], enum matrix_packing packing)
{
	uint32_t bits = packing == MATRIX_PACKING_6 ? 6 : 4;
	uint8_t packed[ROW_SIZE + 1] = { 0 };

	if (packing == MATRIX_PACKING_NONE)
		return;
	memcpy(packed, row, ROW_SIZE);
	for (uint32_t i = 0; i < ROW_SIZE; i++) {
		uint32_t at = i * bits;
		uint32_t pair = packed[at / 8] | (uint32_t)packed[at / 8 + 1] << 8;

		row[i] = (uint8_t)(pair >> at % 8 & ((1u << bits) - 1));
	}
}

HANDLER(LDMATRIX_BYTES)
{
	uint32_t *d[4] = { REG(uint32_t, ip->d), REG(uint32_t, ip->b),
		REG(uint32_t, ip->e), REG(uint32_t, ip->f) };
	enum matrix_packing packing =
		(enum matrix_packing)(ip->reserved >> MATRIX_PACKING_SHIFT & 3);
	bool is_transposed = ip->reserved & MATRIX_TRANS;
	uint32_t n = ip->reserved & MATRIX_COUNT;
	uint8_t rows[BYTE_ROWS_MAX][ROW_SIZE];
	uint64_t at;
	int code;

	WHOLE_WARP;
	for (uint32_t row = 0; row < (is_transposed ? 16 : 8) * n; row++) {
		const void *from = find_row(w, ip, row, &at, &code);

		if (!from)
			return warp_fault(w, ip, code, row, at, fault_sentence(code));
		memcpy(rows[row], from, ROW_SIZE);
		unpack_row(rows[row], packing);
	}
	for (uint32_t i = 0; i < n && !is_transposed; i++)
		memcpy(d[i], rows[8 * i], SLOT_BYTES);
	for (uint32_t i = 0; i < 2 * n && is_transposed; i++)
		for (uint32_t lane = 0; lane < LANES; lane++) {
			uint32_t row = i / 2 * 16 + lane % 4 * 4 + i % 2 * 2;
			uint32_t column = lane / 4;

			d[i][lane] = rows[row][column] |
				     (uint32_t)rows[row + 1][column] << 8 |
				     (uint32_t)rows[row][column + 8] << 16 |
				     (uint32_t)rows[row + 1][column + 8] << 24;
		}
	return ip + 1;
}

HANDLER(STMATRIX_BYTES)
{
	const uint32_t *s[4] = { REG(uint32_t, ip->b), REG(uint32_t, ip->c),
		REG(uint32_t, ip->e), REG(uint32_t, ip->f) };
	uint32_t n = ip->reserved & MATRIX_COUNT;
	uint8_t *to[LANES];
	uint64_t at;
	int code;

	WHOLE_WARP;
	for (uint32_t row = 0; row < 8 * n; row++) {
		to[row] = find_row(w, ip, row, &at, &code);
		if (!to[row])
			return warp_fault(w, ip, code, row, at, fault_sentence(code));
	}
	for (uint32_t row = 0; row < 8 * n; row++)
		for (uint32_t column = 0; column < ROW_SIZE; column++) {
			uint32_t lane = column % 8 * 4 + row % 8 / 2;
			uint32_t byte = row % 2 + column / 8 * 2;

			to[row][column] = (uint8_t)(s[row / 8][lane] >> 8 * byte);
		}
	return ip + 1;
}

HANDLER(MOVMATRIX)
{
	uint32_t words[LANES];

	WHOLE_WARP;
	memcpy(words, REG(uint32_t, ip->a), sizeof(words));
	transpose((const uint16_t *)words, REG(uint16_t, ip->d));
	return ip + 1;
}

/*
 * wmma
 */

/* A matrix in memory and its fragment. */
struct access {
	uint32_t n_lines, line_size; /* bytes */
	uint32_t align;		     /* bytes */
	uint32_t bits;		     /* of an element */
	uint32_t n_registers, n_tiles;
	uint32_t e;	 /* adjacent elements of a lane in a tile */
	uint32_t role;	 /* enum matrix_role */
	uint32_t tiles;	 /* in the direction in which they are numbered first */
	bool is_along;	 /* lines are in the direction in which e elements are adjacent */
	bool has_copies; /* the fragment has 8 registers, whatever the shape: of f16 */
	uint8_t lines[LINES_MAX][LINE_SIZE_MAX] __attribute__((aligned(16)));
};

static void describe(const struct insn *ip, struct access *a)
{
	uint64_t imm = ip->imm >> MATRIX_SHAPE;
	uint32_t m = 8 * (imm >> MATRIX_M & 7), n = 8 * (imm >> MATRIX_N & 7);
	uint32_t k = imm >> MATRIX_K & 1023, type = ip->imm >> MATRIX_TYPE & 15;
	uint32_t fragment;
	bool by_columns = ip->imm >> MATRIX_COL & 1;

	a->role = ip->imm >> MATRIX_ROLE & 3;
	a->bits = matrix_bits(type);
	a->n_registers = matrix_registers(a->role, type, m, n, k);
	a->has_copies = type == MATRIX_F16 && a->role != MATRIX_ROLE_C;
	fragment = a->n_registers * (a->bits == 64 ? 8 : 4);
	a->align = a->has_copies || fragment > LINE_ALIGN_MAX ? LINE_ALIGN_MAX : fragment;
	a->e = a->role == MATRIX_ROLE_C ? 2 : matrix_elements(type);
	a->n_tiles = a->role == MATRIX_ROLE_C ? m * n / 64 : a->n_registers;
	a->tiles = a->role == MATRIX_ROLE_B ? k / (4 * a->e) : m / 8;
	a->is_along = by_columns == (a->role == MATRIX_ROLE_B);
	matrix_lines(ip->imm, &a->n_lines, &a->line_size);
}

/* Where tile @r begins, across its adjacent elements and along them. */
static void find_tile(
	const struct access *a, uint32_t r, uint32_t *acrossp, uint32_t *alongp)
{
	uint32_t first = r % a->tiles, second = r / a->tiles;

	*acrossp = 8 * (a->role == MATRIX_ROLE_B ? second : first);
	*alongp = 4 * a->e * (a->role == MATRIX_ROLE_B ? first : second);
}

/*
 * Between the lines and the registers, by elements of type @_T. Adjacent elements of a
 * lane are in one register if they fit (@is_packed), else in one register each.
 */
#define MOVE_ELEMENTS(_T)                                                                \
	SCALAR void move_##_T(struct access *a, void *rows, bool is_along,               \
		bool is_packed, bool is_store)                                           \
	{                                                                                \
		uint32_t e = a->e, across, along;                                        \
		_T *registers = rows;                                                    \
                                                                                         \
		for (uint32_t r = 0; r < a->n_tiles; r++) {                              \
			find_tile(a, r, &across, &along);                                \
			for (uint32_t lane = 0; lane < LANES; lane++)                    \
				for (uint32_t i = 0; i < e; i++) {                       \
					uint32_t y = across + lane / 4;                  \
					uint32_t x = along + lane % 4 * e + i;           \
					_T *at = is_packed ? &registers[(r * LANES +     \
										lane) *  \
										e +      \
									i]               \
							   : &registers[(r * e + i) *    \
										LANES +  \
									lane];           \
					_T *element = is_along ? (_T *)a->lines[y] + x   \
							       : (_T *)a->lines[x] + y;  \
                                                                                         \
					if (is_store)                                    \
						*element = *at;                          \
					else                                             \
						*at = *element;                          \
				}                                                        \
		}                                                                        \
	}                                                                                \
                                                                                         \
	static void fragment_##_T(struct access *a, void *rows, bool is_store)           \
	{                                                                                \
		bool is_packed = a->e * sizeof(_T) <= sizeof(uint32_t);                  \
                                                                                         \
		if (is_store && a->is_along)                                             \
			move_##_T(a, rows, true, is_packed, true);                       \
		else if (is_store)                                                       \
			move_##_T(a, rows, false, is_packed, true);                      \
		else if (a->is_along)                                                    \
			move_##_T(a, rows, true, is_packed, false);                      \
		else                                                                     \
			move_##_T(a, rows, false, is_packed, false);                     \
	}

MOVE_ELEMENTS(u8)
MOVE_ELEMENTS(u16)
MOVE_ELEMENTS(u32)
MOVE_ELEMENTS(u64)

/* A register is what lies in the line, also of elements of less than a byte. */
static void load_words(const struct access *a, uint32_t (*rows)[LANES])
{
	uint32_t across, along;

	for (uint32_t r = 0; r < a->n_tiles; r++) {
		find_tile(a, r, &across, &along);
		along = along * a->bits / 32;
		for (uint32_t lane = 0; lane < LANES; lane++)
			rows[r][lane] = ((const uint32_t
					*)a->lines[across + lane / 4])[along + lane % 4];
	}
}

static void move_fragment(struct access *a, uint32_t (*rows)[LANES], bool is_store)
{
	if (a->role != MATRIX_ROLE_C && a->is_along && a->bits <= 32) {
		load_words(a, rows);
		return;
	}
	switch (a->bits) {
	case 8:
		fragment_u8(a, rows, is_store);
		break;
	case 16:
		fragment_u16(a, rows, is_store);
		break;
	case 32:
		fragment_u32(a, rows, is_store);
		break;
	case 64:
		fragment_u64(a, rows, is_store);
		break;
	}
}

/* The address and the stride are the same in all lanes, or PTX does not define it. */
static bool is_uniform(const struct warp *w, const struct insn *ip)
{
	const uint64_t *address = REG(uint64_t, ip->a);
	const uint32_t *stride = REG(uint32_t, ip->b);
	uint64_t differ = 0;

	EACH_LANE differ |= (address[i] ^ address[0]) | (stride[i] ^ stride[0]);
	return !differ;
}

/* Finds all lines. Return: 0 or the code of a fault, with its address. */
static int find_lines(struct warp *w, const struct insn *ip, const struct access *a,
	unsigned int access, void *found[LINES_MAX], uint64_t *atp)
{
	uint64_t step = (uint64_t)REG(uint32_t, ip->b)[0] * a->bits / 8;
	uint64_t first = generic_address(ip, REG(uint64_t, ip->a)[0]);
	int code;

	for (uint32_t i = 0; i < a->n_lines; i++) {
		*atp = first + i * step;
		if (is_never_atomic(*atp))
			return SOFTGPU_ERROR_INVALID_ADDRESS_SPACE;
		found[i] = warp_resolve(
			w, 0, *atp, a->line_size, a->align - 1, access, &code);
		if (!found[i])
			return code;
	}
	return 0;
}

#define DIFFERENT_ADDRESSES "lanes name different matrices"

HANDLER(MATRIX_LOAD)
{
	void *found[LINES_MAX];
	struct access a;
	uint64_t at;
	int code;

	WHOLE_WARP;
	if (!is_uniform(w, ip))
		return warp_fault(w, ip, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION, 0,
			REG(uint64_t, ip->a)[0], DIFFERENT_ADDRESSES);
	describe(ip, &a);
	code = find_lines(w, ip, &a, SOFTGPU_READ, found, &at);
	if (code)
		return warp_fault(w, ip, code, 0, at, fault_sentence(code));
	for (uint32_t i = 0; i < a.n_lines; i++)
		memcpy(a.lines[i], found[i], a.line_size);
	move_fragment(&a, w->block->matrix, false);
	for (uint32_t r = a.n_registers; a.has_copies && r < 8; r++)
		memcpy(w->block->matrix[r], w->block->matrix[r % a.n_registers],
			sizeof(w->block->matrix[r]));
	return ip + 1;
}

HANDLER(MATRIX_STORE)
{
	void *found[LINES_MAX];
	struct access a;
	uint64_t at;
	int code;

	WHOLE_WARP;
	if (!is_uniform(w, ip))
		return warp_fault(w, ip, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION, 0,
			REG(uint64_t, ip->a)[0], DIFFERENT_ADDRESSES);
	describe(ip, &a);
	code = find_lines(w, ip, &a, SOFTGPU_WRITE, found, &at);
	if (code)
		return warp_fault(w, ip, code, 0, at, fault_sentence(code));
	move_fragment(&a, w->block->matrix, true);
	for (uint32_t i = 0; i < a.n_lines; i++)
		memcpy(found[i], a.lines[i], a.line_size);
	return ip + 1;
}
