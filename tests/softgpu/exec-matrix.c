/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices: mma and its sparse form, against sums over the elements
 *
 * The reference places elements in lanes by the formulas of the PTX manual, and adds the
 * exact products to C by ascending k, in double, rounding the sum once.
 */

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec-harness.h"
#include "matrix-numbers.h"
#include "matrix-text.h"
#include "test.h"

#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *

#define CASES 24
#define LANES 32
#define REGISTERS 25 /* of A, B, C and the metadata */

struct form {
	const char *text; /* after the layouts, up to the operands */
	enum number a, b, c, d;
	unsigned int m, n, k;
	unsigned int n_selectors; /* 0: not sparse */
	int round;
};

/* clang-format off */
static const struct form forms[] = {
	{ ".f64.f64.f64.f64", F64, F64, F64, F64, 8, 8, 4, 0 },
	{ ".f64.f64.f64.f64", F64, F64, F64, F64, 16, 8, 4, 0 },
	{ ".f64.f64.f64.f64", F64, F64, F64, F64, 16, 8, 8, 0 },
	{ ".f64.f64.f64.f64", F64, F64, F64, F64, 16, 8, 16, 0 },
	{ ".rz.f64.f64.f64.f64", F64, F64, F64, F64, 8, 8, 4, 0, FE_TOWARDZERO },
	{ ".rm.f64.f64.f64.f64", F64, F64, F64, F64, 16, 8, 8, 0, FE_DOWNWARD },
	{ ".rp.f64.f64.f64.f64", F64, F64, F64, F64, 16, 8, 16, 0, FE_UPWARD },
	{ ".f32.f16.f16.f32", F16, F16, F32, F32, 16, 8, 8, 0 },
	{ ".f16.f16.f16.f16", F16, F16, F16, F16, 16, 8, 8, 0 },
	{ ".f32.f16.f16.f32", F16, F16, F32, F32, 16, 8, 16, 0 },
	{ ".f16.f16.f16.f16", F16, F16, F16, F16, 16, 8, 16, 0 },
	{ ".f32.bf16.bf16.f32", BF16, BF16, F32, F32, 16, 8, 8, 0 },
	{ ".f32.bf16.bf16.f32", BF16, BF16, F32, F32, 16, 8, 16, 0 },
	{ ".f32.tf32.tf32.f32", TF32, TF32, F32, F32, 16, 8, 4, 0 },
	{ ".f32.tf32.tf32.f32", TF32, TF32, F32, F32, 16, 8, 8, 0 },
	{ ".f32.e4m3.e5m2.f32", E4M3, E5M2, F32, F32, 16, 8, 16, 0 },
	{ ".f16.e5m2.e4m3.f16", E5M2, E4M3, F16, F16, 16, 8, 16, 0 },
	{ ".f32.e4m3.e4m3.f32", E4M3, E4M3, F32, F32, 16, 8, 32, 0 },
	{ ".f16.e5m2.e5m2.f16", E5M2, E5M2, F16, F16, 16, 8, 32, 0 },
	{ ".s32.s8.u8.s32", S8, U8, S32, S32, 8, 8, 16, 0 },
	{ ".satfinite.s32.s8.s8.s32", S8, S8, S32, S32_SAT, 8, 8, 16, 0 },
	{ ".s32.u8.u8.s32", U8, U8, S32, S32, 16, 8, 16, 0 },
	{ ".s32.u8.s8.s32", U8, S8, S32, S32, 16, 8, 32, 0 },
	{ ".satfinite.s32.s8.s8.s32", S8, S8, S32, S32_SAT, 16, 8, 32, 0 },
	{ ".s32.s4.u4.s32", S4, U4, S32, S32, 8, 8, 32, 0 },
	{ ".s32.u4.s4.s32", U4, S4, S32, S32, 16, 8, 32, 0 },
	{ ".satfinite.s32.s4.s4.s32", S4, S4, S32, S32_SAT, 16, 8, 64, 0 },
	{ ".s32.b1.b1.s32.xor.popc", B1_XOR, B1_XOR, S32, S32, 8, 8, 128, 0 },
	{ ".s32.b1.b1.s32.and.popc", B1_AND, B1_AND, S32, S32, 8, 8, 128, 0 },
	{ ".s32.b1.b1.s32.and.popc", B1_AND, B1_AND, S32, S32, 16, 8, 128, 0 },
	{ ".s32.b1.b1.s32.xor.popc", B1_XOR, B1_XOR, S32, S32, 16, 8, 256, 0 },
	{ ".f32.f16.f16.f32", F16, F16, F32, F32, 16, 8, 16, 4 },
	{ ".f16.f16.f16.f16", F16, F16, F16, F16, 16, 8, 16, 4 },
	{ ".f32.bf16.bf16.f32", BF16, BF16, F32, F32, 16, 8, 32, 2 },
	{ ".f16.f16.f16.f16", F16, F16, F16, F16, 16, 8, 32, 2 },
	{ ".f32.tf32.tf32.f32", TF32, TF32, F32, F32, 16, 8, 8, 4 },
	{ ".f32.tf32.tf32.f32", TF32, TF32, F32, F32, 16, 8, 16, 2 },
	{ ".s32.s8.u8.s32", S8, U8, S32, S32, 16, 8, 32, 2 },
	{ ".satfinite.s32.s8.s8.s32", S8, S8, S32, S32_SAT, 16, 8, 64, 1 },
	{ ".s32.s4.u4.s32", S4, U4, S32, S32, 16, 8, 64, 2 },
	{ ".s32.u4.u4.s32", U4, U4, S32, S32, 16, 8, 128, 1 },
	{ ".f32.e4m3.e5m2.f32", E4M3, E5M2, F32, F32, 16, 8, 64, 1 },
};
/* clang-format on */

/* A fragment has @count elements in each lane, "u" of them in a register. */
struct place {
	unsigned int row, column;
};

/* The manual has a formula for each shape; they agree if u is taken for the numbers. */
static struct place place_in_a(
	const struct form *f, unsigned int u, unsigned int lane, unsigned int i)
{
	unsigned int group = lane >> 2, thread = lane % 4;
	bool upper = f->m == 8 || i / u % 2 == 0;
	unsigned int step = f->m == 8 ? i / u : i / (2 * u);

	return (struct place){ upper ? group : group + 8,
		thread * u + i % u + step * 4 * u };
}

static struct place place_in_b(unsigned int u, unsigned int lane, unsigned int i)
{
	return (struct place){ lane % 4 * u + i % u + i / u * 4 * u, lane >> 2 };
}

static struct place place_in_c(unsigned int lane, unsigned int i)
{
	return (struct place){ i < 2 ? lane >> 2 : (lane >> 2) + 8,
		lane % 4 * 2 + (i & 1) };
}

/* Matrices of one case, as the bits of their elements; A without its zeros. */
struct matrices {
	uint64_t a[16][256], b[256][8], c[16][8];
	unsigned int from[16][256]; /* sparse: the row of B for each element of A */
	uint32_t metadata[LANES];
};

static unsigned int depth_of(const struct form *f)
{
	return f->n_selectors ? f->k / 2 : f->k;
}

static unsigned int per_register(enum number type)
{
	return type == F64 ? 1 : 32 / number_bits(type);
}

static unsigned int n_registers(enum number type, unsigned int n_elements)
{
	return n_elements / LANES / per_register(type);
}

/*
 * Metadata
 */

/*
 * Chooses what the chunk holds: bits of it, and the rows of B. Chunks are four elements,
 * of tf32 two, of 4 bits eight, in pairs.
 */
static uint32_t choose_chunk(const struct form *f, unsigned int c, unsigned int *from)
{
	unsigned int low = (unsigned int)rand() % 3;
	unsigned int high = low + 1 + (unsigned int)rand() % (3 - low);

	if (f->a == TF32) {
		from[c] = 2 * c + low % 2;
		return low % 2 ? 14 : 4;
	}
	if (number_bits(f->a) == 4) {
		for (unsigned int i = 0; i < 2; i++) {
			from[4 * c + i] = 8 * c + 2 * low + i;
			from[4 * c + 2 + i] = 8 * c + 2 * high + i;
		}
	} else {
		from[2 * c] = 4 * c + low;
		from[2 * c + 1] = 4 * c + high;
	}
	return low | high << 2;
}

/* The lanes that the selector names have the chunks, the others something else. */
static void choose_metadata(
	const struct form *f, unsigned int selector, struct matrices *x)
{
	bool narrow = number_bits(f->a) <= 8;
	unsigned int n = f->k / (f->a == TF32 ? 2 : number_bits(f->a) == 4 ? 8 : 4);
	unsigned int lane, shift;

	for (unsigned int i = 0; i < LANES; i++)
		x->metadata[i] = (uint32_t)rand() * 2654435761u;
	for (unsigned int row = 0; row < 16; row++)
		for (unsigned int c = 0; c < n; c++) {
			uint32_t bits = choose_chunk(f, c, x->from[row]);

			/* 8 chunks of a row in a lane, or 4 of a row and of the row 8
			 * below. */
			if (narrow) {
				lane = c / 8 * 2 + (row >= 8);
				shift = c % 8 * 4;
			} else {
				lane = c / 4;
				shift = c % 4 * 4 + (row >= 8 ? 16 : 0);
			}
			lane += f->n_selectors == 4 ? selector : 2 * selector;
			lane += row % 8 * 4;
			x->metadata[lane] &= ~(15u << shift);
			x->metadata[lane] |= bits << shift;
		}
}

/*
 * A case
 */

static void choose_matrices(const struct form *f, unsigned int number,
	unsigned int selector, struct matrices *x)
{
	/* The first ones without infinities and the like. */
	unsigned int edges = number < CASES / 2 ? 0 : 1 + number % 8 * 3;

	for (unsigned int i = 0; i < f->m; i++)
		for (unsigned int k = 0; k < depth_of(f); k++) {
			x->a[i][k] = number_random(f->a, edges);
			x->from[i][k] = k;
		}
	for (unsigned int k = 0; k < f->k; k++)
		for (unsigned int j = 0; j < f->n; j++)
			x->b[k][j] = number_random(f->b, edges);
	for (unsigned int i = 0; i < f->m; i++)
		for (unsigned int j = 0; j < f->n; j++)
			x->c[i][j] = number_random(f->c, edges);
	if (f->n_selectors)
		choose_metadata(f, selector, x);
}

/* Puts an element into a register of a lane. */
static void put(uint32_t *registers, enum number type, unsigned int lane, unsigned int i,
	uint64_t bits)
{
	unsigned int u = per_register(type);

	if (type == F64)
		((uint64_t *)registers)[i * LANES + lane] = bits;
	else
		registers[i / u * LANES + lane] |= (uint32_t)bits
						   << i % u * number_bits(type);
}

static uint64_t get(
	const uint32_t *registers, enum number type, unsigned int lane, unsigned int i)
{
	unsigned int u = per_register(type), bits = number_bits(type);

	if (type == F64)
		return ((const uint64_t *)registers)[i * LANES + lane];
	return registers[i / u * LANES + lane] >> i % u * bits &
	       (UINT64_MAX >> (64 - bits));
}

static void fill_registers(const struct form *f, const struct matrices *x, uint32_t *to)
{
	unsigned int words = f->a == F64 ? 2 : 1, u = per_register(f->a);
	unsigned int n_a = f->m * depth_of(f), n_b = f->k * f->n, n_c = f->m * f->n;
	uint32_t *b = to + n_registers(f->a, n_a) * words * LANES;
	uint32_t *c = b + n_registers(f->b, n_b) * words * LANES;
	struct place p;

	for (unsigned int lane = 0; lane < LANES; lane++) {
		for (unsigned int i = 0; i < n_a / LANES; i++) {
			p = place_in_a(f, u, lane, i);
			put(to, f->a, lane, i, x->a[p.row][p.column]);
		}
		for (unsigned int i = 0; i < n_b / LANES; i++) {
			p = place_in_b(u, lane, i);
			put(b, f->b, lane, i, x->b[p.row][p.column]);
		}
		for (unsigned int i = 0; i < n_c / LANES; i++) {
			p = place_in_c(lane, i);
			put(c, f->c, lane, i, x->c[p.row][p.column]);
		}
		if (f->n_selectors)
			c[n_registers(f->c, n_c) * LANES + lane] = x->metadata[lane];
	}
}

static uint64_t expected(const struct form *f, const struct matrices *x, unsigned int row,
	unsigned int column)
{
	struct sum sum = sum_begin(f->c, x->c[row][column]);

	fesetround(f->round);
	for (unsigned int k = 0; k < depth_of(f); k++)
		sum_add(&sum, f->a, x->a[row][k], f->b, x->b[x->from[row][k]][column]);
	fesetround(FE_TONEAREST);
	return sum_end(&sum, f->d);
}

static void check_case(const struct form *f, unsigned int number,
	const struct matrices *x, const uint32_t *d)
{
	for (unsigned int lane = 0; lane < LANES; lane++)
		for (unsigned int i = 0; i < f->m * f->n / LANES; i++) {
			struct place p = place_in_c(lane, i);
			uint64_t want = expected(f, x, p.row, p.column);
			uint64_t is = get(d, f->d, lane, i);

			if (is != want)
				test_fail(__FILE__, __LINE__,
					"mma%s.m%un%uk%u%s, case %u, row %u, column %u: "
					"%llx, not "
					"%llx",
					f->n_selectors ? ".sp" : "", f->m, f->n, f->k,
					f->text, number, p.row, p.column, (long long)is,
					(long long)want);
		}
}

/* One kernel for each selector, in which a block is a warp and has a case. */
static void write_kernel(struct text *ptx, const struct form *f, unsigned int selector)
{
	unsigned int n_a = n_registers(f->a, f->m * depth_of(f));
	unsigned int n_b = n_registers(f->b, f->k * f->n);
	unsigned int n_c = n_registers(f->c, f->m * f->n);
	unsigned int n_d = n_registers(f->d, f->m * f->n);
	unsigned int bits = f->a == F64 ? 64 : 32, n = n_a + n_b + n_c;
	char letter = f->a == F64 ? 'd' : 'r';

	text_add(ptx,
		".version 9.0\n.target sm_121\n.address_size 64\n"
		".visible .entry k(.param .u64 in, .param .u64 out) {\n"
		".reg .b32 %%r<64>, %%t<4>; .reg .b64 %%d<40>, %%a<4>;\n"
		"ld.param.u64 %%a1, [in]; ld.param.u64 %%a2, [out];\n"
		"mov.u32 %%t1, %%ctaid.x; mov.u32 %%t2, %%tid.x;\n"
		"mad.wide.u32 %%a1, %%t1, %u, %%a1; mad.wide.u32 %%a2, %%t1, %u, %%a2;\n"
		"mad.wide.u32 %%a1, %%t2, %u, %%a1; mad.wide.u32 %%a2, %%t2, %u, %%a2;\n",
		REGISTERS * LANES * 8, REGISTERS * LANES * 8, bits / 8, bits / 8);
	for (unsigned int i = 0; i < n + (f->n_selectors > 0); i++)
		text_add(ptx, "ld.global.b%u %%%c%u, [%%a1+%u];\n", bits, letter, i,
			i * LANES * bits / 8);
	text_add(ptx, "mma%s.sync.aligned.m%un%uk%u.row.col%s ",
		!f->n_selectors ? ""
		: selector % 2	? ".sp"
				: ".sp::ordered_metadata",
		f->m, f->n, f->k, f->text);
	text_add_vector(ptx, letter, n + 1, n_d, ", ");
	text_add_vector(ptx, letter, 0, n_a, ", ");
	text_add_vector(ptx, letter, n_a, n_b, ", ");
	text_add_vector(ptx, letter, n_a + n_b, n_c, "");
	if (f->n_selectors)
		text_add(ptx, ", %%%c%u, %u", letter, n, selector);
	text_add(ptx, ";\n");
	for (unsigned int i = 0; i < n_d; i++)
		text_add(ptx, "st.global.b%u [%%a2+%u], %%%c%u;\n", bits,
			i * LANES * bits / 8, letter, n + 1 + i);
	text_add(ptx, "ret; }\n");
}

static void run_form(const struct form *f, unsigned int selector)
{
	static struct matrices all[CASES];
	struct text ptx = {};
	CLEAN_RIG rig = NULL;
	uint32_t(*in)[REGISTERS * LANES * 2], (*out)[REGISTERS * LANES * 2];

	write_kernel(&ptx, f, selector);
	rig = rig_new(ptx.text);
	in = rig_alloc(rig, CASES * sizeof(*in));
	out = rig_alloc(rig, CASES * sizeof(*out));
	for (unsigned int i = 0; i < CASES; i++) {
		choose_matrices(f, i, selector, &all[i]);
		fill_registers(f, &all[i], in[i]);
	}
	rig_launch(rig, "k", CASES, LANES, (void *[]){ in, out }, 16);
	for (unsigned int i = 0; i < CASES; i++)
		check_case(f, i, &all[i], out[i]);
}

TEST(mma_adds_exact_products_by_ascending_k)
{
	srand(1);
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		for (unsigned int s = 0; s < (forms[i].n_selectors ?: 1); s++)
			run_form(&forms[i], s);
}
