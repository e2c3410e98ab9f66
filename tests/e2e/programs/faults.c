/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that fails, for recordings: "address" stores where no memory is, "trap" and
 * "assert" end by these, "endless" never ends, which a limit has to do
 *
 * It waits for a line before it launches that kernel, makes 300 calls that succeed as
 * long as the device is paused, and waits for another line. Then all calls return the
 * fault, but not those of another context; and all is well again after a reset.
 */

#include <stdio.h>
#include <string.h>

#include <cuda.h>

#define N_STREAMS 100

/* clang-format off */
static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l,\n"
	".param .b64 g, .param .b64 s);\n"
	".global .align 1 .b8 text[4] = {110, 111, 116, 0};\n"
	".visible .entry store(.param .u64 p) { .reg .b64 %d; ld.param.u64 %d, [p];\n"
	"st.global.u32 [%d], 6; ret; }\n"
	".visible .entry traps(.param .u64 p) { trap; ret; }\n"
	".visible .entry asserts(.param .u64 p) { .reg .b64 %d;\n"
	"mov.u64 %d, text; cvta.global.u64 %d, %d;\n"
	"{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 g; .param .b64 s;\n"
	"st.param.b64 [m], %d; st.param.b64 [f], %d; st.param.b32 [l], 7;\n"
	"st.param.b64 [g], %d; st.param.b64 [s], 1;\n"
	"call.uni __assertfail, (m, f, l, g, s); } ret; }\n"
	".visible .entry endless(.param .u64 p) { L: bra L; }\n";
/* clang-format on */

static int wrong;

static void is(CUresult r, CUresult want, const char *what)
{
	if (r != want)
		fprintf(stderr, "%s gives %d, not %d\n", what, r, want);
	wrong |= r != want;
}

static void wait_for_line(const char *text)
{
	char line[16];

	puts(text);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		wrong = 1;
}

static CUfunction find(const char *name)
{
	CUfunction function = NULL;
	CUmodule module;

	is(cuModuleLoadData(&module, ptx), 0, "loading");
	is(cuModuleGetFunction(&function, module, name), 0, "finding");
	return function;
}

static CUresult launch(CUfunction function, CUdeviceptr p)
{
	void *params[] = { &p };

	return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
}

static void check_works(CUfunction store, CUdeviceptr memory)
{
	unsigned int word = 0;

	is(cuMemsetD32(memory, 1, 1), 0, "filling");
	is(launch(store, memory), 0, "launching");
	is(cuMemcpyDtoH(&word, memory, sizeof(word)), 0, "reading back");
	if (word != 6)
		wrong = 1;
}

/* With replies, and without. */
static void make_calls(CUdeviceptr memory)
{
	CUstream streams[N_STREAMS];
	CUdeviceptr p;
	CUevent event;
	int i;

	for (i = 0; i < N_STREAMS; i++) {
		is(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING), 0, "a stream");
		is(cuEventCreate(&event, 0), 0, "an event");
		is(cuMemAlloc(&p, 4096), 0, "allocating");
		is(cuMemsetD32Async(memory + 4, 2, 1, streams[i]), 0, "filling");
		is(cuEventRecord(event, NULL), 0, "recording");
	}
}

static void check_fault(CUresult want, CUdeviceptr memory)
{
	unsigned int word;
	CUdeviceptr p;
	CUstream stream;

	is(cuCtxSynchronize(), want, "waiting");
	is(cuCtxSynchronize(), want, "waiting again");
	is(cuMemcpyDtoH(&word, memory, sizeof(word)), want, "reading back");
	is(cuMemAlloc(&p, 4), want, "allocating");
	is(cuStreamCreate(&stream, 0), want, "a stream");
	is(cuStreamSynchronize(NULL), want, "waiting for the stream");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	const struct {
		const char *mode, *kernel;
		CUresult result;
	} modes[] = {
		{ "address", "store", CUDA_ERROR_ILLEGAL_ADDRESS },
		{ "trap", "traps", CUDA_ERROR_LAUNCH_FAILED },
		{ "assert", "asserts", CUDA_ERROR_ASSERT },
		{ "endless", "endless", CUDA_ERROR_LAUNCH_TIMEOUT },
	};
	CUcontext context, other, again;
	CUdeviceptr memory, others;
	CUfunction kernel, store;
	CUdevice device;
	unsigned int i = 0;

	while (i < 4 && strcmp(mode, modes[i].mode))
		i++;
	if (i == 4)
		return 2;
	is(cuInit(0), 0, "cuInit");
	is(cuDeviceGet(&device, 0), 0, "cuDeviceGet");
	is(cuCtxCreate(&other, NULL, 0, device), 0, "another context");
	store = find("store");
	is(cuMemAlloc(&others, 4), 0, "allocating");
	is(cuDevicePrimaryCtxRetain(&context, device), 0, "retaining");
	is(cuCtxSetCurrent(context), 0, "cuCtxSetCurrent");
	kernel = find(modes[i].kernel);
	is(cuMemAlloc(&memory, 64), 0, "allocating");
	wait_for_line("ready");
	is(launch(kernel, 64), 0, "launching");
	make_calls(memory);
	wait_for_line("launched");
	check_fault(modes[i].result, memory);
	is(cuCtxSetCurrent(other), 0, "cuCtxSetCurrent");
	check_works(store, others);
	is(cuDevicePrimaryCtxReset(device), 0, "resetting");
	is(cuDevicePrimaryCtxRetain(&again, device), 0, "retaining again");
	is(cuCtxSetCurrent(again), 0, "cuCtxSetCurrent");
	store = find("store");
	is(cuMemAlloc(&memory, 4), 0, "allocating");
	check_works(store, memory);
	is(cuCtxDestroy(other), 0, "destroying");
	return wrong;
}
