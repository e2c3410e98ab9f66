/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: launching BLOCKS LOOPS PAUSE-US [PRIORITY]
 *
 * A guest program that launches kernels until its input ends: first it prints "ready",
 * and after a line of input it begins. Each kernel of so many blocks computes so many
 * rounds of a loop. With a pause it waits for each launch, and for that time before the
 * next one; without, it keeps a few in flight, and with a pause below 0 as many as there
 * is room for. With a priority the launches are in a stream of that one.
 *
 * At the end it prints the number of launches, and with a pause how long the launches
 * took in microseconds, one a line.
 */

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>

#define IN_FLIGHT 16
#define TIMES_MAX 65536

static const char ptx[] = ".version 7.0\n"
			  ".target sm_50\n"
			  ".address_size 64\n"
			  ".visible .entry work(.param .u32 rounds, .param .u64 sum)\n"
			  "{\n"
			  "	.reg .pred %p;\n"
			  "	.reg .u32 %n, %i, %x;\n"
			  "	.reg .u64 %to;\n"
			  "	ld.param.u32 %n, [rounds];\n"
			  "	ld.param.u64 %to, [sum];\n"
			  "	mov.u32 %i, 0;\n"
			  "	mov.u32 %x, %tid.x;\n"
			  "again:\n"
			  "	mad.lo.u32 %x, %x, 1664525, 1013904223;\n"
			  "	add.u32 %i, %i, 1;\n"
			  "	setp.lt.u32 %p, %i, %n;\n"
			  "	@%p bra again;\n"
			  "	st.global.u32 [%to], %x;\n"
			  "	ret;\n"
			  "}\n";

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void need(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "launching: %s: error %d\n", what, result);
	exit(1);
}

static int has_input(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };

	return poll(&input, 1, 0) > 0;
}

int main(int argc, char **argv)
{
	static uint64_t times[TIMES_MAX];
	unsigned int blocks, n_times = 0;
	int pause_us;
	uint32_t rounds;
	unsigned long n = 0;
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction work;
	CUstream stream = NULL;
	CUdeviceptr sum;
	CUevent events[IN_FLIGHT];
	char line[16];
	void *params[] = { &rounds, &sum };

	if (argc != 4 && argc != 5)
		return 2;
	blocks = (unsigned int)atoi(argv[1]);
	rounds = (uint32_t)atoi(argv[2]);
	pause_us = atoi(argv[3]);
	need(cuInit(0), "cuInit");
	need(cuDeviceGet(&device, 0), "cuDeviceGet");
	need(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	need(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	need(cuModuleGetFunction(&work, module, "work"), "cuModuleGetFunction");
	need(cuMemAlloc(&sum, 4), "cuMemAlloc");
	if (argc == 5)
		need(cuStreamCreateWithPriority(
			     &stream, CU_STREAM_NON_BLOCKING, atoi(argv[4])),
			"cuStreamCreateWithPriority");
	for (int i = 0; i < IN_FLIGHT; i++)
		need(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING), "cuEventCreate");
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	while (!has_input()) {
		const uint64_t began = now_us();

		need(cuLaunchKernel(
			     work, blocks, 1, 1, 32, 1, 1, 0, stream, params, NULL),
			"cuLaunchKernel");
		if (!pause_us) {
			need(cuEventSynchronize(events[n % IN_FLIGHT]),
				"cuEventSynchronize");
			need(cuEventRecord(events[n % IN_FLIGHT], stream),
				"cuEventRecord");
		} else if (pause_us > 0) {
			need(cuCtxSynchronize(), "cuCtxSynchronize");
			if (n_times < TIMES_MAX)
				times[n_times++] = now_us() - began;
			usleep((useconds_t)pause_us);
		}
		n++;
	}
	need(cuCtxSynchronize(), "cuCtxSynchronize");
	printf("%lu\n", n);
	for (unsigned int i = 0; i < n_times; i++)
		printf("%llu\n", (unsigned long long)times[i]);
	return 0;
}
