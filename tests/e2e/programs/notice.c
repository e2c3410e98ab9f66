/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with callbacks for notifications, for a test that lowers its budget: each
 * line on stdin is a command, answered by a line "= RESULT" on stdout. What callbacks do
 * is on lines of its own.
 */

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#define N_CALLBACKS 8
#define N_BLOCKS 64

static struct callback {
	int number, device;
	char manner; /* p: returns; w: waits; c: makes calls; e: ends its thread */
	CUasyncCallbackHandle handle;
} callbacks[N_CALLBACKS];
static CUdeviceptr blocks[N_BLOCKS];
static int n_blocks;
static sem_t callback_may_go, stream_may_go;
static CUcontext context;

static void say(const char *what, int number, unsigned long long value)
{
	printf("%s %d %llu\n", what, number, value);
	fflush(stdout);
}

static CUresult free_all(void)
{
	CUresult r = CUDA_SUCCESS;

	while (n_blocks && !r)
		r = cuMemFree(blocks[--n_blocks]);
	return r;
}

static int limit_in_mib(void)
{
	size_t left = 0, total = 0;

	return cuMemGetInfo(&left, &total) ? 0 : (int)(total >> 20);
}

/* The two calls that CUDA forbids here, and some that it does not. */
static void make_calls(const struct callback *callback)
{
	CUasyncCallbackHandle other;
	size_t left = 0, total = 0;

	say("registers", callback->number,
		cuDeviceRegisterAsyncNotification(
			callback->device, (CUasyncCallback)abort, NULL, &other));
	say("unregisters", callback->number,
		cuDeviceUnregisterAsyncNotification(callback->device, callback->handle));
	say("enters", callback->number, cuCtxSetCurrent(context));
	say("frees", callback->number, free_all());
	cuMemGetInfo(&left, &total);
	say("has", callback->number, left);
}

static void note(CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle handle)
{
	const struct callback *callback = data;

	if (info->type != CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET ||
		handle != callback->handle)
		abort();
	say("notice", callback->number, info->info.overBudget.bytesOverBudget);
	/* What a callback writes there is not the next one's. */
	info->info.overBudget.bytesOverBudget = 1;
	if (callback->manner == 'w')
		sem_wait(&callback_may_go);
	if (callback->manner == 'w')
		say("returns", callback->number, 0);
	if (callback->manner == 'c')
		make_calls(callback);
	if (callback->manner == 'e')
		pthread_exit(NULL);
}

static void *leave(void *data)
{
	const struct callback *callback = data;
	CUresult r =
		cuDeviceUnregisterAsyncNotification(callback->device, callback->handle);

	say("left", callback->number, r);
	return NULL;
}

static CUresult leave_apart(struct callback *callback)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, leave, callback))
		abort();
	pthread_detach(thread);
	return CUDA_SUCCESS;
}

static void wait_in_stream(void *unused)
{
	sem_wait(&stream_may_go);
}

static CUresult begin(void)
{
	CUresult r = cuInit(0);

	if (!r)
		r = cuDevicePrimaryCtxRetain(&context, 0);
	return r ? r : cuCtxSetCurrent(context);
}

static CUresult use_callback(const char *command, int number, int device, char manner)
{
	struct callback *callback = &callbacks[number];

	if (!strcmp(command, "leave"))
		return leave_apart(callback);
	if (!strcmp(command, "unregister"))
		return cuDeviceUnregisterAsyncNotification(
			callback->device, callback->handle);
	*callback = (struct callback){
		.number = number,
		.device = device,
		.manner = manner,
	};
	return cuDeviceRegisterAsyncNotification(
		device, note, callback, &callback->handle);
}

static int run(
	const char *command, unsigned long long number, int device, const char *manner)
{
	if (!strcmp(command, "begin"))
		return begin();
	if (!strcmp(command, "alloc"))
		return cuMemAlloc(&blocks[n_blocks++ % N_BLOCKS], number);
	if (!strcmp(command, "free"))
		return free_all();
	if (!strcmp(command, "limit"))
		return limit_in_mib();
	if (!strcmp(command, "reset")) {
		n_blocks = 0;
		return cuDevicePrimaryCtxReset(0);
	}
	if (!strcmp(command, "release"))
		return sem_post(&callback_may_go);
	if (!strcmp(command, "block"))
		return cuLaunchHostFunc(NULL, wait_in_stream, NULL);
	if (!strcmp(command, "unblock"))
		return sem_post(&stream_may_go);
	return use_callback(command, (int)(number % N_CALLBACKS), device, manner[0]);
}

int main(void)
{
	char line[128], command[32], manner[8];
	unsigned long long number;
	int device;

	while (fgets(line, sizeof(line), stdin)) {
		number = 0;
		device = 0;
		strcpy(manner, "p");
		if (sscanf(line, "%31s %llu %d %7s", command, &number, &device, manner) <
			1)
			continue;
		if (!strcmp(command, "quit"))
			return 0;
		printf("= %d\n", run(command, number, device, manner));
		fflush(stdout);
	}
	return 1;
}
