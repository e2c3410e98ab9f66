/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcuda in a process: forks, threads, limits, the end of the host, the end of itself
 */

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"
#include "run.h"
#include "test.h"

#include <cuda.h>

#define CHECK(_call) check_eq((_call), CUDA_SUCCESS)

/* Distinguishes a call that ends when the host dies from one that hangs. */
#define PATIENCE_S 30

static struct pair pair;

static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .entry k(.param .u64 a, .param .u32 b)\n{\n\tret;\n}\n";

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void start(void)
{
	const struct pair_options options = { .driver = NULL_DRIVER };

	pair_start(&pair, &options);
}

static CUcontext make_context(void)
{
	CUcontext context;

	CHECK(cuCtxCreate_v2(&context, 0, 0));
	return context;
}

static void expect_child_ends_well(pid_t pid)
{
	int status;

	check_eq(waitpid(pid, &status, 0), pid);
	check_eq(status, 0);
}

/* Runs the guest's part of a test in a separate process: the library keeps its
 * descriptors until the process ends. */
static void run_guest(void (*guest)(void))
{
	pid_t pid = fork();

	check(pid >= 0);
	if (!pid) {
		guest();
		exit(0);
	}
	expect_child_ends_well(pid);
}

/* A test with a host, and a guest process that has called cuInit. */
#define GUEST_TEST(_name)                                                                \
	static void guest_##_name(void);                                                 \
	static void ready_##_name(void)                                                  \
	{                                                                                \
		CHECK(cuInit(0));                                                        \
		guest_##_name();                                                         \
	}                                                                                \
	TEST_SECONDS(_name, 100)                                                         \
	{                                                                                \
		start();                                                                 \
		run_guest(ready_##_name);                                                \
		pair_stop(&pair);                                                        \
	}                                                                                \
	static void guest_##_name(void)

static void check_child(void)
{
	CUdeviceptr pointer;
	CUcontext context;
	int n;

	check_eq(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
	check_eq(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
	check_eq(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
	check_eq(cuMemAlloc(&pointer, 4096), CUDA_ERROR_NOT_INITIALIZED);
	check_eq(cuStreamSynchronize(NULL), CUDA_ERROR_NOT_INITIALIZED);
	check_eq(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
}

GUEST_TEST(a_child_is_not_initialised_and_the_parent_goes_on)
{
	CUdeviceptr pointer;
	pid_t pid;

	make_context();
	pid = fork();
	if (!pid) {
		check_child();
		_exit(0);
	}
	expect_child_ends_well(pid);
	CHECK(cuMemAlloc(&pointer, 4096));
	CHECK(cuMemFree(pointer));
}

GUEST_TEST(a_child_that_no_fork_handler_saw_is_told_too)
{
	pid_t pid;

	make_context();
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		check_child();
		syscall(SYS_exit_group, 0);
	}
	expect_child_ends_well(pid);
	CHECK(cuCtxSynchronize());
}

GUEST_TEST(a_child_that_runs_its_exit_handlers_leaves_the_parents_channel_alone)
{
	pid_t pid;

	make_context();
	pid = fork();
	if (!pid)
		exit(0);
	expect_child_ends_well(pid);
	CHECK(cuCtxSynchronize());
	check_eq(pair_count_log(&pair, "session ended"), 0);
}

static void start_after_the_parent_failed(void)
{
	pid_t pid;

	check_eq(setenv("VGPU_SOCKET", "/nonexistent", 1), 0);
	check_eq(cuInit(0), CUDA_ERROR_NO_DEVICE);
	check_eq(setenv("VGPU_SOCKET", pair.socket, 1), 0);
	pid = fork();
	if (!pid)
		exit(cuInit(0));
	expect_child_ends_well(pid);
	CHECK(cuInit(0));
}

TEST(a_child_of_a_process_that_was_not_ready_may_start_by_itself)
{
	start();
	run_guest(start_after_the_parent_failed);
	pair_stop(&pair);
}

static void *use_a_lane(void *context)
{
	size_t free, total;

	CHECK(cuCtxSetCurrent(context));
	CHECK(cuMemGetInfo(&free, &total));
	return NULL;
}

/* More than there are lanes: each has to be released. */
GUEST_TEST(threads_come_and_go_without_using_lanes_up)
{
	CUcontext context = make_context();

	for (int i = 0; i < 1100; i += 4) {
		pthread_t threads[4];

		for (int j = 0; j < 4; j++)
			check_eq(pthread_create(&threads[j], NULL, use_a_lane, context),
				0);
		for (int j = 0; j < 4; j++)
			pthread_join(threads[j], NULL);
	}
	CHECK(cuCtxSynchronize());
}

static void *hold_a_lane(void *context)
{
	size_t free, total;

	CHECK(cuCtxSetCurrent(context));
	CHECK(cuMemGetInfo(&free, &total));
	usleep(20000);
	return NULL;
}

/* More at a time than lanes: the last ones wait until others end. */
GUEST_TEST(a_thread_without_a_lane_waits_for_one)
{
	CUcontext context = make_context();
	static pthread_t threads[1100];
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10);
	for (int i = 0; i < 1100; i++)
		check_eq(pthread_create(&threads[i], &attributes, hold_a_lane, context),
			0);
	for (int i = 0; i < 1100; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&attributes);
	CHECK(cuCtxSynchronize());
}

/* Kills what the text before a number in the log names. */
static void kill_logged(const char *before)
{
	char line[4096];
	FILE *file = fopen(pair.log, "re");
	pid_t pid = 0;

	while (fgets(line, sizeof(line), file)) {
		const char *found = strstr(line, before);

		if (found && strstr(line, "session opened"))
			pid = atoi(found + strlen(before));
	}
	fclose(file);
	check(pid > 0);
	check_eq(kill(pid, SIGKILL), 0);
}

struct late {
	CUcontext context;
	double ended;
	CUresult result;
	bool has_begun;
};

/* Calls until one fails, so that one is always under way. */
static void *call_until_failure(void *argument)
{
	struct late *late = argument;
	size_t free, total;

	CHECK(cuCtxSetCurrent(late->context));
	do {
		late->result = cuMemGetInfo(&free, &total);
		__atomic_store_n(&late->has_begun, true, __ATOMIC_RELEASE);
	} while (late->result == CUDA_SUCCESS);
	late->ended = now();
	return NULL;
}

static void begin_late(struct late *late, pthread_t *threadp)
{
	*late = (struct late){ .context = make_context() };
	check_eq(pthread_create(threadp, NULL, call_until_failure, late), 0);
	while (!__atomic_load_n(&late->has_begun, __ATOMIC_ACQUIRE))
		usleep(1000);
}

GUEST_TEST(a_killed_worker_ends_waiting_and_later_calls)
{
	CUdeviceptr pointer;
	struct late late;
	pthread_t thread;
	double killed;

	begin_late(&late, &thread);
	killed = now();
	kill_logged("worker=");
	pthread_join(thread, NULL);
	check(late.ended - killed < PATIENCE_S);
	check_eq(late.result, CUDA_ERROR_UNKNOWN);
	check_eq(cuMemAlloc(&pointer, 4096), CUDA_ERROR_UNKNOWN);
	check_eq(cuCtxSynchronize(), CUDA_ERROR_UNKNOWN);
}

/* Of which many blocks are under way at a time. */
#define COPY_SIZE (8u << 20)

static void *copy_until_failure(void *argument)
{
	struct late *late = argument;
	void *host = calloc(1, COPY_SIZE);
	CUdeviceptr memory;

	CHECK(cuCtxSetCurrent(late->context));
	CHECK(cuMemAlloc(&memory, COPY_SIZE));
	do {
		late->result = cuMemcpyHtoDAsync(memory, host, COPY_SIZE, NULL);
		if (late->result == CUDA_SUCCESS)
			late->result = cuMemcpyHtoDAsync(memory, host, 100, NULL);
		if (late->result == CUDA_SUCCESS)
			late->result = cuMemcpyDtoHAsync(host, memory, COPY_SIZE, NULL);
		__atomic_store_n(&late->has_begun, true, __ATOMIC_RELEASE);
	} while (late->result == CUDA_SUCCESS);
	free(host);
	return NULL;
}

static void outlive_the_worker_in_copies(void)
{
	struct late lates[3];
	pthread_t threads[3];

	CHECK(cuInit(0));
	for (int i = 0; i < 3; i++) {
		lates[i] = (struct late){ .context = make_context() };
		check_eq(pthread_create(&threads[i], NULL, copy_until_failure, &lates[i]),
			0);
	}
	for (int i = 0; i < 3; i++)
		while (!__atomic_load_n(&lates[i].has_begun, __ATOMIC_ACQUIRE))
			usleep(1000);
	kill_logged("worker=");
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		check_eq(lates[i].result, CUDA_ERROR_UNKNOWN);
	}
}

TEST(a_killed_worker_ends_copies_that_are_under_way)
{
	pair_start(&pair, NULL);
	run_guest(outlive_the_worker_in_copies);
	pair_stop(&pair);
}

static void outlive(int signal_number)
{
	struct late late;
	pthread_t thread;
	double stopped;

	CHECK(cuInit(0));
	begin_late(&late, &thread);
	stopped = now();
	check_eq(kill(pair.pid, signal_number), 0);
	pthread_join(thread, NULL);
	check(late.ended - stopped < PATIENCE_S);
	check_eq(late.result, CUDA_ERROR_UNKNOWN);
	check_eq(cuCtxSynchronize(), CUDA_ERROR_UNKNOWN);
}

static void outlive_the_host(void)
{
	outlive(SIGTERM);
}

static void outlive_the_killed_host(void)
{
	outlive(SIGKILL);
}

TEST(the_end_of_the_host_ends_waiting_and_later_calls)
{
	start();
	run_guest(outlive_the_host);
	pair_wait_exit(&pair);
	unsetenv("VGPU_SOCKET");
}

TEST(a_host_that_is_killed_ends_waiting_and_later_calls)
{
	start();
	run_guest(outlive_the_killed_host);
	pair_wait_exit(&pair);
	/* Its processes have become this one's, and end with it. */
	while (waitpid(-1, NULL, 0) > 0)
		;
	unsetenv("VGPU_SOCKET");
}

GUEST_TEST(no_pointer_of_the_program_is_ever_in_the_window)
{
	CUdeviceptr pointer;
	void *pinned, *map;

	make_context();
	CHECK(cuMemAlloc(&pointer, 1 << 20));
	CHECK(cuMemAllocHost(&pinned, 1 << 20));
	map = mmap((void *)(uintptr_t)pointer, 4096, PROT_READ,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	check(map == MAP_FAILED);
	memset(pinned, 1, 1 << 20);
}

/* A separate program, because the window is chosen once in a process. */
static void try_window(const char *candidate, const char *first_line)
{
	const char *const argv[] = { WAY_IN, "now", LIBCUDA, NULL };
	const struct pair_options options = { .driver = NULL_DRIVER };
	char variable[32], socket_variable[160];
	const char *const environment[] = { variable, socket_variable, "VGPU_LOG=info",
		NULL };
	struct run *run = malloc(sizeof(*run));

	pair_start(&pair, &options);
	snprintf(variable, sizeof(variable), "VGPU_WINDOW=%s", candidate);
	snprintf(socket_variable, sizeof(socket_variable), "VGPU_SOCKET=%s", pair.socket);
	run_successfully(run, argv, environment);
	if (!strstr(run->err, first_line))
		test_fail(__FILE__, __LINE__, "not in %s", run->err);
	free(run);
	pair_stop(&pair);
}

TEST(the_first_window)
{
#ifdef __SANITIZE_ADDRESS__
	test_skip("the address sanitizer lives where the first window is");
#endif
	try_window("0", "window at 0x100000000000");
}

TEST(the_second_window)
{
	try_window("1", "window at 0x550000000000");
}

TEST(a_limit_of_the_address_space_leaves_a_smaller_window)
{
	const char *const argv[] = { "sh", "-c",
		"ulimit -v 16777216; exec " WAY_IN " now " LIBCUDA, NULL };
	const struct pair_options options = { .driver = NULL_DRIVER };
	char socket_variable[160];
	const char *const environment[] = { socket_variable, "VGPU_LOG=warning", NULL };
	struct run *run = malloc(sizeof(*run));

#ifdef __SANITIZE_ADDRESS__
	test_skip("the address sanitizer needs more address space than that");
#endif
	pair_start(&pair, &options);
	snprintf(socket_variable, sizeof(socket_variable), "VGPU_SOCKET=%s", pair.socket);
	run_successfully(run, argv, environment);
	check_str(run->out, "devices=1\n");
	check(strstr(run->err, "address-space limit"));
	free(run);
	pair_stop(&pair);
}

static void use_synchronously(void)
{
	CUdeviceptr pointer;
	CUstream stream;
	CUevent event;

	check_eq(setenv("VGPU_SYNC", "1", 1), 0);
	CHECK(cuInit(0));
	make_context();
	CHECK(cuMemAlloc(&pointer, 4096));
	CHECK(cuStreamCreate(&stream, 0));
	CHECK(cuEventCreate(&event, 0));
	for (int i = 0; i < 2000; i++)
		CHECK(cuMemsetD8Async(pointer, 0, 4096, stream));
	CHECK(cuEventRecord(event, stream));
	CHECK(cuEventSynchronize(event));
	CHECK(cuEventDestroy(event));
	CHECK(cuStreamDestroy(stream));
}

TEST(every_call_can_have_a_reply)
{
	start();
	run_guest(use_synchronously);
	pair_stop(&pair);
}

/* Registered before cuInit, so it runs after what the library itself would register. */
static void call_late(void)
{
	size_t free, total;

	if (cuMemGetInfo(&free, &total) != CUDA_SUCCESS)
		_exit(3);
}

static void register_first(void)
{
	atexit(call_late);
	CHECK(cuInit(0));
	make_context();
}

TEST(calls_from_exit_handlers_still_work)
{
	struct pair_session session;

	start();
	run_guest(register_first);
	pair_read_session(&pair, 0, &session);
	check_str(session.reason, "closed");
	pair_stop(&pair);
}

GUEST_TEST(launches_are_checked_once_and_then_not_waited_for)
{
	unsigned int value = 0;
	CUdeviceptr pointer;
	CUfunction function;
	CUmodule module;
	void *params[] = { &pointer, &value };

	make_context();
	CHECK(cuMemAlloc(&pointer, 4096));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&function, module, "k"));
	for (int i = 0; i < 5000; i++)
		CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	CHECK(cuCtxSynchronize());
	check_eq(cuLaunchKernel(
			 (CUfunction)module, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	check_eq(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
}
