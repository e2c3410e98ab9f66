/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More threads than there are reply slots
 */

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"
#include "test.h"
#include "vgpu/ring-layout.h"

#include <cuda.h>

#define CHECK(_call) check_eq((_call), CUDA_SUCCESS)

#define N_THREADS 2000
/* The thread that starts them has a slot too. */
#define N_HOLDERS (VGPU_SLOTS_MAX - 1)
#define N_VALUES 16

static struct pair pair;
static CUcontext context;
static pthread_t threads[N_THREADS];
static pthread_attr_t attributes;
static unsigned int n_begun, n_done;

/* One is released first, then all. */
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_opened = PTHREAD_COND_INITIALIZER;
static unsigned int n_may_go;

static void wait_at_gate(void)
{
	pthread_mutex_lock(&gate_lock);
	while (!n_may_go)
		pthread_cond_wait(&gate_opened, &gate_lock);
	n_may_go--;
	pthread_mutex_unlock(&gate_lock);
}

static void let_go(unsigned int n)
{
	pthread_mutex_lock(&gate_lock);
	n_may_go += n;
	pthread_cond_broadcast(&gate_opened);
	pthread_mutex_unlock(&gate_lock);
}

/* Values that only this thread writes, over its own stream, checked. */
static void compute(uint32_t number)
{
	uint32_t values[N_VALUES] = { 0 };
	CUdeviceptr pointer;

	CHECK(cuMemAlloc(&pointer, sizeof(values)));
	CHECK(cuMemsetD32Async(pointer, number, N_VALUES, CU_STREAM_PER_THREAD));
	CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	CHECK(cuMemcpyDtoH(values, pointer, sizeof(values)));
	for (int i = 0; i < N_VALUES; i++)
		check_eq(values[i], number);
	CHECK(cuMemFree(pointer));
}

static void *compute_and_hold(void *argument)
{
	CHECK(cuCtxSetCurrent(context));
	compute((uint32_t)(uintptr_t)argument);
	__atomic_add_fetch(&n_done, 1, __ATOMIC_SEQ_CST);
	wait_at_gate();
	return NULL;
}

static void *compute_and_go(void *argument)
{
	__atomic_add_fetch(&n_begun, 1, __ATOMIC_SEQ_CST);
	CHECK(cuCtxSetCurrent(context));
	compute((uint32_t)(uintptr_t)argument);
	__atomic_add_fetch(&n_done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void start_threads(unsigned int first, unsigned int end, void *(*fn)(void *))
{
	for (uintptr_t i = first; i < end; i++)
		check_eq(
			pthread_create(&threads[i], &attributes, fn, (void *)(i + 1)), 0);
}

static void join_threads(unsigned int first, unsigned int end)
{
	for (unsigned int i = first; i < end; i++)
		check_eq(pthread_join(threads[i], NULL), 0);
}

static void await(const unsigned int *counter, unsigned int n)
{
	while (__atomic_load_n(counter, __ATOMIC_SEQ_CST) < n)
		usleep(1000);
}

static void use_threads(void)
{
	CHECK(cuInit(0));
	CHECK(cuCtxCreate(&context, NULL, 0, 0));
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10);

	start_threads(0, N_HOLDERS, compute_and_hold);
	await(&n_done, N_HOLDERS);
	n_done = 0;
	start_threads(N_HOLDERS, N_THREADS, compute_and_go);
	await(&n_begun, N_THREADS - N_HOLDERS);
	usleep(100000);
	/* All slots are held by live threads: no other one got a slot. */
	check_eq(__atomic_load_n(&n_done, __ATOMIC_SEQ_CST), 0);

	/* One released slot serves all of them, one after the other. */
	let_go(1);
	join_threads(N_HOLDERS, N_THREADS);
	check_eq(n_done, N_THREADS - N_HOLDERS);
	let_go(N_HOLDERS - 1);
	join_threads(0, N_HOLDERS);

	/* And all of them at once, each with its slot for as long as it runs. */
	n_done = 0;
	start_threads(0, N_THREADS, compute_and_go);
	join_threads(0, N_THREADS);
	check_eq(n_done, N_THREADS);
	CHECK(cuCtxDestroy(context));
}

TEST_SECONDS(two_thousand_threads_share_the_reply_slots, 100)
{
	struct pair_session session;
	int status;
	pid_t pid;

	pair_start(&pair, NULL);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		use_threads();
		exit(0);
	}
	check_eq(waitpid(pid, &status, 0), pid);
	check_eq(status, 0);
	pair_read_session(&pair, 0, &session);
	check_eq(session.memsets, 2 * N_THREADS);
	check_str(session.reason, "closed");
	pair_stop(&pair);
}
