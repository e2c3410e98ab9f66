/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduler and engine together: threads that share grids of several streams
 *
 * Built with the thread sanitizer: the tests check the sums, the sanitizer checks for
 * races. Kernels share memory by atomic operations only; a race between them would be one
 * of the program, not of softgpu.
 */

#include <pthread.h>
#include <string.h>

#include "exec-harness.h"
#include "sched/graph.h"
#include "sched/sched.h"
#include "test.h"

#define N_STREAMS 4
#define N_LAUNCHES 20
#define N_BLOCKS 13
#define N_THREADS 64

static const char ptx[] =
	".version 8.8\n.target sm_120\n.address_size 64\n"
	".visible .entry count(.param .u64 p) {\n"
	".reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
	".shared .align 4 .b8 sum[4]; .local .align 4 .b8 own[4];\n"
	"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;\n"
	"setp.eq.u32 %p, %r1, 0; @%p st.shared.u32 [sum], 0; bar.sync 0;\n"
	"st.local.u32 [own], %r1; ld.local.u32 %r2, [own];\n"
	"atom.shared.add.u32 %r3, [sum], %r2; bar.sync 0;\n"
	"red.global.add.u32 [%rd1], 1; atom.global.max.u32 %r3, [%rd1+4], %r1;\n"
	"@!%p bra END; ld.shared.u32 %r2, [sum]; cvt.u64.u32 %rd2, %r2;\n"
	"atom.global.add.u64 %rd3, [%rd1+8], %rd2;\n"
	"LOCK: atom.global.cas.b32 %r4, [%rd1+16], 0, 1; setp.ne.u32 %p, %r4, 0;\n"
	"@%p bra LOCK; ld.volatile.global.u32 %r5, [%rd1+20]; add.u32 %r5, %r5, 1;\n"
	"st.volatile.global.u32 [%rd1+20], %r5; membar.gl;\n"
	"atom.global.exch.b32 %r6, [%rd1+16], 0;\n"
	"END: ret; }\n"
	".visible .entry wait(.param .u64 p) { .reg .pred %p; .reg .b32 %r<3>;\n"
	".reg .b64 %rd<2>; ld.param.u64 %rd1, [p];\n"
	"AGAIN: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p, %r1, 0;\n"
	"@%p bra AGAIN; red.global.add.u32 [%rd1+4], 1; ret; }\n"
	/* Each vector has the same number in all elements, of which one is the state. */
	".visible .entry vectors(.param .u64 p) { .reg .pred %p, %q;\n"
	".reg .b32 %r<9>; .reg .b64 %rd<9>; ld.param.u64 %rd1, [p];\n"
	"mov.u32 %r1, 0; mov.u32 %r2, %ctaid.x;\n"
	"AGAIN: shl.b32 %r3, %r1, 8; or.b32 %r3, %r3, %r2; cvt.u64.u32 %rd2, %r3;\n"
	"st.relaxed.gpu.v2.b64 [%rd1+16], {%rd2, %rd2};\n"
	"ld.relaxed.gpu.v2.b64 {%rd3, %rd4}, [%rd1+16]; setp.ne.u64 %p, %rd3, %rd4;\n"
	"st.volatile.global.v2.b32 [%rd1+32], {%r3, %r3};\n"
	"ld.volatile.global.v2.b32 {%r4, %r5}, [%rd1+32]; setp.ne.or.u32 %p, %r4, %r5, "
	"%p;\n"
	"st.relaxed.sys.v4.b32 [%rd1+48], {%r3, %r3, %r3, %r3};\n"
	"ld.acquire.gpu.v4.b32 {%r4, %r5, %r6, %r7}, [%rd1+48];\n"
	"setp.ne.or.u32 %p, %r4, %r5, %p; setp.ne.or.u32 %p, %r4, %r6, %p;\n"
	"setp.ne.or.u32 %p, %r4, %r7, %p; @%p red.global.add.u32 [%rd1], 1;\n"
	"add.u32 %r1, %r1, 1; setp.lt.u32 %q, %r1, 500; @%q bra AGAIN; ret; }\n"
	".visible .entry fault(.param .u64 p) { .reg .b32 %r;\n"
	"ld.global.u32 %r, [16]; ret; }\n";

/* The output of `count`. */
struct counts {
	uint32_t threads, greatest;
	uint64_t sum;
	uint32_t lock, locked;
};

static struct rig *rig;
static struct sched sched;

static void start(struct sched_context *context)
{
	rig = rig_new(ptx);
	check_eq(sched_init(&sched, 4), 0);
	sched.workspaces =
		(uintptr_t)rig_alloc(rig, SCHED_WORKSPACES * SCHED_WORKSPACE_SIZE);
	sched_context_init(context, &sched);
}

static void describe(
	struct sched_op *op, const char *name, void *argument, uint32_t n_blocks)
{
	op->kind = SCHED_LAUNCH;
	op->grid.n_blocks = n_blocks;
	op->grid.launch = (struct softgpu_launch){
		.kernel = rig_kernel(rig, name),
		.grid = { n_blocks, 1, 1 },
		.block = { N_THREADS, 1, 1 },
		.params = op->grid.params,
		.params_size = sizeof(argument),
		.space = &rig->space,
		.n_sms = 4,
	};
	memcpy(op->grid.params, &argument, sizeof(argument));
}

static int launch(
	struct sched_stream *stream, const char *name, void *argument, uint32_t n_blocks)
{
	struct sched_op op = { 0 };

	describe(&op, name, argument, n_blocks);
	return sched_submit(stream, &op, false);
}

struct submitter {
	struct sched_stream *stream;
	struct counts *counts;
	int r;
};

static void *submit(void *argument)
{
	struct submitter *submitter = argument;

	for (int i = 0; i < N_LAUNCHES && !submitter->r; i++)
		submitter->r =
			launch(submitter->stream, "count", submitter->counts, N_BLOCKS);
	if (!submitter->r)
		submitter->r = sched_stream_wait(submitter->stream);
	return NULL;
}

TEST(threads_of_many_streams_share_atomic_words)
{
	const uint32_t n = N_STREAMS * N_LAUNCHES * N_BLOCKS;
	struct submitter submitters[N_STREAMS] = {};
	pthread_t threads[N_STREAMS];
	struct sched_context context;
	struct counts *counts;

	start(&context);
	counts = rig_alloc(rig, sizeof(*counts));
	for (int i = 0; i < N_STREAMS; i++) {
		submitters[i].counts = counts;
		check_eq(sched_stream_new(&submitters[i].stream, &context, i & 1, -i), 0);
		check_eq(pthread_create(&threads[i], NULL, submit, &submitters[i]), 0);
	}
	for (int i = 0; i < N_STREAMS; i++) {
		check_eq(pthread_join(threads[i], NULL), 0);
		check_eq(submitters[i].r, 0);
	}
	check_eq(counts->threads, n * N_THREADS);
	check_eq(counts->greatest, N_THREADS - 1);
	check_eq(counts->sum, (uint64_t)n * (N_THREADS * (N_THREADS - 1) / 2));
	check_eq(counts->locked, n);
	sched_context_deinit(&context);
}

TEST(a_kernel_that_waits_is_let_go_by_another_stream)
{
	struct sched_context context;
	struct sched_stream *one, *two;
	uint32_t *words;
	struct sched_op write = {
		.kind = SCHED_WRITE,
		.word = { .value = 1, .size = 4 },
	};

	start(&context);
	words = rig_alloc(rig, 8);
	write.word.address = (uintptr_t)words;
	check_eq(sched_stream_new(&one, &context, false, 0), 0);
	check_eq(sched_stream_new(&two, &context, false, 0), 0);
	check_eq(launch(one, "wait", words, 2), 0);
	check_eq(launch(two, "count", rig_alloc(rig, 64), N_BLOCKS), 0);
	check_eq(sched_submit(two, &write, false), 0);
	check_eq(sched_stream_wait(two), 0);
	check_eq(sched_stream_wait(one), 0);
	check_eq(words[1], 2 * N_THREADS);
	sched_context_deinit(&context);
}

TEST(vectors_with_a_memory_order_are_never_torn)
{
	struct sched_context context;
	uint32_t *n_torn;

	start(&context);
	n_torn = rig_alloc(rig, 64);
	check_eq(launch(&context.legacy, "vectors", n_torn, 8), 0);
	check_eq(sched_context_wait(&context), 0);
	check_eq(*n_torn, 0);
	sched_context_deinit(&context);
}

TEST(a_fault_ends_what_its_context_runs_and_no_other)
{
	struct sched_context context, other;
	struct counts *counts;
	struct sched_stream *waits;
	uint32_t *words;

	start(&context);
	sched_context_init(&other, &sched);
	words = rig_alloc(rig, 8);
	counts = rig_alloc(rig, sizeof(*counts));
	check_eq(sched_stream_new(&waits, &context, false, 0), 0);
	check_eq(launch(waits, "wait", words, 1), 0);
	check_eq(launch(&other.legacy, "count", counts, 4 * N_BLOCKS), 0);
	check_eq(launch(&context.legacy, "fault", words, 8), 0);
	check_eq(sched_context_wait(&context), 700);
	check_eq(sched_context_wait(&other), 0);
	check_eq(counts->threads, 4 * N_BLOCKS * N_THREADS);
	check_eq(words[1], 0);
	sched_context_deinit(&context);
	sched_context_deinit(&other);
}

enum { GRAPH_NODES = 4, GRAPH_THREADS = 2, GRAPH_LAUNCHES = 20 };

/* One node, two side by side, one more. */
static struct sched_graph *diamond(struct counts *counts)
{
	static const struct sched_edge edges[] = { { 0, 1 }, { 0, 2 }, { 1, 3 },
		{ 2, 3 } };
	struct sched_graph *graph;

	check_eq(sched_graph_new(&graph, &sched, GRAPH_NODES, NULL), 0);
	for (int i = 0; i < GRAPH_NODES; i++) {
		describe(&graph->nodes[i].op, "count", counts, N_BLOCKS);
		graph->nodes[i].kind = SCHED_LAUNCH;
	}
	check_eq(sched_graph_finish(graph, edges, 4), 0);
	check_eq(graph->n_lanes, 2);
	return graph;
}

struct launcher {
	struct sched_stream *stream;
	struct sched_graph *graph; /* a reference */
	int r;
};

/* Continues with a copy, as a change of a graph does. */
static void *launch_graph(void *argument)
{
	struct launcher *launcher = argument;
	struct sched_graph *copy;

	for (int i = 0; i < GRAPH_LAUNCHES && !launcher->r; i++) {
		struct sched_op op = {
			.kind = SCHED_GRAPH,
			.run.graph = sched_graph_ref(launcher->graph),
		};

		launcher->r = sched_submit(launcher->stream, &op, false);
		if (i % 5 == 0 && !sched_graph_copy(&copy, launcher->graph)) {
			sched_graph_unref(launcher->graph);
			launcher->graph = copy;
		}
	}
	sched_graph_unref(launcher->graph);
	if (!launcher->r)
		launcher->r = sched_stream_wait(launcher->stream);
	return NULL;
}

TEST(threads_that_launch_one_graph_take_turns)
{
	const uint32_t n = GRAPH_THREADS * GRAPH_LAUNCHES * GRAPH_NODES * N_BLOCKS;
	struct launcher launchers[GRAPH_THREADS] = {};
	pthread_t threads[GRAPH_THREADS];
	struct sched_context context;
	struct sched_graph *graph;
	struct counts *counts;

	start(&context);
	counts = rig_alloc(rig, sizeof(*counts));
	graph = diamond(counts);
	for (int i = 0; i < GRAPH_THREADS; i++) {
		launchers[i].graph = sched_graph_ref(graph);
		check_eq(sched_stream_new(&launchers[i].stream, &context, false, -i), 0);
		check_eq(pthread_create(&threads[i], NULL, launch_graph, &launchers[i]),
			0);
	}
	sched_graph_unref(graph);
	for (int i = 0; i < GRAPH_THREADS; i++) {
		check_eq(pthread_join(threads[i], NULL), 0);
		check_eq(launchers[i].r, 0);
	}
	check_eq(counts->threads, n * N_THREADS);
	check_eq(counts->locked, n);
	sched_context_deinit(&context);
}
