/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the program in streams, by both calls of the Runtime API, and such that
 * are called if the budget is exceeded: here it is not
 */

#include "runtime.h"

__global__ void step(int *x)
{
	*x = 3 * *x + 1;
}

struct log {
	int *x;
	int n_functions;
	int n_callbacks;
	size_t n_wrong;
};

static void add(void *data)
{
	struct log *log = (struct log *)data;

	*log->x += 2;
	log->n_functions++;
}

static void CUDART_CB told(cudaStream_t stream, cudaError_t status, void *data)
{
	struct log *log = (struct log *)data;
	void *p;

	log->n_wrong += status != cudaSuccess;
	log->n_wrong += cudaMalloc(&p, 4) != cudaErrorNotPermitted;
	log->n_callbacks++;
}

static void run(struct log *log, cudaStream_t stream)
{
	int x = 1;

	*log->x = 1;
	for (int i = 0; i < 100; i++) {
		step<<<1, 1, 0, stream>>>(log->x);
		CUDA(cudaLaunchHostFunc(stream, add, log));
		CUDA(cudaStreamAddCallback(stream, told, log, 0));
		x = (int)(3u * (unsigned)x + 3);
	}
	CUDA(cudaStreamSynchronize(stream));
	log->n_wrong += *log->x != x;
	cudaGetLastError();
}

#if CUDART_VERSION >= 12040
static void CUDART_CB never(
	cudaAsyncNotificationInfo_t *info, void *data, cudaAsyncCallbackHandle_t handle)
{
	abort();
}

static void register_and_unregister(struct log *log)
{
	cudaAsyncCallbackHandle_t handle = NULL;

	CUDA(cudaDeviceRegisterAsyncNotification(0, never, log, &handle));
	log->n_wrong += !handle;
	CUDA(cudaDeviceUnregisterAsyncNotification(0, handle));
	log->n_wrong +=
		cudaDeviceUnregisterAsyncNotification(0, handle) != cudaErrorInvalidValue;
	log->n_wrong +=
		cudaDeviceRegisterAsyncNotification(0, NULL, log, &handle) == cudaSuccess;
	cudaGetLastError();
}
#else
static void register_and_unregister(struct log *log)
{
}
#endif

int main()
{
	struct log log = {};
	cudaStream_t stream;

	CUDA(cudaMallocHost(&log.x, 4));
	CUDA(cudaStreamCreate(&stream));
	run(&log, stream);
	run(&log, 0);
	run(&log, cudaStreamPerThread);
	register_and_unregister(&log);
	log.n_wrong += log.n_functions != 300 || log.n_callbacks != 300;
	return result("callbacks", 300, log.n_wrong);
}
