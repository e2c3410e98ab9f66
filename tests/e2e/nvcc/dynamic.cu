/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dynamic parallelism: kernels that launch kernels, in all streams that they may name
 *
 * Linked with the library of the device runtime (nvcc -rdc=true).
 */

#include <algorithm>
#include <cstring>

#include "runtime.h"

#define N 6000
#define LEAF 24
#define CHAIN 3000

static size_t n_checks, n_wrong;

template <typename T> static void check(const char *what, T found, T expected)
{
	n_checks++;
	if (found == expected)
		return;
	n_wrong++;
	printf("%s: %lld instead of %lld\n", what, (long long)found, (long long)expected);
}

/*
 * Recursion: two children a grid, each in a stream that its parent has created
 */

__device__ static void insertion_sort(unsigned int *a, int n)
{
	for (int i = 1; i < n; i++) {
		unsigned int x = a[i];
		int k = i;

		for (; k && a[k - 1] > x; k--)
			a[k] = a[k - 1];
		a[k] = x;
	}
}

__global__ void quicksort(unsigned int *a, int n, int *errors)
{
	unsigned int pivot = a[n / 2];
	int low = 0, high = n - 1;
	cudaStream_t streams[2];

	if (n <= LEAF) {
		insertion_sort(a, n);
		return;
	}
	while (low <= high) {
		while (a[low] < pivot)
			low++;
		while (a[high] > pivot)
			high--;
		if (low <= high) {
			unsigned int x = a[low];

			a[low++] = a[high];
			a[high--] = x;
		}
	}
	for (int i = 0; i < 2; i++)
		if (cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking))
			atomicAdd(errors, 1);
	if (high > 0)
		quicksort<<<1, 1, 0, streams[0]>>>(a, high + 1, errors);
	if (low < n - 1)
		quicksort<<<1, 1, 0, streams[1]>>>(a + low, n - low, errors);
	if (cudaGetLastError())
		atomicAdd(errors, 1);
	for (int i = 0; i < 2; i++)
		if (cudaStreamDestroy(streams[i]))
			atomicAdd(errors, 1);
}

static void sorts()
{
	std::vector<unsigned int> host(N), expected;
	unsigned int *device, x = 1;
	int *errors, n_errors = 1;

	for (unsigned int &value : host)
		value = (x = x * 1664525 + 1013904223) >> 8;
	expected = host;
	std::sort(expected.begin(), expected.end());
	CUDA(cudaMalloc(&device, N * sizeof(*device)));
	CUDA(cudaMalloc(&errors, sizeof(*errors)));
	CUDA(cudaMemset(errors, 0, sizeof(*errors)));
	CUDA(cudaMemcpy(
		device, host.data(), N * sizeof(*device), cudaMemcpyHostToDevice));
	quicksort<<<1, 1>>>(device, N, errors);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(
		host.data(), device, N * sizeof(*device), cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(&n_errors, errors, sizeof(*errors), cudaMemcpyDeviceToHost));
	check("quicksort", host == expected, true);
	check("errors of quicksort", n_errors, 0);
}

/*
 * Order: a grid is complete when its children are, and the tail comes last
 */

struct large {
	int values[300];
};

__global__ void digit(int *x, int d)
{
	*x = *x * 10 + d;
}

__global__ void add(int *sum, int n, int depth)
{
	extern __shared__ int shared[];

	shared[threadIdx.x] = n;
	__syncthreads();
	if (threadIdx.x)
		return;
	atomicAdd(sum, shared[blockDim.x - 1]);
	if (depth)
		add<<<dim3(1, 2, 1), 32, 32 * sizeof(int), cudaStreamFireAndForget>>>(
			sum, n, depth - 1);
}

__global__ void take(int *sum, large l)
{
	for (int i = 0; i < 300; i++)
		*sum += l.values[i];
}

__global__ void copy_sum(const int *sum, int *to)
{
	*to = *sum;
}

__global__ void last_of_first(int *x)
{
	digit<<<1, 1, 0, cudaStreamTailLaunch>>>(x, 3);
	digit<<<1, 1, 0, cudaStreamTailLaunch>>>(x, 4);
	*x = *x * 10 + 1;
}

__global__ void order(int *out)
{
	large l;

	for (int i = 0; i < 300; i++)
		l.values[i] = i;
	/* First launched, last to run. */
	if (!threadIdx.x && !blockIdx.x) {
		copy_sum<<<1, 1, 0, cudaStreamTailLaunch>>>(&out[0], &out[1]);
		last_of_first<<<1, 1, 0, cudaStreamTailLaunch>>>(&out[2]);
		digit<<<1, 1, 0, cudaStreamTailLaunch>>>(&out[2], 2);
		take<<<1, 1>>>(&out[4], l);
	}
	/* One stream for all threads of a block. */
	if (!blockIdx.x) {
		if (!threadIdx.x)
			digit<<<1, 1>>>(&out[3], 5);
		__syncthreads();
		if (threadIdx.x == 1)
			digit<<<1, 1>>>(&out[3], 6);
		__syncthreads();
		if (!threadIdx.x)
			digit<<<1, 1>>>(&out[3], 7);
	}
	add<<<1, 32, 32 * sizeof(int), cudaStreamFireAndForget>>>(&out[0], 1, 2);
}

__global__ void countdown(int *left, int *n_rounds)
{
	++*n_rounds;
	if (--*left)
		countdown<<<1, 1, 0, cudaStreamTailLaunch>>>(left, n_rounds);
}

/* 4 blocks of 8 threads; each launches a tree of 1 + 2 + 4 blocks. */
static void check_order(const int *out)
{
	check("children and theirs", out[0], 4 * 8 * 7);
	check("sum that the tail sees", out[1], 4 * 8 * 7);
	check("order of the tails", out[2], 1342);
	check("order in a block's stream", out[3], 567);
	check("a large parameter", out[4], 300 * 299 / 2);
}

static void orders()
{
	int *device, host[8], first[2] = { CHAIN, 0 };
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;

	CUDA(cudaMalloc(&device, sizeof(host)));
	CUDA(cudaMemset(device, 0, sizeof(host)));
	order<<<4, 8>>>(device);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	check_order(host);

	CUDA(cudaMemcpy(device, first, sizeof(first), cudaMemcpyHostToDevice));
	countdown<<<1, 1>>>(device, device + 1);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(host, device, sizeof(first), cudaMemcpyDeviceToHost));
	check("rounds of a kernel that launches itself", host[1], CHAIN);

	/* As a node of a graph, twice. */
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMemsetAsync(device, 0, sizeof(host), stream));
	order<<<4, 8, 0, stream>>>(device);
	CUDA(cudaMemcpyAsync(host, device, sizeof(host), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph));
	for (int i = 0; i < 2; i++) {
		memset(host, 0, sizeof(host));
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		check_order(host);
	}
}

/*
 * Streams, events, copies
 */

__global__ void slow(int *x, int value)
{
	for (int i = 0; i < 20000; i++)
		*(volatile int *)x = -i;
	*x = value;
}

__global__ void increment(const int *from, int *to)
{
	*to = *from + 1;
}

__global__ void events(int *out, int *errors)
{
	cudaStream_t streams[3];
	cudaEvent_t event;
	int n = 0;

	n += cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != 0;
	for (int i = 0; i < 3; i++)
		n += cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking) != 0;
	/* Not recorded yet: nothing to wait for. */
	n += cudaStreamWaitEvent(streams[0], event, 0) != 0;
	slow<<<1, 1, 0, streams[0]>>>(&out[0], 41);
	n += cudaEventRecord(event, streams[0]) != 0;
	n += cudaStreamWaitEvent(streams[1], event, 0) != 0;
	increment<<<1, 1, 0, streams[1]>>>(&out[0], &out[1]);
	n += cudaEventRecord(event, streams[1]) != 0;
	n += cudaStreamWaitEvent(streams[2], event, 0) != 0;
	n += cudaEventDestroy(event) != 0;
	n += cudaMemcpyAsync(&out[2], &out[1], sizeof(int), cudaMemcpyDeviceToDevice,
		     streams[2]) != 0;
	increment<<<1, 1, 0, streams[2]>>>(&out[2], &out[3]);
	for (int i = 0; i < 3; i++)
		n += cudaStreamDestroy(streams[i]) != 0;
	n += cudaGetLastError() != 0;

	/* What is not permitted. */
	n += cudaStreamCreateWithFlags(&streams[0], 0) != cudaErrorInvalidValue;
	n += cudaEventCreateWithFlags(&event, 0) != cudaErrorInvalidValue;
	n += cudaStreamDestroy(streams[1]) != cudaErrorInvalidResourceHandle;
	n += cudaEventDestroy(event) != cudaErrorInvalidResourceHandle;
	n += cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != 0;
	n += cudaEventRecord(event, cudaStreamTailLaunch) != cudaErrorInvalidValue;
	n += cudaEventRecord(event, cudaStreamFireAndForget) != cudaErrorInvalidValue;
	n += cudaStreamWaitEvent(cudaStreamTailLaunch, event, 0) != cudaErrorInvalidValue;
	n += cudaStreamDestroy((cudaStream_t)12345) != cudaErrorInvalidResourceHandle;
	n += cudaPeekAtLastError() != cudaErrorInvalidResourceHandle;
	n += cudaGetLastError() != cudaErrorInvalidResourceHandle;
	n += cudaGetLastError() != cudaSuccess;
	increment<<<1, 1, 0, (cudaStream_t)12345>>>(&out[0], &out[4]);
	n += cudaGetLastError() != cudaErrorInvalidResourceHandle;
	increment<<<0, 1>>>(&out[0], &out[4]);
	n += cudaGetLastError() != cudaErrorInvalidConfiguration;
	increment<<<1, 2048>>>(&out[0], &out[4]);
	n += cudaGetLastError() != cudaErrorInvalidConfiguration;
	*errors += n;
}

#define PITCH 64
#define ROWS 8
#define SLICES 3

__device__ static cudaPitchedPtr pitched(void *p, size_t rows)
{
	return cudaPitchedPtr{ p, PITCH, PITCH, rows };
}

__global__ void copies(unsigned char *to, unsigned char *from, int *errors)
{
	size_t slice = PITCH * ROWS;
	cudaMemcpy3DParms p = {};
	unsigned char own[8] = {};
	int n = 0;

	n += cudaMemsetAsync(to, 0x11, slice * SLICES, 0) != 0;
	n += cudaMemset2DAsync(to + 1, PITCH, 0x22, 30, ROWS - 1, 0) != 0;
	n += cudaMemset3DAsync(
		     pitched(to + slice + 2, ROWS), 0x33, cudaExtent{ 20, 4, 2 }, 0) != 0;
	n += cudaMemcpy2DAsync(to + 40, PITCH, from, PITCH, 10, 5,
		     cudaMemcpyDeviceToDevice, 0) != 0;
	p.srcPtr = pitched(from, ROWS);
	p.dstPtr = pitched(to, ROWS);
	p.srcPos = cudaPos{ 3, 2, 1 };
	p.dstPos = cudaPos{ 52, 1, 0 };
	p.extent = cudaExtent{ 6, 5, 2 };
	p.kind = cudaMemcpyDeviceToDevice;
	n += cudaMemcpy3DAsync(&p, 0) != 0;
	n += cudaMemcpyAsync(to, from, 0, cudaMemcpyDeviceToDevice, 0) != 0;

	n += cudaMemcpyAsync(to, own, 8, cudaMemcpyDeviceToDevice, 0) !=
	     cudaErrorInvalidValue;
	n += cudaMemcpyAsync(to, from, 8, cudaMemcpyHostToDevice, 0) !=
	     cudaErrorInvalidMemcpyDirection;
	n += cudaMemsetAsync(NULL, 0, 8, 0) != cudaErrorInvalidValue;
	n += cudaMemsetAsync(to, 0, 1ull << 50, 0) != cudaErrorInvalidValue;
	n += cudaMemset2DAsync(to, 1ull << 62, 0, 8, 8, 0) != cudaErrorInvalidValue;
	n += cudaMemset2DAsync(to, 4, 0, 8, 8, 0) != cudaErrorInvalidValue;
	n += cudaMemset3DAsync(pitched(to, 0), 0, cudaExtent{ 8, 4, 2 }, 0) !=
	     cudaErrorInvalidValue;
	*errors += n;
}

static void expect_copies(unsigned char *to, const unsigned char *from)
{
	size_t slice = PITCH * ROWS;

	memset(to, 0x11, slice * SLICES);
	for (int y = 0; y < ROWS - 1; y++)
		memset(to + 1 + y * PITCH, 0x22, 30);
	for (int z = 1; z < 3; z++)
		for (int y = 0; y < 4; y++)
			memset(to + 2 + z * slice + y * PITCH, 0x33, 20);
	for (int y = 0; y < 5; y++)
		memcpy(to + 40 + y * PITCH, from + y * PITCH, 10);
	for (int z = 0; z < 2; z++)
		for (int y = 0; y < 5; y++)
			memcpy(to + 52 + z * slice + (y + 1) * PITCH,
				from + 3 + (z + 1) * slice + (y + 2) * PITCH, 6);
}

static void streams_and_copies()
{
	const size_t size = PITCH * ROWS * SLICES;
	std::vector<unsigned char> from(size), to(size), expected(size);
	int *device, host[8], *errors, n_errors = 1;
	unsigned char *bytes;

	CUDA(cudaMalloc(&device, sizeof(host)));
	CUDA(cudaMalloc(&errors, sizeof(*errors)));
	CUDA(cudaMemset(device, 0, sizeof(host)));
	CUDA(cudaMemset(errors, 0, sizeof(*errors)));
	events<<<1, 1>>>(device, errors);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	check("a stream", host[0], 41);
	check("a stream that waits for it", host[1], 42);
	check("a copy that waits for that", host[2], 42);
	check("a kernel after the copy", host[3], 43);
	check("a launch that is refused", host[4], 0);

	for (size_t i = 0; i < size; i++)
		from[i] = (unsigned char)(i * 7);
	CUDA(cudaMalloc(&bytes, 2 * size));
	CUDA(cudaMemcpy(bytes + size, from.data(), size, cudaMemcpyHostToDevice));
	copies<<<1, 1>>>(bytes, bytes + size, errors);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(to.data(), bytes, size, cudaMemcpyDeviceToHost));
	expect_copies(expected.data(), from.data());
	check("copies and fills", to == expected, true);
	CUDA(cudaMemcpy(&n_errors, errors, sizeof(n_errors), cudaMemcpyDeviceToHost));
	check("results of calls", n_errors, 0);
}

/*
 * What a kernel asks about the device; memory
 */

__global__ void __launch_bounds__(128) bounded(int *x)
{
	__shared__ int shared[100];

	shared[threadIdx.x] = *x;
	__syncthreads();
	*x = shared[99 - threadIdx.x];
}

__global__ void ask(int *out, size_t *limits, cudaFuncAttributes *attributes)
{
	int *p = NULL;

	out[0] = cudaGetDeviceCount(&out[1]);
	out[2] = cudaGetDevice(&out[3]);
	out[4] = cudaDeviceGetAttribute(&out[5], cudaDevAttrMultiProcessorCount, out[3]);
	out[6] = cudaDeviceGetLimit(&limits[0], cudaLimitDevRuntimePendingLaunchCount);
	out[7] = cudaFuncGetAttributes(attributes, (const void *)bounded);
	out[8] = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&out[9], bounded, 64, 0);
	out[10] = cudaMalloc(&p, 100 * sizeof(int));
	p[99] = 5;
	out[11] = p[99];
	out[12] = cudaFree(p);
	out[13] = cudaFree(out);
	out[14] = cudaDeviceGetAttribute(&out[15], cudaDevAttrWarpSize, 1000);
}

__global__ void exceed(int *out)
{
	out[0] = out[1] = 0;
	for (int i = 0; i < 8; i++) {
		add<<<1, 32, 32 * sizeof(int), cudaStreamTailLaunch>>>(&out[2], 1, 0);
		switch (cudaGetLastError()) {
		case cudaSuccess:
			out[0]++;
			break;
		case cudaErrorLaunchPendingCountExceeded:
			out[1]++;
			break;
		default:
			break;
		}
	}
}

static void questions()
{
	cudaFuncAttributes expected, *attributes, found;
	int *out, host[16], count, processors, blocks;
	size_t *limits, limit, set;

	CUDA(cudaMalloc(&out, sizeof(host)));
	CUDA(cudaMalloc(&limits, sizeof(limit)));
	CUDA(cudaMalloc(&attributes, sizeof(found)));
	CUDA(cudaMemset(attributes, 0, sizeof(found)));
	ask<<<1, 1>>>(out, limits, attributes);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(&limit, limits, sizeof(limit), cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(&found, attributes, sizeof(found), cudaMemcpyDeviceToHost));
	CUDA(cudaGetDeviceCount(&count));
	CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
	CUDA(cudaFuncGetAttributes(&expected, bounded));
	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 64, 0));
	CUDA(cudaDeviceGetLimit(&set, cudaLimitDevRuntimePendingLaunchCount));
	for (int i : { 0, 2, 4, 6, 7, 8, 10, 12 })
		check("calls that succeed", host[i], 0);
	check("number of devices", host[1], count);
	check("multiprocessors", host[5], processors);
	check("the limit", limit, set);
	check("the default limit", set, (size_t)2048);
	check("occupancy", host[9], blocks);
	check("the heap", host[11], 5);
	check("a free of the host's memory", host[13], (int)cudaErrorInvalidValue);
	check("a device that is not there", host[14], (int)cudaErrorInvalidDevice);
	check("threads", found.maxThreadsPerBlock, expected.maxThreadsPerBlock);
	check("shared memory", found.sharedSizeBytes, expected.sharedSizeBytes);
	check("registers", found.numRegs, expected.numRegs);

	CUDA(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 5));
	CUDA(cudaMemset(out, 0, sizeof(host)));
	exceed<<<1, 1>>>(out);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
	check("launches within the limit", host[0], 5);
	check("launches beyond it", host[1], 3);
	check("what they did", host[2], 5);
	CUDA(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, set));
}

/*
 * A fault of a child is one of the context
 */

__global__ void faulty_child(int *p)
{
	*p = 1;
}

__global__ void faulty_parent(int *p)
{
	faulty_child<<<1, 1, 0, cudaStreamTailLaunch>>>(p);
}

static void faults()
{
	faulty_parent<<<1, 1>>>((int *)8);
	CUDA(cudaGetLastError());
	check("fault of a child", (int)cudaDeviceSynchronize(),
		(int)cudaErrorIllegalAddress);
}

int main()
{
	sorts();
	orders();
	streams_and_copies();
	questions();
	faults();
	return result("dynamic", n_checks, n_wrong);
}
