/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clusters: their numbers, their barrier, and the shared memory of their blocks
 */

#include "exec-body.h"

/* Threads of a block in these tests. */
#define THREADS 64u

/*
 * A kernel of that body; %r0 is the thread's number in its block, %r1 the block's rank,
 * %r2 the number of blocks, %d0 device memory, and %d1 a place of 32 bytes for each
 * thread of the grid, whose blocks are numbered x first.
 */
static struct rig *rig_of_blocks(
	const char *outside, const char *directives, const char *body)
{
	static char text[16384];

	snprintf(text, sizeof(text),
		HEADER "%s\n.visible .entry k(.param .u64 p, .param .u64 o) %s {\n%s"
		       "ld.param.u64 %%d0, [p]; ld.param.u64 %%d1, [o];\n"
		       "mov.u32 %%r0, %%tid.x; mov.u32 %%r1, %%cluster_ctarank;\n"
		       "mov.u32 %%r2, %%cluster_nctarank;\n"
		       "mov.u32 %%r3, %%ctaid.z; mov.u32 %%r4, %%nctaid.y;\n"
		       "mov.u32 %%r5, %%ctaid.y; mad.lo.u32 %%r3, %%r3, %%r4, %%r5;\n"
		       "mov.u32 %%r4, %%nctaid.x; mov.u32 %%r5, %%ctaid.x;\n"
		       "mad.lo.u32 %%r3, %%r3, %%r4, %%r5; mov.u32 %%r4, %%ntid.x;\n"
		       "mad.lo.u32 %%r3, %%r3, %%r4, %%r0; mul.wide.u32 %%d2, %%r3, 32;\n"
		       "add.u64 %%d1, %%d1, %%d2;\n%s\nret; }\n",
		outside, directives, REGISTERS, body);
	return rig_new(text);
}

static void set_cluster(struct rig *rig, uint32_t x, uint32_t y, uint32_t z)
{
	rig->cluster[0] = x;
	rig->cluster[1] = y;
	rig->cluster[2] = z;
}

static int run_blocks(struct rig *rig, const struct buffers *b, uint32_t grid)
{
	return rig_run(rig, "k", grid, THREADS, b, sizeof(*b));
}

static void run_blocks_well(struct rig *rig, const struct buffers *b, uint32_t grid)
{
	if (run_blocks(rig, b, grid))
		test_fail(__FILE__, __LINE__, "%s", rig->fault.text);
}

TEST(blocks_have_numbers_in_their_cluster_and_clusters_in_the_grid)
{
	static const uint32_t grid[3] = { 6, 4, 3 }, cluster[3] = { 3, 2, 1 };
	CLEAN_RIG rig = rig_of_blocks("", "",
		"mov.u32 %r6, %clusterid.x; mov.u32 %r7, %clusterid.y; mov.u32 %r8, "
		"%clusterid.z;\n"
		"mov.u32 %r9, %cluster_ctaid.x; mov.u32 %r10, %cluster_ctaid.y;\n"
		"mov.u32 %r11, %cluster_ctaid.z; mad.lo.u32 %r6, %r7, 256, %r6;\n"
		"mad.lo.u32 %r6, %r8, 65536, %r6; mad.lo.u32 %r9, %r10, 256, %r9;\n"
		"mad.lo.u32 %r9, %r11, 65536, %r9;\n"
		"mov.u32 %r12, %nclusterid.x; mov.u32 %r13, %nclusterid.y;\n"
		"mad.lo.u32 %r12, %r13, 256, %r12; mov.u32 %r13, %nclusterid.z;\n"
		"mad.lo.u32 %r12, %r13, 65536, %r12;\n"
		"mov.u32 %r14, %cluster_nctaid.x; mov.u32 %r13, %cluster_nctaid.y;\n"
		"mad.lo.u32 %r14, %r13, 256, %r14; mov.u32 %r13, %cluster_nctaid.z;\n"
		"mad.lo.u32 %r14, %r13, 65536, %r14;\n"
		"mov.pred %p1, %is_explicit_cluster; selp.u32 %r15, 1, 0, %p1;\n"
		"st.global.v4.u32 [%d1], {%r6, %r9, %r12, %r14};\n"
		"st.global.v4.u32 [%d1+16], {%r1, %r2, %r15, %r15};");
	struct buffers b = buffers_of(rig, 6 * 4 * 3 * THREADS);

	set_cluster(rig, cluster[0], cluster[1], cluster[2]);
	rig->rows[0] = grid[1];
	rig->rows[1] = grid[2];
	run_blocks_well(rig, &b, grid[0]);
	for (uint32_t i = 0; i < grid[0] * grid[1] * grid[2]; i++) {
		uint32_t x = i % 6, y = i / 6 % 4, z = i / 24;
		const uint32_t want[8] = {
			x / 3 | y / 2 << 8 | z << 16,
			x % 3 | (y % 2) << 8,
			2 | 2 << 8 | 3 << 16,
			3 | 2 << 8 | 1 << 16,
			x % 3 + y % 2 * 3,
			6,
			1,
			1,
		};

		check(!memcmp(b.out[i * THREADS + 5], want, sizeof(want)));
	}
	set_cluster(rig, 0, 0, 0);
	run_blocks_well(rig, &b, 1);
	check_eq(b.out[0][5], 1);
	check_eq(b.out[0][6], 0);
}

/* Each block writes to the one after it, reads from the one after that. */
#define NEIGHBOUR_BODY                                                                   \
	"mov.u32 %%r6, s; mad.lo.u32 %%r6, %%r0, 16, %%r6;\n"                            \
	"mad.lo.u32 %%r7, %%r1, 1000, %%r0; mov.u32 %%r8, 7;\n"                          \
	"st.shared.v4.u32 [%%r6], {%%r7, %%r8, %%r7, %%r8};\n"                           \
	"barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n"                \
	"add.u32 %%r9, %%r1, 1; rem.u32 %%r9, %%r9, %%r2;\n"                             \
	"add.u32 %%r10, %%r1, 2; rem.u32 %%r10, %%r10, %%r2;\n"                          \
	"cvt.u64.u32 %%d3, %%r6; cvta.shared.u64 %%d3, %%d3;\n"                          \
	"%s\n"                                                                           \
	"barrier.cluster.arrive; barrier.cluster.wait;\n"                                \
	"ld.shared.v4.u32 {%%r12, %%r13, %%r14, %%r15}, [%%r6];\n"                       \
	"st.global.v4.u32 [%%d1], {%%r12, %%r13, %%r14, %%r15};\n"                       \
	"st.global.u32 [%%d1+16], %%r11;"

TEST(blocks_reach_each_others_shared_memory)
{
	static const struct {
		const char *text;
		uint32_t add; /* to the first word of the block after */
		bool sets;    /* instead, to 5 */
	} rows[] = {
		{ "mapa.shared::cluster.u32 %r16, %r6, %r10; ld.shared::cluster.u32 "
		  "%r11, [%r16];",
			0, false },
		{ "mapa.u64 %d4, %d3, %r10; ld.u32 %r11, [%d4+8];", 0, false },
		{ "mapa.u64 %d4, %d3, %r10; ld.volatile.u32 %r11, [%d4];", 0, false },
		{ "mapa.shared::cluster.u64 %d4, %d3, %r10; mapa.shared::cluster.u32 "
		  "%r16, s, %r10;\n"
		  "mad.lo.u32 %r16, %r0, 16, %r16; ld.acquire.cluster.shared::cluster.u32"
		  " %r11, [%r16];",
			0, false },
		{ "mapa.shared::cluster.u32 %r16, %r6, %r10;\n"
		  "ld.shared::cluster.v4.u32 {%r17, %r18, %r11, %r19}, [%r16];",
			0, false },
		{ "mapa.shared::cluster.u32 %r16, %r6, %r10; cvt.u64.u32 %d4, %r16;\n"
		  "cvta.shared::cluster.u64 %d4, %d4; ld.u32 %r11, [%d4];",
			0, false },
		{ "mapa.shared::cluster.u32 %r16, %r6, %r10; mov.u32 %r17, %r16;\n"
		  "ld.shared::cluster.u32 %r11, [%r17]; mapa.shared::cluster.u32 %r16, "
		  "%r17, %r9;\n"
		  "atom.shared::cluster.add.u32 %r18, [%r16], 3;",
			3, false },
		{ "mapa.shared::cluster.u32 %r16, %r6, %r10; ld.shared::cluster.u32 "
		  "%r11, [%r16];\n"
		  "barrier.cluster.arrive; barrier.cluster.wait; mapa.u64 %d4, %d3, %r9; "
		  "red.add.u32 [%d4], 9;",
			9, false },
		{ "mapa.shared::cluster.u32 %r16, %r6, %r10; ld.shared::cluster.u32 "
		  "%r11, [%r16];\n"
		  "barrier.cluster.arrive; barrier.cluster.wait; mapa.u64 %d4, %d3, %r9; "
		  "mov.u32 %r17, 5; st.u32 [%d4], %r17;",
			0, true },
		{ "mapa.shared::cluster.u32 %r16, %r6, %r10; ld.shared::cluster.u32 "
		  "%r11, [%r16];\n"
		  "barrier.cluster.arrive; barrier.cluster.wait;\n"
		  "mapa.shared::cluster.u32 %r16, %r6, %r9; mov.u32 %r17, 5;\n"
		  "st.release.cluster.shared::cluster.u32 [%r16], %r17;",
			0, true },
		{ "mapa.shared::cluster.u32 %r16, %r6, %r10; ld.shared::cluster.u32 "
		  "%r11, [%r16];\n"
		  "barrier.cluster.arrive; barrier.cluster.wait;\n"
		  "mapa.shared::cluster.u32 %r16, %r6, %r9; mov.u64 %d5, 0x700000005;\n"
		  "st.shared::cluster.u64 [%r16], %d5;",
			0, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char body[4096];
		CLEAN_RIG rig = NULL;
		struct buffers b;

		snprintf(body, sizeof(body), NEIGHBOUR_BODY, rows[i].text);
		rig = rig_of_blocks(".shared .align 16 .b8 s[1024];", "", body);
		b = buffers_of(rig, 10 * THREADS);
		set_cluster(rig, 5, 1, 1);
		/* Atomic operations may come before another block's read. */
		run_blocks_well(rig, &b, 10);
		for (uint32_t t = 0; t < 10 * THREADS; t++) {
			uint32_t rank = t / THREADS % 5, lane = t % THREADS;
			uint32_t own = rank * 1000 + lane + rows[i].add;
			uint32_t seen = (rank + 2) % 5 * 1000 + lane;
			const uint32_t want[4] = { rows[i].sets ? 5 : own, 7,
				rank * 1000 + lane, 7 };

			if (memcmp(b.out[t], want, sizeof(want)) ||
				(b.out[t][4] != seen &&
					b.out[t][4] != seen + rows[i].add))
				test_fail(__FILE__, __LINE__, "%s: thread %u: %u %u %u",
					rows[i].text, t, b.out[t][0], b.out[t][4], seen);
		}
	}
}

TEST(addresses_tell_whose_they_are)
{
	CLEAN_RIG rig = rig_of_blocks(".shared .align 16 .b8 s[64];", "",
		"mapa.shared::cluster.u32 %r6, s, 2; getctarank.shared::cluster.u32 %r7, "
		"%r6;\n"
		"mov.u32 %r8, s; getctarank.shared::cluster.u32 %r9, %r8;\n"
		"cvt.u64.u32 %d3, %r6; cvta.shared::cluster.u64 %d3, %d3;\n"
		"getctarank.u64 %r10, %d3; isspacep.shared::cluster %p1, %d3;\n"
		"selp.u32 %r11, 1, 0, %p1; isspacep.shared::cta %p1, %d3;\n"
		"selp.u32 %r12, 1, 0, %p1; isspacep.global %p1, %d3; selp.u32 %r13, 1, "
		"0, %p1;\n"
		/* An address that another block has made leads here as well. */
		"setp.ne.u32 %p2, %r0, 0; mov.u32 %r14, s; mapa.u64 %d4, %d3, %r1;\n"
		"add.u32 %r15, %r1, 1; rem.u32 %r15, %r15, %r2;\n"
		"mapa.shared::cluster.u32 %r16, s, %r15;\n"
		"@!%p2 st.shared::cluster.u32 [%r16+4], %r16; barrier.cluster.arrive;\n"
		"barrier.cluster.wait; ld.shared.u32 %r17, [s+4]; mov.u32 %r18, 77;\n"
		"@!%p2 st.shared::cluster.u32 [%r17+8], %r18; bar.sync 0;\n"
		"ld.shared.u32 %r18, [s+8];\n"
		"st.global.v4.u32 [%d1], {%r7, %r9, %r10, %r11};\n"
		"st.global.v4.u32 [%d1+16], {%r12, %r13, %r18, %r18};");
	struct buffers b = buffers_of(rig, 4 * THREADS);

	set_cluster(rig, 2, 2, 1);
	rig->rows[0] = 2;
	run_blocks_well(rig, &b, 2);
	for (uint32_t t = 0; t < 4 * THREADS; t++) {
		uint32_t rank = t / THREADS;
		const uint32_t want[7] = { 2, rank, 2, 1, rank == 2, 0, 77 };

		check(!memcmp(b.out[t], want, sizeof(want)));
	}
}

TEST(the_barrier_holds_all_blocks_of_a_cluster)
{
	/* In each round a thread of one block adds to a number that all of them read. */
	CLEAN_RIG rig = rig_of_blocks(".shared .b32 s;", "",
		"mapa.shared::cluster.u32 %r6, s, 0; mov.u32 %r7, 0; mov.u32 %r8, 0;\n"
		"setp.eq.u32 %p1, %r0, 33;\n"
		"setp.eq.and.u32 %p2, %r1, 0, %p1; @%p2 st.shared.u32 [s], %r7;\n"
		"barrier.cluster.arrive; barrier.cluster.wait;\n"
		"again: rem.u32 %r9, %r7, %r2; setp.eq.and.u32 %p2, %r9, %r1, %p1;\n"
		"add.u32 %r10, %r7, 1; @%p2 red.shared::cluster.add.u32 [%r6], %r10;\n"
		"barrier.cluster.arrive.release.aligned; add.u32 %r7, %r7, 1;\n"
		"barrier.cluster.wait.acquire.aligned; ld.shared::cluster.u32 %r11, "
		"[%r6];\n"
		"mul.lo.u32 %r12, %r7, %r10; add.u32 %r12, %r12, %r7; shr.u32 %r12, "
		"%r12, "
		"1;\n"
		"setp.ne.u32 %p3, %r11, %r12; @%p3 add.u32 %r8, %r8, 1;\n"
		"barrier.cluster.arrive.relaxed; barrier.cluster.wait;\n"
		"setp.lt.u32 %p3, %r7, 20; @%p3 bra again; st.global.u32 [%d1], %r8;\n"
		"st.global.u32 [%d1+4], %r11;");
	struct buffers b = buffers_of(rig, 16 * THREADS);

	set_cluster(rig, 16, 1, 1);
	run_blocks_well(rig, &b, 16);
	for (uint32_t t = 0; t < 16 * THREADS; t++) {
		check_eq(b.out[t][0], 0);
		check_eq(b.out[t][1], 210);
	}
}

TEST(blocks_that_have_ended_hold_no_other_up_and_keep_their_memory)
{
	CLEAN_RIG rig = rig_of_blocks(".shared .b32 s;", "",
		"add.u32 %r6, %r1, 40; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [s], "
		"%r6;\n"
		"bar.sync 0; setp.eq.u32 %p2, %r1, 3; @!%p2 exit;\n"
		"barrier.cluster.arrive; barrier.cluster.wait;\n"
		"and.b32 %r7, %r0, 3; mapa.shared::cluster.u32 %r8, s, %r7;\n"
		"ld.shared::cluster.u32 %r9, [%r8]; st.global.u32 [%d1], %r9;");
	struct buffers b = buffers_of(rig, 4 * THREADS);

	set_cluster(rig, 4, 1, 1);
	run_blocks_well(rig, &b, 4);
	for (uint32_t t = 0; t < THREADS; t++) {
		check_eq(b.out[t][0], 0);
		check_eq(b.out[3 * THREADS + t][0], 40 + (t & 3));
	}
}

/* Block 0 waits until all threads of the others have arrived, then they wait for it. */
TEST(threads_arrive_at_barriers_of_other_blocks)
{
	static const char *const arrivals[] = {
		"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];",
		"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6], 1;",
		"cvt.u64.u32 %d3, %r6; cvta.shared::cluster.u64 %d3, %d3;\n"
		"mbarrier.arrive.release.cluster.b64 _, [%d3];",
		"mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r6], "
		"8;\n"
		"mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r6], 8;",
	};

	for (size_t i = 0; i < sizeof(arrivals) / sizeof(arrivals[0]); i++) {
		char body[4096];
		CLEAN_RIG rig = NULL;
		struct buffers b;

		snprintf(body, sizeof(body),
			"setp.eq.u32 %%p1, %%r0, 0;\n"
			"@%%p1 mbarrier.init.shared::cta.b64 [bar], 192;\n"
			"@%%p1 fence.mbarrier_init.release.cluster;\n"
			"barrier.cluster.arrive; barrier.cluster.wait;\n"
			"mapa.shared::cluster.u32 %%r6, bar, 0; mapa.shared::cluster.u32 "
			"%%r7, n, 0;\n"
			"setp.eq.u32 %%p2, %%r1, 0; @%%p2 bra wait;\n"
			"red.relaxed.cluster.shared::cluster.add.u32 [%%r7], 1;\n"
			"%s\n"
			"bra out;\n"
			"wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
			"%%p3, [bar], 0;\n"
			"@!%%p3 bra wait; ld.shared.u32 %%r8, [n]; st.global.u32 [%%d1], "
			"%%r8;\n"
			"out: barrier.cluster.arrive; barrier.cluster.wait;",
			arrivals[i]);
		rig = rig_of_blocks(
			".shared .align 8 .b64 bar; .shared .b32 n;", "", body);
		b = buffers_of(rig, 4 * THREADS);
		set_cluster(rig, 4, 1, 1);
		run_blocks_well(rig, &b, 4);
		for (uint32_t t = 0; t < THREADS; t++)
			check_eq(b.out[t][0], 3 * THREADS);
	}
}

TEST(a_block_that_a_cluster_lacks_is_a_fault_where_it_is_accessed)
{
	static const char *const rows[] = {
		"ld.shared::cluster.u32 %r7, [%r6];",
		"st.shared::cluster.u32 [%r6], %r7;",
		"atom.shared::cluster.add.u32 %r7, [%r6], 1;",
		"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];",
		"cvt.u64.u32 %d3, %r6; cvta.shared::cluster.u64 %d3, %d3; ld.u32 %r7, "
		"[%d3];",
		"mapa.u64 %d3, %d5, 0xffffffff; ld.u64 %d4, [%d3];",
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char body[1024];
		CLEAN_RIG rig = NULL;
		struct buffers b;

		snprintf(body, sizeof(body),
			"mov.u32 %%r7, s; cvt.u64.u32 %%d5, %%r7; cvta.shared.u64 %%d5, "
			"%%d5;\n"
			"mapa.shared::cluster.u32 %%r6, s, 4; mov.u32 %%r8, s;\n"
			"mapa.shared::cluster.u32 %%r9, %%r8, 0xffffffff;\n"
			"ld.global.u32 %%r10, [%%d0]; setp.ne.u32 %%p1, %%r10, 0; @%%p1 "
			"exit;\n%s",
			rows[i]);
		rig = rig_of_blocks(".shared .align 8 .b8 s[8];", "", body);
		b = buffers_of(rig, 4 * THREADS);
		set_cluster(rig, 4, 1, 1);
		/* To compute the address is none. */
		*(uint32_t *)b.memory = 1;
		run_blocks_well(rig, &b, 4);
		*(uint32_t *)b.memory = 0;
		check_eq(run_blocks(rig, &b, 4), SOFTGPU_ERROR_ILLEGAL_ADDRESS);
		if (!strstr(rig->fault.text, "a block that the cluster does not have"))
			test_fail(__FILE__, __LINE__, "%s: %s", rows[i], rig->fault.text);
	}
}

/* Of a range of 16 MiB; a block's memory is rounded up to 128 bytes. */
TEST(addresses_of_any_kind_stay_within_the_blocks)
{
	static const uint32_t offs[] = { 0, 4, 124, 128, 4096, 0x40000,
		SOFTGPU_CLUSTER_STRIDE - 4 };
	CLEAN_RIG rig = rig_of_blocks(".shared .align 8 .b8 s[8];", "",
		"ld.global.u32 %r6, [%d0]; mov.u32 %r8, s; st.shared.u32 [%r8], %r6;\n"
		"ld.shared::cluster.u32 %r7, [%r6]; st.global.u32 [%d1], %r7;");
	struct buffers b = buffers_of(rig, 2 * THREADS);

	set_cluster(rig, 2, 1, 1);
	for (uint32_t number = 0; number < 8192;
		number = number < 40 ? number + 1 : number * 2)
		for (size_t i = 0; i < sizeof(offs) / sizeof(offs[0]); i++) {
			*(uint32_t *)b.memory = number * SOFTGPU_CLUSTER_STRIDE + offs[i];
			check_eq(run_blocks(rig, &b, 2),
				number <= 2 && offs[i] < 128
					? 0
					: SOFTGPU_ERROR_ILLEGAL_ADDRESS);
		}
}

TEST(a_barrier_of_a_cluster_that_cannot_open_ends_the_kernel)
{
	CLEAN_RIG rig = rig_of_blocks("", "",
		"setp.eq.u32 %p1, %r1, 1; setp.eq.and.u32 %p1, %r0, 40, %p1; @%p1 bra "
		"OTHER;\n"
		"barrier.cluster.arrive; barrier.cluster.wait; ret;\n"
		"OTHER: bar.sync 1, 64;");
	struct buffers b = buffers_of(rig, 2 * THREADS);

	set_cluster(rig, 2, 1, 1);
	check_eq(run_blocks(rig, &b, 2), SOFTGPU_ERROR_LAUNCH_TIMEOUT);
}

TEST(a_launch_has_whole_clusters_of_a_legal_size)
{
	static const struct {
		uint32_t grid[3], cluster[3];
		int code;
	} rows[] = {
		{ { 16, 1, 1 }, { 16, 1, 1 }, 0 },
		{ { 4, 6, 2 }, { 4, 2, 2 }, 0 },
		{ { 17, 1, 1 }, { 17, 1, 1 }, SOFTGPU_ERROR_INVALID_VALUE },
		{ { 4, 6, 2 }, { 4, 3, 2 }, SOFTGPU_ERROR_INVALID_VALUE },
		{ { 5, 1, 1 }, { 2, 1, 1 }, SOFTGPU_ERROR_INVALID_VALUE },
		{ { 4, 1, 1 }, { 2, 0, 0 }, SOFTGPU_ERROR_INVALID_VALUE },
		{ { 4, 1, 1 }, { 0, 1, 1 }, SOFTGPU_ERROR_INVALID_VALUE },
		{ { 4, 1, 1 }, { 0x10000, 0x10000, 1 }, SOFTGPU_ERROR_INVALID_VALUE },
	};
	CLEAN_RIG rig = rig_of_blocks("", "", "");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t params[2] = {};
		struct softgpu_launch launch = {
			.kernel = rig_kernel(rig, "k"),
			.block = { 32, 1, 1 },
			.params = params,
			.params_size = sizeof(params),
			.space = &rig->space,
		};

		memcpy(launch.grid, rows[i].grid, sizeof(launch.grid));
		memcpy(launch.cluster, rows[i].cluster, sizeof(launch.cluster));
		check_eq(softgpu_launch_check(&launch), rows[i].code);
	}
}

TEST(a_kernel_says_which_clusters_it_has)
{
	CLEAN_RIG rig = rig_new(HEADER
		".visible .entry a() .reqnctapercluster 4, 2 { ret; }\n"
		".visible .entry b() .explicitcluster .maxclusterrank 6 { ret; }\n"
		".visible .entry c() .reqntid 32 .reqnctapercluster 2 .blocksareclusters "
		"{ ret; }\n");
	const struct softgpu_kernel_info *info =
		softgpu_kernel_info(rig_kernel(rig, "a"));

	check(info->required_cluster[0] == 4 && info->required_cluster[1] == 2 &&
		info->required_cluster[2] == 1);
	check(!info->is_cluster_explicit && !info->blocks_are_clusters);
	info = softgpu_kernel_info(rig_kernel(rig, "b"));
	check(!info->required_cluster[0] && info->is_cluster_explicit);
	check_eq(info->max_cluster, 6);
	info = softgpu_kernel_info(rig_kernel(rig, "c"));
	check(info->required_cluster[0] == 2 && info->blocks_are_clusters);
}
