/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: launches and faults
 */

#include <stddef.h>

#include "e2e.h"

TEST(parameters_of_every_size_arrive_in_both_styles)
{
	struct fixture fixture = fixture_new();
	CUfunction pack = fixture_function(&fixture, "pack");
	char a = -3;
	double b = 2.5, out[6];
	short c = -400;
	int d = 70000;
	float e = 0.125f;
	long long f = 1ll << 40;
	CUdeviceptr p;
	void *parameters[] = { &a, &b, &c, &d, &e, &f, &p };

	check_ok(cuMemAlloc(&p, sizeof(out)));
	for (int style = 0; style < 2; style++) {
		struct {
			char a;
			double b;
			short c;
			int d;
			float e;
			long long f;
			CUdeviceptr out;
		} buffer = { a, b, c, d, e, f, p };
		size_t size = sizeof(buffer);
		void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer,
			CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END };

		check_ok(cuMemsetD8(p, 0, sizeof(out)));
		check_ok(cuLaunchKernel(pack, 1, 1, 1, 1, 1, 1, 0, NULL,
			style ? NULL : parameters, style ? extra : NULL));
		check_ok(cuMemcpyDtoH(out, p, sizeof(out)));
		check(out[0] == -3 && out[1] == 2.5 && out[2] == -400);
		check(out[3] == 70000 && out[4] == 0.125 &&
			out[5] == (double)(1ll << 40));
	}
}

TEST(parameters_are_taken_before_the_call_returns)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	CUdeviceptr p;

	check_ok(cuMemAlloc(&p, 400));
	for (int i = 0; i < 100; i++) {
		CUdeviceptr out = p + 4 * i;
		unsigned int value = i;
		int n = 1;
		void *parameters[] = { &out, &value, &n };

		check_ok(cuLaunchKernel(
			fill, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
		out = 0, value = 12345, n = 1000;
	}
	for (int i = 0; i < 100; i++)
		check_eq(device_word(p + 4 * i), i);
}

TEST(dynamic_shared_memory_has_the_size_asked_for)
{
	struct fixture fixture = fixture_new();
	CUfunction function = fixture_function(&fixture, "dynamic_shared");
	unsigned int out[512];
	CUdeviceptr p;
	int n = 512;
	void *parameters[] = { &p, &n };

	check_ok(cuMemAlloc(&p, sizeof(out)));
	check_ok(cuLaunchKernel(
		function, 1, 1, 1, n, 1, 1, n * 4, NULL, parameters, NULL));
	check_ok(cuMemcpyDtoH(out, p, sizeof(out)));
	for (int i = 0; i < n; i++)
		check_eq(out[i], (n - 1 - i) * (n - 1 - i));
}

TEST(launch_through_a_config_structure)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	unsigned int value = 31;
	CUlaunchConfig config = { .gridDimX = 8,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 128,
		.blockDimY = 1,
		.blockDimZ = 1 };
	CUdeviceptr p;
	int n = 1024;
	void *parameters[] = { &p, &value, &n };

	check_ok(cuMemAlloc(&p, 4096));
	check_ok(cuLaunchKernelEx(&config, fill, parameters, NULL));
	check_eq(device_word(p + 4092), 31);
}

/* Launches `fill` of one block with one attribute. */
static CUresult launch_with(CUfunction fill, CUdeviceptr p, unsigned int value, int n,
	CUstream stream, CUlaunchAttribute attribute)
{
	CUlaunchConfig config = { .gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = stream,
		.attrs = &attribute,
		.numAttrs = 1 };
	void *parameters[] = { &p, &value, &n };

	return cuLaunchKernelEx(&config, fill, parameters, NULL);
}

TEST(hints_of_a_launch_are_taken_and_change_no_result)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	const CUlaunchAttribute hints[] = {
		{ .id = CU_LAUNCH_ATTRIBUTE_IGNORE },
		{ .id = CU_LAUNCH_ATTRIBUTE_PRIORITY },
		{ .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
			.value.programmaticStreamSerializationAllowed = 1 },
		{ .id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
			.value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE },
		{ .id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP },
		{ .id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
			.value.sharedMemCarveout = 50 },
		{ .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1 },
		{ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
			.value.clusterDim = { 1, 1, 1 } },
	};
	const int n_hints = sizeof(hints) / sizeof(hints[0]);
	CUdeviceptr p;

	check_ok(cuMemAlloc(&p, 4));
	/* Each twice: the second launch has no reply. */
	for (int i = 0; i < 2 * n_hints; i++) {
		check_ok(launch_with(fill, p, 70 + i, 1, NULL, hints[i / 2]));
		check_eq(device_word(p), 70 + i);
	}
	for (int i = 0; i < 2; i++) {
		CUlaunchAttribute all[sizeof(hints) / sizeof(hints[0])];
		unsigned int value = 7 + i;
		int n = 1;
		void *parameters[] = { &p, &value, &n };
		CUlaunchConfig config = { 1, 1, 1, 32, 1, 1, 0, NULL, all, n_hints };

		memcpy(all, hints, sizeof(all));
		check_ok(cuLaunchKernelEx(&config, fill, parameters, NULL));
		check_eq(device_word(p), 7 + i);
	}
}

TEST(attributes_are_judged_by_the_driver_whatever_was_accepted_before)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	const CUlaunchAttribute wrong[] = {
		{ .id = (CUlaunchAttributeID)999 },
		{ .id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
			.value.memSyncDomain = (CUlaunchMemSyncDomain)77 },
		{ .id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
			.value.sharedMemCarveout = 101 },
		{ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
			.value.clusterSchedulingPolicyPreference =
				(CUclusterSchedulingPolicy)77 },
		{ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
			.value.clusterDim = { 0, 1, 1 } },
		{ .id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
			.value.accessPolicyWindow.num_bytes = 4096 },
	};
	CUlaunchAttribute attributes[33] = {};
	CUlaunchConfig config = { 1, 1, 1, 32, 1, 1, 0, NULL, NULL, 1 };
	CUdeviceptr p;
	unsigned int value = 3;
	int n = 1;
	void *parameters[] = { &p, &value, &n };

	check_ok(cuMemAlloc(&p, 4));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CUlaunchAttribute none = { .id = CU_LAUNCH_ATTRIBUTE_IGNORE };

		check_ok(launch_with(fill, p, 1 + i, 1, NULL, none));
		check_cu(launch_with(fill, p, 99, 1, NULL, wrong[i]),
			CUDA_ERROR_INVALID_VALUE);
		check_eq(device_word(p), 1 + i);
	}
	/* Too many, and none where there should be one */
	check_cu(cuLaunchKernelEx(&config, fill, parameters, NULL),
		CUDA_ERROR_INVALID_VALUE);
	config.attrs = attributes;
	config.numAttrs = 33;
	check_cu(cuLaunchKernelEx(&config, fill, parameters, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuCtxSynchronize());
}

TEST(clusters_agree_with_the_device_attributes)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	CUlaunchAttribute cluster = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
		.value.clusterDim = { 2, 1, 1 } };
	CUlaunchConfig config = { 2, 1, 1, 32, 1, 1, 0, NULL, &cluster, 1 };
	unsigned int value = 5;
	int n = 64, can = -1;
	CUdeviceptr p;
	void *parameters[] = { &p, &value, &n };

	check_ok(cuMemAlloc(&p, 256));
	check_ok(cuMemsetD32(p, 1, 64));
	check_ok(cuDeviceGetAttribute(
		&can, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, fixture.device));
	check_cu(cuLaunchKernelEx(&config, fill, parameters, NULL),
		can ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
	check_eq(device_word(p + 252), can ? 5 : 1);
	/* A grid that is no multiple of the cluster */
	config.gridDimX = 3;
	check(cuLaunchKernelEx(&config, fill, parameters, NULL) != CUDA_SUCCESS);
	check_ok(cuCtxSynchronize());
}

static CUlaunchAttribute recorded(CUlaunchAttributeID id, CUevent event)
{
	CUlaunchAttribute attribute = { .id = id };

	if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
		attribute.value.programmaticEvent.event = event;
	else
		attribute.value.launchCompletionEvent.event = event;
	return attribute;
}

/* Twice a launch that is held back until it has been looked at. */
static void record_by_launch(CUfunction fill, CUlaunchAttributeID id)
{
	CUevent event, timed;
	CUdeviceptr p, gate;
	unsigned int *word;
	CUstream stream;

	check_ok(cuMemHostAlloc((void **)&word, 4, CU_MEMHOSTALLOC_DEVICEMAP));
	check_ok(cuMemHostGetDevicePointer(&gate, word, 0));
	check_ok(cuMemAlloc(&p, 4));
	check_ok(cuMemsetD32(p, 0, 1));
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	check_ok(cuEventCreate(&timed, 0));
	for (unsigned int i = 1; i <= 2; i++) {
		*word = 0;
		check_ok(cuStreamWaitValue32(stream, gate, i, CU_STREAM_WAIT_VALUE_EQ));
		check_ok(launch_with(fill, p, i, 1, stream, recorded(id, event)));
		check_cu(cuEventQuery(event), CUDA_ERROR_NOT_READY);
		__atomic_store_n(word, i, __ATOMIC_SEQ_CST);
		check_ok(cuEventSynchronize(event));
		check_ok(cuEventQuery(event));
		check_ok(cuStreamSynchronize(stream));
		check_eq(device_word(p), i);
	}
	check_cu(launch_with(fill, p, 9, 1, stream, recorded(id, timed)),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(launch_with(fill, p, 9, 1, stream, recorded(id, NULL)),
		CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuEventDestroy(event));
	check_cu(launch_with(fill, p, 9, 1, stream, recorded(id, event)),
		CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(p), 2);
}

TEST(launch_records_its_events)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");

	record_by_launch(fill, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
	record_by_launch(fill, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT);
}

TEST(impossible_launches_are_refused_at_once_and_harm_nothing)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	unsigned int value = 1;
	int n = 0;
	CUdeviceptr p = 0;
	void *parameters[] = { &p, &value, &n };

	check_cu(cuLaunchKernel(fill, 0, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLaunchKernel(fill, 1, 1, 1, 2048, 1, 1, 0, NULL, parameters, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLaunchKernel(fill, 1, 100000, 1, 32, 1, 1, 0, NULL, parameters, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 1 << 20, NULL, parameters, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLaunchKernel((CUfunction)0x1234567890abull, 1, 1, 1, 1, 1, 1, 0, NULL,
			 parameters, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuMemAlloc(&p, 4));
	check_ok(launch_fill(fill, p, 8, 1, NULL));
	check_eq(device_word(p), 8);
}

struct shape {
	unsigned int grid[3], block[3];
};

static CUlaunchConfig config_of(const struct shape *s)
{
	return (CUlaunchConfig){ s->grid[0], s->grid[1], s->grid[2], s->block[0],
		s->block[1], s->block[2] };
}

static CUresult by_launch(CUfunction f, const struct shape *s, void **params)
{
	return cuLaunchKernel(f, s->grid[0], s->grid[1], s->grid[2], s->block[0],
		s->block[1], s->block[2], 0, NULL, params, NULL);
}

static CUresult by_config(CUfunction f, const struct shape *s, void **params)
{
	CUlaunchConfig config = config_of(s);

	return cuLaunchKernelEx(&config, f, params, NULL);
}

static CUresult by_cooperation(CUfunction f, const struct shape *s, void **params)
{
	return cuLaunchCooperativeKernel(f, s->grid[0], s->grid[1], s->grid[2],
		s->block[0], s->block[1], s->block[2], 0, NULL, params);
}

static CUresult by_cooperative_config(CUfunction f, const struct shape *s, void **params)
{
	CUlaunchConfig config = config_of(s);
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
		.value.cooperative = 1 };

	config.attrs = &attribute;
	config.numAttrs = 1;
	return cuLaunchKernelEx(&config, f, params, NULL);
}

/* The node may be refused when it is added, or made executable, or launched. */
static CUresult by_graph(CUfunction f, const struct shape *s, void **params)
{
	CUDA_KERNEL_NODE_PARAMS node = { .func = f,
		.gridDimX = s->grid[0],
		.gridDimY = s->grid[1],
		.gridDimZ = s->grid[2],
		.blockDimX = s->block[0],
		.blockDimY = s->block[1],
		.blockDimZ = s->block[2],
		.kernelParams = params };
	CUgraphExec exec = NULL;
	CUgraphNode at;
	CUgraph graph;
	CUresult r;

	check_ok(cuGraphCreate(&graph, 0));
	r = cuGraphAddKernelNode(&at, graph, NULL, 0, &node);
	if (!r)
		r = cuGraphInstantiate(&exec, graph, 0);
	if (!r)
		r = cuGraphLaunch(exec, NULL);
	if (exec)
		check_ok(cuGraphExecDestroy(exec));
	check_ok(cuGraphDestroy(graph));
	return r;
}

TEST(a_shape_that_no_grid_has_is_refused_by_each_way_to_launch)
{
	static const struct {
		const char *name;
		CUresult (*launch)(CUfunction f, const struct shape *s, void **params);
	} ways[] = {
		{ "cuLaunchKernel", by_launch },
		{ "cuLaunchKernelEx", by_config },
		{ "cuLaunchCooperativeKernel", by_cooperation },
		{ "cuLaunchKernelEx, cooperative", by_cooperative_config },
		{ "a node of a graph", by_graph },
	};
	static const struct shape shapes[] = {
		{ { 0, 1, 1 }, { 1, 1, 1 } },
		{ { 1, 0, 1 }, { 1, 1, 1 } },
		{ { 1, 1, 0 }, { 1, 1, 1 } },
		{ { 0, 0, 0 }, { 1, 1, 1 } },
		{ { 1u << 31, 1, 1 }, { 1, 1, 1 } },
		{ { UINT32_MAX, 1, 1 }, { 1, 1, 1 } },
		{ { 1, 65536, 1 }, { 1, 1, 1 } },
		{ { 1, UINT32_MAX, 1 }, { 1, 1, 1 } },
		{ { 1, 1, 65536 }, { 1, 1, 1 } },
		{ { 1, 1, UINT32_MAX }, { 1, 1, 1 } },
		{ { UINT32_MAX, UINT32_MAX, UINT32_MAX }, { 1, 1, 1 } },
		{ { 1, 1, 1 }, { 0, 1, 1 } },
		{ { 1, 1, 1 }, { 1, 0, 1 } },
		{ { 1, 1, 1 }, { 1, 1, 0 } },
		{ { 1, 1, 1 }, { 1025, 1, 1 } },
		{ { 1, 1, 1 }, { 1, 1025, 1 } },
		{ { 1, 1, 1 }, { 1, 1, 65 } },
		{ { 1, 1, 1 }, { 1024, 2, 1 } },
		{ { 1, 1, 1 }, { 65536, 65536, 1 } },
		{ { 1, 1, 1 }, { UINT32_MAX, UINT32_MAX, UINT32_MAX } },
	};
	const struct shape one = { { 1, 1, 1 }, { 1, 1, 1 } };
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	unsigned int value = 0, n = 1;
	CUdeviceptr p;
	void *params[] = { &p, &value, &n };
	CUresult r;

	check_ok(cuMemAlloc(&p, 4));
	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
			r = ways[w].launch(fill, &shapes[i], params);
			if (r != CUDA_ERROR_INVALID_VALUE)
				test_fail(__FILE__, __LINE__, "%s, shape %zu is %d",
					ways[w].name, i, r);
		}
		value = 100 + (unsigned int)w;
		check_ok(ways[w].launch(fill, &one, params));
		check_ok(cuCtxSynchronize());
		check_eq(device_word(p), value);
	}
}

/* Legal sizes, and more blocks than can be there at once. */
TEST(a_cooperative_grid_has_as_many_blocks_as_fit)
{
	static const struct shape shapes[] = {
		{ { 1000000, 1, 1 }, { 32, 1, 1 } },
		{ { INT32_MAX, 65535, 65535 }, { 32, 1, 1 } },
	};
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	unsigned int value = 1, n = 1;
	CUdeviceptr p;
	void *params[] = { &p, &value, &n };

	check_ok(cuMemAlloc(&p, 4));
	for (size_t i = 0; i < 2; i++) {
		check_cu(by_cooperation(fill, &shapes[i], params),
			CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
		check_cu(by_cooperative_config(fill, &shapes[i], params),
			CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	}
}

/* The address of the store that must fail: no memory is mapped there. */
#define NOWHERE 0x10

static void fault(struct fixture *fixture)
{
	CUfunction store_at = fixture_function(fixture, "store_at");
	CUdeviceptr nowhere = NOWHERE;
	void *parameters[] = { &nowhere };

	check_ok(cuLaunchKernel(store_at, 4, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(illegal_address_is_reported_and_sticks_to_the_context)
{
	struct fixture fixture = fixture_new();
	unsigned int word;
	CUdeviceptr p;

	check_ok(cuMemAlloc(&p, 4096));
	fault(&fixture);
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuMemcpyDtoH(&word, p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuMemAlloc(&p, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuStreamSynchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(fault_reaches_an_asynchronous_launch_sooner_or_later)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	CUdeviceptr p;
	CUresult r;

	check_ok(cuMemAlloc(&p, 4096));
	check_ok(launch_fill(fill, p, 1, 16, NULL));
	fault(&fixture);
	do
		r = launch_fill(fill, p, 1, 16, NULL);
	while (r == CUDA_SUCCESS);
	check_cu(r, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(reset_heals_a_faulted_context)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr p;

	fault(&fixture);
	check_ok(cuDevicePrimaryCtxReset(fixture.device));
	check_ok(cuDevicePrimaryCtxRetain(&fixture.context, fixture.device));
	check_ok(cuCtxSetCurrent(fixture.context));
	check_ok(cuModuleLoadData(&fixture.module, kernels_ptx));
	check_ok(cuMemAlloc(&p, 4096));
	check_ok(launch_fill(fixture_function(&fixture, "fill"), p, 8, 1024, NULL));
	check_eq(device_word(p), 8);
}

/* Fills four words in the current context and looks at the last of them. */
static void compute(CUfunction fill, CUdeviceptr p, unsigned int value)
{
	check_ok(launch_fill(fill, p, value, 4, NULL));
	check_ok(launch_fill(fill, p, value + 1, 4, CU_STREAM_PER_THREAD));
	check_ok(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	check_ok(cuStreamQuery(CU_STREAM_PER_THREAD));
	check_eq(device_word(p + 12), value + 1);
}

TEST(a_fault_affects_only_its_context)
{
	struct fixture first = fixture_new(), second = first;
	CUfunction first_fill = fixture_function(&first, "fill"), second_fill;
	CUdeviceptr p, q;

	check_ok(cuMemAlloc(&p, 16));
	check_ok(cuCtxCreate(&second.context, NULL, 0, 0));
	check_ok(cuModuleLoadData(&second.module, kernels_ptx));
	second_fill = fixture_function(&second, "fill");
	check_ok(cuMemAlloc(&q, 16));
	compute(second_fill, q, 1);

	fault(&second);
	check_cu(cuMemAlloc(&q, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_ok(cuCtxSetCurrent(first.context));
	compute(first_fill, p, 2);
	check_ok(cuCtxSynchronize());
	check_ok(cuCtxSetCurrent(second.context));
	check_cu(cuStreamSynchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuMemcpyDtoH(&p, q, 4), CUDA_ERROR_ILLEGAL_ADDRESS);

	/* The other one breaks too, and each is healed by itself. */
	check_ok(cuCtxSetCurrent(first.context));
	fault(&first);
	check_ok(cuCtxDestroy(second.context));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_ok(cuCtxCreate(&second.context, NULL, 0, 0));
	check_ok(cuModuleLoadData(&second.module, kernels_ptx));
	check_ok(cuMemAlloc(&q, 16));
	compute(fixture_function(&second, "fill"), q, 3);
	check_ok(cuCtxSetCurrent(first.context));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_ok(cuDevicePrimaryCtxReset(0));
	check_ok(cuCtxSetCurrent(second.context));
	compute(fixture_function(&second, "fill"), q, 5);
}

TEST(ten_thousand_launches_all_count)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUdeviceptr p;

	check_ok(cuMemAlloc(&p, 4));
	check_ok(cuMemsetD32(p, 1, 1));
	for (int i = 0; i < 10000; i++)
		check_ok(launch_step(step, p, 1, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(device_word(p), stepped(1, 10000));
}

TEST(cooperative_launch_runs_all_its_blocks)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	unsigned int value = 61;
	int n = 64, can = 0;
	CUdeviceptr p;
	void *parameters[] = { &p, &value, &n };

	check_ok(cuMemAlloc(&p, 256));
	check_ok(cuDeviceGetAttribute(
		&can, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, fixture.device));
	if (!can) {
		check_cu(cuLaunchCooperativeKernel(
				 fill, 2, 1, 1, 32, 1, 1, 0, NULL, parameters),
			CUDA_ERROR_NOT_SUPPORTED);
		return;
	}
	check_ok(cuLaunchCooperativeKernel(fill, 2, 1, 1, 32, 1, 1, 0, NULL, parameters));
	check_eq(device_word(p + 252), 61);
	/* more blocks than can be resident at once */
	check_cu(cuLaunchCooperativeKernel(
			 fill, 1 << 20, 1, 1, 1024, 1, 1, 0, NULL, parameters),
		CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

TEST(occupancy_of_clusters_agrees_with_that_of_blocks)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	CUlaunchAttribute cluster = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
		.value.clusterDim = { 1, 1, 1 } };
	CUlaunchConfig config = { 8, 1, 1, 128, 1, 1, 0, NULL, &cluster, 1 };
	int n = -1, larger = -1, blocks = 0, sms = 0, size = -1, can = -1;

	check_ok(cuDeviceGetAttribute(
		&can, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, fixture.device));
	check_ok(cuDeviceGetAttribute(
		&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, fixture.device));
	check_ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 128, 0));
	check_ok(cuOccupancyMaxActiveClusters(&n, fill, &config));
	check(n >= 1 && n <= blocks * sms);
	config.blockDimX = 1024;
	check_ok(cuOccupancyMaxActiveClusters(&larger, fill, &config));
	check(larger >= 1 && larger < n);
	check_ok(cuOccupancyMaxPotentialClusterSize(&size, fill, &config));
	check(can ? size > 1 : size == 1);

	cluster.value.clusterDim.x = 1024;
	check_cu(cuOccupancyMaxActiveClusters(&n, fill, &config),
		CUDA_ERROR_INVALID_CLUSTER_SIZE);
	config.blockDimX = 0;
	check_cu(cuOccupancyMaxPotentialClusterSize(&size, fill, &config),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuOccupancyMaxPotentialClusterSize(&size, fill, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuOccupancyMaxActiveClusters(NULL, fill, &config),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(potential_block_size_is_one_that_launches)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	int grid = 0, block = 0, limited = 0;
	size_t available = 0;
	CUdeviceptr p;
	unsigned int value = 9;
	void *parameters[] = { &p, &value, &block };

	check_ok(cuOccupancyMaxPotentialBlockSize(&grid, &block, fill, NULL, 0, 0));
	check(grid >= 1 && block >= 32 && block <= 1024);
	check_ok(cuOccupancyMaxPotentialBlockSizeWithFlags(
		&grid, &limited, fill, NULL, 0, 64, 0));
	check(limited >= 32 && limited <= 64);
	check_ok(cuOccupancyAvailableDynamicSMemPerBlock(&available, fill, 1, block));
	check(available >= 16 << 10);
	check_ok(cuMemAlloc(&p, 4 * block));
	check_ok(cuLaunchKernel(fill, 1, 1, 1, block, 1, 1, 0, NULL, parameters, NULL));
	check_eq(device_word(p + 4 * (block - 1)), 9);
}
