/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose calls find the host asleep, for a test that counts wake-ups: a line on
 * stdin says what to do, a line on stdout that it is done.
 *
 *	ask	a call that is answered at once
 *	wait	starts work, and waits for it when the host has gone to sleep again
 */

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>

/* Far longer than a host looks for calls before it sleeps. */
#define PAUSE_US 2000
#define WORK_NS 10000000ull
#define TRIES 3

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry spin(.param .u32 n) {\n"
			  ".reg .b32 %r<2>; .reg .pred %p;\n"
			  "ld.param.u32 %r1, [n];\n"
			  "again: sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0;\n"
			  "@%p bra again; ret; }\n";

static unsigned int rounds = 1000;
static CUfunction spin;

static void must(CUresult r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "%s: CUDA error %d\n", what, r);
	_Exit(1);
}

#define MUST(_call) must(_call, #_call)

static unsigned long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void start_work(void)
{
	void *params[] = { &rounds };

	MUST(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
}

/* Regardless of other load, at least some of the time. */
static int is_long_enough(void)
{
	for (int i = 0; i < TRIES; i++) {
		unsigned long long before = now();

		start_work();
		MUST(cuCtxSynchronize());
		if (now() - before < WORK_NS)
			return 0;
	}
	return 1;
}

static void begin(void)
{
	CUcontext context;
	CUmodule module;

	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	MUST(cuModuleLoadData(&module, ptx));
	MUST(cuModuleGetFunction(&spin, module, "spin"));
	while (!is_long_enough())
		rounds += rounds / 2;
}

static void ask(void)
{
	size_t free, total;

	MUST(cuMemGetInfo(&free, &total));
}

static void wait_for_work(void)
{
	start_work();
	usleep(PAUSE_US);
	MUST(cuCtxSynchronize());
}

int main(void)
{
	char line[16];

	begin();
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "ask\n"))
			ask();
		else
			wait_for_work();
		printf("done\n");
		fflush(stdout);
	}
	return 0;
}
