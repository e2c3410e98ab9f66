/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on two devices, some of them wrong: prints the result of each, for a comparison
 * of one runtime with another
 */

#include <thread>

#include "runtime.h"

__device__ int variable;

__global__ void add(int *p, int x)
{
	*p = x + variable;
}

static void show(const char *what, cudaError_t result)
{
	printf("%s: %s, last %s\n", what, cudaGetErrorName(result),
		cudaGetErrorName(cudaGetLastError()));
}

#define SHOW(_call) show(#_call, _call)
#define NUMBER(_what) printf("%s = %lld\n", #_what, (long long)(_what))

static void show_device()
{
	int device = -1;

	SHOW(cudaGetDevice(&device));
	NUMBER(device);
}

/* In a thread of its own, which begins without a device. */
template <typename F> static void in_thread(F f)
{
	std::thread(f).join();
}

static void lists()
{
	int both[] = { 1, 0 }, twice[] = { 1, 1 }, wrong[] = { 0, 7 };

	in_thread([&] {
		SHOW(cudaSetValidDevices(both, 2));
		show_device();
		SHOW(cudaFree(0));
		show_device();
		SHOW(cudaSetValidDevices(wrong, 2));
		SHOW(cudaSetValidDevices(twice, 2));
		SHOW(cudaSetValidDevices(both, -1));
		SHOW(cudaSetValidDevices(both, 3));
		SHOW(cudaSetValidDevices(NULL, 1));
		SHOW(cudaSetValidDevices(NULL, 0));
		show_device();
	});
	/* A device that was set before stays. */
	in_thread([&] {
		SHOW(cudaSetDevice(0));
		SHOW(cudaSetValidDevices(both, 2));
		show_device();
		SHOW(cudaSetDevice(1));
		SHOW(cudaSetValidDevices(NULL, 0));
		show_device();
	});
	in_thread([] { show_device(); });
}

static void work(int *first, int *second)
{
	cudaPointerAttributes attributes;
	int five = 5, result = 0;

	SHOW(cudaSetDevice(1));
	SHOW(cudaMemcpyToSymbol(variable, &five, 4));
	add<<<1, 1>>>(second, 2);
	SHOW(cudaDeviceSynchronize());
	SHOW(cudaMemcpy(&result, second, 4, cudaMemcpyDeviceToHost));
	NUMBER(result);
	SHOW(cudaPointerGetAttributes(&attributes, first));
	NUMBER(attributes.device);
	SHOW(cudaMemcpyPeer(first, 0, second, 1, 4));
	SHOW(cudaMemcpy(&result, first, 4, cudaMemcpyDefault));
	NUMBER(result);
	/* The variable of the other device is another one. */
	SHOW(cudaSetDevice(0));
	add<<<1, 1>>>(first, 2);
	SHOW(cudaMemcpy(&result, first, 4, cudaMemcpyDefault));
	NUMBER(result);
}

static void peers(int *first, int *second)
{
	cudaMemcpy3DPeerParms box = {};
	int can = -1, result = 0;

	SHOW(cudaSetDevice(1));
	SHOW(cudaDeviceCanAccessPeer(&can, 1, 0));
	NUMBER(can);
	SHOW(cudaDeviceEnablePeerAccess(0, 0));
	SHOW(cudaDeviceEnablePeerAccess(0, 0));
	SHOW(cudaDeviceEnablePeerAccess(1, 0));
	add<<<1, 1>>>(first, 3);
	SHOW(cudaDeviceSynchronize());
	SHOW(cudaMemcpy(&result, first, 4, cudaMemcpyDefault));
	NUMBER(result);
	SHOW(cudaDeviceDisablePeerAccess(0));
	SHOW(cudaDeviceDisablePeerAccess(0));
	box.srcPtr = make_cudaPitchedPtr(second, 16, 16, 2);
	box.dstPtr = make_cudaPitchedPtr(first, 16, 16, 2);
	box.srcDevice = 1;
	box.extent = make_cudaExtent(16, 2, 1);
	SHOW(cudaMemcpy3DPeer(&box));
	box.dstDevice = 9;
	SHOW(cudaMemcpy3DPeer(&box));
}

static void streams(int *first)
{
	cudaStream_t stream;
	int device = -1;

	SHOW(cudaSetDevice(1));
	CUDA(cudaStreamCreate(&stream));
	SHOW(cudaSetDevice(0));
	add<<<1, 1, 0, stream>>>(first, 1);
	SHOW(cudaPeekAtLastError());
	SHOW(cudaStreamGetDevice(stream, &device));
	NUMBER(device);
	SHOW(cudaStreamSynchronize(stream));
	SHOW(cudaStreamDestroy(stream));
}

static void flags()
{
	cudaDeviceProp prop;
	unsigned int value = 99;
	int chosen = -1;

	SHOW(cudaGetDeviceProperties(&prop, 1));
	SHOW(cudaChooseDevice(&chosen, &prop));
	NUMBER(chosen);
	SHOW(cudaInitDevice(1, cudaDeviceScheduleSpin, cudaInitDeviceFlagsAreValid));
	show_device();
	SHOW(cudaSetDevice(1));
	SHOW(cudaGetDeviceFlags(&value));
	NUMBER(value);
	SHOW(cudaSetDeviceFlags(cudaDeviceScheduleYield));
	SHOW(cudaGetDeviceFlags(&value));
	NUMBER(value);
}

/* A reset concerns the device of the thread, and nothing if that has no context yet. */
static void resets(int *first, int *second)
{
	int *p;

	in_thread([] { SHOW(cudaDeviceReset()); });
	SHOW(cudaMemset(first, 0, 4));
	in_thread([&] {
		SHOW(cudaSetDevice(1));
		SHOW(cudaDeviceReset());
		SHOW(cudaDeviceReset());
		SHOW(cudaMemset(second, 0, 4));
		SHOW(cudaMalloc(&p, 16));
		show_device();
	});
	SHOW(cudaSetDevice(0));
	SHOW(cudaMemset(first, 0, 4));
	SHOW(cudaFree(first));
	SHOW(cudaDeviceReset());
}

int main()
{
	int n = 0, *first, *second;

	setvbuf(stdout, NULL, _IOLBF, 0);
	SHOW(cudaGetDeviceCount(&n));
	NUMBER(n);
	if (n < 2)
		return EXIT_FAILURE;
	lists();
	CUDA(cudaSetDevice(0));
	CUDA(cudaMalloc(&first, 64));
	CUDA(cudaSetDevice(1));
	CUDA(cudaMalloc(&second, 64));
	work(first, second);
	peers(first, second);
	streams(first);
	flags();
	resets(first, second);
	printf("two-devices: PASS\n");
	return EXIT_SUCCESS;
}
