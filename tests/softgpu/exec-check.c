/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that are watched: hazards between warps in shared memory, and loads of memory
 * that nothing has written
 */

#include "check-bench.h"
#include "exec/check.h"
#include "exec/tensor-map.h"
#include "exec/watch.h"
#include "lower/lower.h"

static void check_clean_blocks(const char *ptx, unsigned int kinds, uint32_t n)
{
	CLEAN_BENCH bench;

	bench_init(&bench, ptx, kinds);
	bench_run(&bench, n, 64);
	if (bench.n)
		test_fail(__FILE__, __LINE__, "%s: %s", ptx, bench.findings[0].text);
	check_eq(bench.result, 0);
}

static void check_clean(const char *ptx, unsigned int kinds)
{
	check_clean_blocks(ptx, kinds, 3);
}

/* Of two accesses the second one is reported; which one that is depends on the schedule.
 */
struct expected {
	uint32_t line;
	const char *words;
};

static void check_either(const char *ptx, const struct expected rows[2])
{
	CLEAN_BENCH bench;
	char words[64];

	bench_init(&bench, ptx, SOFTGPU_CHECK_RACES);
	bench_run(&bench, 1, 64);
	if (bench.n != 1)
		test_fail(__FILE__, __LINE__, "%s: %u findings", ptx, bench.n);
	for (unsigned int i = 0; i < 2; i++) {
		if (bench.findings[0].line != rows[i].line)
			continue;
		snprintf(words, sizeof(words), "), line %u", rows[1 - i].line);
		if (!strstr(bench.findings[0].text, rows[i].words) ||
			!strstr(strstr(bench.findings[0].text, "; the earlier access"),
				words))
			test_fail(__FILE__, __LINE__, "%s", bench.findings[0].text);
		return;
	}
	test_fail(__FILE__, __LINE__, "%s", bench.findings[0].text);
}

static void check_found(
	const char *ptx, unsigned int kinds, uint32_t line, const char *words)
{
	CLEAN_BENCH bench;

	bench_init(&bench, ptx, kinds);
	bench_run(&bench, 1, 64);
	if (bench.n != 1)
		test_fail(__FILE__, __LINE__, "%s: %u findings", ptx, bench.n);
	check_eq(bench.result, 0);
	check_str(bench.findings[0].kernel, "k");
	check_eq(bench.findings[0].line, line);
	if (!strstr(bench.findings[0].text, words))
		test_fail(__FILE__, __LINE__, "%s: %s", ptx, bench.findings[0].text);
}

TEST(warps_that_meet_at_a_barrier_are_clean)
{
	check_clean(ENTRY(PLACES "st.shared.u32 [%r2], %r0;\nbar.sync 0;\n"
				 "ld.shared.u32 %r5, [%r3];\nbar.sync 0;\n"
				 "st.shared.u32 [%r3], %r5;\n"),
		RACES | UNWRITTEN);
}

/* With either schedule: which access comes second differs. */
TEST(a_missing_barrier_is_a_hazard)
{
	static const char ptx[] = ENTRY(PLACES "st.shared.u32 [%r2], %r0;\n"
					       "ld.shared.u32 %r5, [%r3];\n");
	CLEAN_BENCH bench;

	bench_init(&bench, ptx, RACES);
	bench_run(&bench, 1, 64);
	check(bench.n == 1 || bench.n == 2);
	for (unsigned int i = 0; i < bench.n; i++) {
		const struct softgpu_fault *finding = &bench.findings[i];
		bool is_load = finding->line == 10;

		check(is_load || finding->line == 9);
		check(!strncmp(finding->text,
			is_load ? "read after write (" : "write after read (", 17));
		check(strstr(finding->text, "; the earlier access is of thread ("));
		check(strstr(finding->text, is_load ? "), line 9" : "), line 10"));
	}
}

TEST(a_finding_names_both_threads_and_lines_of_the_source)
{
	static const char ptx[] = ENTRY("setp.ge.u32 %p1, %r0, 32; @%p1 bra B;\n"
					".loc 1 5 1\nst.shared.u32 [s+8], %r0;\nbra E;\n"
					"B:\n.loc 1 6 1\nst.shared.u32 [s+8], %r0;\n"
					"E:\n") ".file 1 \"race.cu\"\n";
	CLEAN_BENCH bench;
	const char *text;
	bool is_first;

	bench_init(&bench, ptx, RACES);
	bench_run(&bench, 1, 64);
	check_eq(bench.n, 1);
	text = bench.findings[0].text;
	is_first = bench.findings[0].thread[0] < 32;
	check(!strncmp(
		text, "write after write (0x8) in k, block (0, 0, 0), thread (", 55));
	check_eq(bench.findings[0].line, is_first ? 10 : 14);
	check(strstr(
		text, is_first ? ", line 10, race.cu:5; the earlier access is of thr"
			       : ", line 14, race.cu:6; the earlier access is of thr"));
	check(strstr(text, is_first ? ", 0, 0), line 14, race.cu:6"
				    : ", 0, 0), line 10, race.cu:5"));
}

TEST(a_write_after_a_read_is_a_hazard)
{
	static const struct expected rows[] = { { 12, "read after write" },
		{ 15, "write after read" } };

	check_either(ENTRY(PLACES "st.shared.u32 [%r2], %r0;\nbar.sync 0;\n"
				  "setp.lt.u32 %p1, %r0, 32;\n"
				  "@%p1 ld.shared.u32 %r5, [%r3];\n"
				  "@%p1 bra A;\nmov.u32 %r9, 9;\n"
				  "st.shared.u32 [%r2], %r9;\nA:\n"),
		rows);
}

TEST(writes_of_one_value_are_no_hazard)
{
	check_clean(ENTRY("mov.u32 %r5, 3; st.shared.u32 [s+8], %r5;\n"
			  "st.shared.v2.u32 [s+16], {%r5, %r5};\n"
			  "st.shared.u8 [s+32], %r5;\n"),
		RACES);
	check_found(ENTRY("shr.u32 %r5, %r0, 5;\nst.shared.u8 [s+8], %r5;\n"), RACES, 9,
		"write after write");
}

TEST(neighbouring_bytes_are_no_hazard)
{
	check_clean(ENTRY("mov.u32 %r2, s; add.u32 %r2, %r2, %r0;"
			  "st.shared.u8 [%r2], %r0; ld.shared.u8 %r3, [%r2];\n"),
		RACES | UNWRITTEN);
}

TEST(atomic_operations_do_not_race_with_each_other)
{
	static const struct expected rows[] = { { 12, "write after read" },
		{ 13, "read after write" } };

	check_clean(ENTRY("setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [s], 0;"
			  "bar.sync 0; atom.shared.add.u32 %r5, [s], 1;"
			  "red.shared.max.u32 [s], %r5; bar.sync 0;"
			  "ld.shared.u32 %r6, [s];\n"),
		RACES | UNWRITTEN);
	check_either(ENTRY("setp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.u32 [s], 0;\n"
			   "bar.sync 0;\nsetp.ge.u32 %p1, %r0, 32;\n"
			   "@%p1 atom.shared.add.u32 %r5, [s], 1;\n"
			   "@!%p1 ld.shared.u32 %r6, [s];\n"),
		rows);
}

TEST(a_flag_with_a_memory_order_passes_data_on)
{
	check_clean_blocks(ENTRY("setp.lt.u32 %p1, %r0, 32; @%p1 bra W;\n"
				 "st.shared.u32 [s+64], 5;\n"
				 "membar.cta; st.volatile.shared.u32 [s], 1; bra E;\n"
				 "W: ld.volatile.shared.u32 %r5, [s];"
				 "setp.eq.u32 %p2, %r5, 0; @%p2 bra W;\n"
				 "ld.shared.u32 %r6, [s+64];\nE:\n"),
		RACES, 1);
	check_clean_blocks(ENTRY("setp.lt.u32 %p1, %r0, 32; @%p1 bra W;\n"
				 "st.shared.u32 [s+64], 5;\n"
				 "st.release.cta.global.u32 [%rd0], 1; bra E;\n"
				 "W: ld.acquire.cta.global.u32 %r5, [%rd0];"
				 "setp.eq.u32 %p2, %r5, 0; @%p2 bra W;\n"
				 "ld.shared.u32 %r6, [s+64];\nE:\n"),
		RACES, 1);
}

TEST(a_barrier_of_some_warps_orders_those_alone)
{
	static const char ptx[] =
		ENTRY("setp.ge.u32 %p1, %r0, 64; @%p1 bra C;\n"
		      "setp.ge.u32 %p1, %r0, 32; @%p1 bra B;\n"
		      "st.shared.u32 [s+4], 1;\nbar.arrive 3, 64;\nbra E;\n"
		      "B: bar.sync 3, 64;\nld.shared.u32 %r5, [s+4];\nbra E;\n"
		      "C: ld.shared.u32 %r5, [s+4];\nE:\n");
	CLEAN_BENCH bench;

	check_clean(ptx, RACES);
	bench_init(&bench, ptx, RACES);
	bench_run(&bench, 1, 96);
	check_eq(bench.n, 1);
	check(bench.findings[0].line == 16 || bench.findings[0].line == 10);
}

TEST(an_access_after_arriving_is_not_ordered)
{
	check_found(ENTRY("setp.ge.u32 %p1, %r0, 32; @%p1 bra B;\n"
			  "bar.arrive 3, 64;\nst.shared.u32 [s+4], 1;\nbra E;\n"
			  "B: bar.sync 3, 64;\nmov.u32 %r5, 2;\n"
			  "st.shared.u32 [s+4], %r5;\nE:\n"),
		RACES, 14, "write after write");
}

TEST(an_mbarrier_orders_its_users)
{
	check_clean(ENTRY("setp.eq.u32 %p1, %r0, 0;"
			  "@%p1 mbarrier.init.shared.b64 [s], 64;\nbar.sync 0;\n" PLACES
			  "st.shared.u32 [%r2+128], %r0;\n"
			  "mbarrier.arrive.shared.b64 %rd1, [s];\n"
			  "W: mbarrier.test_wait.shared.b64 %p2, [s], %rd1;"
			  "@!%p2 bra W;\nld.shared.u32 %r5, [%r3+128];\n"),
		RACES | UNWRITTEN);
}

TEST(a_warp_that_has_exited_counts_as_arrived)
{
	check_clean(ENTRY("setp.lt.u32 %p1, %r0, 32;\n@%p1 st.shared.u32 [s], 7;\n"
			  "@%p1 ret;\nbar.sync 0;\nld.shared.u32 %r5, [s];\n"),
		RACES);
}

TEST(a_cluster_barrier_orders_the_warps)
{
	check_clean(ENTRY(PLACES "st.shared.u32 [%r2], %r0;\n"
				 "barrier.cluster.arrive; barrier.cluster.wait;\n"
				 "ld.shared.u32 %r5, [%r3];\n"),
		RACES);
}

TEST(blocks_have_nothing_in_common)
{
	check_clean(ENTRY(PLACES "mov.u32 %r5, %ctaid.x; add.u32 %r5, %r5, %r0;"
				 "st.shared.u32 [%r2], %r5; ld.shared.u32 %r6, [%r2];\n"),
		RACES | UNWRITTEN);
}

TEST(a_load_of_unwritten_shared_memory_is_found_in_each_launch_once)
{
	static const char ptx[] =
		ENTRY("setp.eq.u32 %p1, %r0, 5; @%p1 st.shared.u32 [s+8], 1;\n"
		      "bar.sync 0; ld.shared.u32 %r5, [s+8];\n"
		      "@%p1 ld.shared.u64 %rd5, [s+8];\n");
	CLEAN_BENCH bench;

	bench_init(&bench, ptx, UNWRITTEN);
	bench_run(&bench, 2, 64);
	bench_run(&bench, 2, 64);
	check_eq(bench.n, 1);
	check_eq(bench.findings[0].thread[0], 5);
	check_eq(bench.findings[0].line, 10);
	check(strstr(bench.findings[0].text,
		"a load of shared memory that nothing has written (0x8) in k"));
}

/* The template with a piece in the place of its mark. */
static const char *insert(char *to, size_t size, const char *template, const char *piece)
{
	const char *mark = strstr(template, "MARK");

	check(mark);
	snprintf(to, size, "%.*s%s%s", (int)(mark - template), template, piece, mark + 4);
	return to;
}

TEST(every_store_of_shared_memory_counts)
{
	static const char *const stores[] = {
		"st.bulk.shared::cta [%rd4], 64, 0;\n",
		"cp.async.ca.shared.global [s], [%rd0], 16, 16;\n",
		"atom.shared.exch.b32 %r5, [s+16], 1; st.shared.u32 [s], %r0;\n",
		"st.shared.v4.u32 [s], {%r0, %r0, %r0, %r0};\n",
		"mov.u32 %r5, s; and.b32 %r6, %r0, 7; shl.b32 %r6, %r6, 4;"
		"add.u32 %r5, %r5, %r6; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], "
		"{%r0};\n",
	};

	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		char ptx[4096];
		CLEAN_BENCH bench;

		insert(ptx, sizeof(ptx),
			ENTRY("setp.ge.u32 %p1, %r0, 32; @%p1 ret;\n"
			      "mov.u64 %rd4, s; cvta.shared.u64 %rd4, %rd4;\nMARK"
			      "ld.shared.v2.u32 {%r8, %r9}, [s+8];\n"),
			stores[i]);
		bench_init(&bench, ptx, UNWRITTEN);
		softgpu_space_wrote(&bench.rig->space, (uintptr_t)bench.memory, 4096);
		bench_run(&bench, 1, 64);
		/* The second load is of a word beyond what the third store writes. */
		if (i == 2)
			check_eq(bench.n, 2);
		else if (bench.n)
			test_fail(__FILE__, __LINE__, "%s: %s", stores[i],
				bench.findings[0].text);
	}
}

/* Bytes [32, 64) of shared memory, once by each way of writing them. */
TEST(every_copy_to_shared_memory_counts)
{
	static const char *const copies[] = {
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
		"[s+32], [%rd0], 32, [s+8];\n",
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
		".multicast::cluster [s+32], [%rd0], 32, [s+8], %h0;\n",
		"cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes "
		"[s], [%rd1, {%r7}], [s+8];\n",
		"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx"
		"::bytes.multicast::cluster [s], [%rd1, {%r7}], [s+8], %h0;\n",
		"mapa.shared::cluster.u32 %r9, %r2, 0;\n"
		"st.shared::cluster.v4.u32 [%r9+32], {%r0, %r0, %r0, %r0};\n"
		"st.shared::cluster.v4.u32 [%r9+48], {%r0, %r0, %r0, %r0};\n",
	};

	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
		struct softgpu_tensor_map *map;
		char ptx[4096];
		CLEAN_BENCH bench;

		insert(ptx, sizeof(ptx),
			ENTRY(".reg .b16 %h<2>; mov.b16 %h0, 1; mov.u32 %r7, 0;\n"
			      "mov.u32 %r2, s; add.u64 %rd1, %rd0, 128;\n"
			      "setp.ne.u32 %p1, %r0, 0; @%p1 ret;\n"
			      "mbarrier.init.shared.b64 [s+8], 1;\n"
			      "mbarrier.expect_tx.relaxed.cta.shared.b64 [s+8], 64;\nMARK"
			      "ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [s+48];\n"
			      "ld.shared.u32 %r8, [s+64];\n"),
			copies[i]);
		bench_init(&bench, ptx, UNWRITTEN);
		map = (struct softgpu_tensor_map *)(bench.memory + 128);
		*map = (struct softgpu_tensor_map){ .mark = SOFTGPU_TENSOR_MARK,
			.version = SOFTGPU_TENSOR_VERSION,
			.rank = 1,
			.address = (uintptr_t)bench.memory,
			.last = { 63 },
			.box_last = { 63 },
			.steps = { 1, 1, 1, 1, 1 } };
		softgpu_space_wrote(&bench.rig->space, (uintptr_t)bench.memory, 4096);
		bench_run(&bench, 1, 64);
		check_eq(bench.result, 0);
		check_eq(bench.n, 1);
		check_eq(bench.findings[0].address, 64);
	}
}

TEST(a_store_of_a_tensor_writes_global_memory)
{
	struct softgpu_tensor_map *map;
	CLEAN_BENCH bench;

	bench_init(&bench,
		ENTRY("mov.u32 %r7, 16; setp.ne.u32 %p1, %r0, 0; @%p1 ret;\n"
		      "add.u64 %rd1, %rd0, 128;\n"
		      "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, "
		      "{%r7}], "
		      "[s];\nld.global.u32 %r8, [%rd0+60];\n"
		      "ld.global.u32 %r8, [%rd0+64];\n"),
		UNWRITTEN);
	map = (struct softgpu_tensor_map *)(bench.memory + 128);
	*map = (struct softgpu_tensor_map){ .mark = SOFTGPU_TENSOR_MARK,
		.version = SOFTGPU_TENSOR_VERSION,
		.rank = 1,
		.address = (uintptr_t)bench.memory,
		.last = { 63 },
		.box_last = { 63 },
		.steps = { 1, 1, 1, 1, 1 } };
	softgpu_space_wrote(&bench.rig->space, (uintptr_t)bench.memory + 128, 128);
	bench_run(&bench, 1, 64);
	check_eq(bench.result, 0);
	check_eq(bench.n, 1);
	check_eq(bench.findings[0].address, (uintptr_t)bench.memory + 64);
}

TEST(a_reduction_of_many_bytes_reads_both_sides)
{
	static const char ptx[] = ENTRY(
		"setp.ne.u32 %p1, %r0, 0; @%p1 ret;\n"
		"st.shared.v4.u32 [s], {%r0, %r0, %r0, %r0};\n"
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], "
		"[s], 16;\n");
	CLEAN_BENCH bench;

	check_found(ptx, UNWRITTEN, 10, "a load of memory that nothing has written (0x");
	bench_init(&bench, ptx, UNWRITTEN);
	softgpu_space_wrote(&bench.rig->space, (uintptr_t)bench.memory, 16);
	bench_run(&bench, 1, 64);
	check_eq(bench.n, 0);
}

TEST(a_load_of_unwritten_global_memory_is_found)
{
	static const char body[] = ENTRY("cvta.to.global.u64 %rd1, %rd0;\n"
					 "setp.eq.u32 %p1, %r0, 33;\n"
					 "@%p1 ld.global.u32 %r5, [%rd1+12];\n");
	CLEAN_BENCH bench;

	check_found(body, UNWRITTEN, 10, "a load of memory that nothing has written (0x");
	bench_init(&bench, body, UNWRITTEN);
	softgpu_space_wrote(&bench.rig->space, (uintptr_t)bench.memory + 12, 3);
	bench_run(&bench, 1, 64);
	check_eq(bench.n, 1);
	check_eq(bench.findings[0].thread[0], 33);
	check_eq(bench.findings[0].address, (uintptr_t)bench.memory + 12);
	softgpu_space_wrote(&bench.rig->space, (uintptr_t)bench.memory + 15, 1);
}

TEST(every_store_of_global_memory_counts)
{
	static const char *const stores[] = {
		"st.global.u64 [%rd1], %rd0; st.global.u64 [%rd1+8], %rd0;\n",
		"st.global.v4.u32 [%rd1], {%r0, %r0, %r0, %r0};\n",
		"st.global.v2.u64 [%rd1], {%rd0, %rd0};\n",
		"st.v2.u64 [%rd0], {%rd0, %rd0};\n",
		"st.release.gpu.global.v2.u64 [%rd1], {%rd0, %rd0};\n",
		"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], "
		"{%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, 16;\n",
	};

	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		char ptx[4096];

		insert(ptx, sizeof(ptx),
			ENTRY("cvta.to.global.u64 %rd1, %rd0;\nMARK"
			      "ld.global.v2.u64 {%rd2, %rd3}, [%rd1];\n"
			      "ld.volatile.global.u32 %r5, [%rd1];\n"
			      "atom.global.add.u32 %r5, [%rd1+4], 1;\n"),
			stores[i]);
		check_clean(ptx, UNWRITTEN);
	}
}

TEST(a_fatal_finding_ends_the_kernel)
{
	CLEAN_BENCH bench;

	bench_init(&bench,
		ENTRY("cvta.to.global.u64 %rd1, %rd0;\nld.global.u32 %r5, [%rd1];\n"
		      "st.global.u32 [%rd1+8], 1;\n"),
		UNWRITTEN | SOFTGPU_CHECK_FATAL);
	bench_run(&bench, 1, 64);
	check_eq(bench.n, 1);
	check_eq(bench.result, 719);
	check_eq(bench.rig->fault.line, 9);
	check_eq(*(uint32_t *)(bench.memory + 8), 0);
}

/* Addresses that are no memory are the handler's matter. */
TEST(faults_of_watched_kernels_are_faults)
{
	static const struct {
		const char *body;
		int code;
	} rows[] = {
		{ "st.shared.u32 [s+2048], %r0;\n", 700 },
		{ "ld.shared.u32 %r5, [s+4092];\n", 700 },
		{ "mov.u32 %r5, -4; ld.shared.u32 %r6, [%r5];\n", 700 },
		{ "ld.global.u32 %r5, [%rd9];\n", 700 },
		{ "st.global.u32 [%rd0+2], %r0;\n", 716 },
		{ "ld.u64 %rd3, [%rd9+-4];\n", 716 },
		{ "mov.u64 %rd3, 0x10000ffc; st.u32 [%rd3], %r0;\n", 700 },
		{ "cp.async.ca.shared.global [s+2044], [%rd0], 16;\n", 716 },
		{ "cp.async.ca.shared.global [s+2048], [%rd0], 16;\n", 700 },
		{ "mbarrier.arrive.shared.b64 %rd1, [s+2048];\n", 700 },
		{ "bar.sync 17;\n", 715 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char ptx[2048];
		CLEAN_BENCH bench;

		insert(ptx, sizeof(ptx), ENTRY("MARK"), rows[i].body);
		bench_init(&bench, ptx, RACES);
		bench_run(&bench, 1, 64);
		if (bench.result != rows[i].code)
			test_fail(
				__FILE__, __LINE__, "%s: %d", rows[i].body, bench.result);
		check_eq(bench.n, 0);
	}
}

/* By their names: who adds one shall remember to have it watched. */
TEST(every_operation_on_memory_is_watched)
{
	static const char *const beginnings[] = { "LD", "ST", "ATOM_", "CP_", "MBARRIER_",
		"MATRIX_LOAD", "MATRIX_STORE", "BAR_", "CLUSTER_", "REDUCE_", "TENSOR_",
		"TRY_CANCEL", "COPIES_" };
	/* Parameters, the stack's top, those that access registers alone, and those of
	 * tensors whose handlers note all that is to note. */
	static const char *const others[] = { "LDP_", "STACK_", "ATOM_PUT_128",
		"MBARRIER_PENDING", "TENSOR_STORE", "TENSOR_REPLACE" };
	unsigned int n = 0;

	for (unsigned int op = 0; op < _OP_N; op++) {
		bool is_memory = false;

		for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
			is_memory |= !strncmp(
				op_name(op), beginnings[i], strlen(beginnings[i]));
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			is_memory &= !!strncmp(op_name(op), others[i], strlen(others[i]));
		if (is_memory != (softgpu_checked_handler(op) != NULL))
			test_fail(__FILE__, __LINE__, "%s", op_name(op));
		n += is_memory;
	}
	check(n > 100);
}

/* A service may write a variable in local memory. */
TEST(a_write_elsewhere_leaves_shared_memory_unwritten)
{
	static uint8_t unwritten[64] __attribute__((aligned(8)));
	static struct watch watch = { .unwritten = unwritten, .size = 512 };
	static struct block block = { .watch = &watch };
	static struct cluster cluster = { .n_blocks = 1, .blocks = { &block } };

	block.cluster = &cluster;
	memset(unwritten, 0xff, sizeof(unwritten));
	softgpu_watch_wrote(&block, SOFTGPU_GENERIC_LOCAL + 8, 16);
	softgpu_watch_wrote(&block, SOFTGPU_GLOBAL_LOWEST + 8, 16);
	softgpu_watch_wrote(&block, SOFTGPU_GENERIC_SHARED + 512, 16);
	for (uint32_t i = 0; i < watch.size; i++)
		check(softgpu_bits_any(unwritten, i, 1));
	softgpu_watch_wrote(&block, SOFTGPU_GENERIC_SHARED + 8, 16);
	softgpu_watch_wrote(
		&block, SOFTGPU_GENERIC_SHARED + SOFTGPU_CLUSTER_STRIDE + 500, 16);
	for (uint32_t i = 0; i < watch.size; i++)
		check_eq(
			softgpu_bits_any(unwritten, i, 1), (i < 8 || i >= 24) && i < 500);
}

TEST(bits_are_set_and_found_at_each_place)
{
	uint8_t bits[40] __attribute__((aligned(8)));

	for (unsigned int first = 0; first < 70; first++)
		for (unsigned int n = 0; n < 200; n++) {
			memset(bits, 0, sizeof(bits));
			softgpu_bits_set(bits, first, n, true);
			for (unsigned int i = 0; i < 8 * sizeof(bits); i++)
				check_eq(bits[i / 8] >> i % 8 & 1,
					i >= first && i < first + n);
			check(!softgpu_bits_any(bits, 0, first));
			check_eq(softgpu_bits_any(bits, first, n), n > 0);
			memset(bits, 0xff, sizeof(bits));
			softgpu_bits_set(bits, first, n, false);
			for (unsigned int i = 0; i < 8 * sizeof(bits); i++)
				check_eq(bits[i / 8] >> i % 8 & 1,
					i < first || i >= first + n);
		}
}
