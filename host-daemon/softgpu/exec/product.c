/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: products of matrices
 *
 * The fragments of A, B and C and the metadata are in registers that the operations
 * behind a product name, see operands.h. Those of MMA_F64 and MMA_QUADS are in
 * block.matrix already, one after the other, and the operations after take D from there.
 *
 * Floats are multiplied and added as doubles, which hold each product exactly: those of
 * all formats have at most 22 bits. The sum begins with C and takes the products by
 * ascending k, rounded to double each; D is rounded once. So a sum does not depend on the
 * instruction set.
 *
 * A is read where it is; it has the order of the registers: a plane of 32 elements, one
 * of each lane, for each element of each register. B and C are put into the order of
 * rows.
 */

#include "exec/operands.h"
#include "exec/half.h"
#include "exec/warp.h"

#ifdef __FMA__
#include <immintrin.h>

#include "exec/integer-product.h"
#include "exec/real-product.h"
#endif

/* Sums that are made at once: of four rows by two vectors, all in registers. */
#ifdef __AVX__
typedef f64 reals __attribute__((vector_size(32)));
#define SPLAT(_x)                                                                        \
	{                                                                                \
		_x, _x, _x, _x                                                           \
	}
#else
typedef f64 reals __attribute__((vector_size(16)));
#define SPLAT(_x)                                                                        \
	{                                                                                \
		_x, _x                                                                   \
	}
#endif
#define WIDTH (sizeof(reals) / sizeof(f64))

typedef s32 s32x8 __attribute__((vector_size(32)));

/* The product is exact: fused or not, the sum is the same. */
#ifdef __FMA__
#define MULTIPLY_ADD(_a, _b, _c)                                                         \
	(reals) _mm256_fmadd_pd((__m256d)(_a), (__m256d)(_b), (__m256d)(_c))
#else
#define MULTIPLY_ADD(_a, _b, _c) ((_a) * (_b) + (_c))
#endif

#define SPLAT_8(_x)                                                                      \
	(s32x8)                                                                          \
	{                                                                                \
		_x, _x, _x, _x, _x, _x, _x, _x                                           \
	}

/* The instruction: sizes in elements, @depth of A without its zeros. */
struct product {
	uint32_t m, n, k, depth;
	uint32_t a, b, c, d; /* enum matrix_type */
	uint32_t e;	     /* elements in a register of A and of B */
	const uint32_t (*rows_a)[LANES];
	const uint32_t (*rows_b)[LANES];
	const uint32_t (*rows_c)[LANES];
	const uint32_t *metadata; /* NULL: A has no zeros */
	uint32_t selector;
	bool satfinite;
	bool is_and;
	uint16_t order[MATRIX_K_MAX]; /* where A's elements of a row are in the planes */
};

/* By ascending k: a tile along k has as many planes for each tile of rows. */
static void find_order(struct product *p)
{
	uint32_t k = 0;

	for (uint32_t tile = 0; tile < p->depth / (4 * p->e); tile++)
		for (uint32_t t = 0; t < 4; t++)
			for (uint32_t i = 0; i < p->e; i++)
				p->order[k++] =
					(uint16_t)((tile * p->m / 8 * p->e + i) * LANES +
						   t);
}

/* But for the order. */
SCALAR void product_init(struct product *p, const struct warp *w, uint64_t imm)
{
	bool sparse = imm >> MATRIX_SPARSE & 1;

	p->m = 8 * (imm >> MATRIX_M & 7);
	p->n = 8 * (imm >> MATRIX_N & 7);
	p->k = imm >> MATRIX_K & 1023;
	p->a = imm >> MATRIX_A & 15;
	p->b = imm >> MATRIX_B & 15;
	p->c = imm >> MATRIX_C & 15;
	p->d = imm >> MATRIX_D & 15;
	p->selector = imm >> MATRIX_SELECTOR & 3;
	p->satfinite = imm >> MATRIX_SATFINITE & 1;
	p->is_and = imm >> MATRIX_AND & 1;
	p->e = matrix_elements(p->a);
	p->depth = sparse ? p->k / 2 : p->k;
	p->rows_a = w->block->matrix;
	p->rows_b =
		p->rows_a + matrix_registers(MATRIX_ROLE_A, p->a, p->m, p->n, p->depth);
	p->rows_c = p->rows_b + matrix_registers(MATRIX_ROLE_B, p->b, p->m, p->n, p->k);
	p->metadata = NULL;
	if (sparse)
		p->metadata = p->rows_c[matrix_registers(
			MATRIX_ROLE_C, p->c, p->m, p->n, p->k)];
}

/*
 * Sparse matrices
 */

/* Returns: the number of A's lane whose metadata has chunk @c of row @row. */
static uint32_t metadata_lane(
	const struct product *p, uint32_t n_chunks, uint32_t row, uint32_t c)
{
	uint32_t first, lane;

	/* A lane has four chunks of two rows, or eight chunks of one. */
	lane = p->e <= 2 ? c / 4 : c / 8 * 2 + row / 8;
	first = p->e <= 2 ? (n_chunks == 4 ? p->selector : 2 * p->selector)
			  : (n_chunks == 8 ? 2 * p->selector : 0);
	return row % 8 * 4 + ((first + lane) & 3);
}

static uint32_t metadata_shift(const struct product *p, uint32_t row, uint32_t c)
{
	return p->e <= 2 ? row / 8 * 16 + c % 4 * 4 : c % 8 * 4;
}

/*
 * The rows of B by which the elements of a chunk of A are multiplied. Of four elements
 * two are stored, of two of tf32 one, of four pairs of 4 bits two; each has two bits of
 * metadata.
 */
static uint8_t *read_chunk(
	const struct product *p, uint32_t c, uint32_t bits, uint8_t *to)
{
	uint32_t i = bits & 3, k = bits >> 2 & 3;

	switch (p->e) {
	case 1:
		*to++ = (uint8_t)(2 * c + i / 2);
		break;
	case 8:
		*to++ = (uint8_t)(8 * c + 2 * i);
		*to++ = (uint8_t)(8 * c + 2 * i + 1);
		*to++ = (uint8_t)(8 * c + 2 * k);
		*to++ = (uint8_t)(8 * c + 2 * k + 1);
		break;
	default:
		*to++ = (uint8_t)(4 * c + i);
		*to++ = (uint8_t)(4 * c + k);
		break;
	}
	return to;
}

/* [row][stored element], for 16 rows: the sparse shapes have no more. */
static void read_metadata(const struct product *p, uint8_t from[16][MATRIX_K_MAX / 2])
{
	uint32_t n_chunks = p->k / (p->e == 1 ? 2 : p->e == 8 ? 8 : 4);

	for (uint32_t row = 0; row < 16; row++) {
		uint8_t *to = from[row];

		for (uint32_t c = 0; c < n_chunks; c++)
			to = read_chunk(p, c,
				p->metadata[metadata_lane(p, n_chunks, row, c)] >>
					metadata_shift(p, row, c),
				to);
	}
}

/*
 * Elements of a register as numbers
 */

SCALAR f32 f32_from_e4m3(u32 x)
{
	u32 sign = (x & 128) << 24, e = x >> 3 & 15, m = x & 7;

	if ((x & 127) == 127)
		return make_f32(0x7fffffff);
	if (e)
		return make_f32(sign | (e + 120) << 23 | m << 20);
	return make_f32(sign | bits_f32((f32)m * 0x1p-9f));
}

/* Element @i of each lane. */
static void read_reals(unsigned int type, const uint32_t *from, uint32_t i, f64 *to)
{
	uint32_t shift = i * matrix_bits(type);

	switch (type) {
	case MATRIX_F16:
		for (int k = 0; k < LANES; k++)
			to[k] = half_to_f32((u16)(from[k] >> shift));
		break;
	case MATRIX_BF16:
		for (int k = 0; k < LANES; k++)
			to[k] = make_f32(from[k] >> shift << 16);
		break;
	case MATRIX_E4M3:
		for (int k = 0; k < LANES; k++)
			to[k] = f32_from_e4m3(from[k] >> shift & 255);
		break;
	case MATRIX_E5M2:
		for (int k = 0; k < LANES; k++)
			to[k] = half_to_f32((u16)((from[k] >> shift & 255) << 8));
		break;
	case MATRIX_TF32: /* the other bits do not count */
		for (int k = 0; k < LANES; k++)
			to[k] = make_f32(from[k] & 0xffffe000u);
		break;
	default:
		for (int k = 0; k < LANES; k++)
			to[k] = make_f32(from[k]);
		break;
	}
}

static void read_integers(unsigned int type, const uint32_t *from, uint32_t i, s32 *to)
{
	uint32_t bits = matrix_bits(type), left = 32 - bits - i * bits;

	if (type == MATRIX_S8 || type == MATRIX_S4)
		for (int k = 0; k < LANES; k++)
			to[k] = (s32)(from[k] << left) >> (32 - bits);
	else
		for (int k = 0; k < LANES; k++)
			to[k] = (s32)(from[k] << left >> (32 - bits));
}

/*
 * A as planes, B and C as rows. Lanes are 4 g + t, a register has p->e elements of A and
 * B.
 */
#define READ_A(_T, _read)                                                                \
	static void _read##_a(const struct product *p, _T *a)                            \
	{                                                                                \
		uint32_t n =                                                             \
			matrix_registers(MATRIX_ROLE_A, p->a, p->m, p->n, p->depth);     \
                                                                                         \
		for (uint32_t r = 0; r < n; r++)                                         \
			for (uint32_t i = 0; i < p->e; i++)                              \
				_read(p->a, p->rows_a[r], i,                             \
					a + (r * p->e + i) * LANES);                     \
	}

#define READ_B(_T, _read)                                                                \
	static void _read##_b(const struct product *p, _T *b)                            \
	{                                                                                \
		uint32_t along = p->k / (4 * p->e);                                      \
		_T plane[LANES];                                                         \
                                                                                         \
		for (uint32_t r = 0; r < along * p->n / 8; r++)                          \
			for (uint32_t i = 0; i < p->e; i++) {                            \
				_T *to = b + (r % along * 4 * p->e + i) * p->n +         \
					 r / along * 8;                                  \
                                                                                         \
				_read(p->b, p->rows_b[r], i, plane);                     \
				for (uint32_t t = 0; t < 4; t++)                         \
					for (uint32_t g = 0; g < 8; g++)                 \
						to[t * p->e * p->n + g] =                \
							plane[4 * g + t];                \
			}                                                                \
	}

/* Where element @i of lane 0 of C or D is in rows; lane 4 g + t is at g rows and 2 t
 * more. */
SCALAR uint32_t place_in_c(const struct product *p, uint32_t i)
{
	uint32_t tile = i / 2, down = p->m / 8;

	return tile % down * 8 * p->n + tile / down * 8 + i % 2;
}

READ_A(f64, read_reals)
READ_A(s32, read_integers)
READ_B(f64, read_reals)
READ_B(s32, read_integers)

static void read_reals_c(const struct product *p, f64 *c)
{
	uint32_t e = matrix_elements(p->c), n = p->m * p->n / LANES;
	f64 plane[LANES];

	for (uint32_t i = 0; i < n; i++) {
		f64 *to = c + place_in_c(p, i);

		read_reals(p->c, p->rows_c[i / e], i % e, plane);
		for (uint32_t g = 0; g < 8; g++)
			for (uint32_t t = 0; t < 4; t++)
				to[g * p->n + 2 * t] = plane[4 * g + t];
	}
}

/* To f32 rounded to odd first: twice rounded, the result is correct. */
SCALAR u16 half_from_f64(f64 x)
{
	f32 r = (f32)x;
	u32 bits = bits_f32(r);

	if (x != x || (f64)r == x)
		return half_from_f32(r);
	if ((x < 0 ? -(f64)r : (f64)r) > (x < 0 ? -x : x))
		bits--;
	return half_from_f32(make_f32(bits | 1));
}

static void write_reals_d(const struct product *p, uint32_t (*to)[LANES], const f64 *d)
{
	uint32_t n = p->m * p->n / LANES;
	f64 plane[LANES];

	for (uint32_t i = 0; i < n; i++) {
		const f64 *from = d + place_in_c(p, i);

		for (uint32_t g = 0; g < 8; g++)
			for (uint32_t t = 0; t < 4; t++)
				plane[4 * g + t] = from[g * p->n + 2 * t];
		if (p->d == MATRIX_F32)
			for (uint32_t lane = 0; lane < LANES; lane++)
				to[i][lane] = bits_f32(canon((f32)plane[lane]));
		else if (i % 2)
			for (uint32_t lane = 0; lane < LANES; lane++)
				to[i / 2][lane] |= (u32)half_from_f64(plane[lane]) << 16;
		else
			for (uint32_t lane = 0; lane < LANES; lane++)
				to[i / 2][lane] = half_from_f64(plane[lane]);
	}
}

/*
 * Sums
 */

/* Where a row begins in A's planes; the next one of its tile is 4 elements further. */
SCALAR uint32_t row_in_a(const struct product *p, uint32_t row)
{
	return row / 8 * p->e * LANES + row % 8 * 4;
}

static void sum_reals(const struct product *p, const f64 *a, const f64 *b, f64 *c,
	uint32_t row, uint32_t column)
{
	reals sums[4][2], low, high;

	a += row_in_a(p, row);
	for (int i = 0; i < 4; i++)
		memcpy(sums[i], &c[(row + i) * p->n + column], sizeof(sums[i]));
	for (uint32_t k = 0; k < p->k; k++) {
		const f64 *from = a + p->order[k];

		memcpy(&low, b + k * p->n + column, sizeof(low));
		memcpy(&high, b + k * p->n + column + WIDTH, sizeof(high));
		for (int i = 0; i < 4; i++) {
			reals x = SPLAT(from[4 * i]);

			sums[i][0] = MULTIPLY_ADD(x, low, sums[i][0]);
			sums[i][1] = MULTIPLY_ADD(x, high, sums[i][1]);
		}
	}
	for (int i = 0; i < 4; i++)
		memcpy(&c[(row + i) * p->n + column], sums[i], sizeof(sums[i]));
}

/* One row, with its own rows of B. */
static void sum_sparse_reals(const struct product *p, const f64 *a, const f64 *b, f64 *c,
	uint32_t row, uint32_t column, const uint8_t *from)
{
	reals sums[2], low, high;

	a += row_in_a(p, row);
	memcpy(sums, &c[row * p->n + column], sizeof(sums));
	for (uint32_t k = 0; k < p->depth; k++) {
		reals x = SPLAT(a[p->order[k]]);

		memcpy(&low, b + from[k] * p->n + column, sizeof(low));
		memcpy(&high, b + from[k] * p->n + column + WIDTH, sizeof(high));
		sums[0] = MULTIPLY_ADD(x, low, sums[0]);
		sums[1] = MULTIPLY_ADD(x, high, sums[1]);
	}
	memcpy(&c[row * p->n + column], sums, sizeof(sums));
}

static void sum_integers(const struct product *p, const s32 *a, const s32 *b, s32 *d,
	uint32_t row, uint32_t column)
{
	s32x8 sums[4] = {}, y;

	a += row_in_a(p, row);
	for (uint32_t k = 0; k < p->k; k++) {
		const s32 *from = a + p->order[k];

		memcpy(&y, b + k * p->n + column, sizeof(y));
		for (int i = 0; i < 4; i++)
			sums[i] += SPLAT_8(from[4 * i]) * y;
	}
	for (int i = 0; i < 4; i++)
		memcpy(&d[(row + i) * p->n + column], &sums[i], sizeof(s32x8));
}

static void sum_sparse_integers(const struct product *p, const s32 *a, const s32 *b,
	s32 *d, uint32_t row, const uint8_t *from)
{
	s32x8 sums = {}, y;

	a += row_in_a(p, row);
	for (uint32_t k = 0; k < p->depth; k++) {
		memcpy(&y, b + from[k] * p->n, sizeof(y));
		sums += SPLAT_8(a[p->order[k]]) * y;
	}
	memcpy(&d[row * p->n], &sums, sizeof(sums));
}

/* The kinds by vectors. D is gathered and scattered where it is among C's registers. */
#ifdef __FMA__
#define MULTIPLY_BY_VECTORS(_name, _multiply)                                            \
	__attribute__((noinline)) static void _name(                                     \
		struct warp *w, const struct operands *o, uint64_t imm)                  \
	{                                                                                \
		uint32_t to[OPERANDS_TO_MAX][LANES] __attribute__((aligned(64)));        \
		uint32_t *rows[OPERANDS_TO_MAX];                                         \
		struct vector_product p;                                                 \
                                                                                         \
		vector_product_init(&p, w, o, imm);                                      \
		if (imm >> MATRIX_APART & 1) {                                           \
			_multiply(&p);                                                   \
			return;                                                          \
		}                                                                        \
		for (int i = 0; i < OPERANDS_TO_MAX; i++)                                \
			rows[i] = to[i];                                                 \
		p.d = rows;                                                              \
		_multiply(&p);                                                           \
		for (uint32_t i = 0; i < OPERANDS_TO_MAX && i < 4 * o->n_takes; i++)     \
			memcpy(o->to[i], to[i], SLOT_BYTES);                             \
	}

MULTIPLY_BY_VECTORS(multiply_reals_by_vectors, real_multiply)
MULTIPLY_BY_VECTORS(multiply_integers_by_vectors, integer_multiply)
MULTIPLY_BY_VECTORS(multiply_bits_by_vectors, bits_multiply)

/* A with zeros is not for vectors. */
#define BY_VECTORS(_name, _imm) ((_imm) >> MATRIX_SPARSE & 1 ? NULL : (_name))
#else
#define BY_VECTORS(_name, _imm) NULL
#endif

/*
 * @_vectors: how it is done where the instruction set has vectors and A has no zeros
 * @_other: where not
 */
#define HANDLER_MMA(_name, _vectors, _other)                                             \
	HANDLER(_name)                                                                   \
	{                                                                                \
		void (*by_vectors)(struct warp *, const struct operands *, uint64_t) =   \
			BY_VECTORS(_vectors, ip->imm);                                   \
		struct operands o;                                                       \
		const struct insn *next = operands_find(&o, w, ip);                      \
                                                                                         \
		if (!mask)                                                               \
			return next;                                                     \
		WHOLE_WARP;                                                              \
		if (by_vectors) {                                                        \
			by_vectors(w, &o, ip->imm);                                      \
		} else {                                                                 \
			operands_gather(&o, w);                                          \
			_other(w, ip->imm);                                              \
			operands_scatter(&o, w);                                         \
		}                                                                        \
		return next;                                                             \
	}

/* Not inlined: the stack that it needs is only for those who call it. */
__attribute__((noinline)) static void multiply_reals(struct warp *w, uint64_t imm)
{
	f64 *a = w->block->matrix_a, *b = w->block->matrix_b, c[MATRIX_C_MAX];
	uint8_t from[16][MATRIX_K_MAX / 2];
	struct product p;

	product_init(&p, w, imm);
	find_order(&p);
	if (!(imm >> MATRIX_KEEPS_A & 1))
		read_reals_a(&p, a);
	if (!(imm >> MATRIX_KEEPS_B & 1))
		read_reals_b(&p, b);
	read_reals_c(&p, c);
	if (p.metadata) {
		read_metadata(&p, from);
		for (uint32_t row = 0; row < p.m; row++)
			for (uint32_t column = 0; column < p.n; column += 2 * WIDTH)
				sum_sparse_reals(&p, a, b, c, row, column, from[row]);
	} else {
		for (uint32_t row = 0; row < p.m; row += 4)
			for (uint32_t column = 0; column < p.n; column += 2 * WIDTH)
				sum_reals(&p, a, b, c, row, column);
	}
	write_reals_d(&p, w->block->matrix, c);
}

HANDLER_MMA(MMA_REAL, multiply_reals_by_vectors, multiply_reals)

/* Adds C, which is as long as D; .satfinite limits the sum. */
static void add_c(const struct product *p, const s32 *sums, const uint32_t (*from)[LANES],
	uint32_t (*to)[LANES])
{
	s32 plane[LANES];

	for (uint32_t i = 0; i < p->m * p->n / LANES; i++) {
		const s32 *sum = sums + place_in_c(p, i);

		for (uint32_t g = 0; g < 8; g++)
			for (uint32_t t = 0; t < 4; t++)
				plane[4 * g + t] = sum[g * p->n + 2 * t];
		for (uint32_t lane = 0; lane < LANES; lane++) {
			s32 c = (s32)from[i][lane], x = plane[lane];

			to[i][lane] = p->satfinite ? sat_add(c, x) : (u32)c + (u32)x;
		}
	}
}

__attribute__((noinline)) static void multiply_integers(struct warp *w, uint64_t imm)
{
	s32 a[MATRIX_A_MAX], b[MATRIX_B_MAX], d[MATRIX_C_MAX];
	uint8_t from[16][MATRIX_K_MAX / 2];
	struct product p;

	product_init(&p, w, imm);
	find_order(&p);
	read_integers_a(&p, a);
	read_integers_b(&p, b);
	if (p.metadata) {
		read_metadata(&p, from);
		for (uint32_t row = 0; row < p.m; row++)
			sum_sparse_integers(&p, a, b, d, row, from[row]);
	} else {
		for (uint32_t row = 0; row < p.m; row += 4)
			for (uint32_t column = 0; column < p.n; column += 8)
				sum_integers(&p, a, b, d, row, column);
	}
	add_c(&p, d, p.rows_c, w->block->matrix);
}

HANDLER_MMA(MMA_INTEGER, multiply_integers_by_vectors, multiply_integers)

__attribute__((noinline)) static void multiply_bits(struct warp *w, uint64_t imm)
{
	s32 sums[MATRIX_C_MAX];
	struct product p;
	uint32_t down;

	product_init(&p, w, imm);
	down = p.m / 8;
	for (uint32_t row = 0; row < p.m; row++)
		for (uint32_t column = 0; column < p.n; column++) {
			s32 sum = 0;

			for (uint32_t r = 0; r < p.k / 128; r++)
				for (uint32_t t = 0; t < 4; t++) {
					u32 x = p.rows_a[r * down + row / 8]
							[row % 8 * 4 + t];
					u32 y = p.rows_b[r][column * 4 + t];

					sum += (s32)popc_32(p.is_and ? x & y : x ^ y);
				}
			sums[row * p.n + column] = sum;
		}
	add_c(&p, sums, p.rows_c, w->block->matrix);
}

HANDLER_MMA(MMA_BITS, multiply_bits_by_vectors, multiply_bits)

/*
 * m8n8k4 of f16: four products at once. Lanes 4 q to 4 q + 3 and those 16 further have
 * the matrices of product q. By rows a lane has a row of A or a column of B; by columns,
 * the four elements of k's own, of the upper or the lower half.
 */

SCALAR f64 half_of(const uint32_t (*rows)[LANES], uint32_t i, uint32_t lane)
{
	return half_to_f32((u16)(rows[i / 2][lane] >> i % 2 * 16));
}

/* Element (@i, @k) of A, or (@k, @i) of B. @along: a lane has all of k */
SCALAR f64 quad_element(
	const uint32_t (*rows)[LANES], uint32_t q, uint32_t i, uint32_t k, bool along)
{
	return along ? half_of(rows, k, 4 * q + i % 4 + i / 4 * 16)
		     : half_of(rows, i % 4, 4 * q + k + i / 4 * 16);
}

/* Where element (row, column) of C or D is: *ip is its number in the lane. */
SCALAR uint32_t quad_place(
	unsigned int type, uint32_t q, uint32_t row, uint32_t column, uint32_t *ip)
{
	if (type == MATRIX_F16) {
		*ip = column;
		return 4 * q + row % 4 + row / 4 * 16;
	}
	*ip = (column & 4) | (row & 2) | (column & 1);
	return 4 * q + ((row & 1) | (column & 2)) + row / 4 * 16;
}

HANDLER(MMA_QUADS)
{
	uint32_t(*rows)[LANES] = w->block->matrix, d[8][LANES], lane, i;
	bool row_a = !(ip->imm >> MATRIX_COL_A & 1), col_b = ip->imm >> MATRIX_COL_B & 1;
	uint32_t type_c = ip->imm >> MATRIX_C & 15, type_d = ip->imm >> MATRIX_D & 15;

	WHOLE_WARP;
	for (uint32_t at = 0; at < 4 * 64; at++) {
		uint32_t q = at / 64, row = at / 8 % 8, column = at % 8;
		f64 sum;

		lane = quad_place(type_c, q, row, column, &i);
		sum = type_c == MATRIX_F16 ? half_of(rows + 4, i, lane)
					   : (f64)make_f32(rows[4 + i][lane]);
		for (uint32_t k = 0; k < 4; k++)
			sum += quad_element(rows, q, row, k, row_a) *
			       quad_element(rows + 2, q, column, k, col_b);
		lane = quad_place(type_d, q, row, column, &i);
		if (type_d == MATRIX_F32)
			d[i][lane] = bits_f32(canon((f32)sum));
		else if (i % 2)
			d[i / 2][lane] |= (u32)half_from_f64(sum) << 16;
		else
			d[i / 2][lane] = half_from_f64(sum);
	}
	memcpy(rows, d, type_d == MATRIX_F32 ? sizeof(d) : sizeof(d) / 2);
	return ip + 1;
}
