/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that take the place of others which have not begun
 */

#include "exec-body.h"

/* What a launch has left, by the hook. */
static uint64_t next_number, end_number;

static bool take_block(const struct softgpu_launch *launch, uint64_t *numberp)
{
	(void)launch;
	if (next_number >= end_number)
		return false;
	*numberp = next_number++;
	return true;
}

#define OUTSIDE                                                                          \
	".shared .align 16 .b8 answer[16]; .shared .align 16 .b8 more[16];\n"            \
	".shared .align 8 .b64 bar;\n"

/* Thread 0 asks; all wait, and leave what the answer says. */
#define BODY(_ask)                                                                       \
	"mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r0, 0; mov.u64 %d3, bar;\n"    \
	"cvta.shared.u64 %d3, %d3; mov.u64 %d4, answer; cvta.shared.u64 %d4, %d4;\n"     \
	"@%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;\n"                          \
	"@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n" _ask "\n"            \
	"wait: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra wait;\n"     \
	"ld.shared.b128 %q1, [answer];\n"                                                \
	"clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1;\n"            \
	"selp.u32 %r2, 1, 0, %p3; mov.u32 %r3, 99; mov.u32 %r4, 99; mov.u32 %r5, 99;\n"  \
	"@%p3 clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 "            \
	"{%r3, %r4, %r5, _}, %q1;\n"                                                     \
	"st.global.v4.u32 [%d1], {%r2, %r3, %r4, %r5};\n"                                \
	"clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r3, %q1;\n"      \
	"clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r4, %q1;\n"      \
	"clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r5, %q1;\n"      \
	"st.global.v4.u32 [%d1+16], {%r2, %r3, %r4, %r5};"

#define ASK "clusterlaunchcontrol.try_cancel.async"
#define SIGNAL ".mbarrier::complete_tx::bytes"

static const char *const bodies[] = {
	BODY("@%p1 " ASK ".shared::cta" SIGNAL ".b128 [answer], [bar];"),
	BODY("@%p1 " ASK SIGNAL ".b128 [%d4], [%d3];"),
	BODY("mov.u32 %r6, answer; mov.u32 %r7, bar; sub.u32 %r6, %r6, 32;\n"
	     "@%p1 " ASK ".shared::cta" SIGNAL ".b128 [%r6+32], [%r7];"),
};

static void set_shape(struct rig *rig, uint32_t rows, uint32_t x, uint32_t y)
{
	rig->rows[0] = rows;
	rig->cluster[0] = x;
	rig->cluster[1] = y;
	rig->cluster[2] = 1;
}

TEST(an_answer_has_the_place_of_the_block)
{
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		CLEAN_RIG rig = rig_of(OUTSIDE, bodies[i]);
		struct buffers b = buffers_of(rig, 40);

		/* Each of 1 by 3 by 2 blocks asks: the last gets the last. */
		rig->hooks.take_block = take_block;
		rig->rows[0] = 3;
		rig->rows[1] = 2;
		next_number = 0;
		end_number = 6;
		check_eq(rig_run(rig, "k", 1, 40, &b, sizeof(b)), 0);
		for (uint32_t t = 0; t < 40; t++) {
			const uint32_t want[8] = { 1, 0, 2, 1, 1, 0, 2, 1 };

			check(!memcmp(b.out[t], want, sizeof(want)));
		}
		check_eq(next_number, 6);
	}
}

TEST(there_is_an_answer_where_no_block_is_left)
{
	for (unsigned int has_hook = 0; has_hook < 2; has_hook++) {
		CLEAN_RIG rig = rig_of(OUTSIDE, bodies[0]);
		struct buffers b = buffers_of(rig, 32);
		const uint32_t want[4] = { 0, 99, 99, 99 };

		if (has_hook)
			rig->hooks.take_block = take_block;
		next_number = end_number = 0;
		run_well(rig, &b, 32);
		check(!memcmp(b.out[31], want, sizeof(want)));
	}
}

/* Block 0 of each cluster asks for all of them; each waits at its own barrier. */
TEST(all_blocks_of_a_cluster_get_the_answer)
{
	static const char body[] = BODY(
		"barrier.cluster.arrive; barrier.cluster.wait;\n"
		"setp.eq.and.u32 %p1, %r1, 0, %p1;\n"
		"@%p1 " ASK ".shared::cta" SIGNAL
		".multicast::cluster::all.b128 [answer], [bar];\n"
		"mov.u32 %r8, %ctaid.y; mov.u32 %r9, %nctaid.x; mov.u32 %r10, %ctaid.x;\n"
		"mad.lo.u32 %r8, %r8, %r9, %r10; mul.wide.u32 %d5, %r8, 1024;\n"
		"add.u64 %d1, %d1, %d5;");
	CLEAN_RIG rig = rig_of(OUTSIDE, body);
	struct buffers b = buffers_of(rig, 8 * 32);

	rig->hooks.take_block = take_block;
	set_shape(rig, 2, 2, 2);
	next_number = 1;
	end_number = 3;
	/* Clusters 0 and 1 ask and get 1 and 2: 2 by 1 clusters of 2 by 2 blocks. */
	check_eq(rig_run(rig, "k", 4, 32, &b, sizeof(b)), 0);
	for (uint32_t block = 0; block < 8; block++)
		for (uint32_t t = 0; t < 32; t++) {
			uint32_t number = block % 4 / 2 + 1;
			const uint32_t want[4] = { 1, number % 2 * 2, 0, 0 };

			check(!memcmp(b.out[block * 32 + t], want, sizeof(want)));
		}
	check_eq(next_number, 3);
}

/* An answer is in shared memory at a multiple of 16, its barrier is there, too. */
TEST(wrong_places_are_faults)
{
	static const struct {
		const char *body;
		int code;
	} rows[] = {
		{ BODY("@%p1 " ASK SIGNAL ".b128 [%d0], [%d3];"),
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ BODY("@%p1 " ASK SIGNAL ".b128 [%d4], [%d0];"),
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ BODY("@%p1 " ASK SIGNAL ".b128 [%d4+8], [%d3];"),
			SOFTGPU_ERROR_MISALIGNED_ADDRESS },
		{ BODY("@%p1 " ASK SIGNAL ".b128 [%d4+65536], [%d3];"),
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ BODY("@%p1 " ASK SIGNAL ".multicast::cluster::all.b128 [%d0], [%d3];"),
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
		{ BODY("@%p1 " ASK SIGNAL ".multicast::cluster::all.b128 [%d4], [%d0];"),
			SOFTGPU_ERROR_ILLEGAL_ADDRESS },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEAN_RIG rig = rig_of(OUTSIDE, rows[i].body);
		struct buffers b = buffers_of(rig, 32);

		rig->hooks.take_block = take_block;
		next_number = 0;
		end_number = 1;
		check_eq(run(rig, &b, 32), rows[i].code);
	}
}
