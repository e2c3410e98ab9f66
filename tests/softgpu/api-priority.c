/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Priorities of streams, launches and nodes, and blocks that wait for each other
 *
 * The order of kernels is certain on one thread, where the blocks take numbers.
 */

#include "graph.h"

#define LOWEST 0
#define HIGHEST (-5)

/*
 * note: a block takes the next number of p[0], and puts it in p[i].
 * scan: decoupled look-back; block b has b + 1, and a state of 64 bits in p: the upper
 *	half is 1 beside its own number, 2 beside the sum up to it. Block 0 has its sum
 *	from the start: there is nothing to look back at.
 * later, plain, fenced: block b waits for word b + 1 of p, then sets word b; the last one
 *	only sets it. They read by volatile loads, by plain ones, by plain ones and
 *fences. warps: the first warp of a block waits by plain loads for a word that the second
 *sets.
 */
#define LATER(_name, _load, _fence)                                                      \
	".visible .entry " _name "(.param .u64 p) {\n"                                   \
	".reg .b64 %d<3>; .reg .b32 %r<5>; .reg .pred %q;\n"                             \
	"ld.param.u64 %d1, [p]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %d2, %r1, 4;\n"      \
	"add.u64 %d1, %d1, %d2; mov.u32 %r2, %nctaid.x; sub.u32 %r2, %r2, 1;\n"          \
	"setp.eq.u32 %q, %r1, %r2; @%q bra DONE;\n"                                      \
	"L: " _load " %r3, [%d1+4]; " _fence " setp.eq.u32 %q, %r3, 0; @%q bra L;\n"     \
	"DONE: st.volatile.global.u32 [%d1], 1; ret; }\n"

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry note(.param .u64 p, .param .u32 i) {\n"
	".reg .b64 %d<3>; .reg .b32 %r<3>;\n"
	"ld.param.u64 %d1, [p]; ld.param.u32 %r1, [i]; mul.wide.u32 %d2, %r1, 4;\n"
	"add.u64 %d2, %d1, %d2; atom.global.add.u32 %r2, [%d1], 1;\n"
	"st.global.u32 [%d2], %r2; ret; }\n"
	".visible .entry scan(.param .u64 p) {\n"
	".reg .b64 %d<7>; .reg .b32 %r<3>; .reg .pred %q;\n"
	"ld.param.u64 %d1, [p]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %d2, %r1, 8;\n"
	"add.u64 %d1, %d1, %d2; cvt.u64.u32 %d2, %r1; add.u64 %d2, %d2, 1;\n"
	"mov.u64 %d4, %d1; setp.eq.u32 %q, %r1, 0; @%q bra DONE;\n"
	"or.b64 %d3, %d2, 0x100000000; st.volatile.global.u64 [%d1], %d3;\n"
	"BACK: sub.u64 %d4, %d4, 8;\n"
	"AGAIN: ld.volatile.global.u64 %d5, [%d4]; shr.u64 %d6, %d5, 32;\n"
	"setp.eq.u64 %q, %d6, 0; @%q bra AGAIN;\n"
	"and.b64 %d5, %d5, 0xffffffff; add.u64 %d2, %d2, %d5;\n"
	"setp.eq.u64 %q, %d6, 1; @%q bra BACK;\n"
	"DONE: or.b64 %d3, %d2, 0x200000000; st.volatile.global.u64 [%d1], %d3; ret; }\n"
	".visible .entry warps(.param .u64 p) {\n"
	".reg .b64 %d; .reg .b32 %r<3>; .reg .pred %q;\n"
	"ld.param.u64 %d, [p]; mov.u32 %r1, %tid.x; setp.ge.u32 %q, %r1, 32;\n"
	"@%q bra SET;\n"
	"L: ld.global.u32 %r2, [%d]; setp.eq.u32 %q, %r2, 0; @%q bra L;\n"
	"red.global.add.u32 [%d+4], 1; ret;\n"
	"SET: st.global.u32 [%d], 1; ret; }\n"	     //
	LATER("later", "ld.volatile.global.u32", "") //
	LATER("plain", "ld.global.u32", "")	     //
	LATER("fenced", "ld.global.u32", "membar.gl;");

static CUfunction function(const char *name)
{
	static CUmodule module;
	CUfunction found;

	if (!module)
		check_ok(cuModuleLoadData(&module, ptx));
	check_ok(cuModuleGetFunction(&found, module, name));
	return found;
}

static void start(const char *n_threads)
{
	setenv("VGPU_SOFTGPU_THREADS", n_threads, 1);
	context_new();
}

static CUstream stream_of(int priority)
{
	CUstream stream;

	check_ok(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority));
	return stream;
}

static CUresult launch_note(
	CUdeviceptr numbers, unsigned int i, CUstream stream, const int *priority)
{
	CUlaunchAttribute attribute = {
		.id = CU_LAUNCH_ATTRIBUTE_PRIORITY,
		.value.priority = priority ? *priority : 0,
	};
	const CUlaunchConfig config = {
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = stream,
		.attrs = &attribute,
		.numAttrs = priority ? 1 : 0,
	};
	void *params[] = { &numbers, &i };

	return cuLaunchKernelEx(&config, function("note"), params, NULL);
}

/* Streams that wait for the event continue at one moment: when the word is 1. */
static CUevent event_behind(volatile unsigned int *word)
{
	CUstream stream = stream_of(0);
	CUevent event;

	check_ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	check_ok(
		cuStreamWaitValue32(stream, (uintptr_t)word, 1, CU_STREAM_WAIT_VALUE_EQ));
	check_ok(cuEventRecord(event, stream));
	return event;
}

static int priority_of(CUstream stream)
{
	CUstreamAttrValue value = { .priority = 99 };
	int priority = 77;

	check_ok(cuStreamGetPriority(stream, &priority));
	check_ok(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	check_eq(value.priority, priority);
	return priority;
}

TEST(a_stream_has_a_priority_of_the_range)
{
	int least = 9, greatest = 9, is_supported = 0;
	CUstreamAttrValue value = { .priority = -99 };
	CUstream stream, other;

	context_new();
	check_ok(cuCtxGetStreamPriorityRange(&least, &greatest));
	check_eq(least, LOWEST);
	check_eq(greatest, HIGHEST);
	check_ok(cuDeviceGetAttribute(
		&is_supported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 0));
	check_eq(is_supported, 1);
	check_eq(priority_of(stream_of(-3)), -3);
	check_eq(priority_of(stream_of(7)), LOWEST);
	check_eq(priority_of(stream_of(-7)), HIGHEST);
	check_eq(priority_of(NULL), 0);
	stream = stream_of(-1);
	check_ok(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	check_eq(priority_of(stream), HIGHEST);
	check_ok(cuStreamCreate(&other, 0));
	check_eq(priority_of(other), 0);
	check_ok(cuStreamCopyAttributes(other, stream));
	check_eq(priority_of(other), HIGHEST);
}

TEST(kernels_begin_in_the_order_of_their_priorities)
{
	enum { N = 4 };
	static const int streams[N] = { 0, -2, -5, -1 };
	static const int launch = -4;
	volatile unsigned int *word;
	CUdeviceptr numbers;
	CUevent event;

	start("1");
	word = pinned_memory(4);
	numbers = device_memory(4 * (N + 2));
	event = event_behind(word);
	for (unsigned int i = 0; i <= N; i++) {
		CUstream stream = stream_of(i < N ? streams[i] : 0);

		check_ok(cuStreamWaitEvent(stream, event, 0));
		check_ok(launch_note(numbers, i + 1, stream, i < N ? NULL : &launch));
	}
	open_gate(word);
	check_ok(cuCtxSynchronize());
	check_eq(device_word(numbers + 4), 4);
	check_eq(device_word(numbers + 8), 2);
	check_eq(device_word(numbers + 12), 0);
	check_eq(device_word(numbers + 16), 3);
	/* The launch's own priority. */
	check_eq(device_word(numbers + 20), 1);
}

/* Of two nodes the first has the lower priority. */
static CUgraph graph_of_two(CUdeviceptr numbers)
{
	CUlaunchAttributeValue value = { .priority = -1 };
	CUgraphNode node;
	CUgraph graph;

	check_ok(cuGraphCreate(&graph, 0));
	for (unsigned int i = 1; i <= 2; i++) {
		void *params[] = { &numbers, &i };
		const CUDA_KERNEL_NODE_PARAMS node_params =
			one_thread(function("note"), params);

		check_ok(cuGraphAddKernelNode(&node, graph, NULL, 0, &node_params));
	}
	check_ok(cuGraphKernelNodeSetAttribute(
		node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	return graph;
}

TEST(nodes_have_priorities_if_their_graph_is_to_use_them)
{
	CUgraphExec plain, prioritised;
	CUdeviceptr numbers;
	CUgraph graph;

	start("1");
	numbers = device_memory(12);
	graph = graph_of_two(numbers);
	check_ok(cuGraphInstantiateWithFlags(&plain, graph, 0));
	check_ok(cuGraphInstantiateWithFlags(
		&prioritised, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
	check_ok(cuGraphLaunch(prioritised, NULL));
	check_eq(device_word(numbers + 4), 1);
	check_eq(device_word(numbers + 8), 0);
	check_ok(cuGraphLaunch(plain, NULL));
	check_eq(device_word(numbers + 4), 2);
	check_eq(device_word(numbers + 8), 3);
}

TEST(a_graph_has_the_priority_of_the_stream_it_is_launched_in)
{
	volatile unsigned int *word;
	CUdeviceptr numbers;
	CUgraphExec exec;
	CUstream stream;
	CUevent event;

	start("1");
	word = pinned_memory(4);
	numbers = device_memory(16);
	check_ok(cuGraphInstantiateWithFlags(&exec, graph_of_two(numbers), 0));
	event = event_behind(word);
	stream = stream_of(-2);
	check_ok(cuStreamWaitEvent(stream, event, 0));
	check_ok(launch_note(numbers, 3, stream, NULL));
	stream = stream_of(-3);
	check_ok(cuStreamWaitEvent(stream, event, 0));
	check_ok(cuGraphLaunch(exec, stream));
	open_gate(word);
	check_ok(cuCtxSynchronize());
	check_eq(device_word(numbers + 4), 0);
	check_eq(device_word(numbers + 8), 1);
	check_eq(device_word(numbers + 12), 2);
}

static int node_priority(CUgraphNode node)
{
	CUlaunchAttributeValue value = { .priority = 99 };

	check_ok(cuGraphKernelNodeGetAttribute(
		node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	return value.priority;
}

TEST(a_captured_node_has_the_priority_of_its_stream_unless_the_launch_has_one)
{
	static const int launch = 0;
	CUgraphNode nodes[2];
	CUdeviceptr numbers;
	CUstream stream;
	CUgraph graph;
	size_t n = 2;

	context_new();
	numbers = device_memory(12);
	stream = stream_of(-3);
	check_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	check_ok(launch_note(numbers, 1, stream, NULL));
	check_ok(launch_note(numbers, 2, stream, &launch));
	check_ok(cuStreamEndCapture(stream, &graph));
	check_ok(cuGraphGetNodes(graph, nodes, &n));
	check_eq(n, 2);
	check_eq(node_priority(nodes[0]), -3);
	check_eq(node_priority(nodes[1]), 0);
}

/* It holds the only thread, and waits for a flag. */
TEST(a_low_kernel_that_waits_leaves_the_thread_to_a_high_one)
{
	volatile unsigned int *word;
	CUdeviceptr numbers;
	CUstream low, high;

	start("1");
	word = pinned_memory(4);
	numbers = device_memory(12);
	low = stream_of(LOWEST);
	high = stream_of(HIGHEST);
	check_ok(launch_gate(word, numbers, low));
	check_ok(launch_note(numbers, 1, high, NULL));
	check_ok(cuStreamSynchronize(high));
	check_eq(device_word(numbers + 4), 0);
	check_cu(cuStreamQuery(low), CUDA_ERROR_NOT_READY);
	open_gate(word);
	check_ok(cuStreamSynchronize(low));
	check_eq(device_word(numbers), 2);
}

TEST(a_high_kernel_that_waits_for_a_low_one_is_served)
{
	CUdeviceptr words;
	void *params[] = { &words };

	start("1");
	words = device_memory(8);
	/* Block 0 waits for word 1, which the low one sets. */
	check_ok(cuLaunchKernel(function("later"), 2, 1, 1, 1, 1, 1, 0,
		stream_of(HIGHEST), params, NULL));
	check_ok(launch_store(words + 4, 1, stream_of(LOWEST)));
	check_ok(cuCtxSynchronize());
	check_eq(device_word(words), 1);
}

TEST(a_scan_by_look_back_has_more_blocks_than_threads)
{
	enum { N = 3000 };
	uint64_t *out = malloc(N * sizeof(*out));
	CUdeviceptr states;
	void *params[] = { &states };

	start("2");
	states = device_memory(8 * N);
	check_ok(cuLaunchKernel(
		function("scan"), N, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	check_ok(cuMemcpyDtoH(out, states, 8 * N));
	for (uint64_t i = 0; i < N; i++)
		check_eq(out[i], UINT64_C(0x200000000) + (i + 1) * (i + 2) / 2);
	free(out);
}

/* Each block waits for the next one: as many as the occupancy promises, or fewer. */
static void wait_for_later(const char *n_threads, const char *name, unsigned int n_max)
{
	unsigned int n_words;
	CUdeviceptr words;
	void *params[] = { &words };
	int n;

	start(n_threads);
	check_ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, function(name), 1, 0));
	n_words = (unsigned int)n * (unsigned int)atoi(n_threads);
	if (n_max && n_words > n_max)
		n_words = n_max;
	words = device_memory(4 * n_words);
	check_ok(cuLaunchKernel(
		function(name), n_words, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	check_ok(cuCtxSynchronize());
	for (unsigned int i = 0; i < n_words; i++)
		check_eq(device_word(words + 4 * i), 1);
}

TEST(blocks_wait_for_later_ones_on_one_thread)
{
	wait_for_later("1", "later", 0);
}

TEST(blocks_wait_for_later_ones_on_three_threads)
{
	wait_for_later("3", "later", 0);
}

TEST(blocks_wait_for_later_ones_by_fences)
{
	wait_for_later("2", "fenced", 0);
}

/* A block that does not poll makes room seldom. */
TEST(blocks_wait_for_later_ones_by_plain_loads)
{
	wait_for_later("2", "plain", 5);
}

TEST(a_warp_waits_for_a_later_one_by_plain_loads)
{
	CUdeviceptr words;
	void *params[] = { &words };

	start("1");
	words = device_memory(8);
	check_ok(cuLaunchKernel(
		function("warps"), 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(device_word(words + 4), 32);
}

/* The scheduler copies a graph that is changed while a launch of it is queued. */
TEST(blocks_of_a_changed_graph_wait_for_later_ones)
{
	CUDA_KERNEL_NODE_PARAMS node_params;
	CUdeviceptr words, others, counter;
	volatile unsigned int *gate;
	void *params[] = { &words };
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph;

	start("1");
	gate = pinned_memory(4);
	counter = device_memory(4);
	words = device_memory(4 * 8);
	others = device_memory(4 * 8);
	node_params = one_thread(function("later"), params);
	node_params.gridDimX = 8;
	check_ok(cuGraphCreate(&graph, 0));
	check_ok(cuGraphAddKernelNode(&node, graph, NULL, 0, &node_params));
	check_ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
	check_ok(launch_gate(gate, counter, NULL));
	check_ok(cuGraphLaunch(exec, NULL));
	params[0] = &others;
	check_ok(cuGraphExecKernelNodeSetParams(exec, node, &node_params));
	check_ok(cuGraphLaunch(exec, NULL));
	open_gate(gate);
	check_ok(cuCtxSynchronize());
	for (unsigned int i = 0; i < 8; i++) {
		check_eq(device_word(words + 4 * i), 1);
		check_eq(device_word(others + 4 * i), 1);
	}
}
