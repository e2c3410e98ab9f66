/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu: launches and what kernels compute
 */

#include <pthread.h>

#include "api.h"

/* A context on a device of two multiprocessors. Return: blocks that it holds. */
static unsigned int softgpu_blocks(void)
{
	int n;

	setenv("VGPU_SOFTGPU_THREADS", "2", 1);
	context_new();
	check_ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, kernel("meet"), 1, 0));
	return 2 * n;
}

TEST(vector_addition_is_right)
{
	enum { N = 100003 };
	float *a = malloc(N * sizeof(*a)), *b = malloc(N * sizeof(*b));
	unsigned int n = N;
	CUdeviceptr da, db, dc;
	void *params[] = { &dc, &da, &db, &n };

	context_new();
	for (int i = 0; i < N; i++) {
		a[i] = i * 0.5f;
		b[i] = 3 * i;
	}
	da = device_memory(N * 4);
	db = device_memory(N * 4);
	dc = device_memory(N * 4);
	check_ok(cuMemcpyHtoD(da, a, N * 4));
	check_ok(cuMemcpyHtoD(db, b, N * 4));
	check_ok(cuLaunchKernel(
		kernel("add"), (N + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
	check_ok(cuMemcpyDtoH(a, dc, N * 4));
	for (int i = 0; i < N; i++)
		check(a[i] == i * 0.5f + 3 * i);
	free(a);
	free(b);
}

TEST(a_reduction_with_barriers_and_atomics_is_right)
{
	enum { N = 200001 };
	unsigned int *in = malloc(N * sizeof(*in)), n = N, sum = 0;
	CUdeviceptr from, to;
	void *params[] = { &to, &from, &n };

	context_new();
	for (unsigned int i = 0; i < N; i++) {
		in[i] = i * 2654435761u;
		sum += in[i];
	}
	from = device_memory(N * 4);
	to = device_memory(4);
	check_ok(cuMemcpyHtoD(from, in, N * 4));
	check_ok(cuLaunchKernel(
		kernel("sum"), (N + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
	check_eq(device_word(to), sum);
	free(in);
}

TEST(a_matrix_product_is_right)
{
	enum { N = 64 };
	static float a[N][N], b[N][N], c[N][N];
	unsigned int n = N;
	CUdeviceptr da, db, dc;
	void *params[] = { &dc, &da, &db, &n };

	context_new();
	for (int i = 0; i < N * N; i++) {
		a[i / N][i % N] = i % 13;
		b[i / N][i % N] = i % 7 - 3;
	}
	da = device_memory(sizeof(a));
	db = device_memory(sizeof(b));
	dc = device_memory(sizeof(c));
	check_ok(cuMemcpyHtoD(da, a, sizeof(a)));
	check_ok(cuMemcpyHtoD(db, b, sizeof(b)));
	check_ok(cuLaunchKernel(
		kernel("matrix"), N / 16, N / 8, 1, 16, 8, 1, 0, NULL, params, NULL));
	check_ok(cuMemcpyDtoH(c, dc, sizeof(c)));
	for (int y = 0; y < N; y++)
		for (int x = 0; x < N; x++) {
			float expected = 0;

			for (int k = 0; k < N; k++)
				expected += a[y][k] * b[k][x];
			check(c[y][x] == expected);
		}
}

TEST(parameters_come_one_by_one_or_packed)
{
	struct {
		uint8_t small;
		uint64_t to;
		uint32_t last[100];
	} packed = { .small = 200 };
	uint32_t last[100] = { 0 };
	uint8_t small = 7;
	CUdeviceptr to;
	void *params[] = { &small, &to, last };
	size_t size = sizeof(packed);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &packed,
		CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END };

	context_new();
	to = device_memory(8);
	last[99] = 1000;
	check_ok(cuLaunchKernel(kernel("many"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	/* The parameters at the time of the launch count, not those when it runs. */
	last[99] = 0;
	check_eq(device_word(to), 1007);
	packed.to = to + 4;
	packed.last[99] = 5000;
	check_ok(cuLaunchKernel(kernel("many"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	check_eq(device_word(to + 4), 5200);
	size = 100;
	check_cu(cuLaunchKernel(kernel("many"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLaunchKernel(kernel("many"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLaunchKernel(kernel("many"), 1, 1, 1, 1, 1, 1, 0, NULL, params, extra),
		CUDA_ERROR_INVALID_VALUE);
}

static CUresult launch_shape(const char *name, unsigned int grid_x, unsigned int grid_y,
	unsigned int x, unsigned int y, unsigned int z, unsigned int shared)
{
	return cuLaunchKernel(
		kernel(name), grid_x, grid_y, 1, x, y, z, shared, NULL, NULL, NULL);
}

TEST(impossible_shapes_are_refused)
{
	context_new();
	check_ok(launch_shape("bounded", 1, 1, 64, 1, 1, 0));
	check_cu(launch_shape("bounded", 1, 1, 65, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(launch_shape("traps", 0, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(launch_shape("traps", 1, 65536, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(
		launch_shape("traps", 1u << 31, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(launch_shape("traps", 1, 1, 0, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(launch_shape("traps", 1, 1, 1025, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(launch_shape("traps", 1, 1, 1, 1, 65, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(launch_shape("traps", 1, 1, 1024, 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(launch_shape("traps", 1, 1, 1, 1, 1, 49153), CUDA_ERROR_INVALID_VALUE);
	check_cu(
		cuLaunchKernel((CUfunction)0x7777, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuCtxSynchronize());
}

TEST(more_dynamic_shared_memory_has_to_be_asked_for)
{
	unsigned int size = 90 << 10;
	CUdeviceptr to;
	CUfunction function;
	void *params[] = { &to, &size };

	context_new();
	to = device_memory(4);
	function = kernel("shared");
	check_cu(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, size, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuFuncSetAttribute(function,
			 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 << 10),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuFuncSetAttribute(
		function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, size));
	check_ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, size, NULL, params, NULL));
	check_eq(device_word(to), size);
}

TEST(an_extended_launch_takes_hints_and_refuses_what_it_cannot_do)
{
	CUdeviceptr to;
	unsigned int value = 11;
	void *params[] = { &to, &value };
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PRIORITY };
	CUlaunchConfig config = { .gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = &attribute,
		.numAttrs = 1 };

	context_new();
	to = device_memory(4);
	check_ok(cuLaunchKernelEx(&config, kernel("store"), params, NULL));
	check_eq(device_word(to), 11);
	attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
	attribute.value.clusterDim.x = 2;
	attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
	check_cu(cuLaunchKernelEx(&config, kernel("store"), params, NULL),
		CUDA_ERROR_INVALID_CLUSTER_SIZE);
	config.gridDimX = 2;
	check_ok(cuLaunchKernelEx(&config, kernel("store"), params, NULL));
}

/*
 * Blocks that take the place of others: each adds one to the word of its own block and of
 * those that it takes, and counts itself in the word before the first. Blocks are in
 * clusters, of which the first block asks for all.
 */
static const char taking_ptx[] =
	".version 9.0\n.target sm_121a\n.address_size 64\n"
	".visible .entry take(.param .u64 p) {\n"
	".reg .b64 %d<5>; .reg .b32 %r<6>; .reg .pred %p<4>; .reg .b128 %q;\n"
	".shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar;\n"
	"ld.param.u64 %d1, [p]; red.global.add.u32 [%d1], 1; mov.u32 %r1, %ctaid.x;\n"
	"mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r2, 0; mov.u32 %r3, 0;\n"
	"mbarrier.init.shared.b64 [bar], 1; barrier.cluster.arrive; "
	"barrier.cluster.wait;\n"
	"again: mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d2, %d1;\n"
	"red.global.add.u32 [%d2+4], 1;\n"
	"mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n"
	"barrier.cluster.arrive; barrier.cluster.wait;\n"
	"@%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::"
	"bytes.multicast::cluster::all.b128 [answer], [bar];\n"
	"wait: mbarrier.try_wait.parity.shared.b64 %p2, [bar], %r3; @!%p2 bra wait;\n"
	"xor.b32 %r3, %r3, 1; ld.shared.b128 %q, [answer];\n"
	"clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q;\n"
	"clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r4, %q;\n"
	"add.u32 %r1, %r4, %r2; @%p3 bra again; ret; }\n";

TEST(each_block_runs_or_is_taken_by_another_one)
{
	enum { BLOCKS = 3000 };
	static unsigned int out[BLOCKS + 1];
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION };
	CUlaunchConfig config = { .gridDimX = BLOCKS,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = &attribute,
		.numAttrs = 1 };
	CUfunction function;
	CUmodule module;
	CUdeviceptr to;
	void *params[] = { &to };

	context_new();
	to = device_memory(sizeof(out));
	check_ok(cuModuleLoadData(&module, taking_ptx));
	check_ok(cuModuleGetFunction(&function, module, "take"));
	for (unsigned int width = 1; width <= 4; width++) {
		attribute.value.clusterDim.x = width;
		attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
		config.gridDimX = BLOCKS / width * width;
		check_ok(cuMemsetD8(to, 0, sizeof(out)));
		check_ok(cuLaunchKernelEx(&config, function, params, NULL));
		check_ok(cuMemcpyDtoH(out, to, sizeof(out)));
		for (unsigned int i = 0; i < config.gridDimX; i++)
			check_eq(out[1 + i], 1);
		/* A block ends where none is left: some have been taken. */
		check(out[0] < config.gridDimX);
	}
	check_ok(cuModuleUnload(module));
}

TEST(blocks_of_a_cooperative_launch_meet)
{
	unsigned int n = softgpu_blocks(), out[64];
	CUdeviceptr to;
	void *params[] = { &to };

	to = device_memory(sizeof(out));
	for (int round = 0; round < 3; round++) {
		check_ok(cuMemsetD32(to, 0, 1));
		check_ok(cuLaunchCooperativeKernel(
			kernel("meet"), n, 1, 1, 1, 1, 1, 0, NULL, params));
		check_ok(cuMemcpyDtoH(out, to, sizeof(out)));
		for (unsigned int i = 0; i <= n; i++)
			check_eq(out[i], n);
	}
	check_cu(cuLaunchCooperativeKernel(
			 kernel("meet"), n + 1, 1, 1, 1, 1, 1, 0, NULL, params),
		CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

/*
 * Kernels that share two threads
 */

/* Waits until word i + 1 is not 0, then sets word i. @meet: arrives, waits for all. */
static const char sharing_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry link(.param .u64 p, .param .u32 i) {\n"
	".reg .b64 %d<3>; .reg .b32 %r<3>; .reg .pred %q;\n"
	"ld.param.u64 %d1, [p]; ld.param.u32 %r1, [i]; mul.wide.u32 %d2, %r1, 4;\n"
	"add.u64 %d1, %d1, %d2;\n"
	"L: ld.volatile.global.u32 %r2, [%d1+4]; setp.eq.u32 %q, %r2, 0; @%q bra L;\n"
	"st.volatile.global.u32 [%d1], 1; ret; }\n"
	".visible .entry barrier(.param .u64 p) {\n"
	".reg .b64 %d; .reg .b32 %r<4>; .reg .pred %q;\n"
	"ld.param.u64 %d, [p]; mov.u32 %r1, %nctaid.x; red.global.add.u32 [%d], 1;\n"
	"L: ld.volatile.global.u32 %r2, [%d]; setp.lt.u32 %q, %r2, %r1; @%q bra L;\n"
	"red.global.add.u32 [%d+4], 1; ret; }\n"
	".visible .entry spin() { L: bra L; }\n";

static CUfunction sharing(const char *name)
{
	static CUmodule module;
	CUfunction function;

	if (!module)
		check_ok(cuModuleLoadData(&module, sharing_ptx));
	check_ok(cuModuleGetFunction(&function, module, name));
	return function;
}

TEST(kernels_of_ten_streams_wait_for_each_other_beside_two_that_never_end)
{
	enum { N = 10 };
	CUcontext context, endless;
	CUstream stream;
	CUdeviceptr words;
	unsigned int i;
	void *params[] = { &words, &i };

	setenv("VGPU_SOFTGPU_THREADS", "2", 1);
	context = context_new();
	check_ok(cuCtxCreate(&endless, NULL, 0, 0));
	for (i = 0; i < 2; i++) {
		CUmodule module;
		CUfunction spin;

		check_ok(cuModuleLoadData(&module, sharing_ptx));
		check_ok(cuModuleGetFunction(&spin, module, "spin"));
		check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		check_ok(cuLaunchKernel(spin, 4, 1, 1, 64, 1, 1, 0, stream, NULL, NULL));
	}
	check_ok(cuCtxSetCurrent(context));
	words = device_memory(4 * (N + 1));
	for (i = 0; i < N; i++) {
		check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		check_ok(cuLaunchKernel(
			sharing("link"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	}
	check_ok(cuMemsetD32(words + 4 * N, 1, 1));
	check_ok(cuCtxSynchronize());
	check_eq(device_word(words), 1);
	check_ok(cuCtxDestroy(endless));
}

TEST(blocks_of_a_plain_launch_run_concurrently_up_to_the_occupancy)
{
	CUdeviceptr words;
	void *params[] = { &words };
	int n;

	setenv("VGPU_SOFTGPU_THREADS", "2", 1);
	context_new();
	words = device_memory(8);
	check_ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(
		&n, sharing("barrier"), 1, 0));
	check(n > 2);
	check_ok(cuLaunchKernel(sharing("barrier"), (unsigned int)(2 * n), 1, 1, 1, 1, 1,
		0, NULL, params, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(device_word(words + 4), (unsigned int)(2 * n));
}

/* Each thread uses its own streams, memory and events, and shared memory. */
static void *work(void *argument)
{
	CUdeviceptr counter = *(CUdeviceptr *)argument, mine;
	volatile unsigned int *gate = (void *)(uintptr_t)(counter + 8);
	CUcontext context;
	unsigned int word;
	CUstream stream;
	CUevent event;

	if (cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
		cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
		return "no stream";
	for (unsigned int i = 0; i < 300; i++) {
		if (cuMemAlloc(&mine, 64 + 1000 * (i % 70)) || cuEventCreate(&event, 0))
			return "no memory";
		if (launch_store(mine, i, stream) || launch_gate(gate, counter, stream) ||
			cuEventRecord(event, stream) ||
			cuMemcpyDtoHAsync(&word, mine, 4, stream) ||
			cuEventSynchronize(event) || cuStreamSynchronize(stream))
			return "a call failed";
		if (word != i)
			return "wrong word";
		if (cuEventDestroy(event) || cuMemFree(mine))
			return "not freed";
	}
	return cuStreamDestroy(stream) || cuDevicePrimaryCtxRelease(0) ? "not ended"
								       : NULL;
}

TEST(many_threads_work_at_once)
{
	enum { N = 8 };
	size_t before, after, total;
	pthread_t threads[N];
	CUdeviceptr counter;
	void *failure;

	context_new();
	/* Loads the module and the kernels: the lookup here is not made for threads. */
	kernel("store");
	counter = (uintptr_t)pinned_memory(4096);
	open_gate((unsigned int *)(uintptr_t)(counter + 8));
	check_ok(cuMemGetInfo(&before, &total));
	for (int i = 0; i < N; i++)
		check_eq(pthread_create(&threads[i], NULL, work, &counter), 0);
	for (int i = 0; i < N; i++) {
		check_eq(pthread_join(threads[i], &failure), 0);
		check_str(failure ? (const char *)failure : "", "");
	}
	check_eq(*(unsigned int *)(uintptr_t)counter, N * 300);
	check_ok(cuMemGetInfo(&after, &total));
	check_eq(before, after);
}
