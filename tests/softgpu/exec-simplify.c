/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fewer operations with the same results: copies that are replaced, products and sums,
 * comparisons and branches in one, addresses that are looked at once. Each test has code
 * to which that applies, and code that looks like it but must stay as it is.
 */

#include "exec-body.h"

#define LANES 32u

/* Runs a body (exec-body.h) for a warp. @out: eight words of each thread */
static void run_words(const char *outside, const char *body, const void *memory,
	size_t size, uint32_t (*out)[8])
{
	CLEAN_RIG rig = rig_of(outside, body);
	void *in = rig_alloc(rig, size + 8);
	uint32_t(*words)[8] = rig_alloc(rig, LANES * sizeof(*words));

	memcpy(in, memory, size);
	rig_launch(rig, "k", 1, LANES, (void *[]){ in, words }, 16);
	memcpy(out, words, LANES * sizeof(*words));
}

/*
 * Parameters
 */

#define PARAMS 24 /* more than have slots */

static void write_param_kernel(char *text, size_t size)
{
	size_t n = (size_t)snprintf(text, size, HEADER ".visible .entry k(.param .u64 o");

	for (unsigned int i = 0; i < PARAMS; i++)
		n += (size_t)snprintf(
			text + n, size - n, ", .param .u%u p%u", i % 2 ? 64 : 32, i);
	n += (size_t)snprintf(text + n, size - n,
		") {\n.reg .b32 %%r<4>; .reg .b64 %%d<4>; .reg .b64 %%x<%u>;\n"
		"mov.u32 %%r0, %%ctaid.x; mov.u32 %%r1, %%ntid.x;\n"
		"mov.u32 %%r2, %%tid.x; mad.lo.u32 %%r3, %%r0, %%r1, %%r2;\n"
		"ld.param.u64 %%d0, [o]; mul.wide.u32 %%d1, %%r3, 8;\n"
		"add.u64 %%d0, %%d0, %%d1; mov.u64 %%d2, 0;\n",
		PARAMS);
	for (unsigned int i = 0; i < PARAMS; i++)
		n += (size_t)snprintf(text + n, size - n,
			"ld.param.u%u %%x%u, [p%u]; mad.lo.u64 %%d2, %%x%u, %u, %%d2;\n",
			i % 2 ? 64 : 32, i, i, i, i + 1);
	snprintf(text + n, size - n, "st.u64 [%%d0], %%d2; ret; }\n");
}

/* The shape of the launches is the same, the parameters are not. */
TEST(parameters_are_those_of_each_launch)
{
	static char text[8192];
	CLEAN_RIG rig = NULL;
	uint64_t *out;

	write_param_kernel(text, sizeof(text));
	rig = rig_new(text);
	out = rig_alloc(rig, 4 * 64 * sizeof(*out));
	for (unsigned int launch = 0; launch < 3; launch++) {
		uint64_t params[PARAMS + 1] = { (uintptr_t)out }, want = 0;

		/* A word, then padding, then a double word, and so on. */
		for (unsigned int i = 0; i < PARAMS; i++) {
			params[i + 1] = i % 2 ? UINT64_C(0x123456789) * (i + launch)
					      : 77u * i + launch * launch;
			want += params[i + 1] * (i + 1);
		}
		rig_launch(rig, "k", 4, 64, params, sizeof(params));
		for (unsigned int i = 0; i < 4 * 64; i++)
			check(out[i] == want);
	}
}

/*
 * Copies
 */

TEST(copies_of_registers_that_change_are_kept)
{
	static const char body[] =
		/* The number of the thread, copied and then changed. */
		"mov.u32 %r1, %tid.x; mov.u32 %r2, %r1; add.u32 %r1, %r1, 5;\n"
		"st.u32 [%d1], %r1; st.u32 [%d1+4], %r2;\n"
		/* Numbers of Fibonacci, by copies that change places. */
		"mov.u32 %r3, 0; mov.u32 %r4, 1; mov.u32 %r5, 0;\n"
		"NEXT: mov.u32 %r6, %r4; add.u32 %r4, %r4, %r3; mov.u32 %r3, %r6;\n"
		"add.u32 %r5, %r5, 1; setp.le.u32 %p0, %r5, %r0; @%p0 bra NEXT;\n"
		"st.u32 [%d1+8], %r3;\n"
		/* Only some lanes write the copy. */
		"mov.u32 %r7, 1; setp.gt.u32 %p1, %r0, 9; @%p1 mov.u32 %r7, %laneid;\n"
		"st.u32 [%d1+12], %r7;\n"
		/* What was loaded the time before: both registers are written once. */
		"mov.u32 %r8, 0; mov.u32 %r9, 0; mov.u64 %d3, %d0;\n"
		"AGAIN: ld.u32 %r10, [%d3]; add.u64 %d3, %d3, 4;\n"
		"setp.ne.u32 %p2, %r8, 0; @%p2 add.u32 %r9, %r9, %r11;\n"
		"mov.u32 %r11, %r10; add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 8;\n"
		"@%p2 bra AGAIN; st.u32 [%d1+16], %r9; st.u32 [%d1+20], %r11;\n";
	uint32_t memory[8], out[LANES][8], fibonacci[LANES + 2] = { 0, 1 }, sum = 0;

	for (uint32_t i = 0; i < 8; i++) {
		memory[i] = 100 + 11 * i;
		sum += i < 7 ? memory[i] : 0;
	}
	for (uint32_t i = 2; i < LANES + 2; i++)
		fibonacci[i] = fibonacci[i - 1] + fibonacci[i - 2];
	run_words("", body, memory, sizeof(memory), out);
	for (uint32_t i = 0; i < LANES; i++) {
		check(out[i][0] == i + 5 && out[i][1] == i);
		check(out[i][2] == fibonacci[i + 1]);
		check(out[i][3] == (i > 9 ? i : 1));
		check(out[i][4] == sum && out[i][5] == memory[7]);
	}
}

/*
 * Products and sums
 */

/* Memory has two words for each thread. */
#define LOAD_TWO                                                                         \
	"mul.wide.u32 %d3, %r0, 8; add.u64 %d3, %d0, %d3;\n"                             \
	"ld.u32 %r1, [%d3]; ld.u32 %r2, [%d3+4]; cvt.s64.s32 %d4, %r1;\n"

TEST(a_product_before_a_sum_is_what_it_is_apart)
{
	static const char body[] = LOAD_TWO
		"mul.lo.u32 %r3, %r1, %r2; add.u32 %r3, %r3, %r2; st.u32 [%d1], %r3;\n"
		"mul.wide.s32 %d5, %r1, %r2; add.s64 %d5, %d4, %d5; st.u64 [%d1+8], "
		"%d5;\n"
		"mul.wide.u32 %d6, %r1, %r2; add.s64 %d4, %d6, %d4; st.u64 [%d1+16], "
		"%d4;\n"
		"mul.lo.u64 %d7, %d5, %d4; add.u64 %d7, %d7, %d5; st.u64 [%d1+24], "
		"%d7;\n";
	static const char others[] = LOAD_TWO
		/* A product with two uses, in one sum and in two; one that some have. */
		"mul.lo.u32 %r3, %r1, %r2; add.u32 %r4, %r3, %r3; st.u32 [%d1], %r4;\n"
		"mul.lo.u32 %r5, %r1, %r2; add.u32 %r6, %r5, 1; add.u32 %r6, %r6, %r5;\n"
		"st.u32 [%d1+4], %r6; mov.u32 %r7, 9; setp.lt.u32 %p0, %r0, 7;\n"
		"@%p0 mul.lo.u32 %r7, %r1, %r2; add.u32 %r7, %r7, 2; st.u32 [%d1+8], "
		"%r7;\n"
		/* The last product counts, and that of lanes that come by the label. */
		"mov.u32 %r8, 3; setp.gt.u32 %p1, %r0, 20; @%p1 bra SUM;\n"
		"mul.lo.u32 %r8, %r1, %r2; SUM: add.u32 %r8, %r8, %r1; st.u32 [%d1+12], "
		"%r8;\n"
		"mul.lo.u32 %r9, %r1, %r2; @%p1 add.u32 %r9, %r9, 5; st.u32 [%d1+16], "
		"%r9;\n"
		/* A sum that takes the same product again, while its factor changes. */
		"mov.u32 %r11, 0; mov.u32 %r12, %r1; mul.lo.u32 %r10, %r12, %r2;\n"
		"AGAIN: add.u32 %r11, %r11, %r10; add.u32 %r12, %r12, 1;\n"
		"sub.u32 %r13, %r12, %r1; setp.lt.u32 %p2, %r13, 3; @%p2 bra AGAIN;\n"
		"st.u32 [%d1+20], %r11;\n";
	uint32_t memory[LANES][2], out[LANES][8];

	for (uint32_t i = 0; i < LANES; i++) {
		memory[i][0] = i * 2654435761u ^ (i % 3 ? 0 : UINT32_MAX);
		memory[i][1] = i % 5 ? i * 40503u << i % 16 : 0x80000000u;
	}
	run_words("", body, memory, sizeof(memory), out);
	for (uint32_t i = 0; i < LANES; i++) {
		uint32_t a = memory[i][0], b = memory[i][1];
		int64_t wide = (int32_t)a;
		uint64_t want[4] = { a * b + b, (uint64_t)(wide * (int32_t)b + wide),
			(uint64_t)a * b + (uint64_t)wide };
		uint64_t is[4];

		want[3] = want[1] * want[2] + want[1];
		memcpy(is, out[i], sizeof(is));
		check((uint32_t)is[0] == want[0] && is[1] == want[1]);
		check(is[2] == want[2] && is[3] == want[3]);
	}
	run_words("", others, memory, sizeof(memory), out);
	for (uint32_t i = 0; i < LANES; i++) {
		uint32_t a = memory[i][0], b = memory[i][1];

		check(out[i][0] == 2 * a * b && out[i][1] == 2 * a * b + 1);
		check(out[i][2] == (i < 7 ? a * b : 9) + 2);
		check(out[i][3] == (i > 20 ? 3 : a * b) + a);
		check(out[i][4] == a * b + (i > 20 ? 5 : 0));
		check(out[i][5] == 3 * a * b);
	}
}

/*
 * Comparisons and branches
 */

static const struct {
	const char *type, *letter;
	unsigned int size;
	bool is_real;
	bool is_signed;
} types[] = {
	{ "u16", "h", 2, false, false },
	{ "s16", "h", 2, false, true },
	{ "u32", "r", 4, false, false },
	{ "s32", "r", 4, false, true },
	{ "u64", "d", 8, false, false },
	{ "s64", "d", 8, false, true },
	{ "f32", "f", 4, true, true },
	{ "f64", "d", 8, true, true },
};

static const char *const relations[] = { "eq", "ne", "lt", "le", "gt", "ge" };

static long double number_of(size_t type, uint64_t bits)
{
	float narrow;
	double wide;

	if (types[type].is_real) {
		memcpy(&narrow, &bits, sizeof(narrow));
		memcpy(&wide, &bits, sizeof(wide));
		return types[type].size == 4 ? narrow : wide;
	}
	bits <<= 64 - 8 * types[type].size;
	return types[type].is_signed
		       ? (long double)((int64_t)bits >> (64 - 8 * types[type].size))
		       : (long double)(bits >> (64 - 8 * types[type].size));
}

static bool holds(unsigned int relation, long double a, long double b)
{
	switch (relation) {
	case 0:
		return a == b;
	case 1:
		return a < b || a > b;
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

/* Of edges of all types; the first of two lanes are equal now and then. */
static uint64_t edge(uint32_t i)
{
	static const uint64_t edges[] = { 0, 1, UINT64_MAX, 0x7fffffff7fff8000,
		0x8000000080008000, 0x7ff00000ff800000, 0x3ff000003f800000,
		0x7ff800007fc00000, 0x4000000040000001, 0xbff00000bf800000 };

	return edges[i % 10];
}

static void check_branches(size_t type, unsigned int relation)
{
	static uint64_t memory[LANES][2];
	uint32_t out[LANES][8];
	char body[1024];

	snprintf(body, sizeof(body),
		"mul.wide.u32 %%d3, %%r0, 16; add.u64 %%d3, %%d0, %%d3;\n"
		"ld.b%u %%%s8, [%%d3]; ld.b%u %%%s7, [%%d3+8]; mov.u32 %%r1, 0;\n"
		"setp.%s.%s %%p0, %%%s8, %%%s7;\n@%%p0 bra TRUE;\n"
		"add.u32 %%r1, %%r1, 1;\n"
		"TRUE: setp.%s.%s %%p0, %%%s8, %%%s7;\n@!%%p0 bra FALSE;\n"
		"add.u32 %%r1, %%r1, 2;\n"
		/* Only some lanes compare, the predicate of the others is older. */
		"FALSE: setp.ne.u32 %%p1, %%r0, %%r0; setp.gt.u32 %%p2, %%r0, 12;\n"
		"@%%p2 setp.%s.%s %%p1, %%%s8, %%%s7;\n@%%p1 bra END;\n"
		"add.u32 %%r1, %%r1, 4;\n"
		"END: st.u32 [%%d1], %%r1;\n",
		8 * types[type].size, types[type].letter, 8 * types[type].size,
		types[type].letter, relations[relation], types[type].type,
		types[type].letter, types[type].letter, relations[relation],
		types[type].type, types[type].letter, types[type].letter,
		relations[relation], types[type].type, types[type].letter,
		types[type].letter);
	for (uint32_t i = 0; i < LANES; i++) {
		memory[i][0] = edge(i);
		memory[i][1] = edge(i % 3 ? i * 7 : i);
	}
	run_words("", body, memory, sizeof(memory), out);
	for (uint32_t i = 0; i < LANES; i++) {
		bool is = holds(relation, number_of(type, memory[i][0]),
			number_of(type, memory[i][1]));
		/* Numbers that are not ordered are not unequal either. */
		uint32_t want = (is ? 0 : 1) | (is ? 2 : 0) | (is && i > 12 ? 0 : 4);

		if (out[i][0] != want)
			test_fail(__FILE__, __LINE__, "setp.%s.%s, lane %u: %u, not %u",
				relations[relation], types[type].type, i, out[i][0],
				want);
	}
}

TEST(a_branch_after_a_comparison_goes_where_the_comparison_says)
{
	for (size_t type = 0; type < sizeof(types) / sizeof(types[0]); type++)
		for (unsigned int relation = 0; relation < 6; relation++)
			check_branches(type, relation);
}

/*
 * Addresses
 */

#define WORDS 512u /* of memory, also in shared memory */

static uint32_t word(uint32_t i)
{
	return i * 2654435761u + 17;
}

/* Steps from lane to lane, as an access may find them, and none. */
static uint32_t index_of(unsigned int pattern, uint32_t lane)
{
	switch (pattern) {
	case 0:
		return lane;
	case 1:
		return 7;
	case 2:
		return lane / 16 * 40 + lane % 16;
	case 3:
		return lane / 16 * 8;
	case 4:
		return 31 - lane;
	case 5:
		return 2 * lane;
	default:
		return lane * 5 % 32;
	}
}

#define PATTERNS 7u

/* %r1 is where the lane's element is in shared memory, %d5 in global memory. */
#define ADDRESSES                                                                        \
	"mov.u32 %r18, 0; st.shared.u32 [s], %r18;\n"                                    \
	"FILL: mul.wide.u32 %d3, %r18, 4; add.u64 %d4, %d0, %d3;\n"                      \
	"ld.u32 %r19, [%d4]; cvt.u32.u64 %r17, %d3; st.shared.u32 [%r17], %r19;\n"       \
	"add.u32 %r18, %r18, 1; setp.lt.u32 %p3, %r18, 512; @%p3 bra FILL;\n"            \
	"bar.sync 0; mul.wide.u32 %d3, %r0, 4; add.u64 %d4, %d0, %d3;\n"                 \
	"ld.u32 %r16, [%d4+2048]; shl.b32 %r1, %r16, 2;\n"                               \
	"mul.wide.u32 %d3, %r16, 4; add.u64 %d5, %d0, %d3;\n"

#define SHARED ".shared .align 16 .b8 s[2048];\n"

/* @memory: the words, then an index for each lane. */
static void fill(uint32_t memory[WORDS + LANES], unsigned int pattern)
{
	for (uint32_t i = 0; i < WORDS; i++)
		memory[i] = word(i);
	for (uint32_t i = 0; i < LANES; i++)
		memory[WORDS + i] = index_of(pattern, i);
}

TEST(accesses_by_one_address_find_their_own_elements)
{
	static const char body[] = ADDRESSES
		"ld.shared.u32 %r2, [%r1]; ld.shared.u32 %r3, [%r1+128];\n"
		"ld.shared.u8 %r4, [%r1+4]; ld.shared.u32 %r5, [%r1+4];\n"
		"ld.global.u32 %r6, [%d5]; ld.global.u32 %r7, [%d5+64];\n"
		"ld.global.u16 %h1, [%d5+2]; cvt.u32.u16 %r8, %h1;\n"
		/* The address is another one now, and the next one is in memory. */
		"add.u32 %r1, %r1, %r1; ld.shared.u32 %r9, [%r1+4];\n"
		"st.u32 [%d1], %r2; st.u32 [%d1+4], %r3; st.u32 [%d1+8], %r4;\n"
		"st.u32 [%d1+12], %r5; st.u32 [%d1+16], %r6; st.u32 [%d1+20], %r7;\n"
		"st.u32 [%d1+24], %r8; st.u32 [%d1+28], %r9;\n";
	uint32_t memory[WORDS + LANES], out[LANES][8];

	for (unsigned int pattern = 0; pattern < PATTERNS; pattern++) {
		fill(memory, pattern);
		run_words(SHARED, body, memory, sizeof(memory), out);
		for (uint32_t i = 0; i < LANES; i++) {
			uint32_t at = index_of(pattern, i);

			check(out[i][0] == word(at) && out[i][1] == word(at + 32));
			check(out[i][2] == (word(at + 1) & 255));
			check(out[i][3] == word(at + 1) && out[i][4] == word(at));
			check(out[i][5] == word(at + 16) && out[i][6] == word(at) >> 16);
			check(out[i][7] == word(2 * at + 1));
		}
	}
}

/*
 * In each round the addresses are those of another pattern, and other lanes take part in
 * the first access: all of them, some, none. Then all have to look again.
 */
TEST(what_some_lanes_found_out_does_not_count_for_all)
{
	static const char body[] = ADDRESSES
		"mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r8, %r16;\n"
		"ROUND: shl.b32 %r1, %r8, 2;\n"
		"setp.eq.u32 %p0, %r2, 0; setp.lt.u32 %p1, %r0, 11;\n"
		"setp.eq.u32 %p2, %r2, 1; and.pred %p1, %p1, %p2; or.pred %p0, %p0, "
		"%p1;\n"
		"mov.u32 %r4, 1; @%p0 ld.shared.u32 %r4, [%r1];\n"
		"ld.shared.u32 %r5, [%r1+64]; ld.shared.u32 %r6, [%r1+128];\n"
		"mad.lo.u32 %r3, %r3, 31, %r4; mad.lo.u32 %r3, %r3, 31, %r5;\n"
		"mad.lo.u32 %r3, %r3, 31, %r6;\n"
		/* The element of the lane's own mirror image, and so on. */
		"mul.lo.u32 %r8, %r8, 11; add.u32 %r8, %r8, %r0; and.b32 %r8, %r8, 63;\n"
		"add.u32 %r2, %r2, 1; setp.lt.u32 %p0, %r2, 4; @%p0 bra ROUND;\n"
		"st.u32 [%d1], %r3;\n";
	uint32_t memory[WORDS + LANES], out[LANES][8];

	for (unsigned int pattern = 0; pattern < PATTERNS; pattern++) {
		fill(memory, pattern);
		run_words(SHARED, body, memory, sizeof(memory), out);
		for (uint32_t i = 0; i < LANES; i++) {
			uint32_t at = index_of(pattern, i), want = 0;

			for (uint32_t round = 0; round < 4; round++) {
				bool is = !round || (round == 1 && i < 11);

				want = want * 31 + (is ? word(at) : 1);
				want = want * 31 + word(at + 16);
				want = want * 31 + word(at + 32);
				at = (at * 11 + i) & 63;
			}
			check(out[i][0] == want);
		}
	}
}

/* The function calls itself, with one address for all lanes. */
TEST(a_call_between_two_accesses_does_not_mix_their_addresses)
{
	static const char outside[] = SHARED
		".visible .func (.param .b32 r) f(.param .b32 at, .param .b32 n) {\n"
		".reg .b32 %r<8>; .reg .pred %p;\n"
		"ld.param.u32 %r1, [at]; ld.param.u32 %r2, [n];\n"
		"ld.shared.u32 %r4, [%r1]; ld.shared.u32 %r5, [%r1+256];\n"
		"add.u32 %r4, %r4, %r5; setp.eq.u32 %p, %r2, 0; @%p bra DONE;\n"
		"sub.u32 %r2, %r2, 1; mov.u32 %r3, 64; ld.shared.u32 %r5, [%r1+4];\n"
		"add.u32 %r4, %r4, %r5;\n"
		"{ .param .b32 a; .param .b32 b; .param .b32 c;\n"
		"st.param.b32 [a], %r3; st.param.b32 [b], %r2;\n"
		"call (c), f, (a, b); ld.param.b32 %r6, [c]; }\n"
		"add.u32 %r4, %r4, %r6; ld.shared.u32 %r5, [%r1+512];\n"
		"add.u32 %r4, %r4, %r5;\n"
		"DONE: st.param.b32 [r], %r4; ret; }\n";
	static const char body[] = ADDRESSES
		"ld.shared.u32 %r2, [%r1]; ld.shared.u32 %r3, [%r1+4];\n"
		"mov.u32 %r4, 1;\n"
		"{ .param .b32 a; .param .b32 b; .param .b32 c;\n"
		"st.param.b32 [a], %r1; st.param.b32 [b], %r4;\n"
		"call (c), f, (a, b); ld.param.b32 %r5, [c]; }\n"
		"ld.shared.u32 %r6, [%r1+8]; st.u32 [%d1], %r2; st.u32 [%d1+4], %r3;\n"
		"st.u32 [%d1+8], %r5; st.u32 [%d1+12], %r6;\n";
	uint32_t memory[WORDS + LANES], out[LANES][8];

	for (unsigned int pattern = 0; pattern < PATTERNS; pattern++) {
		fill(memory, pattern);
		run_words(outside, body, memory, sizeof(memory), out);
		for (uint32_t i = 0; i < LANES; i++) {
			uint32_t at = index_of(pattern, i);
			uint32_t sum =
				word(at) + word(at + 64) + word(at + 1) + word(at + 128);

			check(out[i][0] == word(at) && out[i][1] == word(at + 1));
			check(out[i][2] == sum + word(16) + word(80));
			check(out[i][3] == word(at + 2));
		}
	}
}

/* More addresses in one block than the first access of each can note. */
TEST(many_addresses_in_one_block_are_kept_apart)
{
	char body[4096];
	size_t n =
		(size_t)snprintf(body, sizeof(body), "%s", ADDRESSES "mov.u32 %r3, 0;\n");
	uint32_t memory[WORDS + LANES], out[LANES][8];

	for (unsigned int i = 0; i < 12; i++)
		n += (size_t)snprintf(body + n, sizeof(body) - n,
			"mad.lo.u32 %%r%u, %%r1, %u, %u;\n", 4 + i, i % 4, 4 * i);
	for (unsigned int i = 0; i < 24; i++)
		n += (size_t)snprintf(body + n, sizeof(body) - n,
			"ld.shared.u32 %%r2, [%%r%u+%u]; mad.lo.u32 %%r3, %%r3, 5, "
			"%%r2;\n",
			4 + i % 12, 4 * i);
	snprintf(body + n, sizeof(body) - n, "st.u32 [%%d1], %%r3;\n");
	for (unsigned int pattern = 0; pattern < PATTERNS; pattern++) {
		fill(memory, pattern);
		run_words(SHARED, body, memory, sizeof(memory), out);
		for (uint32_t lane = 0; lane < LANES; lane++) {
			uint32_t want = 0;

			for (unsigned int i = 0; i < 24; i++)
				want = want * 5 +
				       word(index_of(pattern, lane) * (i % 12 % 4) +
					       i % 12 + i);
			check(out[lane][0] == want);
		}
	}
}
