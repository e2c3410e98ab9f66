/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole iterations: what a program does between two looks at its results
 *
 * mixed_iteration is the one that figures of other projects exist for, eager_iteration
 * is what an eager framework does in a small step, graph_iteration launches the same
 * 600 kernels as one graph.
 */

#include "library.h"

#define LAUNCHES 600u
#define SMALL 10u /* of each small thing, spread over the launches */
#define MIXED_DEVICES 40u
#define EAGER_QUERIES 40u
#define EAGER_RECORDS 20u

/* A query whose answer depends on how far the other side is. */
static void query(CUresult (*query)(CUevent event), CUevent event)
{
	CUresult result = query(event);

	if (result && result != CUDA_ERROR_NOT_READY) {
		fprintf(stderr, "vgpu-bench: cuEventQuery returns %d\n", result);
		exit(1);
	}
}

static void copy_small(struct bench *bench)
{
	must(cuMemcpyHtoDAsync(bench->small, bench->pageable, SMALL_COPY, bench->stream));
}

static void mix(struct bench *bench)
{
	CUdevice device;

	for (unsigned int i = 0; i < SMALL; i++) {
		launch(bench, LAUNCHES / SMALL);
		for (unsigned int k = 0; k < MIXED_DEVICES / SMALL; k++)
			must(cuCtxGetDevice(&device));
		must(cuEventRecord(bench->event, bench->stream));
		query(cuda.cuEventQuery, bench->event);
		copy_small(bench);
	}
	must(cuStreamSynchronize(bench->stream));
}

static void run_eagerly(struct bench *bench)
{
	for (unsigned int i = 0; i < SMALL; i++) {
		launch(bench, LAUNCHES / SMALL);
		for (unsigned int k = 0; k < EAGER_RECORDS / SMALL; k++)
			must(cuEventRecord(bench->event, bench->stream));
		for (unsigned int k = 0; k < EAGER_QUERIES / SMALL; k++)
			query(cuda.cuEventQuery, bench->event);
		copy_small(bench);
	}
	must(cuStreamSynchronize(bench->stream));
}

static void measure_iterations_of(
	struct bench *bench, const char *name, void (*iterate)(struct bench *bench))
{
	struct bench_samples samples = {};
	double start;

	iterate(bench);
	while (bench_more(&samples, bench_count(bench->sink, 101, 5))) {
		start = bench_now();
		iterate(bench);
		bench_sample(&samples, bench_now() - start);
	}
	bench_report(bench->sink, name, "ns", &samples);
}

static void measure_mixed(struct bench *bench, const char *name)
{
	measure_iterations_of(bench, name, mix);
}

static void measure_eager(struct bench *bench, const char *name)
{
	measure_iterations_of(bench, name, run_eagerly);
}

/*
 * Graphs: a driver may lack them, which replaces the figure
 */

static CUgraphExec graph;

static void run_graph(struct bench *bench)
{
	must(cuGraphLaunch(graph, bench->stream));
	must(cuStreamSynchronize(bench->stream));
}

/* Captures the launches of an iteration. Returns: NULL, or what cannot be done. */
static const char *make_graph(struct bench *bench)
{
	CUgraph captured;

	if (!cuda.has_graphs)
		return "the driver has no graphs";
	if (cuda.cuStreamBeginCapture(bench->stream, CU_STREAM_CAPTURE_MODE_RELAXED))
		return "not supported: cuStreamBeginCapture";
	launch(bench, LAUNCHES);
	must(cuStreamEndCapture(bench->stream, &captured));
	if (cuda.cuGraphInstantiate(&graph, captured, 0))
		return "not supported: cuGraphInstantiateWithFlags";
	/* The first launch uploads the graph. */
	if (cuda.cuGraphLaunch(graph, bench->stream))
		return "not supported: cuGraphLaunch";
	must(cuStreamSynchronize(bench->stream));
	return NULL;
}

static void measure_graph(struct bench *bench, const char *name)
{
	const char *why = make_graph(bench);

	if (why)
		bench_report_none(bench->sink, name, "ns", why);
	else
		measure_iterations_of(bench, name, run_graph);
}

void measure_iterations(struct bench *bench)
{
	static const struct measurement table[] = {
		{ "mixed_iteration", measure_mixed },
		{ "eager_iteration", measure_eager },
		{ "graph_iteration", measure_graph },
	};

	measure_table(bench, table, BENCH_N(table));
}
