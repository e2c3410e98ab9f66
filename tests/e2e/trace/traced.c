/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose calls are traced
 *
 * Makes calls of every kind and prints on stdout the expected contents of the trace line
 * of each, in the order in which they return. test_trace.py compares.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>

typedef CUresult (*malloc_fn)(CUdeviceptr *address, size_t size);

static void child(const char *self)
{
	int status, n;
	pid_t pid;

	printf("cuDeviceGetCount(count=%p) = CUDA_ERROR_NOT_INITIALIZED\n", (void *)&n);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		cuDeviceGetCount(&n);
		execl(self, self, "again", (char *)NULL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	if (status)
		exit(1);
}

/* In a separate program, started by the child. */
static int run_again(void)
{
	int version;

	cuDriverGetVersion(&version);
	printf("cuDriverGetVersion(driverVersion=%p[%d]) = CUDA_SUCCESS\n",
		(void *)&version, version);
	return 0;
}

int main(int argc, char **argv)
{
	CUdriverProcAddressQueryResult status;
	CUcontext context;
	CUdeviceptr p;
	malloc_fn allocate;
	CUstream stream;
	CUmodule module;
	size_t free, total;

	if (argc > 1)
		return run_again();
	cuInit(0);
	printf("cuInit(Flags=0) = CUDA_SUCCESS\n");
	cuDevicePrimaryCtxRetain(&context, 0);
	printf("cuDevicePrimaryCtxRetain(pctx=%p[%p], dev=0) = CUDA_SUCCESS\n",
		(void *)&context, (void *)context);
	cuCtxSetCurrent(context);
	printf("cuCtxSetCurrent(ctx=%p) = CUDA_SUCCESS\n", (void *)context);
	cuGetProcAddress("cuMemAlloc", (void **)&allocate, 13000, 0, &status);
	printf("cuGetProcAddress_v2(symbol=\"cuMemAlloc\", pfn=%p[%p], "
	       "cudaVersion=13000, "
	       "flags=0, symbolStatus=%p[0]) = CUDA_SUCCESS\n",
		(void *)&allocate, (void *)allocate, (void *)&status);
	allocate(&p, 4096);
	printf("cuMemAlloc_v2(dptr=%p[%#llx], bytesize=4096) = CUDA_SUCCESS\n",
		(void *)&p, p);
	cuMemsetD32Async(p, 7, 1024, CU_STREAM_PER_THREAD);
	printf("cuMemsetD32Async(dstDevice=%#llx, ui=7, N=1024, hStream=0x2) = "
	       "CUDA_SUCCESS\n",
		p);
	cuStreamCreateWithPriority(&stream, 0, -1);
	printf("cuStreamCreateWithPriority(phStream=%p[%p], flags=0, priority=-1) = "
	       "CUDA_SUCCESS\n",
		(void *)&stream, (void *)stream);
	cuMemGetInfo(&free, &total);
	printf("cuMemGetInfo_v2(free=%p[%zu], total=%p[%zu]) = CUDA_SUCCESS\n",
		(void *)&free, free, (void *)&total, total);
	cuModuleLoad(&module, "/there is/no such file");
	printf("cuModuleLoad(module=%p, fname=\"/there is/no such file\") = "
	       "CUDA_ERROR_FILE_NOT_FOUND\n",
		(void *)&module);
	cuMemFree(1);
	printf("cuMemFree_v2(dptr=0x1) = CUDA_ERROR_INVALID_VALUE\n");
	cuCheckpointProcessLock(1, NULL);
	printf("cuCheckpointProcessLock(pid=1, args=0) = CUDA_ERROR_NOT_SUPPORTED\n");
	child(argv[0]);
	cuCtxSynchronize();
	printf("cuCtxSynchronize() = CUDA_SUCCESS\n");
	return 0;
}
