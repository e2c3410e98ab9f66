/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that computes and checks every value that comes back
 *
 *	checked ROUNDS SEED [VALUES]
 *	checked endless		(a kernel that never ends)
 *
 * It is what is shot at while vgpud, workers and machines are killed: so it tells a
 * wrong result (status 1, which must never be) from a call that failed (status 2, which
 *is what the end of the host looks like). ROUNDS 0: until SIGTERM, which ends it in good
 * order. It is an ordinary program of the CUDA Driver API.
 */

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#define EXIT_WRONG 1
#define EXIT_CALL 2

#define BLOCK 128
#define PAUSE_US 2000

/* y[i] = x[i] * a + (i ^ b), for i < n. */
static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .entry mix(.param .u64 px, .param .u64 py, .param .u32 pa,\n"
	"	.param .u32 pb, .param .u32 pn)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .b32 %r<12>;\n"
	"	.reg .b64 %d<8>;\n"
	"	ld.param.u64 %d1, [px];\n"
	"	ld.param.u64 %d2, [py];\n"
	"	ld.param.u32 %r1, [pa];\n"
	"	ld.param.u32 %r2, [pb];\n"
	"	ld.param.u32 %r3, [pn];\n"
	"	mov.u32 %r4, %ctaid.x;\n"
	"	mov.u32 %r5, %ntid.x;\n"
	"	mov.u32 %r6, %tid.x;\n"
	"	mad.lo.s32 %r7, %r4, %r5, %r6;\n"
	"	setp.ge.u32 %p, %r7, %r3;\n"
	"	@%p bra DONE;\n"
	"	mul.wide.u32 %d3, %r7, 4;\n"
	"	add.s64 %d4, %d1, %d3;\n"
	"	add.s64 %d5, %d2, %d3;\n"
	"	ld.global.u32 %r8, [%d4];\n"
	"	xor.b32 %r9, %r7, %r2;\n"
	"	mad.lo.s32 %r10, %r8, %r1, %r9;\n"
	"	st.global.u32 [%d5], %r10;\n"
	"DONE:\n"
	"	ret;\n"
	"}\n";

static const char endless_ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
				  ".visible .entry endless()\n"
				  "{\n"
				  "AGAIN:\n"
				  "	bra AGAIN;\n"
				  "}\n";

static void check_call(CUresult result, const char *what)
{
	const char *name = NULL;

	if (result == CUDA_SUCCESS)
		return;
	cuGetErrorName(result, &name);
	fprintf(stderr, "checked: %s: %s (%d)\n", what, name ? name : "?", result);
	exit(EXIT_CALL);
}

#define CU(_call) check_call((_call), #_call)

static uint32_t random_state;

/* Numerical Recipes' generator: the same on every machine. */
static uint32_t random_number(void)
{
	random_state = random_state * 1664525u + 1013904223u;
	return random_state >> 8;
}

static CUfunction mix;

/* One computation over a stream, from pageable memory or from pinned. */
static void compute(CUstream stream, uint32_t *x, uint32_t *y, uint32_t n)
{
	uint32_t a = random_number(), b = random_number();
	size_t size = n * sizeof(uint32_t);
	CUdeviceptr dx, dy;
	void *parameters[] = { &dx, &dy, &a, &b, &n };

	for (uint32_t i = 0; i < n; i++)
		x[i] = random_number();
	memset(y, 0, size);
	CU(cuMemAlloc(&dx, size));
	CU(cuMemAlloc(&dy, size));
	CU(cuMemsetD8Async(dy, 0xee, size, stream));
	CU(cuMemcpyHtoDAsync(dx, x, size, stream));
	CU(cuLaunchKernel(mix, (n + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0, stream,
		parameters, NULL));
	CU(cuMemcpyDtoHAsync(y, dy, size, stream));
	CU(cuStreamSynchronize(stream));
	for (uint32_t i = 0; i < n; i++) {
		if (y[i] == x[i] * a + (i ^ b))
			continue;
		fprintf(stderr, "checked: value %u of %u is %#x, not %#x\n", i, n, y[i],
			x[i] * a + (i ^ b));
		exit(EXIT_WRONG);
	}
	CU(cuMemFree(dx));
	CU(cuMemFree(dy));
}

static void compute_pinned(CUstream stream, uint32_t n)
{
	void *x, *y;

	CU(cuMemAllocHost(&x, n * sizeof(uint32_t)));
	CU(cuMemAllocHost(&y, n * sizeof(uint32_t)));
	compute(stream, x, y, n);
	CU(cuMemFreeHost(x));
	CU(cuMemFreeHost(y));
}

static volatile sig_atomic_t is_told_to_end;

static void handle_term(int signal_number)
{
	is_told_to_end = 1;
}

static void run_for_ever(void)
{
	CUcontext context;
	CUmodule module;
	CUfunction function;

	CU(cuInit(0));
	CU(cuCtxCreate(&context, NULL, 0, 0));
	CU(cuModuleLoadData(&module, endless_ptx));
	CU(cuModuleGetFunction(&function, module, "endless"));
	CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	puts("computing");
	fflush(stdout);
	CU(cuCtxSynchronize());
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 1, n_rounds = 0;
	uint32_t max = argc > 3 ? strtoul(argv[3], NULL, 0) : 4096;
	uint32_t *x = malloc(max * sizeof(*x)), *y = malloc(max * sizeof(*y));
	CUcontext context;
	CUmodule module;
	CUstream stream;

	if (argc > 1 && !strcmp(argv[1], "endless")) {
		run_for_ever();
		return EXIT_SUCCESS;
	}
	signal(SIGTERM, handle_term);
	random_state = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	CU(cuInit(0));
	CU(cuCtxCreate(&context, NULL, 0, 0));
	CU(cuModuleLoadData(&module, ptx));
	CU(cuModuleGetFunction(&mix, module, "mix"));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	/* Whoever stops or kills it wants to know that it computes. */
	puts("computing");
	fflush(stdout);
	while (!is_told_to_end && (!rounds || n_rounds < rounds)) {
		uint32_t n = 1 + random_number() % max;

		if (random_number() % 4)
			compute(random_number() % 2 ? stream : NULL, x, y, n);
		else
			compute_pinned(stream, n);
		n_rounds++;
		/* Without an end it is there to be killed, not to fill the machine. */
		if (!rounds)
			usleep(PAUSE_US);
	}
	CU(cuStreamDestroy(stream));
	CU(cuCtxDestroy(context));
	free(x);
	free(y);
	printf("%lu rounds right\n", n_rounds);
	return EXIT_SUCCESS;
}
