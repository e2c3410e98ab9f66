/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that polls, for a test that looks at it from outside:
 *
 *	polling done	asks for work that is over, many times
 *	polling running	asks for work that is not, many times
 *	polling event	asks for an event until the answer is another, says which
 *	polling stream	the same with a stream
 *	polling wait	the same, but waits
 *	polling flow	makes calls of all kinds until it is ended
 */

#include <stdio.h>
#include <string.h>

#include <cuda.h>

#define N_QUERIES 20000

static struct {
	CUstream stream, other;
	CUevent event;
	CUdeviceptr memory;
} state;

static void must(CUresult r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "%s: CUDA error %d\n", what, r);
	_Exit(1);
}

#define MUST(_call) must(_call, #_call)

static void begin(void)
{
	CUcontext context;

	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	MUST(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&state.other, CU_STREAM_NON_BLOCKING));
	MUST(cuEventCreate(&state.event, CU_EVENT_DISABLE_TIMING));
	MUST(cuMemAlloc(&state.memory, 4096));
	MUST(cuMemsetD32(state.memory, 0, 1024));
}

/* Work that ends with the process. */
static void hold(void)
{
	MUST(cuStreamWaitValue32(state.stream, state.memory, 1, CU_STREAM_WAIT_VALUE_EQ));
	MUST(cuEventRecord(state.event, state.stream));
}

static void say(int number)
{
	printf("%d\n", number);
	fflush(stdout);
}

static void ask_many_times(CUresult expected)
{
	for (int i = 0; i < N_QUERIES; i++) {
		CUresult event = cuEventQuery(state.event);
		CUresult stream = cuStreamQuery(state.stream);

		if (event != expected || stream != expected) {
			fprintf(stderr, "query %d: %d and %d\n", i, event, stream);
			_Exit(1);
		}
	}
}

static int ask_until_it_changes(CUresult (*ask)(void))
{
	CUresult r;

	say(0);
	while ((r = ask()) == CUDA_ERROR_NOT_READY)
		;
	say((int)r);
	return 0;
}

static CUresult ask_event(void)
{
	return cuEventQuery(state.event);
}

static CUresult ask_stream(void)
{
	return cuStreamQuery(state.stream);
}

static CUresult wait_for_event(void)
{
	return cuEventSynchronize(state.event);
}

static void flow(void)
{
	say(0);
	for (;;) {
		for (int i = 0; i < 100; i++)
			MUST(cuMemsetD32Async(state.memory, 1, 1024, state.other));
		MUST(cuEventRecord(state.event, state.other));
		MUST(cuEventSynchronize(state.event));
		MUST(cuStreamSynchronize(state.other));
		MUST(cuCtxSynchronize());
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	begin();
	if (!strcmp(what, "flow"))
		flow();
	if (!strcmp(what, "done")) {
		MUST(cuEventRecord(state.event, state.stream));
		MUST(cuStreamSynchronize(state.stream));
		ask_many_times(CUDA_SUCCESS);
		return 0;
	}
	hold();
	if (!strcmp(what, "running")) {
		ask_many_times(CUDA_ERROR_NOT_READY);
		/* Without the end of it the process could not go in peace. */
		MUST(cuStreamWriteValue32(state.other, state.memory, 1, 0));
		MUST(cuStreamSynchronize(state.stream));
		return 0;
	}
	if (!strcmp(what, "event"))
		return ask_until_it_changes(ask_event);
	if (!strcmp(what, "stream"))
		return ask_until_it_changes(ask_stream);
	if (!strcmp(what, "wait"))
		return ask_until_it_changes(wait_for_event);
	return 2;
}
