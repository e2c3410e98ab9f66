/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: launches of clusters, whose blocks use each other's shared memory
 *
 * A device without clusters refuses them with CUDA_ERROR_NOT_SUPPORTED or
 * CUDA_ERROR_INVALID_VALUE; the programs of this file are for one that has them.
 */

#include "graph.h"

#define THREADS 32u

/*
 * Each thread of `turn` writes what the same thread of the next block in its cluster has
 * left in shared memory: the number of that block times 100, plus that of the thread.
 */
#define TURN_BODY                                                                        \
	".reg .b64 %rd<4>;\n"                                                            \
	".reg .b32 %r<12>;\n"                                                            \
	".shared .align 4 .b8 s[128];\n"                                                 \
	"ld.param.u64 %rd1, [out];\n"                                                    \
	"mov.u32 %r1, %tid.x;\n"                                                         \
	"mov.u32 %r2, %ctaid.x;\n"                                                       \
	"mad.lo.u32 %r3, %r2, 100, %r1;\n"                                               \
	"mov.u32 %r4, s;\n"                                                              \
	"mad.lo.u32 %r4, %r1, 4, %r4;\n"                                                 \
	"st.shared.u32 [%r4], %r3;\n"                                                    \
	"barrier.cluster.arrive;\n"                                                      \
	"barrier.cluster.wait;\n"                                                        \
	"mov.u32 %r5, %cluster_ctarank;\n"                                               \
	"mov.u32 %r6, %cluster_nctarank;\n"                                              \
	"add.u32 %r5, %r5, 1;\n"                                                         \
	"rem.u32 %r5, %r5, %r6;\n"                                                       \
	"mapa.shared::cluster.u32 %r7, %r4, %r5;\n"                                      \
	"ld.shared::cluster.u32 %r8, [%r7];\n"                                           \
	"barrier.cluster.arrive;\n"                                                      \
	"barrier.cluster.wait;\n"                                                        \
	"mad.lo.u32 %r9, %r2, 32, %r1;\n"                                                \
	"mul.wide.u32 %rd2, %r9, 4;\n"                                                   \
	"add.u64 %rd3, %rd1, %rd2;\n"                                                    \
	"st.global.u32 [%rd3], %r8;\n"                                                   \
	"ret;\n"                                                                         \
	"}\n"

static const char cluster_ptx[] =
	".version 7.8\n"
	".target sm_90\n"
	".address_size 64\n"
	".visible .entry turn(.param .u64 out)\n"
	"{\n" TURN_BODY ".visible .entry turn_in_fours(.param .u64 out)\n"
	".reqnctapercluster 4\n"
	"{\n" TURN_BODY ".visible .entry turn_in_any(.param .u64 out)\n"
	".explicitcluster\n"
	".maxclusterrank 4\n"
	"{\n" TURN_BODY;

static CUmodule module;
static CUdeviceptr out;

static CUfunction kernel(const char *name)
{
	CUfunction function;

	check_ok(cuModuleGetFunction(&function, module, name));
	return function;
}

/* Returns: whether the device has clusters; then there are kernels. */
static bool setup(void)
{
	struct fixture fixture = fixture_new();
	int can = -1;

	check_ok(cuDeviceGetAttribute(
		&can, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, fixture.device));
	check(can == 0 || can == 1);
	if (!can)
		return false;
	check_ok(cuModuleLoadData(&module, cluster_ptx));
	check_ok(cuMemAlloc(&out, 64 * THREADS * 4));
	return true;
}

static CUresult launch(
	CUfunction function, unsigned int grid, unsigned int width, CUstream stream)
{
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
		.value.clusterDim = { width, 1, 1 } };
	CUlaunchConfig config = { grid, 1, 1, THREADS, 1, 1, 0, stream, &attribute,
		width ? 1 : 0 };
	void *params[] = { &out };

	return cuLaunchKernelEx(&config, function, params, NULL);
}

/* What the last launch has left, with clusters of so many blocks. */
static void check_turned(unsigned int grid, unsigned int width)
{
	unsigned int words[64 * THREADS];

	check_ok(cuMemcpyDtoH(words, out, grid * THREADS * 4));
	for (unsigned int i = 0; i < grid * THREADS; i++) {
		unsigned int block = i / THREADS;
		unsigned int next = block / width * width + (block % width + 1) % width;

		check_eq(words[i], next * 100 + i % THREADS);
	}
	check_ok(cuMemsetD32(out, 0, 64 * THREADS));
}

TEST(blocks_of_a_cluster_share_their_memory)
{
	CUfunction turn;

	if (!setup())
		return;
	turn = kernel("turn");
	/* Each twice: the second launch has no reply. */
	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int width = 1; width <= 8; width++) {
			check_ok(launch(turn, width * 4, width, NULL));
			check_turned(width * 4, width);
		}
		check_ok(launch(turn, 5, 0, NULL));
		check_turned(5, 1);
	}
}

TEST(kernels_may_require_clusters_of_a_shape)
{
	CUfunction fours, any, turn;
	int value = -1;

	if (!setup())
		return;
	fours = kernel("turn_in_fours");
	any = kernel("turn_in_any");
	turn = kernel("turn");
	check_ok(cuFuncGetAttribute(
		&value, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, fours));
	check_eq(value, 4);
	check_ok(cuFuncGetAttribute(
		&value, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, fours));
	check_eq(value, 1);
	check_ok(cuFuncGetAttribute(
		&value, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, fours));
	check_eq(value, 0);
	check_ok(cuFuncGetAttribute(
		&value, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, any));
	check_eq(value, 1);
	check_cu(cuFuncSetAttribute(fours, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2),
		CUDA_ERROR_NOT_PERMITTED);

	for (unsigned int i = 0; i < 2; i++) {
		check_ok(launch(fours, 12, 0, NULL));
		check_turned(12, 4);
		check_ok(launch(fours, 8, 4, NULL));
		check_turned(8, 4);
		/* A grid that is no multiple, also after one that was */
		check_cu(launch(fours, 6, 0, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
		check_cu(launch(fours, 8, 2, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
		check_ok(launch(any, 6, 3, NULL));
		check_turned(6, 3);
		check_cu(launch(any, 6, 0, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
		check_cu(launch(any, 6, 6, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	}

	/* The program may require them as well. */
	check_ok(launch(turn, 6, 0, NULL));
	check_turned(6, 1);
	check_ok(cuFuncSetAttribute(turn, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2));
	check_cu(launch(turn, 6, 0, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	check_ok(cuFuncSetAttribute(turn, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1));
	check_ok(cuFuncSetAttribute(turn, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1));
	for (unsigned int i = 0; i < 2; i++) {
		check_ok(launch(turn, 6, 0, NULL));
		check_turned(6, 2);
		check_cu(launch(turn, 5, 0, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	}
}

TEST(larger_clusters_are_for_kernels_that_allow_them)
{
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
		.value.clusterDim = { 16, 1, 1 } };
	CUlaunchConfig config = { 16, 1, 1, THREADS, 1, 1, 0, NULL, &attribute, 1 };
	CUfunction turn;
	int n = -1;

	if (!setup())
		return;
	turn = kernel("turn");
	check_cu(launch(turn, 16, 16, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	check_cu(cuOccupancyMaxActiveClusters(&n, turn, &config),
		CUDA_ERROR_INVALID_CLUSTER_SIZE);
	check_ok(cuOccupancyMaxPotentialClusterSize(&n, turn, &config));
	check_eq(n, 8);
	check_ok(cuFuncSetAttribute(
		turn, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
	check_ok(cuOccupancyMaxPotentialClusterSize(&n, turn, &config));
	check(n >= 8);
	if (n < 16)
		return;
	check_ok(cuOccupancyMaxActiveClusters(&n, turn, &config));
	check(n >= 1);
	check_ok(launch(turn, 32, 16, NULL));
	check_turned(32, 16);
	check_cu(launch(turn, 34, 17, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

TEST(graphs_launch_clusters)
{
	CUgraphNode node, added;
	CUlaunchAttributeValue value;
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;
	CUfunction turn;
	size_t n = 1;
	void *params[] = { &out };
	CUDA_KERNEL_NODE_PARAMS node_params = { .gridDimX = 6,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = THREADS,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = params };

	if (!setup())
		return;
	turn = kernel("turn");
	stream = stream_new();
	check_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	check_ok(launch(turn, 8, 4, stream));
	check_ok(cuStreamEndCapture(stream, &graph));
	check_ok(cuGraphGetNodes(graph, &node, &n));
	check_eq(n, 1);
	memset(&value, 0xff, sizeof(value));
	check_ok(cuGraphKernelNodeGetAttribute(
		node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
	check(value.clusterDim.x == 4 && value.clusterDim.y == 1);
	check_ok(cuGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 2; i++) {
		check_ok(cuGraphLaunch(exec, stream));
		check_ok(cuStreamSynchronize(stream));
		check_turned(8, 4);
	}

	/* A node whose clusters are set, and copied to another one */
	check_ok(cuGraphCreate(&graph, 0));
	node_params.func = turn;
	check_ok(cuGraphAddKernelNode(&node, graph, NULL, 0, &node_params));
	memset(&value, 0, sizeof(value));
	value.clusterDim.x = 4;
	value.clusterDim.y = value.clusterDim.z = 1;
	check_cu(cuGraphKernelNodeSetAttribute(
			 node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value),
		CUDA_ERROR_INVALID_CLUSTER_SIZE);
	value.clusterDim.x = 3;
	check_ok(cuGraphKernelNodeSetAttribute(
		node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
	check_ok(cuGraphAddKernelNode(&added, graph, &node, 1, &node_params));
	check_ok(cuGraphKernelNodeCopyAttributes(added, node));
	check_ok(cuGraphDestroyNode(node));
	check_ok(cuGraphInstantiate(&exec, graph, 0));
	check_ok(cuGraphLaunch(exec, stream));
	check_ok(cuStreamSynchronize(stream));
	check_turned(6, 3);
}

TEST(a_preferred_shape_is_made_of_whole_clusters)
{
	CUlaunchAttribute attributes[2] = {
		{ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
			.value.clusterDim = { 2, 1, 1 } },
		{ .id = CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
			.value.preferredClusterDim = { 4, 1, 1 } },
	};
	CUlaunchConfig config = { 8, 1, 1, THREADS, 1, 1, 0, NULL, attributes, 2 };
	void *params[] = { &out };
	unsigned int words[8 * THREADS];
	CUfunction turn;

	if (!setup())
		return;
	turn = kernel("turn");
	check_ok(cuLaunchKernelEx(&config, turn, params, NULL));
	/* In clusters of either shape the next block of an even one is the one after. */
	check_ok(cuMemcpyDtoH(words, out, sizeof(words)));
	for (unsigned int i = 0; i < 8; i += 2)
		check_eq(words[i * THREADS + 7], (i + 1) * 100 + 7);
	attributes[1].value.preferredClusterDim.x = 3;
	check_cu(cuLaunchKernelEx(&config, turn, params, NULL),
		CUDA_ERROR_INVALID_CLUSTER_SIZE);
	config.attrs = &attributes[1];
	config.numAttrs = 1;
	check_cu(cuLaunchKernelEx(&config, turn, params, NULL),
		CUDA_ERROR_INVALID_CLUSTER_SIZE);
}
