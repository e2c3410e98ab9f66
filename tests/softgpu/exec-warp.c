/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes, warps and blocks among each other: divergence, .sync instructions, barriers,
 * atomic operations
 */

#include <string.h>

#include "exec-harness.h"
#include "test.h"

#define HEADER ".version 8.8\n.target sm_120\n.address_size 64\n"
#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *

/* An entry function with one parameter: %rd1 points to this thread's own words. */
#define ENTRY(_name, _stride, _body)                                                     \
	".visible .entry " _name "(.param .u64 p) {\n"                                   \
	".reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<9>;\n"      \
	"ld.param.u64 %rd0, [p]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;\n"          \
	"mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0;\n"                         \
	"mul.wide.u32 %rd2, %r3, " _stride "; add.u64 %rd1, %rd0, %rd2;\n" _body         \
	"ret; }\n"

static uint32_t *run(struct rig **rigp, const char *ptx, const char *name, uint32_t grid,
	uint32_t block, uint64_t size)
{
	void *memory;

	*rigp = rig_new(ptx);
	memory = rig_alloc(*rigp, size);
	rig_launch(*rigp, name, grid, block, &memory, sizeof(memory));
	return memory;
}

TEST(lanes_part_in_a_loop_and_meet_after_it)
{
	static const char ptx[] = HEADER ENTRY("k", "4",
		"mov.u32 %r4, 0; mov.u32 %r5, %r3;\n"
		"LOOP: and.b32 %r6, %r5, 7; setp.eq.u32 %p1, %r6, 0; @%p1 bra OUT;\n"
		"and.b32 %r7, %r5, 1; setp.eq.u32 %p2, %r7, 1; @%p2 bra ODD;\n"
		"add.u32 %r4, %r4, 100; bra NEXT;\n"
		"ODD: add.u32 %r4, %r4, 1;\n"
		"NEXT: add.u32 %r5, %r5, 1; bra LOOP;\n"
		"OUT: activemask.b32 %r8; popc.b32 %r8, %r8; mad.lo.u32 %r4, %r8, 10000, "
		"%r4;\n"
		"st.global.u32 [%rd1], %r4;\n");
	CLEAN_RIG rig = NULL;
	uint32_t *out = run(&rig, ptx, "k", 2, 48, 96 * 4);

	for (uint32_t i = 0; i < 96; i++) {
		uint32_t lanes = i % 48 < 32 ? 32 : 16, sum = lanes * 10000;

		for (uint32_t k = i; k % 8; k++)
			sum += k % 2 ? 1 : 100;
		check_eq(out[i], sum);
	}
}

TEST(lanes_of_one_warp_pass_a_spin_lock)
{
	static const char ptx[] = HEADER ENTRY("k", "0",
		"SPIN: atom.global.cas.b32 %r4, [%rd0], 0, 1;\n"
		"setp.ne.u32 %p1, %r4, 0; @%p1 bra SPIN;\n"
		"ld.volatile.global.u32 %r5, [%rd0+4]; add.u32 %r5, %r5, 1;\n"
		"st.volatile.global.u32 [%rd0+4], %r5;\n"
		"membar.gl; atom.global.exch.b32 %r6, [%rd0], 0;\n");
	CLEAN_RIG rig = NULL;
	uint32_t *out = run(&rig, ptx, "k", 2, 96, 8);

	check_eq(out[1], 192);
}

/* Thread 0 waits for a word that thread 40, in another warp, writes later. */
TEST(a_warp_waits_for_another_one_without_a_barrier)
{
	static const char ptx[] = HEADER ENTRY("k", "4",
		"setp.eq.u32 %p1, %r0, 40; @%p1 bra WRITE;\n"
		"setp.ne.u32 %p2, %r0, 0; @%p2 bra DONE;\n"
		"WAIT: ld.acquire.gpu.global.u32 %r4, [%rd0+400];\n"
		"setp.eq.u32 %p3, %r4, 0; @%p3 bra WAIT;\n"
		"st.global.u32 [%rd0], %r4; bra DONE;\n"
		"WRITE: st.release.gpu.global.u32 [%rd0+400], 77;\n"
		"DONE:\n");
	CLEAN_RIG rig = NULL;

	check_eq(run(&rig, ptx, "k", 1, 64, 512)[0], 77);
}

static uint32_t shuffled(int mode, uint32_t lane, uint32_t b, uint32_t c, bool *in)
{
	int segment = (int)(c >> 8 & 31), clamp = (int)(c & 31), i = (int)lane;
	int low = i & segment, high = low | (clamp & ~segment), by = (int)(b & 31), from;

	switch (mode) {
	case 0:
		from = i - by;
		*in = from >= high;
		break;
	case 1:
		from = i + by;
		*in = from <= high;
		break;
	case 2:
		from = i ^ by;
		*in = from <= high;
		break;
	default:
		from = low | (by & ~segment);
		*in = from <= high;
		break;
	}
	return *in ? (uint32_t)from : lane;
}

/* The lane operand and the word with clamp and segments follow the results. */
#define SHUFFLE(_mode)                                                                   \
	ENTRY(#_mode, "8",                                                               \
		"ld.global.v2.u32 {%r7, %r8}, [%rd0+512]; add.u32 %r4, %r0, 1000;\n"     \
		"shfl.sync." #_mode ".b32 %r5|%p1, %r4, %r7, %r8, -1;\n"                 \
		"selp.u32 %r6, 1, 0, %p1; st.global.v2.u32 [%rd1], {%r5, %r6};\n")

TEST(shuffles_read_the_right_lane)
{
	static const char ptx[] =
		HEADER SHUFFLE(up) SHUFFLE(down) SHUFFLE(bfly) SHUFFLE(idx);
	static const char *const modes[] = { "up", "down", "bfly", "idx" };
	static const uint32_t words[] = { 0x1f, 0, 0x181f, 0x1800, 0x1c1f, 0x0f, 0x1003 };
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 1024);
	bool in;

	for (int mode = 0; mode < 4; mode++) {
		for (uint32_t k = 0; k < 7 * 32; k++) {
			out[128] = k % 32;
			out[129] = words[k / 32];
			rig_launch(rig, modes[mode], 1, 32, &out, sizeof(out));
			for (uint32_t i = 0; i < 32; i++) {
				uint32_t from =
					shuffled(mode, i, out[128], out[129], &in);

				check_eq(out[2 * i] - 1000, from);
				check_eq(out[2 * i + 1], in);
			}
		}
	}
}

/*
 * Lanes that go another way, that have ended or that never were give 0, whatever their
 * registers hold: here each lane first writes a number into the one that is read.
 */
TEST(lanes_that_take_no_part_give_nothing)
{
	static const char ptx[] = HEADER ENTRY("part", "4",
		"add.u32 %r4, %r0, 1000; setp.ge.u32 %p1, %r0, 8; @%p1 bra OUT;\n"
		"shfl.sync.down.b32 %r4, %r4, 4, 0x1f, 0xff;\n"
		"OUT: st.global.u32 [%rd1], %r4;\n") ENTRY("ended", "4",
		"add.u32 %r4, %r0, 1000; setp.ge.u32 %p1, %r0, 8;\n"
		"@%p1 exit; shfl.sync.idx.b32 %r4|%p2, %r4, 9, 0x1f, 0xff;\n"
		"selp.u32 %r5, 1, 0, %p2; add.u32 %r4, %r4, %r5;\n"
		"st.global.u32 [%rd1], %r4;\n") ENTRY("absent", "4",
		"add.u32 %r4, %r0, 1000;\n"
		"shfl.sync.bfly.b32 %r4, %r4, 16, 0x1f, -1;\n"
		"st.global.u32 [%rd1], %r4;\n") ENTRY("sum", "4",
		"add.u32 %r4, %r0, 1; setp.ge.u32 %p1, %r0, 8;\n"
		"@%p1 bra OUT; mov.u32 %r6, 16;\n"
		"NEXT: shfl.sync.down.b32 %r5, %r4, %r6, 0x1f, "
		"0xff;\n"
		"add.u32 %r4, %r4, %r5; shr.u32 %r6, %r6, 1;\n"
		"setp.ne.u32 %p1, %r6, 0; @%p1 bra NEXT;\n"
		"OUT: st.global.u32 [%rd1], %r4;\n");
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 128);

	rig_launch(rig, "part", 1, 32, &out, sizeof(out));
	for (uint32_t i = 0; i < 32; i++)
		check_eq(out[i], i < 4 ? 1004 + i : i < 8 ? 0 : 1000 + i);
	rig_launch(rig, "ended", 1, 32, &out, sizeof(out));
	for (uint32_t i = 0; i < 8; i++)
		check_eq(out[i], 1);
	rig_launch(rig, "absent", 1, 20, &out, sizeof(out));
	for (uint32_t i = 0; i < 20; i++)
		check_eq(out[i], i < 4 ? 1016 + i : i < 16 ? 0 : 1000 + i - 16);
	rig_launch(rig, "sum", 1, 32, &out, sizeof(out));
	check_eq(out[0], 36);
}

TEST(lanes_vote_match_and_reduce)
{
	static const char ptx[] = HEADER ENTRY("k", "48",
		"rem.u32 %r4, %r0, 3; setp.eq.u32 %p1, %r4, 0;\n"
		"vote.sync.ballot.b32 %r5, %p1, -1; st.global.u32 [%rd1], %r5;\n"
		"vote.sync.any.pred %p2, !%p1, -1; selp.u32 %r5, 1, 0, %p2;\n"
		"vote.sync.all.pred %p2, %p1, -1; selp.u32 %r6, 2, %r5, %p2;\n"
		"st.global.u32 [%rd1+4], %r6;\n"
		"match.any.sync.b32 %r5, %r4, -1; st.global.u32 [%rd1+8], %r5;\n"
		"match.all.sync.b32 %r5|%p3, %r4, -1; selp.u32 %r6, 1, 0, %p3;\n"
		"add.u32 %r5, %r5, %r6; st.global.u32 [%rd1+12], %r5;\n"
		"redux.sync.add.u32 %r5, %r0, -1; st.global.u32 [%rd1+16], %r5;\n"
		"sub.u32 %r6, 5, %r0; redux.sync.min.s32 %r5, %r6, -1;\n"
		"st.global.u32 [%rd1+20], %r5;\n"
		"redux.sync.max.u32 %r5, %r6, -1; st.global.u32 [%rd1+24], %r5;\n"
		"redux.sync.xor.b32 %r5, %r0, -1; st.global.u32 [%rd1+28], %r5;\n"
		"mov.u32 %r7, 0xffff; setp.gt.u32 %p4, %r0, 15; @%p4 shl.b32 %r7, %r7, "
		"16;\n"
		"redux.sync.add.u32 %r5, %r0, %r7; st.global.u32 [%rd1+32], %r5;\n"
		"cvt.u64.u32 %rd5, %r4; match.any.sync.b64 %r5, %rd5, %r7;\n"
		"st.global.u32 [%rd1+36], %r5;\n");
	CLEAN_RIG rig = NULL;
	uint32_t *out = run(&rig, ptx, "k", 1, 32, 32 * 48), thirds[3] = { 0 };

	for (uint32_t i = 0; i < 32; i++)
		thirds[i % 3] |= 1u << i;
	for (uint32_t i = 0; i < 32; i++, out += 12) {
		uint32_t half = i < 16 ? 0xffff : 0xffff0000u;

		check_eq(out[0], thirds[0]);
		check_eq(out[1], 1);
		check_eq(out[2], thirds[i % 3]);
		check_eq(out[3], 0);
		check_eq(out[4], 496);
		check_eq((int32_t)out[5], -26);
		check_eq(out[6], UINT32_MAX);
		check_eq(out[7], 0);
		check_eq(out[8], i < 16 ? 120 : 376);
		check_eq(out[9], thirds[i % 3] & half);
	}
}

/* Two arms of a branch come to one shuffle, one of them late. */
TEST(a_sync_instruction_waits_for_the_lanes_it_names)
{
	static const char ptx[] = HEADER ENTRY("k", "4",
		"setp.lt.u32 %p1, %r0, 10; mov.u32 %r4, 0; @%p1 bra SLOW;\n"
		"mov.u32 %r5, 5; bra JOIN;\n"
		"JOIN: shfl.sync.idx.b32 %r6, %r5, 31, 0x1f, -1;\n"
		"vote.sync.ballot.b32 %r7, 1, -1; add.u32 %r6, %r6, %r7; bra STORE;\n"
		"SLOW: add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 2000; @%p2 bra SLOW;\n"
		"mov.u32 %r5, %r4; bra JOIN;\n"
		"STORE: st.global.u32 [%rd1], %r6;\n");
	CLEAN_RIG rig = NULL;
	uint32_t *out = run(&rig, ptx, "k", 1, 32, 128);

	for (uint32_t i = 0; i < 32; i++)
		check_eq(out[i], 5 + UINT32_MAX);
}

TEST(a_barrier_holds_all_warps_of_the_block)
{
	static const char ptx[] = HEADER ENTRY("k", "4",
		".shared .align 4 .b8 s[1024]; mov.u32 %r10, s; mov.u32 %r11, 0;\n"
		"shl.b32 %r12, %r0, 2; add.u32 %r12, %r12, %r10; st.shared.u32 [%r12], "
		"%r0;\n"
		"LOOP: bar.sync 0; sub.u32 %r13, %r2, 1; sub.u32 %r13, %r13, %r0;\n"
		"shl.b32 %r13, %r13, 2; add.u32 %r13, %r13, %r10; ld.shared.u32 %r14, "
		"[%r13];\n"
		"bar.sync 0; add.u32 %r14, %r14, 1; st.shared.u32 [%r12], %r14;\n"
		"add.u32 %r11, %r11, 1; setp.lt.u32 %p1, %r11, 7; @%p1 bra LOOP;\n"
		"st.global.u32 [%rd1], %r14;\n");
	CLEAN_RIG rig = NULL;
	uint32_t *out = run(&rig, ptx, "k", 3, 200, 2400);

	for (uint32_t i = 0; i < 600; i++)
		check_eq(out[i], 199 - i % 200 + 7);
}

TEST(a_barrier_does_not_wait_for_threads_that_ended)
{
	static const char ptx[] = HEADER ENTRY("k", "4",
		"setp.ge.u32 %p1, %r0, 70; @%p1 exit; bar.sync 0;\n"
		"setp.lt.u32 %p2, %r0, 3; @%p2 ret; barrier.sync 1;\n"
		"st.global.u32 [%rd1], 1;\n");
	CLEAN_RIG rig = NULL;
	uint32_t *out = run(&rig, ptx, "k", 1, 256, 1024), n = 0;

	for (uint32_t i = 0; i < 256; i++)
		n += out[i];
	check_eq(n, 67);
}

/* Warp 0 produces, warp 1 consumes, the others take no part. */
TEST(numbered_barriers_join_some_warps)
{
	static const char ptx[] = HEADER ENTRY("k", "4",
		".shared .align 4 .b8 s[128]; mov.u32 %r10, s; and.b32 %r4, %r0, 31;\n"
		"shl.b32 %r5, %r4, 2; add.u32 %r10, %r10, %r5; shr.u32 %r6, %r0, 5;\n"
		"setp.eq.u32 %p1, %r6, 0; @%p1 bra PRODUCE;\n"
		"setp.eq.u32 %p2, %r6, 1; @%p2 bra CONSUME; bra DONE;\n"
		"PRODUCE: mul.lo.u32 %r7, %r0, 3; st.shared.u32 [%r10], %r7;\n"
		"bar.arrive 3, 64; bra DONE;\n"
		"CONSUME: bar.sync 3, 64; ld.shared.u32 %r7, [%r10];\n"
		"st.global.u32 [%rd1], %r7;\n"
		"DONE:\n");
	CLEAN_RIG rig = NULL;
	uint32_t *out = run(&rig, ptx, "k", 1, 128, 512);

	for (uint32_t i = 0; i < 128; i++)
		check_eq(out[i], i / 32 == 1 ? i % 32 * 3 : 0);
}

TEST(barriers_reduce_predicates)
{
	static const char ptx[] = HEADER ENTRY("k", "16",
		"rem.u32 %r4, %r0, 5; setp.eq.u32 %p1, %r4, 2;\n"
		"bar.red.popc.u32 %r5, 0, %p1; st.global.u32 [%rd1], %r5;\n"
		"bar.red.or.pred %p2, 1, %p1; selp.u32 %r5, 1, 0, %p2;\n"
		"st.global.u32 [%rd1+4], %r5;\n"
		"bar.red.and.pred %p2, 0, %p1; selp.u32 %r5, 1, 0, %p2;\n"
		"st.global.u32 [%rd1+8], %r5;\n"
		"bar.red.and.pred %p2, 0, !%p3; selp.u32 %r5, 1, 0, %p2;\n"
		"st.global.u32 [%rd1+12], %r5;\n");
	CLEAN_RIG rig = NULL;
	uint32_t *out = run(&rig, ptx, "k", 1, 100, 1600);

	for (uint32_t i = 0; i < 100; i++, out += 4) {
		check_eq(out[0], 20);
		check_eq(out[1], 1);
		check_eq(out[2], 0);
		check_eq(out[3], 1);
	}
}

/* Every lane of a warp updates one word; the old values must form a chain. */
struct atomic_row {
	const char
		*text; /* of the operation, on [%rd0] or [s] with %r4, the thread + 3 */
	uint64_t start;
	uint64_t (*step)(uint64_t old, uint32_t x);
	bool wide;
};

static uint64_t step_add(uint64_t old, uint32_t x)
{
	return old + x;
}

static uint64_t step_min(uint64_t old, uint32_t x)
{
	return x < old ? x : old;
}

static uint64_t step_max(uint64_t old, uint32_t x)
{
	return (int32_t)x > (int32_t)old ? x : old;
}

static uint64_t step_inc(uint64_t old, uint32_t x)
{
	return old >= x ? 0 : old + 1;
}

static uint64_t step_dec(uint64_t old, uint32_t x)
{
	return old == 0 || old > x ? x : old - 1;
}

static uint64_t step_and(uint64_t old, uint32_t x)
{
	return old & x;
}

static uint64_t step_or(uint64_t old, uint32_t x)
{
	return old | x;
}

static uint64_t step_xor(uint64_t old, uint32_t x)
{
	return old ^ x;
}

static uint64_t step_exch(uint64_t old, uint32_t x)
{
	return x;
}

static uint64_t step_cas(uint64_t old, uint32_t x)
{
	return old == x ? 500 : old;
}

static uint64_t step_f32(uint64_t old, uint32_t x)
{
	uint32_t u = (uint32_t)old;
	float f, g = (float)x;

	memcpy(&f, &u, 4);
	f += g;
	memcpy(&u, &f, 4);
	return u;
}

static uint64_t step_f64(uint64_t old, uint32_t x)
{
	double f;

	memcpy(&f, &old, 8);
	f += x;
	memcpy(&old, &f, 8);
	return old;
}

static void check_atomic(
	const struct atomic_row *row, const char *space, const char *place)
{
	CLEAN_RIG rig = NULL;
	static char ptx[4096];
	uint64_t *out, value = row->start;

	snprintf(ptx, sizeof(ptx),
		HEADER ".visible .entry k(.param .u64 p) {\n"
		       ".reg .pred %%p<9>; .reg .b32 %%r<40>; .reg .b64 %%rd<20>;\n"
		       ".reg .f32 %%f<9>; .reg .f64 %%fd<3>; .shared .align 8 .b8 s[8];\n"
		       "ld.param.u64 %%rd0, [p]; mov.u32 %%r0, %%tid.x;\n"
		       "mul.wide.u32 %%rd2, %%r0, 8; add.u64 %%rd1, %%rd0, %%rd2;\n"
		       "mov.u64 %%rd3, %llu; st%s.u64 [%s], %%rd3; bar.sync 0;\n"
		       "add.u32 %%r4, %%r0, 3; cvt.u64.u32 %%rd4, %%r4;\n"
		       "cvt.rn.f32.u32 %%f4, %%r4; cvt.rn.f64.u32 %%fd2, %%r4;\n"
		       "mov.u64 %%rd6, 0;\n"
		       "atom%s.%s;\n"
		       "%s st.global.u64 [%%rd1+8], %%rd6; bar.sync 0;\n"
		       "ld%s.u64 %%rd7, [%s]; st.global.u64 [%%rd0], %%rd7; ret; }\n",
		(unsigned long long)row->start, space, place, space, row->text,
		row->wide ? "" : "cvt.u64.u32 %rd6, %r6;", space, place);
	for (char *at; (at = strstr(ptx, "@@"));) {
		size_t n = strlen(place);

		memmove(at + n, at + 2, strlen(at + 2) + 1);
		memcpy(at, place, n);
	}
	rig = rig_new(ptx);
	out = rig_alloc(rig, 33 * 8);
	rig_launch(rig, "k", 1, 32, &out, sizeof(out));
	for (uint32_t i = 0; i < 32; i++) {
		if (out[i + 1] != value)
			test_fail(__FILE__, __LINE__,
				"atom%s.%s: thread %u read %llx, not %llx", space,
				row->text, i, (long long)out[i + 1], (long long)value);
		value = row->step(value, i + 3);
		value = row->wide ? value : (uint32_t)value;
	}
	check_eq(out[0], value);
}

TEST(atomic_operations_form_a_chain)
{
	static const struct atomic_row rows[] = {
		{ "add.u32 %r6, [@@], %r4", 7, step_add, false },
		{ "add.u64 %rd6, [@@], %rd4", 0xfffffff0u, step_add, true },
		{ "add.f32 %r6, [@@], %f4", 0, step_f32, false },
		{ "add.f64 %rd6, [@@], %fd2", 0, step_f64, true },
		{ "min.u32 %r6, [@@], %r4", 50, step_min, false },
		{ "min.u64 %rd6, [@@], %rd4", UINT64_MAX, step_min, true },
		{ "max.s32 %r6, [@@], %r4", 0xfffffff0u, step_max, false },
		{ "inc.u32 %r6, [@@], %r4", 2, step_inc, false },
		{ "dec.u32 %r6, [@@], %r4", 9, step_dec, false },
		{ "and.b32 %r6, [@@], %r4", 0x7f, step_and, false },
		{ "or.b32 %r6, [@@], %r4", 0, step_or, false },
		{ "xor.b64 %rd6, [@@], %rd4", UINT64_MAX, step_xor, true },
		{ "exch.b32 %r6, [@@], %r4", 1, step_exch, false },
		{ "exch.b64 %rd6, [@@], %rd4", 1, step_exch, true },
		{ "cas.b32 %r6, [@@], %r4, 500", 20, step_cas, false },
		{ "cas.b64 %rd6, [@@], %rd4, 500", 20, step_cas, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check_atomic(&rows[i], ".global", "%rd0");
		check_atomic(&rows[i], ".shared", "s");
		check_atomic(&rows[i], "", "%rd0");
	}
}

/* Two blocks of a cooperative grid that wait for each other, resumed in turn. */
TEST(blocks_that_wait_for_each_other_run_in_turn)
{
	static const char ptx[] = HEADER ENTRY("k", "4",
		"setp.ne.u32 %p1, %r0, 0; @%p1 bra MEET;\n"
		"atom.add.release.gpu.global.u32 %r4, [%rd0+1024], 1;\n"
		"WAIT: ld.acquire.gpu.global.u32 %r5, [%rd0+1024];\n"
		"setp.lt.u32 %p2, %r5, 3; @%p2 bra WAIT;\n"
		"MEET: bar.sync 0; ld.global.u32 %r6, [%rd0+1024];\n"
		"st.global.u32 [%rd1], %r6;\n");
	CLEAN_RIG rig = rig_new(ptx);
	struct softgpu_scratch *scratches[3];
	enum softgpu_progress progress[3] = { SOFTGPU_BLOCK_YIELDED,
		SOFTGPU_BLOCK_YIELDED, SOFTGPU_BLOCK_YIELDED };
	uint32_t *out = rig_alloc(rig, 2048);
	struct softgpu_launch launch = {
		.kernel = rig_kernel(rig, "k"),
		.grid = { 3, 1, 1 },
		.block = { 64, 1, 1 },
		.params = &out,
		.params_size = sizeof(out),
		.space = &rig->space,
	};

	for (int i = 0; i < 3; i++) {
		check(!softgpu_scratch_new(&scratches[i], (uint32_t)i));
		check(!softgpu_block_begin(
			scratches[i], &launch, (uint64_t)i, &rig->fault));
	}
	for (int round = 0; round < 10; round++)
		for (int i = 0; i < 3; i++)
			if (progress[i] == SOFTGPU_BLOCK_YIELDED)
				progress[i] = softgpu_block_resume(
					scratches[i], NULL, &rig->fault);
	for (int i = 0; i < 3; i++) {
		check_eq(progress[i], SOFTGPU_BLOCK_DONE);
		softgpu_scratch_free(scratches[i]);
	}
	for (int i = 0; i < 192; i++)
		check_eq(out[i], 3);
}

/*
 * The order of warps
 */

/* Each thread writes a word and reads the word of a thread in another warp: a race. */
static void run_race(enum softgpu_schedule schedule, uint32_t *seen)
{
	static const char ptx[] = HEADER
		".visible .entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
		".shared .align 4 .b8 words[256]; ld.param.u64 %rd1, [p];\n"
		"mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;\n"
		"add.u64 %rd1, %rd1, %rd2; mov.u32 %r2, words; shl.b32 %r3, %r1, 2;\n"
		"add.u32 %r3, %r3, %r2; st.shared.u32 [%r3], %r1;\n"
		"xor.b32 %r4, %r1, 32; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r2;\n"
		"ld.shared.u32 %r5, [%r4]; st.global.u32 [%rd1], %r5; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 64 * sizeof(*out));

	rig->schedule = (uint8_t)schedule;
	rig_launch(rig, "k", 1, 64, &out, sizeof(out));
	memcpy(seen, out, 64 * sizeof(*out));
}

TEST(warps_in_turn_hide_a_race_that_long_runs_show)
{
	uint32_t seen[64];

	run_race(SOFTGPU_SCHEDULE_FAIR, seen);
	for (uint32_t i = 0; i < 64; i++)
		check_eq(seen[i], i ^ 32);
	run_race(SOFTGPU_SCHEDULE_LONG, seen);
	for (uint32_t i = 0; i < 64; i++)
		check_eq(seen[i], i < 32 ? 0 : i - 32);
}

/* Warp 0 does not poll: it gives way by turns only. */
TEST(a_warp_that_loops_for_long_does_not_keep_others_from_their_turn)
{
	static const char ptx[] = HEADER
		".visible .entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd<3>;\n"
		".reg .pred %q; .shared .align 4 .b8 word[4];\n"
		"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0;\n"
		"setp.gt.u32 %q, %r1, 31; @%q bra SET;\n"
		"LOOP: ld.shared.u32 %r3, [word]; add.u32 %r2, %r2, 1;\n"
		"setp.eq.u32 %q, %r3, 0; @%q bra LOOP;\n"
		"st.global.u32 [%rd1], %r2; ret;\n"
		"SET: add.u32 %r2, %r2, 1; setp.lt.u32 %q, %r2, 1000; @%q bra SET;\n"
		"st.shared.u32 [word], 1; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 4);

	rig->schedule = SOFTGPU_SCHEDULE_FAIR;
	rig_launch(rig, "k", 1, 64, &out, sizeof(out));
	/* Both loops are of about one length. */
	check(*out > 500 && *out < 2000);
}
