/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous copies, and barriers in shared memory
 */

#include "exec-body.h"

#define MEMORY 4096u

static void fill(struct buffers *b)
{
	uint8_t *bytes = b->memory;

	for (uint32_t i = 0; i < MEMORY; i++)
		bytes[i] = (uint8_t)(i * 7 + 1);
}

/* What a thread of the next tests copies, 16 bytes of its own in shared memory. */
#define COPY_BODY                                                                        \
	".shared .align 16 .b8 s[1024]; mov.u32 %%r1, s; mad.lo.u32 %%r1, %%r0, 16, "    \
	"%%r1;\n"                                                                        \
	"mul.wide.u32 %%d3, %%r0, 16; add.u64 %%d3, %%d0, %%d3;\n"                       \
	"mov.u32 %%r2, 0xffffffff; setp.eq.u32 %%p1, %%r0, 3; mov.u32 %%r3, 5;\n"        \
	"st.shared.v4.u32 [%%r1], {%%r2, %%r2, %%r2, %%r2};\n"                           \
	"createpolicy.fractional.L2::evict_last.b64 %%d5, 1.0;\n"                        \
	"%s\n"                                                                           \
	"cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;\n"             \
	"ld.shared.v4.u32 {%%r4, %%r5, %%r6, %%r7}, [%%r1];\n"                           \
	"st.global.v4.u32 [%%d1], {%%r4, %%r5, %%r6, %%r7};"

TEST(copies_bring_what_they_name_and_zeros)
{
	static const struct {
		const char *copy;
		uint32_t at, n, zeros; /* in the source, bytes of it, zeros behind */
		uint32_t to;	       /* in the thread's 16 bytes */
	} rows[] = {
		{ "cp.async.cg.shared.global [%r1], [%d3], 16;", 0, 16, 0, 0 },
		{ "cp.async.ca.shared::cta.global.L2::128B [%r1], [%d3+16], 16;", 16, 16,
			0, 0 },
		{ "cp.async.ca.shared.global [%r1+4], [%d3+8], 4;", 8, 4, 0, 4 },
		{ "cp.async.ca.shared.global [%r1+8], [%d3], 8;", 0, 8, 0, 8 },
		{ "cp.async.cg.shared.global [%r1], [%d3], 16, 5;", 0, 5, 11, 0 },
		{ "cp.async.cg.shared.global [%r1], [%d3], 16, %r3;", 0, 5, 11, 0 },
		{ "cp.async.cg.shared.global [%r1], [%d3], 16, 0;", 0, 0, 16, 0 },
		{ "cp.async.cg.shared.global.L2::cache_hint [%r1], [%d3], 16, %d5;", 0,
			16, 0, 0 },
		{ "cp.async.ca.shared.global.L2::cache_hint [%r1], [%d3], 8, 3, %d5;", 0,
			3, 5, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char body[2048];
		CLEAN_RIG rig = NULL;
		struct buffers b;

		snprintf(body, sizeof(body), COPY_BODY, rows[i].copy);
		rig = rig_of("", body);
		b = buffers_of(rig, 64);
		fill(&b);
		run_well(rig, &b, 64);
		for (uint32_t t = 0; t < 64; t++) {
			uint8_t want[16];

			memset(want, 0xff, sizeof(want));
			memcpy(want + rows[i].to,
				(uint8_t *)b.memory + 16 * t + rows[i].at, rows[i].n);
			memset(want + rows[i].to + rows[i].n, 0, rows[i].zeros);
			if (memcmp(b.out[t], want, sizeof(want)))
				test_fail(__FILE__, __LINE__, "%s: thread %u",
					rows[i].copy, t);
		}
	}
}

TEST(a_copy_whose_source_is_ignored_brings_zeros)
{
	char body[2048];
	CLEAN_RIG rig = NULL;
	struct buffers b;

	/* The ignored source is nowhere. */
	snprintf(body, sizeof(body), COPY_BODY,
		"@%p1 mov.u64 %d3, 0; cp.async.cg.shared.global [%r1], [%d3], 16, %p1;");
	rig = rig_of("", body);
	b = buffers_of(rig, 32);
	fill(&b);
	run_well(rig, &b, 32);
	for (uint32_t t = 0; t < 32; t++) {
		static const uint8_t zeros[16];

		check(!memcmp(
			b.out[t], t == 3 ? zeros : (uint8_t *)b.memory + 16 * t, 16));
	}
}

/* Each phase a thread reads what its neighbour wrote in the phase before. */
#define PHASES_BODY                                                                      \
	".shared .align 8 .b64 bar; .shared .b32 s[256]; mov.u32 %%r1, bar;\n"           \
	"setp.eq.u32 %%p1, %%r0, 0; @%%p1 mbarrier.init.shared::cta.b64 [%%r1], 128;\n"  \
	"bar.sync 0; mov.u32 %%r2, s; mad.lo.u32 %%r3, %%r0, 4, %%r2;\n"                 \
	"add.u32 %%r4, %%r0, 1; and.b32 %%r4, %%r4, 127; mad.lo.u32 %%r4, %%r4, 4, "     \
	"%%r2;\n"                                                                        \
	"mov.u32 %%r5, 0; mov.u32 %%r6, %%r0;\n"                                         \
	"again: st.shared.u32 [%%r3], %%r6;\n"                                           \
	"%s\n"                                                                           \
	"ld.shared.u32 %%r6, [%%r4]; add.u32 %%r5, %%r5, 1;\n"                           \
	"bar.sync 0; setp.lt.u32 %%p2, %%r5, 6; @%%p2 bra again;\n"                      \
	"st.global.u32 [%%d1], %%r6; @%%p1 mbarrier.inval.shared.b64 [%%r1];"

TEST(threads_wait_for_each_other_phase_by_phase)
{
	static const char *const ways[] = {
		"mbarrier.arrive.shared.b64 %d3, [%r1];\n"
		"w: mbarrier.test_wait.shared.b64 %p3, [%r1], %d3; @!%p3 bra w;",
		"mbarrier.arrive.release.cta.shared::cta.b64 _, [%r1];\n"
		"and.b32 %r7, %r5, 1;\n"
		"w: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p3, [%r1], "
		"%r7;\n"
		"@!%p3 bra w;",
		"cvt.u64.u32 %d4, %r1; cvta.shared.u64 %d4, %d4;\n"
		"mbarrier.arrive.b64 %d3, [%d4], 1;\n"
		"w: mbarrier.try_wait.b64 %p3, [%d4], %d3, 1000; @!%p3 bra w;",
		"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1], 1;\n"
		"and.b32 %r7, %r5, 1;\n"
		"w: mbarrier.test_wait.parity.shared.b64 %p3, [%r1], %r7; @!%p3 bra w;",
		"cp.async.mbarrier.arrive.noinc.shared.b64 [%r1]; and.b32 %r7, %r5, 1;\n"
		"w: mbarrier.test_wait.parity.shared.b64 %p3, [%r1], %r7; @!%p3 bra w;",
		"cp.async.mbarrier.arrive.shared::cta.b64 [%r1];\n"
		"mbarrier.arrive.shared.b64 %d3, [%r1];\n"
		"w: mbarrier.test_wait.shared.b64 %p3, [%r1], %d3; @!%p3 bra w;",
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		char body[2048];
		CLEAN_RIG rig = NULL;
		struct buffers b;

		snprintf(body, sizeof(body), PHASES_BODY, ways[i]);
		rig = rig_of("", body);
		b = buffers_of(rig, 128);
		run_well(rig, &b, 128);
		for (uint32_t t = 0; t < 128; t++)
			if (b.out[t][0] != (t + 6) % 128)
				test_fail(
					__FILE__, __LINE__, "%s: thread %u", ways[i], t);
	}
}

TEST(a_barrier_counts_arrivals)
{
	CLEAN_RIG rig = rig_of("",
		".shared .align 8 .b64 bar; mov.u32 %r1, bar; setp.ne.u32 %p1, %r0, 0;\n"
		"@%p1 bra out; mbarrier.init.shared.b64 [%r1], 5;\n"
		"mbarrier.arrive.noComplete.shared.b64 %d3, [%r1], 2;\n"
		"mbarrier.arrive_drop.shared.b64 %d4, [%r1];\n"
		"mbarrier.pending_count.b64 %r2, %d3; mbarrier.pending_count.b64 %r3, "
		"%d4;\n"
		/* The phase is not over, nor is the one before the first. */
		"mbarrier.test_wait.shared.b64 %p2, [%r1], %d3; selp.u32 %r4, 1, 0, "
		"%p2;\n"
		"mbarrier.test_wait.parity.shared.b64 %p2, [%r1], 1; selp.u32 %r5, 1, 0, "
		"%p2;\n"
		"mbarrier.arrive.shared.b64 %d5, [%r1], 2;\n"
		"mbarrier.test_wait.shared.b64 %p2, [%r1], %d3; selp.u32 %r6, 1, 0, "
		"%p2;\n"
		/* The second phase waits for one less. */
		"mbarrier.arrive.shared.b64 %d6, [%r1];\n"
		"mbarrier.pending_count.b64 %r7, %d6;\n"
		"mbarrier.test_wait.shared.b64 %p2, [%r1], %d6; selp.u32 %r8, 1, 0, "
		"%p2;\n"
		"st.global.v4.u32 [%d1], {%r2, %r3, %r4, %r5};\n"
		"st.global.v4.u32 [%d1+16], {%r6, %r7, %r8, %r8};\n"
		"out:");
	struct buffers b = buffers_of(rig, 32);
	const uint32_t want[8] = { 5, 3, 0, 1, 1, 4, 0, 0 };

	run_well(rig, &b, 32);
	check(!memcmp(b.out[0], want, sizeof(want)));
}

TEST(bulk_copies_bring_bytes_that_a_barrier_expects)
{
	static const char *const copies[] = {
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes\n"
		"[%r2], [%d0+32], 512, [%r1];",
		"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
		".L2::cache_hint [%r2], [%d0+32], %r3, [%r1], %d5;",
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
		".multicast::cluster [%r2], [%d0+32], 256, [%r1], 1;\n"
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes\n"
		"[%r2+256], [%d0+288], 256, [%r1];",
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes\n"
		"[%r2+512], [%d0+32], 256, [%r1];\n"
		"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes\n"
		"[%r2], [%r2+512], 256, [%r1]; mbarrier.expect_tx.relaxed.cta.shared.b64 "
		"[%r1], 256;\n"
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes\n"
		"[%r2+256], [%d0+288], 256, [%r1];",
	};

	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
		char body[4096];
		CLEAN_RIG rig = NULL;
		struct buffers b;

		snprintf(body, sizeof(body),
			".shared .align 8 .b64 bar; .shared .align 16 .b8 s[1024];\n"
			"mov.u32 %%r1, bar; mov.u32 %%r2, s; mov.u32 %%r3, 512;\n"
			"mov.u64 %%d5, 0; setp.eq.u32 %%p1, %%r0, 0;\n"
			"@%%p1 mbarrier.init.shared.b64 [%%r1], 1;\n"
			"@%%p1 fence.mbarrier_init.release.cluster; bar.sync 0;\n"
			"@!%%p1 bra wait;\n"
			"mbarrier.arrive.expect_tx.shared.b64 _, [%%r1], 512;\n"
			"%s\n"
			"wait: mbarrier.try_wait.parity.shared.b64 %%p2, [%%r1], 0;\n"
			"@!%%p2 bra wait; mad.lo.u32 %%r4, %%r0, 16, %%r2;\n"
			"ld.shared.v4.u32 {%%r5, %%r6, %%r7, %%r8}, [%%r4];\n"
			"st.global.v4.u32 [%%d1], {%%r5, %%r6, %%r7, %%r8};",
			copies[i]);
		rig = rig_of("", body);
		b = buffers_of(rig, 32);
		fill(&b);
		run_well(rig, &b, 32);
		for (uint32_t t = 0; t < 32; t++)
			check(!memcmp(b.out[t], (uint8_t *)b.memory + 32 + 16 * t, 16));
	}
}

TEST(bulk_copies_leave_shared_memory)
{
	CLEAN_RIG rig = rig_of("",
		".shared .align 16 .b8 s[512]; mov.u32 %r1, s; mad.lo.u32 %r2, %r0, 16, "
		"%r1;\n"
		"mov.u32 %r3, 9; st.shared.v4.u32 [%r2], {%r0, %r3, %r0, %r3};\n"
		"fence.proxy.async.shared::cta; bar.sync 0; setp.eq.u32 %p1, %r0, 0;\n"
		"@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d0+64], [%r1], 512;\n"
		"@%p1 cp.async.bulk.commit_group;\n"
		"@%p1 cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;\n"
		"cp.async.bulk.prefetch.L2.global [%d0], 64;");
	struct buffers b = buffers_of(rig, 32);

	run_well(rig, &b, 32);
	for (uint32_t t = 0; t < 32; t++) {
		const uint32_t want[4] = { t, 9, t, 9 };

		check(!memcmp((uint8_t *)b.memory + 64 + 16 * t, want, 16));
	}
}

TEST(misuse_ends_the_kernel)
{
	static const struct {
		const char *body;
		int code;
	} rows[] = {
		{ "mbarrier.init.shared.b64 [bar], 0;",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "mbarrier.init.shared.b64 [bar], 1048576;",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "mbarrier.init.shared.b64 [bar+4], 1;",
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ "mbarrier.init.shared.b64 [bar+4096], 1;",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "mbarrier.init.b64 [%d0], 1;", SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "mbarrier.init.shared.b64 [bar], 31; mbarrier.arrive.shared.b64 _, "
		  "[bar], 32;",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "mbarrier.init.shared.b64 [bar], 1; mbarrier.inval.shared.b64 [bar];\n"
		  "mbarrier.arrive.shared.b64 %d3, [bar];",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "mbarrier.init.shared.b64 [bar], 1;\n"
		  "mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 1048576;",
			SOFTGPU_ERROR_ILLEGAL_INSTRUCTION },
		{ "cp.async.cg.shared.global [s+8], [%d0], 16;",
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ "cp.async.cg.shared.global [s], [%d0+4], 16;",
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ "cp.async.ca.shared.global [s+4096], [%d0], 4;",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "mov.u64 %d0, 4096; cp.async.ca.shared.global [s], [%d0], 4;",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ "cp.async.bulk.global.shared::cta.bulk_group [%d0], [s], 24;",
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ "cp.async.bulk.global.shared::cta.bulk_group [%d0], [s], 0xfffffff0;",
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ "cp.async.bulk.global.shared::cta.bulk_group [%d0], [s], 4096;",
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEAN_RIG rig =
			rig_of(".shared .align 8 .b64 bar; .shared .align 16 .b8 s[64];",
				rows[i].body);
		struct buffers b = buffers_of(rig, 32);
		int code = run(rig, &b, 32);

		if (code != rows[i].code)
			test_fail(__FILE__, __LINE__, "%s: %d", rows[i].body, code);
	}
}
