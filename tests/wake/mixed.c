/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of all kinds that meet a host asleep, awake, and falling asleep
 *
 * Run on copies of the programs that lose every other wake-up: all must end, with the
 * results that it has anywhere.
 */

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../e2e/e2e.h"

#define N_THREADS 8
#define N_PROCESSES 12
/* More than a first grant of the arena. */
#define N_PINNED 6
#define PINNED_SIZE (24u << 20)

/* Pauses around the time for which the host looks before it sleeps, and far longer ones:
 * the n-th of a row that is the same in each run. */
static void pause_for_a_while(unsigned int n)
{
	static const long pauses_us[] = { 0, 20, 45, 50, 55, 60, 70, 100, 300, 2000 };
	const struct timespec time = {
		.tv_nsec = 1000 * pauses_us[n * 7 % (sizeof(pauses_us) / sizeof(long))],
	};

	nanosleep(&time, NULL);
}

TEST(calls_after_pauses_of_all_lengths)
{
	size_t before = 0, now = 0, total;
	CUdeviceptr p = 0;

	fixture_new();
	check_ok(cuMemGetInfo(&before, &total));
	for (unsigned int i = 0; i < 200; i++) {
		check_ok(cuMemAlloc(&p, 1u << 20));
		pause_for_a_while(i);
		check_ok(cuMemGetInfo(&now, &total));
		check(now < before);
		check_ok(cuMemFree(p));
		pause_for_a_while(i / 10);
		/* A lane's own thread sleeps for this one. */
		check_ok(cuCtxSynchronize());
	}
}

TEST(launches_and_copies_in_order)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	unsigned int x = 1;
	CUdeviceptr p;

	check_ok(cuMemAlloc(&p, sizeof(x)));
	check_ok(cuMemcpyHtoD(p, &x, sizeof(x)));
	for (unsigned int i = 0; i < 3000; i++) {
		check_ok(launch_step(step, p, 3, NULL));
		if (i % 50 == 0)
			pause_for_a_while(i / 50);
		if (i % 500 == 0)
			check_eq(device_word(p), stepped(1, 3 * (i + 1)));
	}
	check_ok(cuStreamSynchronize(NULL));
	check_eq(device_word(p), stepped(1, 9000));
}

TEST(large_copies_by_way_of_staging)
{
	const size_t n = 12u << 20;
	unsigned int *there = malloc(n), *back = calloc(1, n);
	CUdeviceptr p;

	fixture_new();
	check(there && back);
	for (size_t i = 0; i < n / 4; i++)
		there[i] = (unsigned int)i * 2654435761u;
	check_ok(cuMemAlloc(&p, n));
	for (unsigned int i = 0; i < 3; i++) {
		memset(back, 0, n);
		check_ok(cuMemcpyHtoD(p, there, n));
		pause_for_a_while(i);
		check_ok(cuMemcpyDtoH(back, p, n));
		check(!memcmp(there, back, n));
	}
	free(there);
	free(back);
}

TEST(arena_that_grows)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	unsigned int *word[N_PINNED];
	CUdeviceptr p;

	for (unsigned int i = 0; i < N_PINNED; i++) {
		check_ok(cuMemHostAlloc(
			(void **)&word[i], PINNED_SIZE, CU_MEMHOSTALLOC_DEVICEMAP));
		check_ok(cuMemHostGetDevicePointer(&p, word[i], 0));
		check_ok(launch_fill(fill, p, 100 + i, 1000, NULL));
		pause_for_a_while(i);
	}
	check_ok(cuCtxSynchronize());
	for (unsigned int i = 0; i < N_PINNED; i++) {
		check_eq(word[i][0], 100 + i);
		check_eq(word[i][999], 100 + i);
		check_ok(cuMemFreeHost(word[i]));
	}
}

/* No more requests to the host: it has to find the launch itself. */
TEST(work_that_nobody_waits_for_by_a_call)
{
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	unsigned int *word;
	CUdeviceptr p;

	check_ok(cuMemHostAlloc((void **)&word, 4, CU_MEMHOSTALLOC_DEVICEMAP));
	check_ok(cuMemHostGetDevicePointer(&p, word, 0));
	check_ok(launch_fill(fill, p, 1, 1, NULL));
	check_ok(cuStreamSynchronize(NULL));
	for (unsigned int i = 2; i < 30; i++) {
		pause_for_a_while(i);
		check_ok(launch_fill(fill, p, i, 1, NULL));
		while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != i)
			usleep(100);
	}
}

static void add_five(void *word)
{
	*(unsigned int *)word += 5;
}

TEST(functions_that_streams_call)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	unsigned int x = 1, *word;
	CUdeviceptr p;

	check_ok(cuMemHostAlloc((void **)&word, 4, CU_MEMHOSTALLOC_DEVICEMAP));
	check_ok(cuMemHostGetDevicePointer(&p, word, 0));
	*word = 1;
	for (unsigned int i = 0; i < 30; i++) {
		check_ok(launch_step(step, p, 10, NULL));
		check_ok(cuLaunchHostFunc(NULL, add_five, word));
		x = stepped(x, 10) + 5;
		pause_for_a_while(i);
	}
	check_ok(cuStreamSynchronize(NULL));
	check_eq(*word, x);
}

struct worker {
	struct fixture fixture;
	unsigned int number;
};

static void *work(void *argument)
{
	const struct worker *worker = argument;
	unsigned int x = worker->number;
	CUfunction step;
	CUevent event;
	CUstream stream;
	CUdeviceptr p;

	check_ok(cuCtxSetCurrent(worker->fixture.context));
	step = fixture_function(&worker->fixture, "step");
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	check_ok(cuMemAlloc(&p, 4));
	check_ok(cuMemcpyHtoD(p, &x, 4));
	for (unsigned int i = 0; i < 20; i++) {
		check_ok(launch_step(step, p, 5, stream));
		check_ok(cuEventRecord(event, stream));
		pause_for_a_while(i + worker->number);
		check_ok(i % 2 ? cuEventSynchronize(event) : cuStreamSynchronize(stream));
		x = stepped(x, 5);
		check_eq(device_word(p), x);
	}
	check_ok(cuEventDestroy(event));
	check_ok(cuStreamDestroy(stream));
	return NULL;
}

TEST(threads_that_come_and_go)
{
	struct worker workers[N_THREADS];
	pthread_t threads[N_THREADS];
	struct fixture fixture = fixture_new();

	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < N_THREADS; i++) {
			workers[i] = (struct worker){ fixture, 10 * round + i + 1 };
			check_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
		}
		for (unsigned int i = 0; i < N_THREADS; i++)
			check_eq(pthread_join(threads[i], NULL), 0);
	}
}

TEST(processes_that_come_and_go)
{
	pid_t pids[N_PROCESSES];
	int status;

	for (unsigned int i = 0; i < N_PROCESSES; i++) {
		pids[i] = fork();
		check(pids[i] >= 0);
		if (!pids[i]) {
			struct worker worker = { fixture_new(), i + 1 };

			work(&worker);
			_exit(0);
		}
	}
	for (unsigned int i = 0; i < N_PROCESSES; i++) {
		check_eq(waitpid(pids[i], &status, 0), pids[i]);
		check_eq(status, 0);
	}
}
