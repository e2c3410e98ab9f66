/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragments of matrices: wmma from memory to memory, the small matrices of ldmatrix and
 * its kind, the quads of m8n8k4, and what of them is a fault
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec-harness.h"
#include "matrix-numbers.h"
#include "matrix-text.h"
#include "test.h"

#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *
#define LANES 32
#define HEADER                                                                           \
	".version 9.0\n.target sm_121\n.address_size 64\n"                               \
	".visible .entry k(.param .u64 in, .param .u64 out) {\n"                         \
	".reg .b32 %r<64>, %t<4>; .reg .b64 %d<40>, %a<8>; .reg .pred %p<3>;\n"          \
	"ld.param.u64 %a1, [in]; ld.param.u64 %a2, [out]; mov.u32 %t1, %tid.x;\n"

/*
 * wmma
 */

struct shape {
	const char *text, *types; /* types: of wmma.mma */
	enum number factor, addend, result;
	const char *factor_text, *addend_text, *result_text;
	unsigned int m, n, k;
	unsigned int n_a, n_b, n_c, n_d; /* registers */
};

/* clang-format off */
static const struct shape shapes[] = {
#define HALVES(_text, _m, _n) \
	{ _text, ".f32.f32", F16, F32, F32, "f16", "f32", "f32", \
		_m, _n, 16, 8, 8, 8, 8 }, \
	{ _text, ".f16.f16", F16, F16, F16, "f16", "f16", "f16", \
		_m, _n, 16, 8, 8, 4, 4 }, \
	{ _text, ".f32.f16", F16, F16, F32, "f16", "f16", "f32", \
		_m, _n, 16, 8, 8, 4, 8 }, \
	{ _text, ".f16.f32", F16, F32, F16, "f16", "f32", "f16", \
		_m, _n, 16, 8, 8, 8, 4 }
#define OTHERS(_text, _m, _n, _a, _b) \
	{ _text, ".f32.bf16.bf16.f32", BF16, F32, F32, "bf16", "f32", "f32", \
		_m, _n, 16, 2 * _a, 2 * _b, 8, 8 }, \
	{ _text, ".s32.s8.s8.s32", S8, S32, S32, "s8", "s32", "s32", \
		_m, _n, 16, _a, _b, 8, 8 }, \
	{ _text, ".s32.u8.u8.s32.satfinite", U8, S32, S32_SAT, "u8", "s32", "s32", \
		_m, _n, 16, _a, _b, 8, 8 }
	HALVES("m16n16k16", 16, 16), OTHERS("m16n16k16", 16, 16, 2, 2),
	HALVES("m8n32k16", 8, 32), OTHERS("m8n32k16", 8, 32, 1, 4),
	HALVES("m32n8k16", 32, 8), OTHERS("m32n8k16", 32, 8, 4, 1),
	{ "m16n16k8", ".f32.tf32.tf32.f32", TF32, F32, F32, "tf32", "f32", "f32",
		16, 16, 8, 4, 4, 8, 8 },
	{ "m8n8k4", ".f64.f64.f64.f64", F64, F64, F64, "f64", "f64", "f64",
		8, 8, 4, 1, 1, 2, 2 },
	{ "m8n8k32", ".s32.s4.s4.s32", S4, S32, S32, "s4", "s32", "s32",
		8, 8, 32, 1, 1, 2, 2 },
	{ "m8n8k32", ".s32.u4.u4.s32.satfinite", U4, S32, S32_SAT, "u4", "s32", "s32",
		8, 8, 32, 1, 1, 2, 2 },
	{ "m8n8k128", ".s32.b1.b1.s32.xor.popc", B1_XOR, S32, S32, "b1", "s32", "s32",
		8, 8, 128, 1, 1, 2, 2 },
	{ "m8n8k128", ".s32.b1.b1.s32.and.popc", B1_AND, S32, S32, "b1", "s32", "s32",
		8, 8, 128, 1, 1, 2, 2 },
};
/* clang-format on */

/* A matrix in memory: @stride from line to line in elements. */
struct matrix {
	enum number type;
	unsigned int rows, columns, stride;
	bool by_columns;
	uint8_t *bytes;
};

static uint64_t element(const struct matrix *x, unsigned int row, unsigned int column)
{
	unsigned int bits = number_bits(x->type);
	size_t at = (x->by_columns ? (size_t)column * x->stride + row
				   : (size_t)row * x->stride + column) *
		    bits;
	uint64_t r = 0;

	memcpy(&r, x->bytes + at / 8, bits < 8 ? 1 : bits / 8);
	return r >> at % 8 & (UINT64_MAX >> (64 - bits));
}

static size_t size_of(const struct matrix *x)
{
	return (size_t)(x->by_columns ? x->columns : x->rows) * x->stride *
	       number_bits(x->type) / 8;
}

/* Any bytes between the lines, and numbers in them. */
static void fill(struct matrix *x, unsigned int edges)
{
	unsigned int bits = number_bits(x->type), per_byte = bits < 8 ? 8 / bits : 1;
	size_t n = size_of(x) * 8 / bits;
	uint64_t number;

	for (size_t i = 0; i < n; i += per_byte) {
		number = 0;
		for (unsigned int k = 0; k < per_byte; k++)
			number |= number_random(x->type, edges) << k * bits;
		memcpy(x->bytes + i * bits / 8, &number, bits < 8 ? 1 : bits / 8);
	}
}

#define PLACES 8192u /* bytes of each matrix in the buffer */

/*
 * The kernel's warps all do the same, each in its own buffer. In shared memory the
 * buffer is copied there and back.
 */
static void write_wmma(struct text *ptx, const struct shape *s, const struct matrix x[4],
	const char *space)
{
	const char *layouts[] = { ".row", ".col" };
	char letter = s->factor == F64 ? 'd' : 'r';
	bool is_shared = strstr(space, "shared");
	char at[16];

	text_add(ptx,
		"%s.shared .align 128 .b8 buffer[%u];\n"
		"mov.u32 %%t2, %%ctaid.x; mad.wide.u32 %%a1, %%t2, %u, %%a1;\n"
		"mov.u32 %%t3, %u; mov.u64 %%a3, %%a1; mov.u32 %%r0, buffer;\n",
		HEADER, 4 * PLACES, 4 * PLACES, x[3].stride);
	if (is_shared)
		text_add(ptx,
			"cvt.u64.u32 %%a3, %%r0; mov.u32 %%r1, 0;\n"
			"IN: cvt.u64.u32 %%a4, %%r1; add.u64 %%a5, %%a1, %%a4;\n"
			"add.u64 %%a4, %%a3, %%a4; mad.wide.u32 %%a5, %%t1, 4, %%a5;\n"
			"mad.wide.u32 %%a4, %%t1, 4, %%a4; ld.global.b32 %%r2, [%%a5];\n"
			"st.shared.b32 [%%a4], %%r2; add.u32 %%r1, %%r1, 128;\n"
			"setp.lt.u32 %%p1, %%r1, %u; @%%p1 bra IN;\n",
			4 * PLACES);
	for (unsigned int i = 0; i < 3; i++) {
		const char *texts[] = { s->factor_text, s->factor_text, s->addend_text };
		unsigned int n[] = { s->n_a, s->n_b, s->n_c };

		text_add(ptx, "wmma.load.%c.sync.aligned%s.%s%s.%s ", "abc"[i],
			layouts[x[i].by_columns], s -> text, space, texts[i]);
		text_add_vector(ptx, letter, 8 * (i + 1), n[i], ", ");
		snprintf(at, sizeof(at), "%u", x[i].stride);
		text_add(ptx, "[%%a3+%u], %s;\n", i * PLACES, at);
	}
	text_add(ptx, "wmma.mma.sync.aligned%s%s.%s%s ", layouts[x[0].by_columns],
		layouts[x[1].by_columns], s->text, s->types);
	text_add_vector(ptx, letter, s->factor == F64 ? 32 : 40, s->n_d, ", ");
	text_add_vector(ptx, letter, 8, s->n_a, ", ");
	text_add_vector(ptx, letter, 16, s->n_b, ", ");
	text_add_vector(ptx, letter, 24, s->n_c, ";\n");
	text_add(ptx, "wmma.store.d.sync.aligned%s.%s%s.%s [%%a3+%u], ",
		layouts[x[3].by_columns], s->text, space, s->result_text, 3 * PLACES);
	text_add_vector(ptx, letter, s->factor == F64 ? 32 : 40, s->n_d, ", %t3;\n");
	if (is_shared)
		text_add(ptx,
			"mov.u32 %%r1, 0;\n"
			"OUT: cvt.u64.u32 %%a4, %%r1; add.u64 %%a5, %%a1, %%a4;\n"
			"add.u64 %%a4, %%a3, %%a4; mad.wide.u32 %%a5, %%t1, 4, %%a5;\n"
			"mad.wide.u32 %%a4, %%t1, 4, %%a4; ld.shared.b32 %%r2, [%%a4];\n"
			"st.global.b32 [%%a5], %%r2; add.u32 %%r1, %%r1, 128;\n"
			"setp.lt.u32 %%p1, %%r1, %u; @%%p1 bra OUT;\n",
			4 * PLACES);
	text_add(ptx, "ret; }\n");
}

static void check_wmma(const struct shape *s, const struct matrix x[4], const char *ptx)
{
	for (unsigned int i = 0; i < s->m; i++)
		for (unsigned int j = 0; j < s->n; j++) {
			struct sum sum = sum_begin(s->addend, element(&x[2], i, j));
			uint64_t is = element(&x[3], i, j), want;

			for (unsigned int k = 0; k < s->k; k++)
				sum_add(&sum, s->factor, element(&x[0], i, k), s->factor,
					element(&x[1], k, j));
			want = sum_end(&sum, s->result);
			if (is != want)
				test_fail(__FILE__, __LINE__,
					"%s%s, row %u, column %u: %llx, not %llx\n%s",
					s->text, s->types, i, j, (long long)is,
					(long long)want, ptx);
		}
}

/* @variant: bits: the layouts of A, B, C and D; a wider distance of lines */
static void run_wmma(const struct shape *s, unsigned int variant, const char *space)
{
	bool fixed = number_bits(s->factor) < 8, wider = variant & 16;
	struct matrix x[4] = {
		{ s->factor, s->m, s->k, 0, variant & 1 && !fixed },
		{ s->factor, s->k, s->n, 0, variant & 2 || fixed },
		{ s->addend, s->m, s->n, 0, variant & 4 },
		{ s->result, s->m, s->n, 0, variant & 8 },
	};
	struct text ptx = {};
	CLEAN_RIG rig = NULL;
	uint8_t *memory, *copy;

	for (unsigned int i = 0; i < 4; i++)
		x[i].stride = (x[i].by_columns ? x[i].rows : x[i].columns) +
			      (wider ? 128 / number_bits(x[i].type) : 0);
	write_wmma(&ptx, s, x, space);
	rig = rig_new(ptx.text);
	memory = rig_alloc(rig, 8 * PLACES);
	for (unsigned int w = 0; w < 2; w++)
		for (unsigned int i = 0; i < 4; i++) {
			x[i].bytes = memory + (4 * w + i) * PLACES;
			check(size_of(&x[i]) <= PLACES);
			fill(&x[i], 3 * w);
		}
	copy = malloc(8 * PLACES);
	check(copy);
	memcpy(copy, memory, 8 * PLACES);
	rig_launch(rig, "k", 2, LANES, (void *[]){ memory, NULL }, 16);
	for (unsigned int w = 0; w < 2; w++) {
		for (unsigned int i = 0; i < 4; i++)
			x[i].bytes = memory + (4 * w + i) * PLACES;
		check_wmma(s, x, ptx.text);
		/* Between the lines nothing is written. */
		for (unsigned int i = 0; i < 3; i++)
			check(!memcmp(x[i].bytes, copy + (4 * w + i) * PLACES, PLACES));
		for (size_t at = 0; at < size_of(&x[3]); at++)
			if (at * 8 / number_bits(x[3].type) % x[3].stride >=
				(x[3].by_columns ? x[3].rows : x[3].columns))
				check_eq(x[3].bytes[at], copy[(4 * w + 3) * PLACES + at]);
	}
	free(copy);
}

TEST(wmma_multiplies_matrices_in_memory)
{
	static const char *const spaces[] = { ".global", "", ".shared", ".shared::cta" };

	srand(2);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (unsigned int variant = 0; variant < 32; variant++)
			run_wmma(&shapes[i], variant, spaces[(variant + i) % 4]);
}

/*
 * m8n8k4 of f16: four products at once
 */

/* The manual's formulas for a lane's element @i; by rows or columns. */
static void quad_place(char matrix, enum number type, bool by_columns, unsigned int lane,
	unsigned int i, unsigned int *rowp, unsigned int *columnp)
{
	unsigned int upper = lane < 16 ? 0 : 4;

	switch (matrix) {
	case 'a':
		*rowp = (by_columns ? i : lane % 4) + upper;
		*columnp = by_columns ? lane % 4 : i;
		break;
	case 'b':
		*rowp = by_columns ? i : lane % 4;
		*columnp = (by_columns ? lane % 4 : i) + upper;
		break;
	default:
		*rowp = (type == F16 ? lane % 4 : (lane & 1) + (i & 2)) + upper;
		*columnp = type == F16 ? i : (i & 4) + (lane & 2) + (i & 1);
		break;
	}
}

static uint64_t half_at(const uint32_t (*rows)[LANES], unsigned int i, unsigned int lane)
{
	return rows[i / 2][lane] >> i % 2 * 16 & 0xffff;
}

static void run_quads(bool col_a, bool col_b, enum number c, enum number d)
{
	unsigned int n_c = c == F16 ? 4 : 8, n_d = d == F16 ? 4 : 8, row, column;
	uint64_t a[4][8][4], b[4][4][8], sums[4][8][8];
	uint32_t(*in)[LANES], (*out)[LANES];
	CLEAN_RIG rig = NULL;
	struct text ptx = {};

	text_add(&ptx,
		"%s"
		"mad.wide.u32 %%a1, %%t1, 4, %%a1; mad.wide.u32 %%a2, %%t1, 4, "
		"%%a2;\n",
		HEADER);
	for (unsigned int i = 0; i < 4 + n_c; i++)
		text_add(&ptx, "ld.global.b32 %%r%u, [%%a1+%u];\n", i, 128 * i);
	text_add(&ptx, "mma.sync.aligned.m8n8k4%s%s.%s.f16.f16.%s ",
		col_a ? ".col" : ".row", col_b ? ".col" : ".row",
		d == F16 ? "f16" : "f32", c == F16 ? "f16" : "f32");
	text_add_vector(&ptx, 'r', 20, n_d, ", {%r0, %r1}, {%r2, %r3}, ");
	text_add_vector(&ptx, 'r', 4, n_c, ";\n");
	for (unsigned int i = 0; i < n_d; i++)
		text_add(&ptx, "st.global.b32 [%%a2+%u], %%r%u;\n", 128 * i, 20 + i);
	text_add(&ptx, "ret; }\n");
	rig = rig_new(ptx.text);
	in = rig_alloc(rig, 12 * sizeof(*in));
	out = rig_alloc(rig, 8 * sizeof(*out));
	for (unsigned int i = 0; i < 4 + n_c; i++)
		for (unsigned int lane = 0; lane < LANES; lane++)
			in[i][lane] =
				(uint32_t)number_random(i < 4 ? F16 : c, 0) |
				(uint32_t)(i < 4 || c == F16 ? number_random(F16, 2) : 0)
					<< 16;
	rig_launch(rig, "k", 1, LANES, (void *[]){ in, out }, 16);
	for (unsigned int lane = 0; lane < LANES; lane++) {
		unsigned int q = lane / 4 % 4;

		for (unsigned int i = 0; i < 4; i++) {
			quad_place('a', F16, col_a, lane, i, &row, &column);
			a[q][row][column] = half_at(in, i, lane);
			quad_place('b', F16, col_b, lane, i, &row, &column);
			b[q][row][column] = half_at(in + 2, i, lane);
		}
		for (unsigned int i = 0; i < 8; i++) {
			quad_place('c', c, false, lane, i, &row, &column);
			sums[q][row][column] =
				c == F16 ? half_at(in + 4, i, lane) : in[4 + i][lane];
		}
	}
	for (unsigned int lane = 0; lane < LANES; lane++)
		for (unsigned int i = 0; i < 8; i++) {
			unsigned int q = lane / 4 % 4;
			struct sum sum;

			quad_place('c', d, false, lane, i, &row, &column);
			sum = sum_begin(c, sums[q][row][column]);
			for (unsigned int k = 0; k < 4; k++)
				sum_add(&sum, F16, a[q][row][k], F16, b[q][k][column]);
			check_eq(d == F16 ? half_at(out, i, lane) : out[i][lane],
				sum_end(&sum, d));
		}
}

TEST(m8n8k4_of_f16_is_four_products)
{
	srand(3);
	for (unsigned int i = 0; i < 4; i++) {
		run_quads(i & 1, i & 2, F32, F32);
		run_quads(i & 1, i & 2, F16, F32);
		run_quads(i & 1, i & 2, F16, F16);
	}
}

/*
 * Matrices of 8 by 8
 */

/* Rows lie at places that are not in order. */
#define ROW_STRIDE 48u

static void run_small(unsigned int n, bool trans, bool is_store, bool is_generic)
{
	uint32_t(*out)[LANES];
	uint16_t(*in)[8], *rows;
	CLEAN_RIG rig = NULL;
	struct text ptx = {};

	text_add(&ptx,
		"%s"
		".shared .align 16 .b8 s[%u]; mov.u32 %%r0, s;\n"
		"mul.lo.u32 %%t2, %%t1, 13; and.b32 %%t2, %%t2, 31;\n"
		"mad.lo.u32 %%t3, %%t2, %u, %%r0; cvt.u64.u32 %%a3, %%t3;\n"
		"mad.wide.u32 %%a4, %%t1, 16, %%a1;\n"
		"mad.wide.u32 %%a2, %%t1, 4, %%a2;\n",
		HEADER, LANES * ROW_STRIDE, ROW_STRIDE);
	if (is_store)
		text_add(&ptx,
			"mad.wide.u32 %%a4, %%t1, 4, %%a1;\n"
			"ld.global.b32 %%r1, [%%a4]; ld.global.b32 %%r2, [%%a4+128];\n"
			"ld.global.b32 %%r3, [%%a4+256]; ld.global.b32 %%r4, "
			"[%%a4+384];\n");
	else
		text_add(&ptx, "ld.global.v4.b32 {%%r1, %%r2, %%r3, %%r4}, [%%a4];\n"
			       "st.shared.v4.b32 [%%t3], {%%r1, %%r2, %%r3, %%r4};\n"
			       "bar.warp.sync -1;\n");
	if (is_generic)
		text_add(&ptx, "cvta.shared.u64 %%a3, %%a3;\n");
	/* The lanes whose addresses do not count have impossible ones. */
	text_add(&ptx,
		"setp.ge.u32 %%p1, %%t1, %u; @%%p1 mov.u64 %%a3, 7;\n"
		"add.u64 %%a3, %%a3, -16;\n",
		8 * n);
	if (is_store) {
		text_add(&ptx, "stmatrix.sync.aligned.m8n8.x%u%s%s.b16 [%%a3+16], ", n,
			trans ? ".trans" : "", is_generic ? "" : ".shared");
		text_add_vector(&ptx, 'r', 1, n, ";\n");
		text_add(&ptx,
			"bar.warp.sync -1; ld.shared.v4.b32 {%%r5, %%r6, %%r7, %%r8}, "
			"[%%t3];\n"
			"mad.wide.u32 %%a2, %%t1, 12, %%a2;\n"
			"st.global.v4.b32 [%%a2], {%%r5, %%r6, %%r7, %%r8}; ret; }\n");
	} else {
		text_add(&ptx, "ldmatrix.sync.aligned.m8n8.x%u%s%s.b16 ", n,
			trans ? ".trans" : "", is_generic ? "" : ".shared::cta");
		text_add_vector(&ptx, 'r', 5, n, ", [%a3+16];\n");
		for (unsigned int i = 0; i < n; i++)
			text_add(&ptx, "st.global.b32 [%%a2+%u], %%r%u;\n", 128 * i,
				5 + i);
		text_add(&ptx, "ret; }\n");
	}
	rig = rig_new(ptx.text);
	in = rig_alloc(rig, 512);
	out = rig_alloc(rig, 512);
	rows = (uint16_t *)in;
	for (unsigned int i = 0; i < 256; i++)
		rows[i] = (uint16_t)rand();
	rig_launch(rig, "k", 1, LANES, (void *[]){ in, out }, 16);
	/* Of the fragments: lane 4 r + c / 2 has the elements c and c + 1 of row r. */
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int r = 0; r < 8; r++)
			for (unsigned int c = 0; c < 8; c++) {
				const uint32_t *f =
					is_store ? (uint32_t *)in + i * LANES : out[i];
				uint16_t element =
					(uint16_t)(f[4 * r + c / 2] >> c % 2 * 16);
				const uint16_t(*m)[8] =
					is_store ? (const uint16_t(*)[8])out
						 : (const uint16_t(*)[8])in;

				check_eq(element,
					trans ? m[8 * i + c][r] : m[8 * i + r][c]);
			}
}

TEST(small_matrices_are_loaded_and_stored)
{
	srand(4);
	for (unsigned int n = 1; n <= 4; n *= 2)
		for (unsigned int i = 0; i < 8; i++)
			run_small(n, i & 1, i & 2, i & 4);
}

TEST(movmatrix_transposes)
{
	CLEAN_RIG rig = rig_new(
		HEADER "mad.wide.u32 %a1, %t1, 4, %a1; mad.wide.u32 %a2, %t1, 4, %a2;\n"
		       "ld.global.b32 %r1, [%a1];\n"
		       "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r1;\n"
		       "st.global.b32 [%a2], %r1; ret; }\n");
	uint16_t(*in)[8] = rig_alloc(rig, 128), (*out)[8] = rig_alloc(rig, 128);

	for (unsigned int i = 0; i < 64; i++)
		in[i / 8][i % 8] = (uint16_t)(i * 259);
	rig_launch(rig, "k", 1, LANES, (void *[]){ in, out }, 16);
	for (unsigned int i = 0; i < 64; i++)
		check_eq(out[i % 8][i / 8], in[i / 8][i % 8]);
}

/*
 * Faults
 */

#define MMA                                                                              \
	"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, "        \
	"{%r5, %r6}, {%r7}, {%r1, %r2, %r3, %r4};\n"

static int run_fault(const char *body, unsigned int block, char *text, size_t size)
{
	CLEAN_RIG rig = NULL;
	char ptx[4096];
	void *memory;
	int r;

	snprintf(ptx, sizeof(ptx), "%s%s ret; }\n",
		HEADER ".shared .align 16 .b8 s[512];\n", body);
	rig = rig_new(ptx);
	memory = rig_alloc(rig, 512);
	r = rig_run(rig, "k", 1, block, (void *[]){ memory, memory }, 16);
	snprintf(text, size, "%.500s", r ? rig->fault.text : "");
	return r;
}

static void check_fault(
	const char *body, unsigned int block, int code, const char *reason)
{
	char text[512];
	int r = run_fault(body, block, text, sizeof(text));

	if (r != code || !strstr(text, reason))
		test_fail(__FILE__, __LINE__, "%s: %d, %s", body, r, text);
}

TEST(matrix_instructions_need_all_lanes)
{
	static const char *const bodies[] = {
		MMA,
		"wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%d1}, [%a1];\n",
		"wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [%a1], {%d1, %d2};\n",
		"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%d2}, "
		"{%d3}, "
		"{%d4, %d5};\n",
		"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0, %r1}, {%r2}, "
		"{%r3}, "
		"{%r4, %r5};\n",
		"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%r0, %r1}, "
		"{%r2}, "
		"{%r3}, {%r4, %r5};\n",
		"mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%r0, %r1, %r2, %r3}, "
		"{%r4, %r5}, {%r6, %r7}, {%r8, %r9, %r10, %r11};\n",
		"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [s];\n",
		"stmatrix.sync.aligned.m8n8.x1.shared.b16 [s], {%r1};\n",
		"movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;\n",
	};
	char body[1024];

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		/* A part of the warp, by a branch, by the guard, and by its block. */
		snprintf(body, sizeof(body), "setp.lt.u32 %%p1, %%t1, 9; @%%p1 exit;\n%s",
			bodies[i]);
		check_fault(body, LANES, 715, "without all lanes");
		snprintf(body, sizeof(body), "setp.lt.u32 %%p1, %%t1, 9;\n@!%%p1 %s",
			bodies[i]);
		check_fault(body, LANES, 715, "without all lanes");
		check_fault(bodies[i], 16, 715, "without all lanes");
		/* No lane at all is none too few. */
		snprintf(body, sizeof(body), "setp.lt.u32 %%p1, %%t1, 0;\n@%%p1 %s",
			bodies[i]);
		check_fault(body, LANES, 0, "");
	}
}

TEST(lanes_that_come_later_are_waited_for)
{
	CLEAN_RIG rig = rig_new(HEADER
		"mad.wide.u32 %a2, %t1, 4, %a2; mov.u32 %r1, 0; mov.u32 %r2, 0;\n"
		"mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r5, 0x3c003c00;\n"
		"mov.u32 %r6, %r5; mov.u32 %r7, %r5; mov.u32 %r8, 0;\n"
		/* A loop of another length in each lane. */
		"mul.lo.u32 %t2, %t1, 300;\n"
		"L: setp.ge.u32 %p1, %r8, %t2; @%p1 bra E; add.u32 %r8, %r8, 1; bra L;\n"
		"E: " MMA "st.global.b32 [%a2], %r4; ret; }\n");
	uint32_t *out = rig_alloc(rig, 128);

	rig_launch(rig, "k", 1, LANES, (void *[]){ out, out }, 16);
	for (unsigned int i = 0; i < LANES; i++)
		check_eq(out[i], 0x41000000u); /* 8 */
}

TEST(matrices_outside_of_memory_are_faults)
{
	static const struct {
		const char *body;
		int code;
		const char *reason;
	} rows[] = {
		{ "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [s+8];\n", 716,
			"misaligned" },
		{ "stmatrix.sync.aligned.m8n8.x2.shared.b16 [s+4], {%r1, %r2};\n", 716,
			"misaligned" },
		{ "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [s+512];\n", 700,
			"illegal" },
		{ "stmatrix.sync.aligned.m8n8.x1.shared.b16 [s+-16], {%r1};\n", 700,
			"illegal" },
		{ "ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%a1];\n", 717,
			"address space" },
		{ "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0, %r1, %r2, "
		  "%r3, "
		  "%r4, %r5, %r6, %r7}, [%a1+8];\n",
			716, "misaligned" },
		{ "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0, %r1, %r2, "
		  "%r3, "
		  "%r4, %r5, %r6, %r7}, [%a1], 20;\n",
			716, "misaligned" },
		{ "wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%d1}, [%a1+4];\n", 716,
			"misaligned" },
		{ "wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%d1}, [%a1], "
		  "67108864;\n",
			700, "illegal" },
		{ "wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%d1}, [%a1], -2;\n",
			700, "illegal" },
		{ "wmma.store.d.sync.aligned.col.m8n8k4.shared.f64 [s+16], {%d1, %d2};\n",
			700, "illegal" },
		{ ".local .align 32 .b8 m[512]; mov.u64 %a3, m; cvta.local.u64 %a3, "
		  "%a3;\n"
		  "wmma.load.c.sync.aligned.row.m8n8k4.f64 {%d1, %d2}, [%a3];\n",
			717, "address space" },
		{ "mad.wide.u32 %a1, %t1, 16, %a1;\n"
		  "wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%d1}, [%a1];\n",
			715, "different matrices" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_fault(rows[i].body, LANES, rows[i].code, rows[i].reason);
}

/* Forms that ptxas rejects, too, and those of other devices. */
TEST(wrong_forms_are_refused)
{
	static const char *const bodies[] = {
		"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {%r0, %r1, %r2, %r3}, "
		"{%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0, %r1};",
		"mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, "
		"{%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0, %r1, %r2, %r3};",
		"mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r0, %r1, %r2, "
		"%r3}, "
		"{%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0, %r1, %r2, %r3};",
		"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, "
		"{%r0, %r1, %r2}, {%r0, %r1}, {%r0, %r1, %r2, %r3};",
		"mma.sync.aligned.m16n8k16.row.col.rz.f32.f16.f16.f32 {%r0, %r1, %r2, "
		"%r3}, "
		"{%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0, %r1, %r2, %r3};",
		"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor {%r0, %r1}, {%r2}, "
		"{%r3}, {%r4, %r5};",
		"mma.sync.aligned.m8n8k16.row.col.satfinite.f32.f16.f16.f32 {%r0, %r1}, "
		"{%r2}, {%r3}, {%r4, %r5};",
		"mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r0, %r1, %r2, "
		"%r3}, "
		"{%r0, %r1}, {%r2, %r3}, {%r4, %r5, %r6, %r7}, %r8, 2;",
		"wmma.load.a.sync.aligned.col.m8n8k32.s4 {%r0}, [%a1];",
		"wmma.load.c.sync.aligned.row.m16n16k8.f16 {%r0, %r1, %r2, %r3}, [%a1];",
		"wmma.load.d.sync.aligned.row.m16n16k8.f32 {%r0, %r1, %r2, %r3, %r4, "
		"%r5, "
		"%r6, %r7}, [%a1];",
		"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 {%r0, %r1, %r2, "
		"%r3, "
		"%r4, %r5, %r6, %r7}, {%r0, %r1}, {%r0, %r1}, {%r0, %r1, %r2, %r3, %r4, "
		"%r5, %r6, %r7};",
		"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [s];",
		"ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r1, %r2}, [s];",
		"movmatrix.sync.aligned.m8n8.b16 %r1, %r2;",
		"mma.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0, %r1}, {%r2}, {%r3}, "
		"{%r4, %r5};",
	};
	struct softgpu_message message;
	char ptx[2048];

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		snprintf(ptx, sizeof(ptx), "%s.shared .align 16 .b8 s[512];\n%s ret; }\n",
			HEADER, bodies[i]);
		if (rig_lookup(ptx, "k", &message) != 801)
			test_fail(__FILE__, __LINE__, "%s is not refused", bodies[i]);
	}
}
