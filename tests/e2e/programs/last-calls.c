/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that ends badly: "fault" stores to an address that no memory has, and makes 400
 * more calls; "wait" works, reports it, and goes on when it reads something; "error" asks
 * for a function that does not exist, and waits then; "work" launches until its input
 * ends, "copy" fills and copies memory until then
 */

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <cuda.h>

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry poke(.param .u64 p, .param .u32 v) { .reg .b32 %r;\n"
	".reg .b64 %rd; ld.param.u64 %rd, [p]; ld.param.u32 %r, [v];\n"
	"st.global.u32 [%rd], %r; ret; }\n";

static int wrong;

static void is(CUresult r, CUresult want, const char *what)
{
	if (r != want)
		fprintf(stderr, "%s gives %d, not %d\n", what, r, want);
	wrong |= r != want;
}

static void wait_for_line(void)
{
	char line[16];

	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		wrong = 1;
}

/* Until the other end of its input is closed. */
static void work(CUfunction function, void **params)
{
	struct pollfd input = { .fd = 0 };

	while (!poll(&input, 1, 1) && !wrong) {
		is(cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, NULL, params, NULL), 0,
			"launching");
		is(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL), 0,
			"launching");
		is(cuCtxSynchronize(), 0, "waiting");
	}
}

static void copy(CUdeviceptr memory)
{
	struct pollfd input = { .fd = 0 };

	while (!poll(&input, 1, 1) && !wrong) {
		is(cuMemsetD32Async(memory, 7, 512, NULL), 0, "filling");
		is(cuMemcpyDtoDAsync(memory + 2048, memory, 2048, NULL), 0, "copying");
		is(cuCtxSynchronize(), 0, "waiting");
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int faults = !strcmp(mode, "fault");
	unsigned int value = 7;
	CUdeviceptr memory = 0, target;
	void *params[] = { &target, &value };
	CUfunction poke, none;
	CUcontext context;
	CUmodule module;
	CUdevice device;
	int i;

	is(cuInit(0), 0, "cuInit");
	is(cuDeviceGet(&device, 0), 0, "cuDeviceGet");
	is(cuDevicePrimaryCtxRetain(&context, device), 0, "retaining");
	is(cuCtxSetCurrent(context), 0, "cuCtxSetCurrent");
	is(cuModuleLoadData(&module, ptx), 0, "loading");
	is(cuModuleGetFunction(&poke, module, "poke"), 0, "finding");
	is(cuMemAlloc(&memory, 4096), 0, "cuMemAlloc");
	for (i = 0; i < 20; i++) {
		/* No other launch may learn of the fault. */
		target = faults && i == 19 ? 64 : memory;
		is(cuLaunchKernel(poke, 2, 3, 1, 32, 1, 1, 0, NULL, params, NULL), 0,
			"launching");
	}
	is(cuCtxSynchronize(), faults ? CUDA_ERROR_ILLEGAL_ADDRESS : 0, "waiting");
	for (i = 0; faults && i < 400; i++)
		is(cuMemcpyDtoH(&value, memory, sizeof(value)),
			CUDA_ERROR_ILLEGAL_ADDRESS, "reading back");
	if (!strcmp(mode, "error"))
		is(cuModuleGetFunction(&none, module, "none"), CUDA_ERROR_NOT_FOUND,
			"finding what is not there");
	if (!strcmp(mode, "work") || !strcmp(mode, "copy")) {
		puts("ready");
		fflush(stdout);
		if (!strcmp(mode, "work"))
			work(poke, params);
		else
			copy(memory);
	} else if (!faults) {
		wait_for_line();
	}
	return wrong;
}
