/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that are watched: hazards between blocks of a cluster, and of asynchronous
 * copies
 */

#include "check-bench.h"
#include "exec/tensor-map.h"

struct row {
	const char *body;
	const char *words; /* of the only finding, NULL: there is none */
	uint32_t line;	   /* 0: either */
};

/* All that the kernel accesses in global memory is written. */
static void check_row(const struct row *row, uint32_t n_blocks, uint32_t n_threads)
{
	CLEAN_BENCH bench;

	bench_init(&bench, row->body, RACES | UNWRITTEN);
	softgpu_space_wrote(&bench.rig->space, (uintptr_t)bench.memory, 4096);
	bench.rig->cluster[0] = n_blocks;
	bench.rig->cluster[1] = bench.rig->cluster[2] = 1;
	/* Two clusters, the second of which knows nothing of the first. */
	bench_run(&bench, 2 * n_blocks, n_threads);
	if (bench.result)
		test_fail(__FILE__, __LINE__, "%s", bench.rig->fault.text);
	if (bench.n != !!row->words)
		test_fail(__FILE__, __LINE__, "%s: %u findings: %s", row->body, bench.n,
			bench.findings[0].text);
	if (!row->words)
		return;
	if (!strstr(bench.findings[0].text, row->words))
		test_fail(
			__FILE__, __LINE__, "%s: %s", row->body, bench.findings[0].text);
	if (row->line)
		check_eq(bench.findings[0].line, row->line);
}

/*
 * Clusters
 */

/* r5: the rank of the block, r6: this word in the next one; p1: in thread 0. */
#define NEXT_BLOCK                                                                       \
	"mov.u32 %r5, %cluster_ctarank; mov.u32 %r7, %cluster_nctarank;"                 \
	"add.u32 %r6, %r5, 1; rem.u32 %r6, %r6, %r7; mov.u32 %r2, s;"                    \
	"add.u32 %r2, %r2, %r1; mapa.shared::cluster.u32 %r6, %r2, %r6;"                 \
	"setp.eq.u32 %p1, %r0, 0; setp.eq.u32 %p2, %r5, 0;\n"

#define MEET "barrier.cluster.arrive; barrier.cluster.wait;\n"

static const struct row cluster_rows[] = {
	{ ENTRY(NEXT_BLOCK "st.shared.u32 [%r2], %r5;\n" MEET
			   "ld.shared::cluster.u32 %r8, [%r6];\n" MEET
			   "st.shared::cluster.u32 [%r6], %r5;\n" MEET
			   "ld.shared.u32 %r8, [%r2];\n"),
		NULL, 0 },
	/* Without the second barrier. */
	{ ENTRY(NEXT_BLOCK "st.shared.u32 [%r2], %r5;\n" MEET
			   "@%p2 ld.shared::cluster.u32 %r8, [%r6];\n"
			   "@!%p2 st.shared.u32 [%r2], %r0;\n" MEET),
		"; the earlier access is of block (", 0 },
	/* Two barriers of the blocks themselves do not help. */
	{ ENTRY(NEXT_BLOCK "@%p2 st.shared::cluster.u32 [%r6], %r5;\nbar.sync 0;\n"
			   "bar.sync 0;\n@!%p2 st.shared.u32 [%r2], %r7;\n" MEET),
		"write after write (", 0 },
	/* An address of the block's own by its rank is the same place. */
	{ ENTRY(NEXT_BLOCK
		  "mapa.shared::cluster.u32 %r9, %r2, %r5; setp.lt.u32 %p3, %r0, 32;\n"
		  "@%p3 st.shared::cluster.u32 [%r9+128], %r7;\n"
		  "@!%p3 ld.shared.u32 %r8, [%r2];\n" MEET),
		"(0x80) in k", 0 },
	/* The barrier opens for those that come late, too. */
	{ ENTRY(NEXT_BLOCK "st.shared.u32 [%r2], %r5;\n"
			   "barrier.cluster.arrive;\n@%p2 bar.sync 0;\n"
			   "barrier.cluster.wait;\nbarrier.cluster.arrive;\n"
			   "ld.shared::cluster.u32 %r8, [%r6];\nbarrier.cluster.wait;\n"),
		NULL, 0 },
	/* Data by an atomic operation on a third block's word. */
	{ ENTRY(NEXT_BLOCK
		  "mapa.shared::cluster.u32 %r9, s, 1; @%p1 st.shared.u32 [s+512], "
		  "0;\n" MEET "@!%p1 bra E;\nsetp.eq.u32 %p3, %r5, 2; @%p3 bra W;\n"
		  "@!%p2 bra E;\nmapa.shared::cluster.u32 %r10, s, 2;"
		  "st.shared::cluster.u32 [%r10+64], %r5;\nfence.acq_rel.cluster;"
		  "atom.shared::cluster.add.u32 %r8, [%r9+512], 1;\nbra E;\n"
		  "W: ld.acquire.cluster.shared::cluster.u32 %r8, [%r9+512];"
		  "setp.eq.u32 %p4, %r8, 0; @%p4 bra W;\n"
		  "ld.shared.u32 %r8, [s+64];\nE:\n" MEET),
		NULL, 0 },
	/* What nothing has written in another block. */
	{ ENTRY(NEXT_BLOCK "@%p2 st.shared.u32 [%r2], %r5;\n" MEET
			   "setp.eq.and.u32 %p3, %r5, 1, %p1;\n"
			   "@%p3 ld.shared::cluster.u32 %r8, [%r6];\n" MEET),
		"a load of shared memory that nothing has written (0x0) in k", 12 },
	{ ENTRY(NEXT_BLOCK "@%p2 st.shared::cluster.u32 [%r6], %r5;\n" MEET
			   "setp.eq.u32 %p3, %r5, 1;\n"
			   "@%p3 ld.shared.u32 %r8, [%r2];\n"),
		NULL, 0 },
};

TEST(accesses_of_other_blocks_are_watched)
{
	for (size_t i = 0; i < sizeof(cluster_rows) / sizeof(cluster_rows[0]); i++)
		check_row(&cluster_rows[i], 3, 64);
}

TEST(a_finding_names_the_block_whose_memory_it_is)
{
	static const struct row row = {
		ENTRY(NEXT_BLOCK "setp.eq.and.u32 %p3, %r5, 1, %p1;\n"
				 "@%p3 ld.shared::cluster.u32 %r8, [%r6+8];\n"),
		"; the memory is that of block (2, 0, 0)", 10
	};

	check_row(&row, 3, 64);
}

/* The largest clusters, and launches of all sizes after each other in one scratch. */
TEST(clusters_of_any_size_follow_each_other)
{
	CLEAN_BENCH bench;

	bench_init(&bench, cluster_rows[0].body, RACES | UNWRITTEN);
	for (uint32_t n = 16; n; n /= 2)
		for (uint32_t threads = 32; threads <= 256; threads *= 4) {
			bench.rig->cluster[0] = n;
			bench.rig->cluster[1] = bench.rig->cluster[2] = 1;
			bench_run(&bench, 2 * n, threads);
			check_eq(bench.result, 0);
			check_eq(bench.n, 0);
			bench.rig->cluster[0] = bench.rig->cluster[1] =
				bench.rig->cluster[2] = 0;
			bench_run(&bench, 2, threads);
			check_eq(bench.result, 0);
			check_eq(bench.n, 0);
		}
}

/*
 * Copies
 */

/* p1: in thread 0, which initialises the barrier in s + 1024 for one arrival. */
#define BARRIER                                                                          \
	"setp.eq.u32 %p1, %r0, 0; add.u64 %rd1, %rd0, 128; mov.u32 %r7, 0;"              \
	".reg .b16 %h<2>; mov.b16 %h0, 1; mov.u32 %r2, s; add.u32 %r2, %r2, %r1;"        \
	"@%p1 mbarrier.init.shared.b64 [s+1024], 1; bar.sync 0;\n"
#define EXPECT "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [s+1024], 256;\n"
#define AWAIT "W: mbarrier.try_wait.parity.shared.b64 %p3, [s+1024], 0; @!%p3 bra W;\n"
#define LOAD "ld.shared.u32 %r5, [%r2];\n"
#define STORE "st.shared.u32 [%r2], %r0;\n"

static const char *const loads[] = {
	"@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [%rd0], "
	"256, [s+1024];\n",
	"@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
	".multicast::cluster [s], [%rd0], 256, [s+1024], %h0;\n",
	"@%p1 cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes "
	"[s], "
	"[%rd1, {%r7}], [s+1024];\n",
	"@%p1 cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes"
	".multicast::cluster [s], [%rd1, {%r7}], [s+1024], %h0;\n",
};

static const char *const stores[] = {
	"@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd0+256], [s], 256;\n",
	"@%p1 cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r7}], "
	"[s];\n",
	"@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0+256], "
	"[s], 256;\n",
};

#define COMMIT "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group.read 0;\n"

/* MARK is the copy. */
struct pattern {
	const char *body;
	bool is_found;
};

static const struct pattern load_patterns[] = {
	{ ENTRY(BARRIER EXPECT "MARK" AWAIT LOAD), false },
	/* Nobody waits for the copy. */
	{ ENTRY(BARRIER EXPECT "MARKbar.sync 0;\n" LOAD AWAIT), true },
	/* The issuing thread itself. */
	{ ENTRY(BARRIER EXPECT "MARK@%p1 ld.shared.u32 %r5, [s+4];\n" AWAIT), true },
	/* One thread waits, then all of them meet. */
	{ ENTRY(BARRIER EXPECT "MARK@!%p1 bra M;\n" AWAIT "M: bar.sync 0;\n" LOAD),
		false },
	/* It overwrites what others have read before, and after no barrier. */
	{ ENTRY(BARRIER STORE "bar.sync 0;\n" LOAD EXPECT "bar.sync 0;\nMARK" AWAIT LOAD),
		false },
	{ ENTRY(BARRIER STORE "bar.sync 0;\n" LOAD EXPECT "MARK" AWAIT), true },
	/* Beside it. */
	{ ENTRY(BARRIER EXPECT "MARK@!%p1 st.shared.u32 [s+256], %r7;\n" AWAIT LOAD),
		false },
};

static const struct pattern store_patterns[] = {
	{ ENTRY(BARRIER STORE "bar.sync 0;\nMARK" COMMIT "bar.sync 0;\n" STORE), false },
	/* The bytes may not be read yet. */
	{ ENTRY(BARRIER STORE
		  "bar.sync 0;\nMARKbar.sync 0;\nmov.u32 %r0, 7;\n" STORE COMMIT),
		true },
	{ ENTRY(BARRIER STORE "MARK" COMMIT), true },
	/* Other copies may read them, too. */
	{ ENTRY(BARRIER STORE "bar.sync 0;\nMARKMARK" LOAD COMMIT), false },
};

/* Each occurrence of the mark becomes the piece. */
static void fill_in(char *to, const char *template, const char *piece)
{
	const char *mark;

	*to = 0;
	while ((mark = strstr(template, "MARK"))) {
		strncat(to, template, (size_t)(mark - template));
		strcat(to, piece);
		template = mark + 4;
	}
	strcat(to, template);
}

static void check_pattern(const struct pattern *pattern, const char *copy)
{
	struct softgpu_tensor_map *map;
	static char ptx[8192];
	CLEAN_BENCH bench;

	fill_in(ptx, pattern->body, copy);
	bench_init(&bench, ptx, RACES);
	map = (struct softgpu_tensor_map *)(bench.memory + 128);
	*map = (struct softgpu_tensor_map){ .mark = SOFTGPU_TENSOR_MARK,
		.version = SOFTGPU_TENSOR_VERSION,
		.rank = 1,
		.address = (uintptr_t)bench.memory + 1024,
		.last = { 255 },
		.box_last = { 255 },
		.steps = { 1, 1, 1, 1, 1 } };
	bench_run(&bench, 1, 64);
	if (bench.result)
		test_fail(__FILE__, __LINE__, "%s: %s", ptx, bench.rig->fault.text);
	if (!bench.n != !pattern->is_found)
		test_fail(__FILE__, __LINE__, "%s: %u findings: %s", ptx, bench.n,
			bench.findings[0].text);
}

TEST(copies_to_shared_memory_are_over_when_their_barrier_says_so)
{
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		for (size_t k = 0; k < sizeof(load_patterns) / sizeof(load_patterns[0]);
			k++)
			check_pattern(&load_patterns[k], loads[i]);
}

TEST(copies_from_shared_memory_are_over_when_their_thread_has_waited)
{
	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++)
		for (size_t k = 0; k < sizeof(store_patterns) / sizeof(store_patterns[0]);
			k++)
			check_pattern(&store_patterns[k], stores[i]);
}

#define COPY "cp.async.ca.shared.global [%r2], [%rd0], 4;\n"

/* cp.async: each thread has a word of its own. */
TEST(copies_of_a_thread_are_over_when_it_waits_or_a_barrier_does)
{
	static const struct pattern patterns[] = {
		{ ENTRY(BARRIER COPY "cp.async.wait_all;\n" LOAD), false },
		{ ENTRY(BARRIER COPY "cp.async.commit_group;\ncp.async.wait_group 0;\n"
				     "bar.sync 0;\nxor.b32 %r2, %r2, 128;\n" LOAD),
			false },
		{ ENTRY(BARRIER COPY LOAD), true },
		/* Another warp's copies, for which its own threads have not waited. */
		{ ENTRY(BARRIER COPY "bar.sync 0;\ncp.async.wait_all;\n"
				     "xor.b32 %r2, %r2, 128;\n" LOAD),
			true },
		{ ENTRY("setp.eq.u32 %p1, %r0, 0; mov.u32 %r2, s; add.u32 %r2, %r2, %r1;"
			"@%p1 mbarrier.init.shared.b64 [s+1024], 64; bar.sync 0;\n" COPY
			"cp.async.mbarrier.arrive.noinc.shared.b64 [s+1024];\n" AWAIT
			"xor.b32 %r2, %r2, 128;\n" LOAD),
			false },
		{ ENTRY("setp.eq.u32 %p1, %r0, 0; mov.u32 %r2, s; add.u32 %r2, %r2, %r1;"
			"@%p1 mbarrier.init.shared.b64 [s+1024], 64; bar.sync 0;\n" COPY
			"cp.async.mbarrier.arrive.shared.b64 [s+1024];\n"
			"mbarrier.arrive.shared.b64 _, [s+1024];\n" AWAIT
			"xor.b32 %r2, %r2, 128;\n" LOAD),
			false },
		{ ENTRY("setp.eq.u32 %p1, %r0, 0; mov.u32 %r2, s; add.u32 %r2, %r2, %r1;"
			"@%p1 mbarrier.init.shared.b64 [s+1024], 64; bar.sync 0;\n" COPY
			"mbarrier.arrive.shared.b64 _, [s+1024];\n" AWAIT LOAD),
			true },
	};

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		check_pattern(&patterns[i], "");
}

TEST(a_hazard_with_a_copy_names_it)
{
	static const struct row row = { ENTRY(BARRIER COPY LOAD "cp.async.wait_all;\n"),
		"; the earlier access is a copy of thread (", 10 };

	check_row(&row, 1, 64);
}

TEST(a_fatal_finding_of_a_copy_ends_the_kernel)
{
	char ptx[8192];
	CLEAN_BENCH bench;

	fill_in(ptx, ENTRY(BARRIER STORE "MARK"), loads[0]);
	bench_init(&bench, ptx, RACES | SOFTGPU_CHECK_FATAL);
	bench_run(&bench, 1, 64);
	check_eq(bench.n, 1);
	check_eq(bench.result, 719);
}

TEST(a_fatal_finding_of_a_tensor_ends_the_kernel)
{
	struct softgpu_tensor_map *map;
	char ptx[8192];
	CLEAN_BENCH bench;

	fill_in(ptx, ENTRY(BARRIER STORE "MARK"), loads[2]);
	bench_init(&bench, ptx, RACES | SOFTGPU_CHECK_FATAL);
	map = (struct softgpu_tensor_map *)(bench.memory + 128);
	*map = (struct softgpu_tensor_map){ .mark = SOFTGPU_TENSOR_MARK,
		.version = SOFTGPU_TENSOR_VERSION,
		.rank = 1,
		.address = (uintptr_t)bench.memory + 1024,
		.last = { 255 },
		.box_last = { 255 },
		.steps = { 1, 1, 1, 1, 1 } };
	bench_run(&bench, 1, 64);
	check_eq(bench.n, 1);
	check_eq(bench.result, 719);
	check(strstr(bench.rig->fault.text, "write after write"));
}

/* The answer to try_cancel is such a copy. */
TEST(an_answer_is_there_when_its_barrier_says_so)
{
	static const struct pattern patterns[] = {
		{ ENTRY(BARRIER "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [s+1024], "
				"16;\nMARK" AWAIT "ld.shared.u32 %r5, [s];\n"),
			false },
		{ ENTRY(BARRIER "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [s+1024], "
				"16;\nMARK"
				"ld.shared.u32 %r5, [s];\n" AWAIT),
			true },
	};
	static const char *const asks[] = {
		"@%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::"
		"complete_tx::bytes.b128 [s], [s+1024];\n",
		"@%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::"
		"complete_tx::bytes.multicast::cluster::all.b128 [s], [s+1024];\n",
	};

	for (size_t i = 0; i < 4; i++)
		check_pattern(&patterns[i / 2], asks[i % 2]);
}
