/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: callbacks for notifications are registered and unregistered
 *
 * Here no budget is exceeded; test_notice.py has them called.
 */

#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "e2e.h"

/* What a process may have at a time. */
#define N_MAX 1024

static CUasyncCallbackHandle handles[N_MAX + 1];
static int n_called;

static void count(CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle handle)
{
	__atomic_add_fetch(&n_called, 1, __ATOMIC_RELAXED);
}

static CUdevice begin(void)
{
	CUdevice device;

	check_ok(cuInit(0));
	check_ok(cuDeviceGet(&device, 0));
	return device;
}

TEST(a_registration_ends_once)
{
	CUdevice device = begin();

	check_ok(cuDeviceRegisterAsyncNotification(device, count, NULL, &handles[0]));
	check_ok(cuDeviceRegisterAsyncNotification(device, count, NULL, &handles[1]));
	check(handles[0] && handles[1] && handles[0] != handles[1]);
	check_ok(cuDeviceUnregisterAsyncNotification(device, handles[0]));
	check_cu(cuDeviceUnregisterAsyncNotification(device, handles[0]),
		CUDA_ERROR_INVALID_VALUE);
	/* Its handle is not given to another one. */
	check_ok(cuDeviceRegisterAsyncNotification(device, count, NULL, &handles[2]));
	check(handles[2] != handles[0] && handles[2] != handles[1]);
	check_cu(cuDeviceUnregisterAsyncNotification(device, handles[0]),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuDeviceUnregisterAsyncNotification(device, handles[1]));
	check_ok(cuDeviceUnregisterAsyncNotification(device, handles[2]));
}

TEST(registrations_beyond_the_limit_are_refused)
{
	CUdevice device = begin();
	int n = 0;

	for (int i = 0; i < 100000; i++) {
		CUresult r = cuDeviceRegisterAsyncNotification(
			device, count, NULL, &handles[n]);

		if (n < N_MAX)
			check_ok(r);
		else
			check_cu(r, CUDA_ERROR_OUT_OF_MEMORY);
		n += !r;
	}
	check_eq(n, N_MAX);
	check_ok(cuDeviceUnregisterAsyncNotification(device, handles[7]));
	check_ok(cuDeviceRegisterAsyncNotification(device, count, NULL, &handles[7]));
	for (int i = 0; i < N_MAX; i++)
		check_ok(cuDeviceUnregisterAsyncNotification(device, handles[i]));
}

/* Refused allocations are no notifications. */
TEST(a_program_that_gets_no_memory_is_not_called)
{
	struct fixture fixture = fixture_new();
	CUdeviceptr memory;
	size_t left, total;

	check_ok(cuDeviceRegisterAsyncNotification(
		fixture.device, count, NULL, &handles[0]));
	check_ok(cuMemGetInfo(&left, &total));
	check_cu(cuMemAlloc(&memory, 2 * total), CUDA_ERROR_OUT_OF_MEMORY);
	check_ok(cuMemAlloc(&memory, 1 << 20));
	check_ok(cuMemFree(memory));
	/* No call is under way after that. */
	check_ok(cuDeviceUnregisterAsyncNotification(fixture.device, handles[0]));
	check_eq(n_called, 0);
}

static sem_t was_called;

static void call_both(void *data)
{
	CUasyncCallbackHandle other;

	check_cu(cuDeviceRegisterAsyncNotification(0, count, NULL, &other),
		CUDA_ERROR_NOT_PERMITTED);
	check_cu(cuDeviceUnregisterAsyncNotification(0, data), CUDA_ERROR_NOT_PERMITTED);
	sem_post(&was_called);
}

TEST(a_callback_of_a_stream_may_do_neither)
{
	struct fixture fixture = fixture_new();

	check_ok(cuDeviceRegisterAsyncNotification(
		fixture.device, count, NULL, &handles[0]));
	check_ok(cuLaunchHostFunc(NULL, call_both, handles[0]));
	check_ok(cuCtxSynchronize());
	check_eq(sem_wait(&was_called), 0);
	check_ok(cuDeviceUnregisterAsyncNotification(fixture.device, handles[0]));
}

TEST(a_forked_child_has_no_registrations)
{
	CUdevice device = begin();
	int status;
	pid_t child;

	check_ok(cuDeviceRegisterAsyncNotification(device, count, NULL, &handles[0]));
	child = fork();
	if (!child) {
		check_cu(cuDeviceRegisterAsyncNotification(
				 device, count, NULL, &handles[1]),
			CUDA_ERROR_NOT_INITIALIZED);
		check_cu(cuDeviceUnregisterAsyncNotification(device, handles[0]),
			CUDA_ERROR_NOT_INITIALIZED);
		_exit(0);
	}
	check_eq(waitpid(child, &status, 0), child);
	check_eq(status, 0);
	check_ok(cuDeviceUnregisterAsyncNotification(device, handles[0]));
}
