/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: graphs as text for Graphviz
 */

#include "graph.h"

static char text[65536];

static const char *print(CUgraph graph, unsigned int flags)
{
	char path[4096];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "%s/graph.dot", test_tmpdir());
	check_ok(cuGraphDebugDotPrint(graph, path, flags));
	file = fopen(path, "re");
	check(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	fclose(file);
	return text;
}

static unsigned int count(const char *part)
{
	unsigned int n = 0;

	for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
		n++;
	return n;
}

/* A fill, then a kernel, then a copy and an empty node. */
static CUgraph make(const struct fixture *fixture, CUdeviceptr memory)
{
	CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = memory, .value = 5, .elementSize = 4, .width = 1, .height = 1
	};
	CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = memory,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = memory + 512,
		.WidthInBytes = 12,
		.Height = 1,
		.Depth = 1,
	};
	int rounds = 3;
	void *params[] = { &memory, &rounds };
	CUDA_KERNEL_NODE_PARAMS kernel =
		step_params(fixture_function(fixture, "step"), params);
	CUgraphNode nodes[4];
	CUgraph graph = NULL;

	check_ok(cuGraphCreate(&graph, 0));
	check_ok(
		cuGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &fill, fixture->context));
	check_ok(cuGraphAddKernelNode(&nodes[1], graph, &nodes[0], 1, &kernel));
	check_ok(cuGraphAddMemcpyNode(
		&nodes[2], graph, &nodes[1], 1, &copy, fixture->context));
	check_ok(cuGraphAddEmptyNode(&nodes[3], graph, &nodes[1], 1));
	return graph;
}

TEST(nodes_and_edges_are_printed)
{
	struct fixture fixture = fixture_new();
	CUgraph graph = make(&fixture, memory_new(1024));

	print(graph, 0);
	check(!strncmp(text, "digraph \"graph_", 15));
	check_eq(count("[label="), 4);
	check_eq(count(" -> "), 3);
	check_eq(count("\\nMEMSET"), 1);
	check_eq(count("\\nKERNEL\\n"), 1);
	check_eq(count("\\nMEMCPY"), 1);
	check_eq(count("\\nEMPTY"), 1);
	check_eq(count("step"), 1);
	check_eq(count("grid"), 0);
	check_eq(count("}\n"), 1);
	check_ok(cuGraphDestroy(graph));
}

TEST(flags_add_parameters)
{
	struct fixture fixture = fixture_new();
	CUgraph graph = make(&fixture, memory_new(1024));

	print(graph, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS);
	check_eq(count("grid (1, 1, 1), block (1, 1, 1)"), 1);
	check_eq(count("12 x 1 x 1 bytes"), 0);
	print(graph, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
	check_eq(count("grid (1, 1, 1), block (1, 1, 1)"), 1);
	check_eq(count("12 x 1 x 1 bytes"), 1);
	check_eq(count("1 x 1 of 4 bytes, value 5"), 1);
	check_ok(cuGraphDestroy(graph));
}

static void do_nothing(void *data)
{
}

TEST(functions_children_and_batches_are_printed)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr memory = memory_new(1024);
	CUstreamBatchMemOpParams op = {
		.writeValue = { CU_STREAM_MEM_OP_WRITE_VALUE_32, memory, { 1 } },
	};
	CUDA_BATCH_MEM_OP_NODE_PARAMS batch = { fixture.context, 1, &op, 0 };
	const CUDA_HOST_NODE_PARAMS host = { do_nothing, NULL };
	CUgraph child = make(&fixture, memory), graph = NULL;
	CUgraphNode node;

	check_ok(cuGraphCreate(&graph, 0));
	check_ok(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	check_ok(cuGraphAddHostNode(&node, graph, NULL, 0, &host));
	check_ok(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &batch));
	print(graph, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
	check_eq(count("[label="), 3);
	check_eq(count("\\nGRAPH\\n4 nodes"), 1);
	check_eq(count("\\nHOST\\nfunction "), 1);
	check_eq(count("\\nBATCH_MEM_OP\\n1 operations"), 1);
	check_ok(cuGraphDestroy(child));
	check_ok(cuGraphDestroy(graph));
}

TEST(conditional_nodes_are_printed)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };
	CUgraphConditionalHandle handle;
	struct fixture fixture = fixture_new();
	char expected[100];
	CUgraph graph = NULL;
	CUgraphNode node;

	check_ok(cuGraphCreate(&graph, 0));
	check_ok(cuGraphConditionalHandleCreate(&handle, graph, fixture.context, 0, 0));
	params.conditional.handle = handle;
	params.conditional.type = CU_GRAPH_COND_TYPE_SWITCH;
	params.conditional.size = 2;
	params.conditional.ctx = fixture.context;
	check_ok(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	check_ok(cuGraphAddEmptyNode(&node, params.conditional.phGraph_out[1], NULL, 0));
	print(graph, 0);
	check_eq(count("\\nCONDITIONAL\\nSWITCH\\nbody 0: 0 nodes\\nbody 1: 1 nodes\""),
		1);
	print(graph, CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS);
	snprintf(expected, sizeof(expected), "\\nhandle 0x%llx\"",
		(unsigned long long)handle);
	check_eq(count(expected), 1);
	check_ok(cuGraphDestroy(graph));
}

TEST(an_empty_graph_has_no_nodes)
{
	CUgraph graph = NULL;

	fixture_new();
	check_ok(cuGraphCreate(&graph, 0));
	print(graph, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
	check_eq(count("[label="), 0);
	check_eq(count("}\n"), 1);
	check_ok(cuGraphDestroy(graph));
	check_cu(cuGraphDebugDotPrint(graph, "/dev/null", 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(files_that_cannot_be_written_are_errors)
{
	struct fixture fixture = fixture_new();
	CUgraph graph = make(&fixture, memory_new(1024));

	check_cu(cuGraphDebugDotPrint(graph, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGraphDebugDotPrint(graph, "/nonexistent/graph.dot", 0),
		CUDA_ERROR_OPERATING_SYSTEM);
	check_cu(
		cuGraphDebugDotPrint(graph, "/dev/full", 0), CUDA_ERROR_OPERATING_SYSTEM);
	check_ok(cuGraphDestroy(graph));
}
