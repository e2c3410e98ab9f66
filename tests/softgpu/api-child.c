/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu: kernels that misuse the device runtime, and limits of what they launch
 */

#include "api.h"
#include "softgpu.h"

#define HANDLES_MAX 65536u
#define PARAMETERS_SIZE (8u << 20)

#define STREAM_TAIL "3"
#define STREAM_ALONE "4"

/* clang-format off */

/* The form of the functions that nvcc's output has. */
#define DECLARATIONS                                                                     \
	".version 7.0\n.target sm_70\n.address_size 64\n"                                \
	".extern .func (.param .b32 r) __cudaCDP2GetDevice(.param .b64 a);\n"            \
	".extern .func (.param .b32 r) __cudaCDP2GetLastError();\n"                      \
	".extern .func (.param .b32 r) __cudaCDP2StreamCreateWithFlags\n"                \
	"(.param .b64 a, .param .b32 b);\n"                                              \
	".extern .func (.param .b64 r) __cudaCDP2GetParameterBuffer\n"                   \
	"(.param .b64 a, .param .b64 b);\n"                                              \
	".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 a,\n"  \
	".param .align 4 .b8 b[12], .param .align 4 .b8 c[12], .param .b32 d);\n"        \
	".extern .func (.param .b32 r) __cudaCDP2LaunchDevice(.param .b64 a,\n"          \
	".param .b64 b, .param .align 4 .b8 c[12], .param .align 4 .b8 d[12],\n"         \
	".param .b32 e, .param .b64 f);\n"                                               \
	".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2\n"                       \
	"(.param .b64 a, .param .b64 b);\n"                                              \
	".visible .entry store(.param .u64 p, .param .u32 v)\n"                          \
	"{ .reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p]; ld.param.u32 %r, [v];\n"    \
	"st.global.u32 [%d], %r; ret; }\n"

#define ONE(_name)                                                                       \
	".param .align 4 .b8 " _name "[12]; st.param.b32 [" _name "], 1;\n"              \
	"st.param.b32 [" _name "+4], 1; st.param.b32 [" _name "+8], 1;\n"

/* %d9 = a buffer of so many bytes. */
#define GET_BUFFER(_align, _size)                                                        \
	"call (%d9), __cudaCDP2GetParameterBuffer, (" #_align ", " #_size ");\n"

/* %d9 = a buffer for a launch of the function at %d8 by one thread. */
#define GET_BUFFER_V2                                                                    \
	"{ .param .b64 a; st.param.b64 [a], %d8;\n"                                      \
	ONE("b") ONE("c")                                                                \
	".param .b32 d; st.param.b32 [d], 0; .param .b64 q;\n"                           \
	"call (q), __cudaCDP2GetParameterBufferV2, (a, b, c, d);\n"                      \
	"ld.param.b64 %d9, [q]; }\n"

/* %r9 = the result of a launch from a buffer. */
#define LAUNCH_V2(_buffer, _stream)                                                      \
	"call (%r9), __cudaCDP2LaunchDeviceV2, (" _buffer ", " _stream ");\n"

/* %r9 = the result of a launch of the function at %d8. */
#define LAUNCH(_buffer)                                                                  \
	"{ .param .b64 a; st.param.b64 [a], %d8;\n"                                      \
	".param .b64 b; st.param.b64 [b], " _buffer ";\n"                                \
	ONE("c") ONE("d")                                                                \
	".param .b32 e; st.param.b32 [e], 0;\n"                                          \
	".param .b64 f; st.param.b64 [f], 0; .param .b32 q;\n"                           \
	"call (q), __cudaCDP2LaunchDevice, (a, b, c, d, e, f);\n"                        \
	"ld.param.b32 %r9, [q]; }\n"

#define LAST_ERROR "call (%r9), __cudaCDP2GetLastError, ();\n"

/* Kernels get the address of words that are their output. */
#define ENTRY(_name)                                                                     \
	".visible .entry " _name "(.param .u64 p)\n"                                     \
	"{ .reg .b64 %d<10>; .reg .b32 %r<10>; .reg .pred %p; ld.param.u64 %d1, [p];\n"
#define OUT(_n) "st.global.u32 [%d1+4*" #_n "], %r9;\n"
#define END "ret; }\n"

/* The parameters of `store`: the word of that number, and a value. */
#define FILL(_n, _value)                                                                 \
	"add.u64 %d2, %d1, 4*" #_n "; st.u64 [%d9], %d2; mov.u32 %r2, " #_value ";\n"    \
	"st.u32 [%d9+8], %r2;\n"

/* Counts the calls that succeed, at most 70 000. */
#define COUNT(_name, _call, _fails)                                                      \
	ENTRY(_name)                                                                     \
	"mov.u32 %r1, 0;\nLOOP_" _name ":\n" _call _fails                                \
	"@%p bra DONE_" _name ";\nadd.u32 %r1, %r1, 1;\n"                                \
	"setp.lt.u32 %p, %r1, 70000;\n@%p bra LOOP_" _name ";\nDONE_" _name ":\n"        \
	"st.global.u32 [%d1+8], %r1;\n" LAST_ERROR OUT(3) END

static const char once_ptx[] = DECLARATIONS ENTRY("k")
	"mov.u64 %d8, store;\n"
	GET_BUFFER_V2 FILL(0, 7)
	LAUNCH_V2("%d9", "0") OUT(1)
	LAUNCH_V2("%d9", "0") OUT(2)
	LAUNCH_V2("%d1", "0") OUT(3)
	GET_BUFFER_V2
	"add.u64 %d9, %d9, 8;\n"
	LAUNCH_V2("%d9", "0") OUT(4)
	LAUNCH_V2("0", "0") OUT(5)
	GET_BUFFER_V2 FILL(0, 8)
	LAUNCH_V2("%d9", "99") OUT(6)
	LAST_ERROR OUT(7)
	"mov.u64 %d8, %d1;\n"
	GET_BUFFER_V2
	"cvt.u32.u64 %r9, %d9;\n" OUT(8)
	LAST_ERROR OUT(9)
	END;

static const char old_form_ptx[] = DECLARATIONS ENTRY("k")
	"mov.u64 %d8, store;\n"
	GET_BUFFER(64, 16) FILL(0, 7)
	LAUNCH("%d9") OUT(1)
	GET_BUFFER(4, 11)
	LAUNCH("%d9") OUT(2)
	GET_BUFFER(64, 16)
	LAUNCH_V2("%d9", "0") OUT(3)
	LAUNCH("%d1") OUT(4)
	GET_BUFFER(64, 16)
	"mov.u64 %d8, 5;\n"
	LAUNCH("%d9") OUT(5)
	GET_BUFFER(128, 16)
	"cvt.u32.u64 %r9, %d9;\n" OUT(6)
	GET_BUFFER(16, 32765)
	"cvt.u32.u64 %r9, %d9;\n" OUT(7)
	END;

static const char counting_ptx[] = DECLARATIONS
	COUNT("streams", "call (%r9), __cudaCDP2StreamCreateWithFlags, (%d1, 1);\n",
		"setp.ne.u32 %p, %r9, 0;\n")
	COUNT("buffers", GET_BUFFER(16, 32764), "setp.eq.u64 %p, %d9, 0;\n");

static const char illegal_ptx[] = DECLARATIONS ENTRY("k")
	"call (%r9), __cudaCDP2GetDevice, (24);\n" END;

/* Launches itself for ever. */
static const char endless_ptx[] = DECLARATIONS ENTRY("k")
	"ld.global.u32 %r1, [%d1]; add.u32 %r1, %r1, 1; st.global.u32 [%d1], %r1;\n"
	"mov.u64 %d8, k;\n"
	GET_BUFFER_V2
	"st.u64 [%d9], %d1;\n"
	LAUNCH_V2("%d9", STREAM_TAIL)
	END;

/* The same in a stream whose launches wait for nothing, two at a time. */
static const char breeding_ptx[] = DECLARATIONS ENTRY("k")
	"mov.u64 %d8, k;\n"
	GET_BUFFER_V2
	"st.u64 [%d9], %d1;\n"
	LAUNCH_V2("%d9", STREAM_ALONE)
	GET_BUFFER_V2
	"st.u64 [%d9], %d1;\n"
	LAUNCH_V2("%d9", STREAM_ALONE)
	END;

/* clang-format on */

static CUfunction load(const char *ptx, const char *name)
{
	CUfunction function;
	CUmodule module;

	check_ok(cuModuleLoadData(&module, ptx));
	check_ok(cuModuleGetFunction(&function, module, name));
	return function;
}

static CUresult run(CUfunction function, CUdeviceptr *words)
{
	void *params[] = { words };

	check_ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	return cuCtxSynchronize();
}

static void check_words(const char *ptx, const unsigned int *expected, unsigned int n)
{
	CUdeviceptr words;

	context_new();
	words = device_memory(64);
	check_ok(run(load(ptx, "k"), &words));
	for (unsigned int i = 0; i < n; i++)
		check_eq(device_word(words + 4 * i), expected[i]);
}

TEST(a_buffer_is_launched_once_and_only_if_it_is_one)
{
	static const unsigned int expected[] = { 7, 0, 1, 1, 1, 1, 400, 400, 0, 98 };

	check_words(once_ptx, expected, 10);
}

TEST(a_buffer_without_a_kernel_is_for_any_that_it_is_large_enough_for)
{
	static const unsigned int expected[] = { 7, 0, 1, 1, 1, 98, 0, 0 };

	check_words(old_form_ptx, expected, 8);
}

TEST(streams_and_buffers_of_a_grid_are_limited_and_go_with_it)
{
	CUfunction streams, buffers;
	CUdeviceptr words;

	context_new();
	words = device_memory(16);
	streams = load(counting_ptx, "streams");
	buffers = load(counting_ptx, "buffers");
	for (unsigned int i = 0; i < 3; i++) {
		check_ok(run(streams, &words));
		check_eq(device_word(words + 8), HANDLES_MAX);
		check_eq(device_word(words + 12), 2);
		check_ok(run(buffers, &words));
		check_eq(device_word(words + 8), PARAMETERS_SIZE / 32768);
		check_eq(device_word(words + 12), 69);
	}
}

TEST(a_result_at_an_address_that_is_not_one_is_a_fault)
{
	CUdeviceptr words = 0;

	context_new();
	check_cu(run(load(illegal_ptx, "k"), &words), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_declaration_with_other_parameters_is_of_another_function)
{
	static const char ptx[] =
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".extern .func (.param .b32 r) __cudaCDP2GetDevice(.param .b32 a);\n"
		".visible .entry k(.param .u64 p) { .reg .b32 %r;\n"
		"call (%r), __cudaCDP2GetDevice, (5); ret; }\n";
	CUdeviceptr words = 0;
	void *params[] = { &words };

	context_new();
	check_cu(cuLaunchKernel(load(ptx, "k"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_NOT_SUPPORTED);
}

TEST(a_function_has_a_plain_name_too)
{
	static const char ptx[] =
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".visible .func (.param .b32 r) cudaGetDevice(.param .b64 a)\n"
		"{ st.param.b32 [r], 999; ret; }\n"
		".visible .entry k(.param .u64 p)\n"
		"{ .reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p];\n"
		"call (%r), cudaGetDevice, (%d); st.global.u32 [%d+4], %r; ret; }\n";
	CUdeviceptr words;

	context_new();
	words = device_memory(8);
	check_ok(cuMemsetD32(words, 5, 2));
	check_ok(run(load(ptx, "k"), &words));
	check_eq(device_word(words), 0);
	check_eq(device_word(words + 4), 0);
}

/* nvcc defines it so for programs that are not linked with the device runtime. */
TEST(a_weak_definition_is_kept)
{
	static const char ptx[] =
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".weak .func (.param .b32 r) __cudaCDP2GetDevice(.param .b64 a)\n"
		"{ st.param.b32 [r], 999; ret; }\n"
		".visible .entry k(.param .u64 p)\n"
		"{ .reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p];\n"
		"call (%r), __cudaCDP2GetDevice, (%d); st.global.u32 [%d], %r; ret; }\n";
	CUdeviceptr words;

	context_new();
	words = device_memory(4);
	check_ok(run(load(ptx, "k"), &words));
	check_eq(device_word(words), 999);
}

TEST(kernels_that_launch_themselves_for_ever_end_with_their_context)
{
	CUcontext context;
	CUdeviceptr words;
	void *params[] = { &words };

	check_ok(cuInit(0));
	for (unsigned int i = 0; i < 3; i++) {
		check_ok(cuCtxCreate(&context, NULL, 0, 0));
		words = (uintptr_t)pinned_memory(4);
		check_ok(cuLaunchKernel(
			load(endless_ptx, "k"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
		/* More than may be pending at a time. */
		while (__atomic_load_n(
			       (unsigned int *)(uintptr_t)words, __ATOMIC_SEQ_CST) < 5000)
			;
		check_cu(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
		check_ok(cuCtxDestroy(context));
	}
}

/* Each of the kernels is short. */
static void check_ends(const char *ptx)
{
	CUdeviceptr words;

	setenv("VGPU_SOFTGPU_LAUNCH_TIMEOUT", "300", 1);
	context_new();
	words = device_memory(8);
	check_cu(run(load(ptx, "k"), &words), CUDA_ERROR_LAUNCH_TIMEOUT);
	check_cu(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
}

TEST(a_launch_ends_whose_kernels_launch_themselves_for_ever)
{
	check_ends(endless_ptx);
}

TEST(a_launch_ends_whose_kernels_breed)
{
	check_ends(breeding_ptx);
}

TEST(a_graph_ends_whose_kernels_launch_themselves_for_ever)
{
	CUDA_KERNEL_NODE_PARAMS node = {
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
	};
	CUgraphNode nodes[2];
	CUdeviceptr words;
	void *params[] = { &words };
	CUgraphExec exec;
	CUgraph graph;

	setenv("VGPU_SOFTGPU_LAUNCH_TIMEOUT", "300", 1);
	context_new();
	words = device_memory(8);
	node.func = load(endless_ptx, "k");
	node.kernelParams = params;
	check_ok(cuGraphCreate(&graph, 0));
	check_ok(cuGraphAddKernelNode(&nodes[0], graph, NULL, 0, &node));
	check_ok(cuGraphAddKernelNode(&nodes[1], graph, nodes, 1, &node));
	check_ok(cuGraphInstantiate(&exec, graph, 0));
	check_ok(cuGraphLaunch(exec, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
}

/* As a worker does it, when its VM is known. */
TEST(the_time_of_a_launch_can_be_limited_later)
{
	CUdeviceptr words;

	context_new();
	words = device_memory(64);
	softgpu_limit_launches(60000);
	check_ok(run(load(once_ptx, "k"), &words));
	softgpu_limit_launches(300);
	check_cu(run(load(endless_ptx, "k"), &words), CUDA_ERROR_LAUNCH_TIMEOUT);
}

TEST(the_limit_of_pending_launches_can_be_set)
{
	size_t value = 0;

	context_new();
	check_ok(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT));
	check_eq(value, 2048);
	check_ok(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 1ull << 40));
	check_ok(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT));
	check_eq(value, 16384);
	check_ok(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048));
}
