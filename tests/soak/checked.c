/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that computes and checks every value that comes back
 *
 *	checked ROUNDS SEED [VALUES]
 *	checked endless		(a kernel that never ends)
 *
 * The load while vgpud, workers and machines are killed: so it distinguishes a wrong
 * result (status 1, which must never occur) from a call that failed (status 2, the effect
 * of the host's end). ROUNDS 0: until SIGTERM, after which it exits in good order. It is
 * an ordinary program of the CUDA Driver API.
 */

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
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
#define N_KINDS 8
#define LAUNCHES 3 /* of one captured graph */

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

/* One computation: its inputs and its buffers. */
struct computation {
	uint32_t *x, *y;
	uint32_t a, b, n;
	CUdeviceptr dx, dy;
	size_t size;
};

static void begin(struct computation *c, uint32_t *x, uint32_t *y, uint32_t n)
{
	*c = (struct computation){ .x = x, .y = y, .n = n, .size = n * sizeof(*x) };
	c->a = random_number();
	c->b = random_number();
	CU(cuMemAlloc(&c->dx, c->size));
	CU(cuMemAlloc(&c->dy, c->size));
}

static void end(const struct computation *c)
{
	CU(cuMemFree(c->dx));
	CU(cuMemFree(c->dy));
}

static void fill(const struct computation *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		c->x[i] = random_number();
	memset(c->y, 0, c->size);
}

static void submit(struct computation *c, CUstream stream)
{
	void *parameters[] = { &c->dx, &c->dy, &c->a, &c->b, &c->n };

	CU(cuMemsetD8Async(c->dy, 0xee, c->size, stream));
	CU(cuMemcpyHtoDAsync(c->dx, c->x, c->size, stream));
	CU(cuLaunchKernel(mix, (c->n + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0, stream,
		parameters, NULL));
	CU(cuMemcpyDtoHAsync(c->y, c->dy, c->size, stream));
}

static void check_values(const struct computation *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t right = c->x[i] * c->a + (i ^ c->b);

		if (c->y[i] == right)
			continue;
		fprintf(stderr, "checked: value %u of %u is %#x, not %#x\n", i, c->n,
			c->y[i], right);
		exit(EXIT_WRONG);
	}
}

static bool looks_at_events;

/* By a call, or by looking at an event until it is over. */
static void await(CUstream stream)
{
	CUresult result;
	CUevent event;

	if (!looks_at_events) {
		CU(cuStreamSynchronize(stream));
		return;
	}
	CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	CU(cuEventRecord(event, stream));
	while ((result = cuEventQuery(event)) == CUDA_ERROR_NOT_READY)
		sched_yield();
	check_call(result, "cuEventQuery()");
	CU(cuEventDestroy(event));
}

static void compute(CUstream stream, uint32_t *x, uint32_t *y, uint32_t n)
{
	struct computation c;

	begin(&c, x, y, n);
	fill(&c);
	submit(&c, stream);
	await(stream);
	check_values(&c);
	end(&c);
}

static void compute_captured(CUstream stream, uint32_t *x, uint32_t *y, uint32_t n)
{
	struct computation c;
	CUgraphExec exec;
	CUgraph graph;

	begin(&c, x, y, n);
	CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	submit(&c, stream);
	CU(cuStreamEndCapture(stream, &graph));
	CU(cuGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < LAUNCHES; i++) {
		fill(&c);
		CU(cuGraphLaunch(exec, stream));
		await(stream);
		check_values(&c);
	}
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
	end(&c);
}

static void compute_pinned(CUstream stream, uint32_t n, bool is_captured)
{
	void *x, *y;

	CU(cuMemAllocHost(&x, n * sizeof(uint32_t)));
	CU(cuMemAllocHost(&y, n * sizeof(uint32_t)));
	if (is_captured)
		compute_captured(stream, x, y, n);
	else
		compute(stream, x, y, n);
	CU(cuMemFreeHost(x));
	CU(cuMemFreeHost(y));
}

/* One of N_KINDS ways to compute the same. */
static void compute_somehow(
	uint32_t kind, CUstream stream, uint32_t *x, uint32_t *y, uint32_t n)
{
	looks_at_events = kind % 2;
	switch (kind / 2) {
	case 0:
		compute(stream, x, y, n);
		break;
	case 1:
		compute(NULL, x, y, n);
		break;
	case 2:
		compute_pinned(stream, n, false);
		break;
	default:
		compute_pinned(stream, n, true);
	}
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
	/* A test that stops or kills it needs to know that it computes, in each way. */
	for (uint32_t kind = 0; kind < N_KINDS; kind++)
		compute_somehow(kind, stream, x, y, 1 + random_number() % max);
	puts("computing");
	fflush(stdout);
	while (!is_told_to_end && (!rounds || n_rounds < rounds)) {
		compute_somehow(random_number() % N_KINDS, stream, x, y,
			1 + random_number() % max);
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
