/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups: statements of the grammar in the newer groups of instructions
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar-groups.h"

/*
 * To text: operands in %r2 and %r3, the result in %r4 or, of 64 bits, in %d14; %r7 counts
 * loops
 */

static const char *const conversions[] = {
	"cvt.u16.u32 %h1, %r2;\ncvt.rn.f16x2.e4m3x2 %r4, %h1;\n",
	"cvt.u16.u32 %h1, %r2;\ncvt.rn.f16x2.e5m2x2 %r4, %h1;\n",
	"cvt.u16.u32 %h1, %r2;\ncvt.rn.relu.f16x2.e5m2x2 %r4, %h1;\n",
	"cvt.u16.u32 %h1, %r2;\ncvt.rn.bf16x2.ue8m0x2 %r4, %h1;\n",
};

static const char *const videos[] = {
	"vabsdiff4.u32.u32.u32.add %r4, %r2, %r3, %r2;\n",
	"vadd.u32.u32.u32 %r4, %r2.b1, %r3.h1;\n",
	"vmin.u32.u32.u32.add %r4, %r2.b0, %r3.b2, %r3;\n",
	"vsub.s32.u32.u32 %r4, %r2.b3, %r3.b0;\n",
};

/* Texel coordinates, most of them within the texture; in elements and in bytes. */
static const char *const textures[] = {
	"and.b32 %r2, %r2, 127;\ntex.1d.v4.u32.s32 {%r4, %r5, %r6, %r1}, [%d14, "
	"{%r2}];\n",
	"tex.1d.v4.u32.s32 {%r4, %r5, %r6, %r1}, [%d14, {%r2}];\n",
	"and.b32 %r2, %r2, 508;\nsuld.b.1d.b32.zero %r4, [%d14, {%r2}];\n",
	"and.b32 %r2, %r2, 508;\nsuld.b.1d.b32.clamp %r4, [%d14, {%r2}];\n",
};

#define CHOICES 4u /* of each of these */

static const char *const matrices[] = {
	"movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r2;\ncvt.u64.u32 %d14, %r4;\n",
	"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r4, %r5}, {%r2}, {%r3}, "
	"{%r2, %r3};\nmov.b64 %d14, {%r4, %r5};\n",
	"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];\ncvt.u64.u32 %d14, "
	"%r4;\n",
	"ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r4}, [%r2];\n"
	"cvt.u64.u32 %d14, %r4;\n",
};

#define MATRIX_LOAD 2u /* from here on the operand is an address */

/* Operations from here on are products that were added later. */
#define LATER_PRODUCTS 192u

static bool is_later_product(const struct grammar_statement *s)
{
	return s->operation >= LATER_PRODUCTS;
}

/* Of fragments in memory; the other one has its operands in registers. */
static bool is_memory_product(const struct grammar_statement *s)
{
	return is_later_product(s) && s->operation % 2;
}

static bool is_surface(const struct grammar_statement *s)
{
	return s->operation % CHOICES >= 2;
}

static int write_texture(const struct grammar_statement *s,
	const struct grammar_places *places, char *text)
{
	unsigned long long object = is_surface(s) ? places->surface : places->texture;

	/* The number of no object: a register's value is never one. */
	if (s->is_outside)
		object ^= UINT64_C(1) << (s->value % 8 + 8);
	return snprintf(text, GROUP_TEXT,
		"cvt.u32.u64 %%r2, %%d%u;\nmov.u64 %%d14, %llu;\n%s"
		"cvt.u64.u32 %%d%u, %%r4;\n",
		s->a, object, textures[s->operation % CHOICES], s->d);
}

static int write_copy(const struct grammar_statement *s,
	const struct grammar_places *places, char *text)
{
	char from[64];

	if (s->is_outside)
		snprintf(from, sizeof(from), "%llu",
			(unsigned long long)places->outside[s->value % 8]);
	else
		snprintf(from, sizeof(from), "%%d8");
	return snprintf(text, GROUP_TEXT,
		"mov.u64 %%d14, %s;\ncp.async.%s.shared.global [%%d10+%u], [%%d14+%u], "
		"%u;\ncp.async.commit_group;\ncp.async.wait_group 0;\n",
		from, s->size == 16 ? "cg" : "ca", (unsigned int)s->value & 48,
		s->is_outside ? 0 : (unsigned int)s->value & 48, s->size);
}

/* Rows of A and columns of B are in the first slots of the warp, the sums in the others.
 */
static int write_memory_product(const struct grammar_statement *s, char *text)
{
	const unsigned int a = (unsigned int)s->value & 48;
	const char *base = "mov.u32 %r2, %laneid;\nmul.wide.u32 %d14, %r2, 64;\n"
			   "sub.u64 %d14, %d10, %d14;\n";
	char outside[64];

	snprintf(outside, sizeof(outside), "mov.u64 %%d14, %u;\n",
		(GRAMMAR_SHARED + 15) / 16 * 16);
	return snprintf(text, GROUP_TEXT,
		"bar.warp.sync -1;\n%smov.u32 %%r4, %u;\n"
		"wmma.load.a.sync.aligned.row.m16n16k16.shared.u8 {%%r0, %%r1}, "
		"[%%d14+%u], 64;\n"
		"wmma.load.b.sync.aligned.col.m16n16k16.shared.u8 {%%r2, %%r3}, "
		"[%%d14+%u], 64;\n"
		"wmma.mma.sync.aligned.row.col.m16n16k16.s32.u8.u8.s32 {%%r8, %%r9, "
		"%%r10, %%r11, %%r12, %%r13, %%r14, %%r15}, {%%r0, %%r1}, {%%r2, %%r3}, "
		"{%%r4, %%r4, %%r4, %%r4, %%r4, %%r4, %%r4, %%r4};\n"
		"wmma.store.d.sync.aligned.row.m16n16k16.shared.s32 [%%d14+1024], {%%r8, "
		"%%r9, %%r10, %%r11, %%r12, %%r13, %%r14, %%r15}, 16;\n"
		"bar.warp.sync -1;\n",
		s->is_outside ? outside : base, s->b, a, (a + 16) % 64);
}

static int write_register_product(const struct grammar_statement *s, char *text)
{
	return snprintf(text, GROUP_TEXT,
		"cvt.u32.u64 %%r2, %%d%u;\ncvt.u32.u64 %%r3, %%d%u;\n"
		"mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%%r8, %%r9, %%r10, "
		"%%r11}, {%%r2, %%r3}, {%%r2}, {%%r2, %%r3, %%r2, %%r3};\n"
		"sub.u32 %%r8, %%r8, %%r10;\nsub.u32 %%r9, %%r9, %%r11;\n"
		"mov.b64 %%d%u, {%%r8, %%r9};\n",
		s->a, s->b, s->d);
}

/* Each lane has a row in its own slot, of which the first eight count: they are others'
 * slots, so that accesses before and after are in order. */
static int write_matrix(const struct grammar_statement *s, char *text)
{
	const unsigned int o = s->operation % CHOICES;

	if (is_later_product(s))
		return is_memory_product(s) ? write_memory_product(s, text)
					    : write_register_product(s, text);
	if (o < MATRIX_LOAD)
		return snprintf(text, GROUP_TEXT,
			"cvt.u32.u64 %%r2, %%d%u;\ncvt.u32.u64 %%r3, %%d%u;\n%s"
			"mov.u64 %%d%u, %%d14;\n",
			s->a, s->b, matrices[o], s->d);
	if (s->is_outside)
		return snprintf(text, GROUP_TEXT, "mov.u32 %%r2, %u;\n%s",
			(GRAMMAR_SHARED + 15) / 16 * 16, matrices[o]);
	return snprintf(text, GROUP_TEXT,
		"add.u64 %%d14, %%d10, %u;\ncvt.u32.u64 %%r2, %%d14;\n"
		"bar.warp.sync -1;\n%smov.u64 %%d%u, %%d14;\nbar.warp.sync -1;\n",
		(unsigned int)s->value & 48, matrices[o], s->d);
}

size_t group_write(const struct grammar_statement *s, const struct grammar_places *places,
	char text[GROUP_TEXT])
{
	int n;

	switch (s->kind) {
	case GRAMMAR_TEXTURE:
		n = write_texture(s, places, text);
		break;
	case GRAMMAR_COPY:
		n = write_copy(s, places, text);
		break;
	case GRAMMAR_MATRIX:
		n = write_matrix(s, text);
		break;
	default:
		n = snprintf(text, GROUP_TEXT,
			"cvt.u32.u64 %%r2, %%d%u;\ncvt.u32.u64 %%r3, %%d%u;\n%s"
			"cvt.u64.u32 %%d%u, %%r4;\n",
			s->a, s->b,
			s->kind == GRAMMAR_CONVERT ? conversions[s->operation % CHOICES]
						   : videos[s->operation % CHOICES],
			s->d);
	}
	if (n < 0 || (unsigned int)n >= GROUP_TEXT)
		abort();
	return n;
}

/*
 * By the manual
 */

/* e4m3 has no infinities; its smallest numbers are not subnormal in f16. */
static uint32_t half_of_e4m3(uint32_t byte)
{
	const uint32_t sign = (byte & 0x80) << 8, rest = byte & 0x7f;
	uint32_t mantissa = rest & 7, exponent = rest >> 3;

	if (rest == 0x7f)
		return 0x7fff;
	if (!rest)
		return sign;
	if (!exponent) {
		for (exponent = 1; !(mantissa & 8); exponent--)
			mantissa <<= 1;
		mantissa &= 7;
		/* exponent is 1, 0, -1 or -2: below a bias of 7 */
	}
	return sign | (exponent + 8) << 10 | mantissa << 7;
}

static uint32_t half_of_e5m2(uint32_t byte, bool relu)
{
	if ((byte & 0x7f) > 0x7c)
		return 0x7fff;
	return relu && byte & 0x80 ? 0 : byte << 8;
}

/* 2^-127 is subnormal in bf16. */
static uint32_t bhalf_of_scale(uint32_t byte)
{
	return byte == 255 ? 0x7fff : byte ? byte << 7 : 0x40;
}

static uint32_t convert(unsigned int o, uint32_t a)
{
	uint32_t result = 0;

	for (unsigned int i = 0; i < 2; i++) {
		const uint32_t byte = a >> (8 * i) & 255;
		const uint32_t half = o == 0   ? half_of_e4m3(byte)
				      : o == 3 ? bhalf_of_scale(byte)
					       : half_of_e5m2(byte, o == 2);

		result |= half << (16 * i);
	}
	return result;
}

static uint32_t byte_of(uint32_t x, unsigned int i)
{
	return x >> (8 * i) & 255;
}

static uint32_t video(unsigned int o, uint32_t a, uint32_t b)
{
	uint32_t sum = a;

	switch (o) {
	case 0:
		for (unsigned int i = 0; i < 4; i++)
			sum += abs((int)byte_of(a, i) - (int)byte_of(b, i));
		return sum;
	case 1:
		return byte_of(a, 1) + (b >> 16);
	case 2:
		return (byte_of(a, 0) < byte_of(b, 2) ? byte_of(a, 0) : byte_of(b, 2)) +
		       b;
	default:
		return byte_of(a, 3) - byte_of(b, 0);
	}
}

static uint32_t fetch(unsigned int o, uint32_t a)
{
	switch (o) {
	case 0:
		a &= 127;
		break;
	case 1:
		break;
	default:
		a = (a & 508) / 4;
		if (o == 3 && a >= GRAMMAR_TEXELS)
			a = GRAMMAR_TEXELS - 1;
	}
	return a < GRAMMAR_TEXELS ? group_texel(a) : 0;
}

void group_run(const struct grammar_statement *s, struct grammar_thread *thread)
{
	uint64_t *registers = thread->registers;
	const unsigned int o = s->operation % CHOICES;
	const unsigned int place = (unsigned int)s->value & 48;

	if (s->is_outside) {
		thread->faults = true;
		return;
	}
	switch (s->kind) {
	case GRAMMAR_CONVERT:
		registers[s->d] = convert(o, (uint32_t)registers[s->a]);
		return;
	case GRAMMAR_VIDEO:
		registers[s->d] =
			video(o, (uint32_t)registers[s->a], (uint32_t)registers[s->b]);
		return;
	case GRAMMAR_TEXTURE:
		registers[s->d] = fetch(o, (uint32_t)registers[s->a]);
		return;
	case GRAMMAR_COPY:
		memcpy(thread->slots[GRAMMAR_IN_SHARED] + place,
			thread->slots[GRAMMAR_GLOBAL] + place, s->size);
		return;
	}
}

/* Row and column of an element that a lane has, in a matrix of eight rows of 16 bits. */
static uint16_t *element_of(uint16_t matrix[64], unsigned int lane, unsigned int i)
{
	return &matrix[lane / 4 * 8 + lane % 4 * 2 + i];
}

static void transpose(uint16_t matrix[64])
{
	uint16_t from[64];

	memcpy(from, matrix, sizeof(from));
	for (unsigned int i = 0; i < 64; i++)
		matrix[i % 8 * 8 + i / 8] = from[i];
}

static void run_transpose(
	const struct grammar_statement *s, struct grammar_thread *threads)
{
	uint16_t matrix[64];

	for (unsigned int lane = 0; lane < GRAMMAR_WARP; lane++)
		for (unsigned int i = 0; i < 2; i++)
			*element_of(matrix, lane, i) =
				(uint16_t)(threads[lane].registers[s->a] >> (16 * i));
	transpose(matrix);
	for (unsigned int lane = 0; lane < GRAMMAR_WARP; lane++)
		threads[lane].registers[s->d] = (uint32_t)*element_of(matrix, lane, 1)
							<< 16 |
						*element_of(matrix, lane, 0);
}

static void run_load(const struct grammar_statement *s, struct grammar_thread *threads)
{
	const unsigned int place = (unsigned int)s->value & 48;
	uint16_t matrix[64];

	for (unsigned int row = 0; row < 8; row++)
		memcpy(&matrix[row * 8], threads[row].slots[GRAMMAR_IN_SHARED] + place,
			16);
	if (s->operation % CHOICES > MATRIX_LOAD)
		transpose(matrix);
	for (unsigned int lane = 0; lane < GRAMMAR_WARP; lane++)
		threads[lane].registers[s->d] = (uint32_t)*element_of(matrix, lane, 1)
							<< 16 |
						*element_of(matrix, lane, 0);
}

/* 8 by 16 by 8: rows of A and columns of B are in four lanes each, four bytes a lane. */
static void run_product(const struct grammar_statement *s, struct grammar_thread *threads)
{
	uint32_t a[GRAMMAR_WARP], b[GRAMMAR_WARP];

	for (unsigned int lane = 0; lane < GRAMMAR_WARP; lane++) {
		a[lane] = (uint32_t)threads[lane].registers[s->a];
		b[lane] = (uint32_t)threads[lane].registers[s->b];
	}
	for (unsigned int lane = 0; lane < GRAMMAR_WARP; lane++) {
		uint32_t sums[2] = { a[lane], b[lane] };

		for (unsigned int i = 0; i < 2; i++)
			for (unsigned int k = 0; k < 16; k++) {
				const unsigned int row = lane / 4,
						   column = lane % 4 * 2 + i;
				const int8_t x =
					(int8_t)byte_of(a[row * 4 + k / 4], k % 4);
				const int8_t y =
					(int8_t)byte_of(b[column * 4 + k / 4], k % 4);

				sums[i] += (uint32_t)(x * y);
			}
		threads[lane].registers[s->d] = (uint64_t)sums[1] << 32 | sums[0];
	}
}

/* 16 by 16 by 16, of bytes; the sums are rows of words. */
static void run_memory_product(
	const struct grammar_statement *s, struct grammar_thread *threads)
{
	const unsigned int a = (unsigned int)s->value & 48, b = (a + 16) % 64;
	uint32_t sums[16][16];

	for (unsigned int row = 0; row < 16; row++)
		for (unsigned int column = 0; column < 16; column++) {
			const uint8_t *x = threads[row].slots[GRAMMAR_IN_SHARED] + a;
			const uint8_t *y = threads[column].slots[GRAMMAR_IN_SHARED] + b;

			sums[row][column] = s->b;
			for (unsigned int k = 0; k < 16; k++)
				sums[row][column] += (uint32_t)x[k] * y[k];
		}
	for (unsigned int row = 0; row < 16; row++)
		memcpy(threads[16 + row].slots[GRAMMAR_IN_SHARED], sums[row],
			sizeof(sums[row]));
}

/* 16 by 16 by 8: the lower rows of A are in the second register. */
static void run_register_product(
	const struct grammar_statement *s, struct grammar_thread *threads)
{
	uint32_t regs[2][GRAMMAR_WARP], sums[2][2];

	for (unsigned int lane = 0; lane < GRAMMAR_WARP; lane++) {
		regs[0][lane] = (uint32_t)threads[lane].registers[s->a];
		regs[1][lane] = (uint32_t)threads[lane].registers[s->b];
	}
	for (unsigned int lane = 0; lane < GRAMMAR_WARP; lane++) {
		for (unsigned int n = 0; n < 4; n++) {
			const unsigned int half = n / 2, column = lane % 4 * 2 + n % 2;
			uint32_t sum = regs[n % 2][lane];

			for (unsigned int k = 0; k < 16; k++)
				sum += (uint32_t)((int8_t)byte_of(
							  regs[half]
							      [lane / 4 * 4 + k / 4],
							  k % 4) *
						  (int8_t)byte_of(
							  regs[0][column * 4 + k / 4],
							  k % 4));
			sums[half][n % 2] = sum;
		}
		threads[lane].registers[s->d] = (uint64_t)(sums[0][1] - sums[1][1])
							<< 32 |
						(uint32_t)(sums[0][0] - sums[1][0]);
	}
}

void group_run_warp(const struct grammar_statement *s, struct grammar_thread *threads)
{
	const unsigned int o = s->operation % CHOICES;
	const bool has_address =
		is_later_product(s) ? is_memory_product(s) : o >= MATRIX_LOAD;

	if (has_address && s->is_outside) {
		for (unsigned int lane = 0; lane < GRAMMAR_WARP; lane++)
			threads[lane].faults = true;
		return;
	}
	if (is_memory_product(s))
		run_memory_product(s, threads);
	else if (is_later_product(s))
		run_register_product(s, threads);
	else if (o >= MATRIX_LOAD)
		run_load(s, threads);
	else if (o)
		run_product(s, threads);
	else
		run_transpose(s, threads);
}
