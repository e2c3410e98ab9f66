/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: copies of ordinary memory of the program in graphs
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "graph.h"

static CUDA_MEMCPY3D to_device(CUdeviceptr to, const void *from, size_t size)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = from,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to,
		.WidthInBytes = size,
		.Height = 1,
		.Depth = 1,
	};
}

static CUDA_MEMCPY3D to_host(void *to, CUdeviceptr from, size_t size)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = from,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = to,
		.WidthInBytes = size,
		.Height = 1,
		.Depth = 1,
	};
}

static CUgraphNode add_copy(CUgraph graph, const CUgraphNode *before,
	const CUDA_MEMCPY3D *copy, CUcontext context)
{
	CUgraphNode node = NULL;

	check_ok(cuGraphAddMemcpyNode(
		&node, graph, before, before ? 1 : 0, copy, context));
	check(node);
	return node;
}

static CUgraphNode add_step(
	CUgraph graph, const CUgraphNode *before, CUfunction step, CUdeviceptr x)
{
	int rounds = 1;
	void *params[] = { &x, &rounds };
	CUDA_KERNEL_NODE_PARAMS node_params = step_params(step, params);
	CUgraphNode node = NULL;

	check_ok(
		cuGraphAddKernelNode(&node, graph, before, before ? 1 : 0, &node_params));
	return node;
}

struct result {
	unsigned int *word;
	unsigned int n;
	unsigned int seen;
};

static void look(void *data)
{
	struct result *result = data;

	result->seen = *result->word;
	result->n++;
}

/* In, a step, out, and a function of the program that finds the result. */
TEST(a_launch_reads_and_writes_what_the_memory_is_then)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr x = memory_new(4);
	unsigned int in = 0, out = 0;
	struct result result = { .word = &out };
	CUDA_MEMCPY3D in_copy = to_device(x, &in, 4), out_copy = to_host(&out, x, 4),
		      told;
	const CUDA_HOST_NODE_PARAMS host = { look, &result };
	CUstream stream = stream_new();
	CUgraphNode first, second, last, function;
	CUgraphNodeType type;
	CUgraphExec exec;
	CUgraph graph;

	check_ok(cuGraphCreate(&graph, 0));
	first = add_copy(graph, NULL, &in_copy, fixture.context);
	second = add_step(graph, &first, step, x);
	last = add_copy(graph, &second, &out_copy, fixture.context);
	check_ok(cuGraphAddHostNode(&function, graph, &last, 1, &host));
	check_eq(count_nodes(graph), 4);
	check_ok(cuGraphNodeGetType(first, &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_MEMCPY);
	check_ok(cuGraphMemcpyNodeGetParams(last, &told));
	check(told.dstHost == &out && told.srcDevice == x && told.WidthInBytes == 4);
	exec = exec_new(graph);
	check_ok(cuGraphDestroy(graph));
	for (unsigned int i = 1; i <= 20; i++) {
		in = i;
		out = 0;
		launch_and_wait(exec, stream);
		check_eq(out, 3 * i + 1);
		check(result.n == i && result.seen == out);
	}
	check_ok(cuGraphExecDestroy(exec));
}

/* Two rows of 8 bytes in layers of three rows of 20, from the middle on. */
TEST(boxes_keep_what_lies_between_their_rows)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr x = memory_new(64);
	unsigned char memory[120], back[120];
	CUDA_MEMCPY3D in = to_device(x, memory, 8), out = to_host(back, x, 8);
	CUstream stream = stream_new();
	CUgraphNode node;
	CUgraph graph;

	for (int i = 0; i < 120; i++)
		memory[i] = (unsigned char)i;
	memset(back, 0xee, sizeof(back));
	in.srcXInBytes = out.dstXInBytes = 4;
	in.srcY = out.dstY = 1;
	in.srcPitch = out.dstPitch = 20;
	in.srcHeight = out.dstHeight = 3;
	in.dstPitch = out.srcPitch = 8;
	in.dstHeight = out.srcHeight = 2;
	in.Height = out.Height = 2;
	in.Depth = out.Depth = 2;
	check_ok(cuGraphCreate(&graph, 0));
	node = add_copy(graph, NULL, &in, fixture.context);
	add_copy(graph, &node, &out, fixture.context);
	launch_and_wait(exec_new(graph), stream);
	for (int z = 0; z < 2; z++)
		for (int y = 0; y < 3; y++)
			for (int b = 0; b < 20; b++) {
				int at = z * 60 + y * 20 + b;
				bool is_copied = y && b >= 4 && b < 12;

				check_eq(back[at], is_copied ? at : 0xee);
			}
}

TEST(copies_are_replaced)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr x = memory_new(8);
	unsigned int one = 1, other = 2;
	CUDA_MEMCPY3D copy = to_device(x, &one, 4), told;
	CUgraphExecUpdateResultInfo info;
	CUstream stream = stream_new();
	CUgraphNode node, found;
	CUgraph graph, clone;
	CUgraphExec exec;

	check_ok(cuGraphCreate(&graph, 0));
	node = add_copy(graph, NULL, &copy, fixture.context);
	exec = exec_new(graph);
	check_ok(cuGraphClone(&clone, graph));
	check_ok(cuGraphNodeFindInClone(&found, node, clone));
	copy.srcHost = &other;
	check_ok(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, fixture.context));
	launch_and_wait(exec, stream);
	check_eq(device_word(x), 2);
	copy.dstDevice = x + 4;
	check_ok(cuGraphMemcpyNodeSetParams(node, &copy));
	check_ok(cuGraphMemcpyNodeGetParams(node, &told));
	check(told.srcHost == &other && told.dstDevice == x + 4);
	check_ok(cuGraphMemcpyNodeGetParams(found, &told));
	check(told.srcHost == &one && told.dstDevice == x);
	check_ok(cuGraphExecUpdate(exec, graph, &info));
	launch_and_wait(exec, stream);
	check(device_word(x) == 2 && device_word(x + 4) == 2);
	check_ok(cuGraphDestroy(graph));
	launch_and_wait(exec_new(clone), stream);
	check_eq(device_word(x), 1);
}

TEST(copies_are_captured)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	unsigned int *in = malloc(1 << 20), *out = malloc(1 << 20), rows[6] = {};
	CUdeviceptr x = memory_new(1 << 20);
	CUDA_MEMCPY2D box = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = x,
		.srcPitch = 4,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = rows,
		.dstPitch = 8,
		.WidthInBytes = 4,
		.Height = 3,
	};
	CUstream stream = stream_new();
	CUgraphExec exec;
	CUgraph graph;

	check(in && out);
	memset(in, 0, 1 << 20);
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	check_ok(cuMemcpyHtoDAsync(x, in, 1 << 20, stream));
	check_ok(launch_step(step, x, 1, stream));
	check_ok(cuMemcpyDtoHAsync(out, x, 1 << 20, stream));
	check_ok(cuMemcpy2DAsync(&box, stream));
	graph = capture_end(stream);
	check_eq(count_nodes(graph), 4);
	exec = exec_new(graph);
	check_ok(cuGraphDestroy(graph));
	for (unsigned int i = 0; i < 5; i++) {
		in[0] = i;
		in[1] = 100 + i;
		in[(1 << 18) - 1] = 7 * i;
		launch_and_wait(exec, stream);
		check_eq(out[0], 3 * i + 1);
		check_eq(out[1], 100 + i);
		check_eq(out[(1 << 18) - 1], 7 * i);
		check(rows[0] == out[0] && !rows[1] && rows[2] == out[1] && !rows[3]);
	}
	check_ok(cuGraphExecDestroy(exec));
	free(in);
	free(out);
}

/* The host grants more pinned memory, which it registers, while a stream is captured: the
 * prohibition of that is for the program. */
TEST(a_capture_gets_pinned_memory_that_is_granted_meanwhile)
{
	const size_t size = 80 << 20; /* more than the first grant */
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	unsigned int *data = calloc(1, size);
	CUdeviceptr x = memory_new(size);
	CUstream stream = stream_new();
	CUgraphExec exec;

	check(data);
	data[0] = 4;
	data[size / 4 - 1] = 77;
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	check_ok(cuMemcpyHtoDAsync(x, data, size, stream));
	check_ok(launch_step(step, x, 1, stream));
	check_ok(cuMemcpyDtoHAsync(data, x, size, stream));
	exec = exec_new(capture_end(stream));
	launch_and_wait(exec, stream);
	check_eq(data[0], 13);
	check_eq(data[size / 4 - 1], 77);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuMemFree(x));
	free(data);
}

/* The pinned memory that copies need is given back. */
TEST(many_copies_come_and_go)
{
	struct fixture fixture = fixture_new();
	const size_t size = 16 << 20;
	CUdeviceptr x = memory_new(size);
	unsigned char *memory = calloc(1, size);
	CUDA_MEMCPY3D copy = to_device(x, memory, size);
	CUstream stream = stream_new();

	check(memory);
	for (int i = 0; i < 100; i++) {
		CUgraphExec exec;
		CUgraph graph;

		memory[size - 1] = (unsigned char)i;
		check_ok(cuGraphCreate(&graph, 0));
		add_copy(graph, NULL, &copy, fixture.context);
		exec = exec_new(graph);
		check_ok(cuGraphDestroy(graph));
		launch_and_wait(exec, stream);
		check_ok(cuGraphExecDestroy(exec));
		check_eq(device_word(x + size - 4) >> 24, (unsigned int)i);
	}
	free(memory);
}

static CUDA_MEMCPY3D on_host(void *to, const void *from, size_t size)
{
	CUDA_MEMCPY3D copy = to_device(0, from, size);

	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = to;
	return copy;
}

TEST(both_sides_may_be_memory_of_the_program)
{
	struct fixture fixture = fixture_new();
	unsigned int in[6] = { 1, 2, 3, 4, 5, 6 }, out[8] = { 0 }, *pinned;
	CUDA_MEMCPY3D copy = on_host(out, in, 8), told;
	CUstream stream = stream_new();
	CUgraphNode node, other;
	CUgraphNodeType type;
	CUgraphExec exec;
	CUgraph graph;

	check_ok(cuMemAllocHost((void **)&pinned, 64));
	check_ok(cuGraphCreate(&graph, 0));
	/* Two rows of two words, of rows of three, to every fourth. */
	copy.Height = 2;
	copy.srcPitch = 12;
	copy.dstPitch = 16;
	node = add_copy(graph, NULL, &copy, fixture.context);
	check_ok(cuGraphNodeGetType(node, &type));
	check_eq(type, CU_GRAPH_NODE_TYPE_MEMCPY);
	copy = on_host(pinned, out, 4);
	other = add_copy(graph, &node, &copy, fixture.context);
	exec = exec_new(graph);
	for (unsigned int i = 0; i < 3; i++) {
		in[0] = 10 + i;
		launch_and_wait(exec, stream);
		check(out[0] == 10 + i && out[1] == 2 && !out[2] && !out[3]);
		check(out[4] == 4 && out[5] == 5 && !out[6] && !out[7]);
		check_eq(*pinned, 10 + i);
	}
	check_ok(cuGraphMemcpyNodeGetParams(other, &told));
	check(told.dstHost == pinned && told.srcHost == out);
	copy = on_host(out + 7, in + 5, 4);
	check_ok(cuGraphExecMemcpyNodeSetParams(exec, other, &copy, fixture.context));
	launch_and_wait(exec, stream);
	check_eq(out[7], 6);
}

TEST(a_copy_becomes_one_of_pinned_memory)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr x = memory_new(16);
	unsigned int in = 3, out = 0, *pinned;
	CUDA_MEMCPY3D copies[2] = { to_device(x, &in, 4), to_host(&out, x, 4) }, copy,
		      told;
	CUstream stream = stream_new();
	CUgraphNode nodes[2];
	CUgraphExec exec;
	CUgraph graph;

	check_ok(cuMemAllocHost((void **)&pinned, 64));
	memset(pinned, 0, 64);
	check_ok(cuGraphCreate(&graph, 0));
	nodes[0] = add_copy(graph, NULL, &copies[0], fixture.context);
	nodes[1] = add_copy(graph, &nodes[0], &copies[1], fixture.context);
	exec = exec_new(graph);
	/* In the executable graph, there and back. */
	pinned[0] = 7;
	copy = to_device(x, pinned, 4);
	check_ok(cuGraphExecMemcpyNodeSetParams(exec, nodes[0], &copy, fixture.context));
	copy = to_host(pinned + 1, x, 4);
	check_ok(cuGraphExecMemcpyNodeSetParams(exec, nodes[1], &copy, fixture.context));
	launch_and_wait(exec, stream);
	check(pinned[1] == 7 && out == 0);
	check_ok(cuGraphExecMemcpyNodeSetParams(
		exec, nodes[0], &copies[0], fixture.context));
	check_ok(cuGraphExecMemcpyNodeSetParams(
		exec, nodes[1], &copies[1], fixture.context));
	launch_and_wait(exec, stream);
	check(pinned[1] == 7 && out == 3);
	/* In the graph. */
	pinned[0] = 8;
	copy = to_device(x, pinned, 4);
	check_ok(cuGraphMemcpyNodeSetParams(nodes[0], &copy));
	check_ok(cuGraphMemcpyNodeGetParams(nodes[0], &told));
	check(told.srcHost == pinned);
	copy = on_host(pinned + 2, pinned, 4);
	check_ok(cuGraphMemcpyNodeSetParams(nodes[1], &copy));
	check_ok(cuGraphExecDestroy(exec));
	exec = exec_new(graph);
	launch_and_wait(exec, stream);
	check(device_word(x) == 8 && pinned[2] == 8 && out == 3);
	/* What cannot be is refused, and changes nothing. */
	copy.WidthInBytes = 0;
	check_cu(cuGraphMemcpyNodeSetParams(nodes[1], &copy), CUDA_ERROR_INVALID_VALUE);
	pinned[0] = 9;
	launch_and_wait(exec_new(graph), stream);
	check_eq(pinned[2], 9);
}

TEST(a_capture_takes_copies_within_the_host)
{
	unsigned int in = 5, out = 0;
	CUstream stream;
	CUgraphExec exec;
	CUgraph graph;

	fixture_new();
	stream = stream_new();
	capture_begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	check_ok(cuMemcpyAsync(
		(CUdeviceptr)(uintptr_t)&out, (CUdeviceptr)(uintptr_t)&in, 4, stream));
	graph = capture_end(stream);
	check_eq(count_nodes(graph), 1);
	exec = exec_new(graph);
	for (in = 6; in < 9; in++) {
		launch_and_wait(exec, stream);
		check_eq(out, in);
	}
}

/* In, out, and within the host. */
struct three {
	CUgraph graph;
	CUgraphNode nodes[3];
	CUgraphExec exec;
};

static struct three three_new(CUdeviceptr x, const unsigned int *in, unsigned int *out,
	unsigned int *other, CUcontext context)
{
	CUDA_MEMCPY3D copies[3] = {
		to_device(x, in, 4),
		to_host(out, x, 4),
		on_host(other, in, 4),
	};
	struct three three;

	check_ok(cuGraphCreate(&three.graph, 0));
	for (int i = 0; i < 3; i++)
		three.nodes[i] = add_copy(
			three.graph, i ? &three.nodes[i - 1] : NULL, &copies[i], context);
	three.exec = exec_new(three.graph);
	return three;
}

static void check_enabled(CUgraphExec exec, CUgraphNode node, unsigned int expected)
{
	unsigned int is_enabled = 9;

	check_ok(cuGraphNodeGetEnabled(exec, node, &is_enabled));
	check_eq(is_enabled, expected);
}

TEST(copies_are_disabled_one_by_one)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr x = memory_new(4);
	unsigned int in, out, other, is_enabled;
	struct three three = three_new(x, &in, &out, &other, fixture.context);
	struct three foreign = three_new(x, &in, &out, &other, fixture.context);
	CUstream stream = stream_new();
	CUgraphExecUpdateResultInfo info;
	CUDA_MEMCPY3D copy;

	/* All that are named in i are enabled. */
	for (unsigned int i = 0; i < 8; i++) {
		for (unsigned int bit = 0; bit < 3; bit++)
			check_ok(cuGraphNodeSetEnabled(
				three.exec, three.nodes[bit], i >> bit & 1));
		/* Which an update keeps. */
		if (i & 1)
			check_ok(cuGraphExecUpdate(three.exec, three.graph, &info));
		for (unsigned int bit = 0; bit < 3; bit++)
			check_enabled(three.exec, three.nodes[bit], i >> bit & 1);
		check_ok(cuMemsetD32(x, 7, 1));
		in = 100 + i;
		out = other = 55;
		launch_and_wait(three.exec, stream);
		check_eq(device_word(x), i & 1 ? in : 7);
		check_eq(out, i & 2 ? device_word(x) : 55);
		check_eq(other, i & 4 ? in : 55);
	}
	check_cu(cuGraphNodeSetEnabled(three.exec, foreign.nodes[0], 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphNodeGetEnabled(three.exec, foreign.nodes[0], &is_enabled),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphNodeGetEnabled(three.exec, three.nodes[0], NULL),
		CUDA_ERROR_INVALID_VALUE);
	/* Other executable graphs of the graph are not concerned. */
	check_ok(cuGraphNodeSetEnabled(three.exec, three.nodes[1], 0));
	check_enabled(exec_new(three.graph), three.nodes[1], 1);
	/* The node has other parameters, and is the same. */
	copy = to_host(&other, x, 4);
	check_ok(cuGraphMemcpyNodeSetParams(three.nodes[1], &copy));
	check_enabled(three.exec, three.nodes[1], 0);
	check_ok(cuGraphNodeSetEnabled(three.exec, three.nodes[1], 1));
	out = 55;
	launch_and_wait(three.exec, stream);
	check_eq(out, in);
}

/* Its memory may be gone, and comes back. */
TEST(a_disabled_copy_accesses_no_memory)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr x = memory_new(4);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned int *memory = mmap(
		NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct three three;
	CUstream stream = stream_new();

	check(memory != MAP_FAILED);
	three = three_new(x, memory, memory + 1, memory + 2, fixture.context);
	memory[0] = 4;
	launch_and_wait(three.exec, stream);
	check(memory[1] == 4 && memory[2] == 4);
	for (int i = 0; i < 3; i++)
		check_ok(cuGraphNodeSetEnabled(three.exec, three.nodes[i], 0));
	check_eq(munmap(memory, page), 0);
	launch_and_wait(three.exec, stream);
	check(mmap(memory, page, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		      0) == memory);
	launch_and_wait(three.exec, stream);
	check(!memory[0] && !memory[1] && !memory[2]);
	for (int i = 0; i < 3; i++)
		check_ok(cuGraphNodeSetEnabled(three.exec, three.nodes[i], 1));
	memory[0] = 6;
	launch_and_wait(three.exec, stream);
	check(memory[1] == 6 && memory[2] == 6);
}

/* The device writes the same bytes again and again. */
TEST(a_large_copy_is_done_again_or_disabled)
{
	enum { N = 1 << 20 };
	struct fixture fixture = fixture_new();
	CUdeviceptr x = memory_new(N);
	unsigned char *out = malloc(N), *all = malloc(N);
	CUDA_MEMCPY3D copy = to_host(out, x, N);
	CUstream stream = stream_new();
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph;

	check(out && all);
	check_ok(cuMemsetD8(x, 77, N));
	/* The stream does not wait for the fill. */
	check_ok(cuCtxSynchronize());
	check_ok(cuGraphCreate(&graph, 0));
	node = add_copy(graph, NULL, &copy, fixture.context);
	exec = exec_new(graph);
	for (int i = 0; i < 6; i++) {
		check_ok(cuGraphNodeSetEnabled(exec, node, i % 3 < 2));
		memset(out, i, N);
		memset(all, i % 3 < 2 ? 77 : i, N);
		launch_and_wait(exec, stream);
		check(!memcmp(out, all, N));
	}
	check_ok(cuGraphExecDestroy(exec));
	free(out);
	free(all);
}

/* In and out of pinned memory, which the node has at first. */
TEST(ordinary_copies_become_ones_of_pageable_memory)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr x = memory_new(4);
	unsigned int in = 0, out = 0, *pinned;
	struct result result = { .word = &out };
	const CUDA_HOST_NODE_PARAMS host = { look, &result };
	CUDA_MEMCPY3D ordinary[2],
		pageable[2] = { to_device(x, &in, 4), to_host(&out, x, 4) }, told;
	CUstream stream = stream_new();
	CUgraphNode nodes[2], function;
	CUgraphExecUpdateResultInfo info;
	CUgraphExec exec;
	CUgraph graph;

	check_ok(cuMemAllocHost((void **)&pinned, 64));
	memset(pinned, 0, 64);
	ordinary[0] = to_device(x, pinned, 4);
	ordinary[1] = to_host(pinned + 1, x, 4);
	check_ok(cuGraphCreate(&graph, 0));
	nodes[0] = add_copy(graph, NULL, &ordinary[0], fixture.context);
	nodes[1] = add_copy(graph, &nodes[0], &ordinary[1], fixture.context);
	check_ok(cuGraphAddHostNode(&function, graph, &nodes[1], 1, &host));
	exec = exec_new(graph);
	for (unsigned int i = 1; i < 20; i++) {
		/* In the executable graph: none, one of them, or both. */
		for (unsigned int side = 0; side < 2; side++)
			check_ok(cuGraphExecMemcpyNodeSetParams(exec, nodes[side],
				i >> side & 1 ? &pageable[side] : &ordinary[side],
				fixture.context));
		in = 100 + i;
		pinned[0] = 200 + i;
		pinned[1] = out = 0;
		/* The memory is read at each launch. */
		launch_and_wait(exec, stream);
		in++;
		pinned[0]++;
		launch_and_wait(exec, stream);
		check_eq(device_word(x), i & 1 ? in : pinned[0]);
		check_eq(out, i & 2 ? device_word(x) : 0);
		check_eq(pinned[1], i & 2 ? 0 : device_word(x));
	}
	/* In the graph, where a function behind sees it. */
	for (int side = 0; side < 2; side++) {
		check_ok(cuGraphMemcpyNodeSetParams(nodes[side], &pageable[side]));
		check_ok(cuGraphMemcpyNodeGetParams(nodes[side], &told));
		check(!memcmp(&told, &pageable[side], sizeof(told)));
	}
	check_eq(count_nodes(graph), 3);
	exec = exec_new(graph);
	check_eq(count_nodes(graph), 3);
	for (unsigned int i = 0; i < 3; i++) {
		in = 300 + i;
		out = pinned[1] = 0;
		launch_and_wait(exec, stream);
		check(out == in && result.seen == in && !pinned[1]);
	}
	check_ok(cuGraphNodeSetEnabled(exec, nodes[1], 0));
	in = 400;
	launch_and_wait(exec, stream);
	check(device_word(x) == 400 && out == 302);
	check_ok(cuGraphNodeSetEnabled(exec, nodes[1], 1));
	check_ok(cuGraphExecUpdate(exec, graph, &info));
	launch_and_wait(exec, stream);
	check(out == 400 && result.seen == 400);
	/* And back. */
	for (int side = 0; side < 2; side++)
		check_ok(cuGraphMemcpyNodeSetParams(nodes[side], &ordinary[side]));
	check_ok(cuGraphMemcpyNodeGetParams(nodes[0], &told));
	check(told.srcHost == pinned);
	pinned[0] = 500;
	launch_and_wait(exec_new(graph), stream);
	check(pinned[1] == 500 && out == 400);
	check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
}
