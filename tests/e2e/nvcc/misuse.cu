/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrong and unusual uses of the Runtime API: prints the result of each, for a comparison
 * of one runtime with another
 */

#include <cstdint>
#include <cstring>

#include <cuda_profiler_api.h>

#include "runtime.h"

__device__ int variable[4];
__constant__ int constant[4];
__managed__ int managed[4];
static int no_variable[4];

__global__ void kernel(int *p)
{
	if (p)
		*p = variable[0] + constant[0] + managed[0];
}

static void no_kernel(int *p)
{
}

/* The result, and the thread's last error, which the call may have changed. */
static void show(const char *what, cudaError_t result)
{
	printf("%s: %s, last %s\n", what, cudaGetErrorName(result),
		cudaGetErrorName(cudaGetLastError()));
}

#define SHOW(_call) show(#_call, _call)
#define NUMBER(_what) printf("%s = %lld\n", #_what, (long long)(_what))

/* All bytes of a structure. */
static unsigned long long sum(const void *p, size_t size)
{
	unsigned long long s = 0;

	for (size_t i = 0; i < size; i++)
		s = s * 31 + ((const unsigned char *)p)[i];
	return s;
}

static void *const bad = (void *)0x1234;
static int host[64];

static void devices()
{
	cudaDeviceProp prop;
	int n = -1, value = -1;
	unsigned int flags = 77;
	size_t size = 0;
	char id[32] = "";

	SHOW(cudaGetDeviceCount(NULL));
	SHOW(cudaGetDevice(NULL));
	SHOW(cudaSetDevice(-1));
	SHOW(cudaSetDevice(99));
	SHOW(cudaGetDeviceProperties(&prop, 99));
	SHOW(cudaGetDeviceProperties(NULL, 0));
	memset(&prop, 0xa5, sizeof(prop));
	SHOW(cudaGetDeviceProperties(&prop, 0));
	NUMBER(sum(&prop, offsetof(cudaDeviceProp, reserved)));
	SHOW(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)9999, 0));
	SHOW(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 99));
	SHOW(cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0));
	SHOW(cudaDeviceGetByPCIBusId(&n, "nonsense"));
	SHOW(cudaDeviceGetPCIBusId(id, 4, 0));
	SHOW(cudaDeviceGetPCIBusId(id, 32, 99));
	SHOW(cudaDeviceCanAccessPeer(&value, 0, 99));
	SHOW(cudaDeviceCanAccessPeer(&value, 0, 0));
	NUMBER(value);
	SHOW(cudaDeviceEnablePeerAccess(0, 0));
	SHOW(cudaDeviceEnablePeerAccess(99, 0));
	SHOW(cudaDeviceDisablePeerAccess(99));
	SHOW(cudaDeviceGetLimit(&size, (cudaLimit)99));
	SHOW(cudaDeviceGetLimit(NULL, cudaLimitStackSize));
	SHOW(cudaDeviceSetLimit((cudaLimit)99, 1));
	SHOW(cudaDeviceSetCacheConfig((cudaFuncCache)77));
	SHOW(cudaSetDeviceFlags(0xffff));
	SHOW(cudaGetDeviceFlags(&flags));
	NUMBER(flags);
	SHOW(cudaGetDeviceFlags(NULL));
	SHOW(cudaInitDevice(99, 0, 0));
	SHOW(cudaInitDevice(0, 0, 77));
	SHOW(cudaChooseDevice(&n, &prop));
	NUMBER(n);
	SHOW(cudaSetValidDevices(NULL, 0));
	SHOW(cudaDriverGetVersion(NULL));
	SHOW(cudaRuntimeGetVersion(NULL));
	SHOW(cudaDeviceGetStreamPriorityRange(NULL, NULL));
}

static void memory()
{
	void *p = bad, *q = bad, *device;
	size_t pitch = 7;
	cudaPitchedPtr pitched = { bad, 7, 7, 7 };
	cudaPointerAttributes attributes;

	CUDA(cudaMalloc(&device, 4096));
	SHOW(cudaMalloc(&p, 0));
	NUMBER(p == NULL);
	SHOW(cudaMalloc(NULL, 16));
	SHOW(cudaMalloc(&p, (size_t)1 << 60));
	SHOW(cudaFree(NULL));
	SHOW(cudaFree(bad));
	SHOW(cudaFree((char *)device + 16));
	p = bad;
	SHOW(cudaMallocHost(&p, 0));
	NUMBER(p == NULL);
	SHOW(cudaMallocHost((void **)NULL, 16));
	SHOW(cudaHostAlloc(&p, 16, 0xffff));
	SHOW(cudaFreeHost(NULL));
	SHOW(cudaFreeHost(bad));
	SHOW(cudaFreeHost(host));
	SHOW(cudaHostRegister(NULL, 16, 0));
	SHOW(cudaHostRegister(host, 0, 0));
	SHOW(cudaHostUnregister(host));
	SHOW(cudaHostGetDevicePointer(&p, host, 0));
	SHOW(cudaHostGetDevicePointer(&p, NULL, 0));
	unsigned int flags;
	SHOW(cudaHostGetFlags(&flags, host));
	p = bad;
	SHOW(cudaMallocManaged((void **)&p, 0));
	NUMBER(p == NULL);
	SHOW(cudaMallocManaged((void **)&p, 16, 77));
	p = bad;
	SHOW(cudaMallocPitch(&p, &pitch, 0, 4));
	NUMBER(p == NULL);
	NUMBER(pitch);
	SHOW(cudaMallocPitch(NULL, &pitch, 16, 4));
	SHOW(cudaMallocPitch(&p, &pitch, 16, (size_t)1 << 60));
	SHOW(cudaMalloc3D(&pitched, make_cudaExtent(0, 4, 4)));
	NUMBER(pitched.ptr == NULL);
	NUMBER(pitched.pitch);
	NUMBER(pitched.xsize);
	SHOW(cudaMalloc3D(&pitched, make_cudaExtent(100, 3, 2)));
	NUMBER(pitched.pitch);
	NUMBER(pitched.xsize);
	NUMBER(pitched.ysize);
	SHOW(cudaFree(pitched.ptr));
	SHOW(cudaPointerGetAttributes(&attributes, host));
	NUMBER(attributes.type);
	NUMBER(attributes.device);
	NUMBER(attributes.devicePointer == NULL);
	NUMBER(attributes.hostPointer == host);
	SHOW(cudaPointerGetAttributes(&attributes, NULL));
	SHOW(cudaPointerGetAttributes(NULL, host));
	memset(&attributes, 0xa5, sizeof(attributes));
	SHOW(cudaPointerGetAttributes(&attributes, host));
	NUMBER(sum(&attributes, 2 * sizeof(int) + 2 * sizeof(void *)));
	SHOW(cudaPointerGetAttributes(&attributes, device));
	NUMBER(attributes.type);
	NUMBER(attributes.device);
	NUMBER(attributes.devicePointer == device);
	NUMBER(attributes.hostPointer == NULL);
	CUDA(cudaMallocHost(&q, 64));
	SHOW(cudaPointerGetAttributes(&attributes, q));
	NUMBER(attributes.type);
	NUMBER(attributes.device);
	NUMBER(attributes.hostPointer == q);
	SHOW(cudaFreeHost(q));
	SHOW(cudaPointerGetAttributes(&attributes, managed));
	NUMBER(attributes.type);
	SHOW(cudaMemGetInfo(NULL, NULL));
	SHOW(cudaFree(device));
}

static void copies()
{
	const cudaMemcpyKind unknown = (cudaMemcpyKind)77;
	int *device, other[64];

	CUDA(cudaMalloc(&device, 4096));
	SHOW(cudaMemcpy(device, host, 16, unknown));
	SHOW(cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault));
	SHOW(cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToHost));
	SHOW(cudaMemcpy(NULL, NULL, 0, unknown));
	SHOW(cudaMemcpy(NULL, host, 16, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy(device, NULL, 16, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy(host, NULL, 16, cudaMemcpyDeviceToHost));
	SHOW(cudaMemcpy(NULL, device, 16, cudaMemcpyDeviceToHost));
	SHOW(cudaMemcpy(device, bad, 16, cudaMemcpyDeviceToDevice));
	SHOW(cudaMemcpy(device, host, 8192, cudaMemcpyDeviceToDevice));
	SHOW(cudaMemcpy(device, host, 16, cudaMemcpyDeviceToHost));
	SHOW(cudaMemcpy(host, device, 16, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy(other, host, 16, cudaMemcpyHostToHost));
	SHOW(cudaMemcpy(other, host, 16, cudaMemcpyDefault));
	SHOW(cudaMemcpyAsync(device, host, 16, unknown, 0));
	SHOW(cudaMemcpyAsync(NULL, NULL, 0, cudaMemcpyDefault, 0));
	SHOW(cudaMemcpyAsync(NULL, NULL, 0, unknown, 0));
	SHOW(cudaMemcpyAsync(device, NULL, 16, cudaMemcpyHostToDevice, 0));
	SHOW(cudaMemcpyAsync(other, host, 16, cudaMemcpyHostToHost, 0));
	SHOW(cudaMemcpy2D(device, 4, host, 16, 8, 2, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy2D(device, 16, host, 4, 8, 2, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy2D(device, 16, host, 16, 8, 2, unknown));
	SHOW(cudaMemcpy2D(device, 4, host, 4, 8, 2, unknown));
	SHOW(cudaMemcpy2D(device, 16, host, 16, 0, 2, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy2D(device, 16, host, 16, 8, 0, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy2D(NULL, 16, host, 16, 8, 2, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy2D(NULL, 4, host, 4, 8, 0, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy2D(NULL, 4, host, 4, 8, 0, unknown));
	SHOW(cudaMemcpy2D(device, 4, host, 16, 8, 1, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy2D(device, 16, host, 4, 8, 1, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy2D(
		device, (size_t)1 << 40, host, 16, 8, 1, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy2D(host, 16, host + 4, 16, 8, 1, cudaMemcpyHostToHost));
	SHOW(cudaMemcpy2DAsync(device, 4, host, 16, 8, 2, cudaMemcpyHostToDevice, 0));
	SHOW(cudaMemcpyPeer(device, 99, device, 0, 16));
	SHOW(cudaMemcpyPeer(device + 8, 0, device, 0, 16));
	SHOW(cudaMemset(NULL, 0, 16));
	SHOW(cudaMemset(NULL, 0, 0));
	SHOW(cudaMemset(device, 0, 8192));
	SHOW(cudaMemset2D(device, 4, 0, 8, 2));
	SHOW(cudaMemset2D(device, 4, 0, 8, 1));
	SHOW(cudaMemset2D(device, 16, 0, 0, 2));
	SHOW(cudaMemset3D(
		make_cudaPitchedPtr(device, 16, 16, 2), 0, make_cudaExtent(16, 2, 2)));
	SHOW(cudaMemset3D(
		make_cudaPitchedPtr(device, 16, 16, 2), 0, make_cudaExtent(32, 2, 2)));
	SHOW(cudaMemset3D(
		make_cudaPitchedPtr(device, 16, 16, 2), 0, make_cudaExtent(8, 1, 2)));
	SHOW(cudaMemset3D(
		make_cudaPitchedPtr(device, 16, 16, 2), 0, make_cudaExtent(8, 3, 2)));
	cudaMemcpy3DParms box;
	memset(&box, 0, sizeof(box));
	SHOW(cudaMemcpy3D(NULL));
	SHOW(cudaMemcpy3D(&box));
	box.srcPtr = make_cudaPitchedPtr(host, 16, 16, 2);
	box.dstPtr = make_cudaPitchedPtr(device, 16, 16, 2);
	box.kind = cudaMemcpyHostToDevice;
	SHOW(cudaMemcpy3D(&box));
	box.extent = make_cudaExtent(0, 2, 2);
	SHOW(cudaMemcpy3D(&box));
	box.extent = make_cudaExtent(16, 0, 2);
	SHOW(cudaMemcpy3D(&box));
	box.extent = make_cudaExtent(16, 2, 0);
	SHOW(cudaMemcpy3D(&box));
	box.extent = make_cudaExtent(16, 2, 2);
	SHOW(cudaMemcpy3D(&box));
	box.srcPtr.ysize = 1;
	SHOW(cudaMemcpy3D(&box));
	box.srcPtr.ysize = 2;
	box.kind = unknown;
	SHOW(cudaMemcpy3D(&box));
	box.kind = cudaMemcpyHostToDevice;
	box.dstPtr.pitch = 8;
	SHOW(cudaMemcpy3D(&box));
	box.extent.depth = 1;
	SHOW(cudaMemcpy3D(&box));
	box.extent.height = 1;
	SHOW(cudaMemcpy3D(&box));
	SHOW(cudaFree(device));
}

static void symbols()
{
	void *address = NULL;
	size_t size = 0;
	int value[8] = { 0 };

	SHOW(cudaGetSymbolAddress(&address, no_variable));
	SHOW(cudaGetSymbolAddress(&address, (const void *)NULL));
	SHOW(cudaGetSymbolSize(&size, no_variable));
	SHOW(cudaGetSymbolSize(&size, constant));
	NUMBER(size);
	SHOW(cudaGetSymbolAddress(&address, managed));
	NUMBER(address == managed);
	SHOW(cudaGetSymbolSize(&size, managed));
	NUMBER(size);
	SHOW(cudaMemcpyToSymbol(no_variable, value, 4));
	SHOW(cudaMemcpyToSymbol(variable, value, 32));
	SHOW(cudaMemcpyToSymbol(variable, value, 4, 16));
	SHOW(cudaMemcpyToSymbol(variable, value, 4, (size_t)-2));
	SHOW(cudaMemcpyToSymbol(variable, value, 0));
	SHOW(cudaMemcpyToSymbol(variable, value, 4, 0, cudaMemcpyDeviceToHost));
	SHOW(cudaMemcpyToSymbol(variable, value, 4, 0, (cudaMemcpyKind)77));
	SHOW(cudaMemcpyToSymbol(managed, value, 4));
	SHOW(cudaMemcpyFromSymbol(value, variable, 4, 0, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpyFromSymbol(value, no_variable, 4));
	SHOW(cudaMemcpyFromSymbol(value, constant, 16));
}

static void launches()
{
	cudaFuncAttributes attributes;
	cudaLaunchConfig_t config;
	cudaFunction_t function;
	cudaKernel_t handle;
	const char *name = "";
	size_t offset = 99, size = 99;
	int *p = NULL, n = -1;
	void *params[] = { &p };
	const void *f = (const void *)kernel, *none = (const void *)no_kernel;

	SHOW(cudaLaunchKernel(none, dim3(1), dim3(1), params, 0, 0));
	SHOW(cudaLaunchKernel(f, dim3(0), dim3(1), params, 0, 0));
	SHOW(cudaLaunchKernel(f, dim3(1), dim3(2048), params, 0, 0));
	SHOW(cudaLaunchCooperativeKernel(f, dim3(1 << 20), dim3(1), params, 0, 0));
	SHOW(cudaLaunchCooperativeKernel(f, dim3(1), dim3(0), params, 0, 0));
	memset(&config, 0, sizeof(config));
	SHOW(cudaLaunchKernelExC(&config, f, params));
	config.gridDim = config.blockDim = dim3(1);
	SHOW(cudaLaunchKernelExC(&config, none, params));
	SHOW(cudaLaunchKernelExC(&config, f, params));
	kernel<<<0, 1>>>(p);
	SHOW(cudaPeekAtLastError());
	kernel<<<1, 1>>>(p);
	SHOW(cudaDeviceSynchronize());
	SHOW(cudaFuncGetAttributes(NULL, f));
	SHOW(cudaFuncGetAttributes(&attributes, none));
	memset(&attributes, 0xa5, sizeof(attributes));
	SHOW(cudaFuncGetAttributes(&attributes, f));
	NUMBER(sum(&attributes, offsetof(cudaFuncAttributes, reserved)));
	SHOW(cudaFuncSetAttribute(f, (cudaFuncAttribute)99, 1));
	SHOW(cudaFuncSetAttribute(
		f, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 30));
	SHOW(cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
	SHOW(cudaFuncSetCacheConfig(f, (cudaFuncCache)77));
	SHOW(cudaFuncGetName(&name, f));
	NUMBER(strcmp(name, "_Z6kernelPi"));
	SHOW(cudaFuncGetName(&name, none));
	SHOW(cudaFuncGetName(NULL, f));
	SHOW(cudaFuncGetParamInfo(f, 0, &offset, &size));
	NUMBER(offset);
	NUMBER(size);
	SHOW(cudaFuncGetParamInfo(f, 1, &offset, &size));
	SHOW(cudaGetKernel(&handle, none));
	SHOW(cudaGetKernel(&handle, f));
	SHOW(cudaLaunchKernel((const void *)handle, dim3(1), dim3(1), params, 0, 0));
	SHOW(cudaGetFuncBySymbol(&function, f));
	SHOW(cudaGetFuncBySymbol(&function, none));
	SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 0, 0));
	SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 4096, 0));
	SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessor(NULL, f, 32, 0));
	SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, f, 32, 0, 77));
	SHOW(cudaOccupancyAvailableDynamicSMemPerBlock(&size, f, 1, 4096));
	SHOW(cudaLaunchHostFunc(0, NULL, NULL));
	SHOW(cudaDeviceSynchronize());
}

static void streams()
{
	cudaStream_t stream;
	cudaEvent_t event, other;
	float ms;
	int priority;

	SHOW(cudaStreamCreate(NULL));
	SHOW(cudaStreamCreateWithFlags(&stream, 77));
	SHOW(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 99));
	SHOW(cudaStreamGetPriority(stream, &priority));
	NUMBER(priority);
	SHOW(cudaStreamDestroy(stream));
	SHOW(cudaStreamDestroy(NULL));
	SHOW(cudaStreamDestroy(cudaStreamPerThread));
	SHOW(cudaStreamQuery(0));
	SHOW(cudaStreamGetFlags(0, NULL));
	SHOW(cudaStreamWaitEvent(0, NULL, 0));
	SHOW(cudaStreamAddCallback(0, NULL, NULL, 0));
	SHOW(cudaEventCreate(NULL));
	SHOW(cudaEventCreateWithFlags(&event, 0xffff));
	CUDA(cudaEventCreate(&event));
	CUDA(cudaEventCreateWithFlags(&other, cudaEventDisableTiming));
	SHOW(cudaEventQuery(event));
	SHOW(cudaEventSynchronize(event));
	SHOW(cudaEventElapsedTime(&ms, event, event));
	SHOW(cudaEventRecord(event, 0));
	SHOW(cudaEventRecord(other, 0));
	SHOW(cudaDeviceSynchronize());
	SHOW(cudaEventElapsedTime(&ms, event, other));
	SHOW(cudaEventElapsedTime(NULL, event, event));
	SHOW(cudaEventRecord(NULL, 0));
	SHOW(cudaEventRecordWithFlags(event, 0, 77));
	SHOW(cudaEventQuery(NULL));
	SHOW(cudaEventDestroy(NULL));
	SHOW(cudaEventDestroy(event));
	SHOW(cudaEventDestroy(other));
}

static volatile bool may_end;

static void wait_for_program(void *)
{
	while (!may_end)
		;
}

static void unfinished()
{
	cudaEvent_t event;

	CUDA(cudaEventCreate(&event));
	CUDA(cudaLaunchHostFunc(0, wait_for_program, NULL));
	CUDA(cudaEventRecord(event, 0));
	SHOW(cudaStreamQuery(0));
	SHOW(cudaEventQuery(event));
	may_end = true;
	SHOW(cudaEventSynchronize(event));
	SHOW(cudaEventQuery(event));
	SHOW(cudaEventDestroy(event));
}

static void arrays()
{
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>(), found;
	cudaArray_t array, other;
	cudaMipmappedArray_t mipmap;
	cudaExtent extent;
	unsigned int flags = 99;

	SHOW(cudaMallocArray(&array, NULL, 8, 8));
	SHOW(cudaMallocArray(NULL, &desc, 8, 8));
	SHOW(cudaMallocArray(&array, &desc, 0, 0));
	SHOW(cudaMallocArray(&array, &desc, 8, 8, 0xffff));
	desc.y = 16;
	SHOW(cudaMallocArray(&array, &desc, 8, 8));
	desc = cudaCreateChannelDesc(32, 32, 32, 0, cudaChannelFormatKindFloat);
	SHOW(cudaMallocArray(&array, &desc, 8, 8));
	desc = cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindFloat);
	SHOW(cudaMallocArray(&array, &desc, 8, 8));
	desc = cudaCreateChannelDesc(64, 0, 0, 0, cudaChannelFormatKindSigned);
	SHOW(cudaMallocArray(&array, &desc, 8, 8));
	desc = cudaCreateChannelDesc(0, 0, 0, 0, cudaChannelFormatKindNone);
	SHOW(cudaMallocArray(&array, &desc, 8, 8));
	desc = cudaCreateChannelDesc<float2>();
	SHOW(cudaMallocArray(&other, &desc, 4, 0));
	SHOW(cudaArrayGetInfo(&found, &extent, &flags, other));
	NUMBER(found.y);
	NUMBER(extent.width);
	NUMBER(extent.height);
	NUMBER(flags);
	SHOW(cudaArrayGetInfo(NULL, NULL, NULL, other));
	SHOW(cudaArrayGetInfo(&found, &extent, &flags, NULL));
	SHOW(cudaGetChannelDesc(&found, NULL));
	SHOW(cudaGetChannelDesc(NULL, other));
	SHOW(cudaFreeArray(other));
	SHOW(cudaFreeArray(NULL));
	SHOW(cudaMalloc3DArray(&array, &desc, make_cudaExtent(4, 4, 4), 0));
	SHOW(cudaMemcpy2DToArray(NULL, 0, 0, host, 16, 16, 1, cudaMemcpyHostToDevice));
	SHOW(cudaFreeArray(array));
	desc = cudaCreateChannelDesc<float>();
	CUDA(cudaMallocArray(&array, &desc, 8, 4));
	SHOW(cudaMemcpy2DToArray(array, 0, 0, host, 8, 16, 1, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy2DToArray(array, 0, 0, host, 8, 16, 2, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy2DToArray(array, 0, 0, host, 8, 16, 0, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy2DToArray(array, 0, 0, host, 8, 0, 2, (cudaMemcpyKind)77));
	SHOW(cudaMemcpy2DFromArray(host, 8, array, 0, 0, 16, 2, cudaMemcpyDeviceToHost));
	SHOW(cudaMemcpy2DFromArray(host, 16, NULL, 0, 0, 16, 2, cudaMemcpyDeviceToHost));
	SHOW(cudaMemcpy2DToArray(array, 0, 0, host, 32, 32, 9, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy2DToArray(array, 0, 0, host, 32, 32, 4, cudaMemcpyDeviceToHost));
	SHOW(cudaMemcpy2DToArray(array, 0, 0, host, 32, 0, 4, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpy2DToArray(array, 0, 0, host, 32, 32, 4, (cudaMemcpyKind)77));
	SHOW(cudaMemcpy2DToArray(array, 0, 0, host, 32, 32, 4, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpyToArray(array, 0, 0, host, 128, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpyToArray(array, 4, 1, host, 64, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpyToArray(array, 0, 0, host, 160, cudaMemcpyHostToDevice));
	SHOW(cudaMemcpyFromArray(host, array, 0, 0, 128, cudaMemcpyDeviceToHost));
	cudaMemcpy3DParms box;
	memset(&box, 0, sizeof(box));
	box.srcPtr = make_cudaPitchedPtr(host, 32, 32, 4);
	box.dstArray = array;
	box.extent = make_cudaExtent(8, 4, 1);
	box.kind = cudaMemcpyHostToDevice;
	SHOW(cudaMemcpy3D(&box));
	box.extent.width = 9;
	SHOW(cudaMemcpy3D(&box));
	box.extent.width = 8;
	box.srcArray = array;
	SHOW(cudaMemcpy3D(&box));
	SHOW(cudaFreeArray(array));
	SHOW(cudaMallocMipmappedArray(
		&mipmap, &desc, make_cudaExtent(8, 8, 0), 4, 0xffff));
	SHOW(cudaMallocMipmappedArray(&mipmap, &desc, make_cudaExtent(8, 8, 0), 3));
	SHOW(cudaGetMipmappedArrayLevel(&array, mipmap, 9));
	SHOW(cudaFreeMipmappedArray(mipmap));
	SHOW(cudaFreeMipmappedArray(NULL));
}

static void textures()
{
	cudaResourceDesc resource, found;
	cudaTextureDesc desc, found_desc;
	cudaTextureObject_t texture;
	cudaSurfaceObject_t surface;
	void *device;

	CUDA(cudaMalloc(&device, 4096));
	memset(&resource, 0, sizeof(resource));
	memset(&desc, 0, sizeof(desc));
	resource.resType = cudaResourceTypeLinear;
	resource.res.linear.devPtr = device;
	resource.res.linear.desc = cudaCreateChannelDesc<int>();
	resource.res.linear.sizeInBytes = 4096;
	SHOW(cudaCreateTextureObject(NULL, &resource, &desc, NULL));
	SHOW(cudaCreateTextureObject(&texture, NULL, &desc, NULL));
	SHOW(cudaCreateTextureObject(&texture, &resource, NULL, NULL));
	SHOW(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
	SHOW(cudaGetTextureObjectResourceDesc(&found, texture));
	NUMBER(found.res.linear.desc.x);
	NUMBER(found.res.linear.desc.f);
	SHOW(cudaGetTextureObjectTextureDesc(&found_desc, texture));
	NUMBER(found_desc.readMode);
	NUMBER(sum(&found_desc, sizeof(found_desc)));
	SHOW(cudaGetTextureObjectResourceDesc(NULL, texture));
	SHOW(cudaDestroyTextureObject(texture));
	SHOW(cudaDestroyTextureObject(0));
	desc.readMode = cudaReadModeNormalizedFloat;
	SHOW(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
	desc.readMode = cudaReadModeElementType;
	desc.filterMode = cudaFilterModeLinear;
	SHOW(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
	desc.filterMode = cudaFilterModePoint;
	resource.res.linear.desc =
		cudaCreateChannelDesc(7, 0, 0, 0, cudaChannelFormatKindSigned);
	SHOW(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
	resource.resType = (cudaResourceType)77;
	SHOW(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = NULL;
	SHOW(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
	SHOW(cudaCreateSurfaceObject(&surface, &resource));
	SHOW(cudaCreateSurfaceObject(NULL, &resource));
	SHOW(cudaCreateSurfaceObject(&surface, NULL));
	SHOW(cudaDestroySurfaceObject(0));
	SHOW(cudaFree(device));
}

static void formats()
{
	const cudaChannelFormatDesc descs[] = { cudaCreateChannelDesc<unsigned char>(),
		cudaCreateChannelDesc<short2>(), cudaCreateChannelDesc<uint4>(),
		cudaCreateChannelDesc<float>(), cudaCreateChannelDescHalf(),
		cudaCreateChannelDesc<int>() };
	const int n = sizeof(descs) / sizeof(descs[0]);
	cudaResourceDesc resource;
	cudaTextureDesc desc;

	memset(&resource, 0, sizeof(resource));
	memset(&desc, 0, sizeof(desc));
	resource.resType = cudaResourceTypeArray;
	for (int i = 0; i < n * 4; i++) {
		cudaTextureObject_t texture;

		CUDA(cudaMallocArray(&resource.res.array.array, &descs[i / 4], 8, 8));
		desc.readMode = (cudaTextureReadMode)(i & 1);
		desc.filterMode = (cudaTextureFilterMode)(i >> 1 & 1);
		NUMBER(i);
		SHOW(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
		SHOW(cudaFreeArray(resource.res.array.array));
	}
}

static void pools()
{
	cudaMemPool_t pool;
	cudaMemPoolProps props;
	void *p;
	uint64_t value = 0;

	memset(&props, 0, sizeof(props));
	SHOW(cudaMemPoolCreate(&pool, &props));
	SHOW(cudaMemPoolCreate(&pool, NULL));
	SHOW(cudaDeviceGetDefaultMemPool(&pool, 99));
	SHOW(cudaDeviceGetDefaultMemPool(&pool, 0));
	SHOW(cudaMemPoolGetAttribute(pool, (cudaMemPoolAttr)99, &value));
	SHOW(cudaMemPoolDestroy(pool));
	SHOW(cudaMallocAsync(&p, 0, 0));
	SHOW(cudaMallocAsync((void **)NULL, 16, 0));
	SHOW(cudaFreeAsync(NULL, 0));
#if CUDART_VERSION >= 13000
	const cudaMemLocation on_host = { cudaMemLocationTypeHost };
	SHOW(cudaMemAdvise(host, 64, cudaMemAdviseSetReadMostly, on_host));
	SHOW(cudaMemPrefetchAsync(bad, 64, on_host, 0, 0));
#else
	SHOW(cudaMemAdvise(host, 64, cudaMemAdviseSetReadMostly, 0));
	SHOW(cudaMemPrefetchAsync(bad, 64, 0, 0));
#endif
	SHOW(cudaIpcCloseMemHandle(bad));
	SHOW(cudaIpcGetMemHandle(NULL, bad));
}

/* With and without data of edges. */
#if CUDART_VERSION >= 13000
#define ADD_NODE(_node, _graph, _params)                                                 \
	cudaGraphAddNode(_node, _graph, NULL, NULL, 0, _params)
#else
#define ADD_NODE(_node, _graph, _params) cudaGraphAddNode(_node, _graph, NULL, 0, _params)
#endif

/* Copies of memory and of variables after that node; the last one is returned. */
static cudaGraphNode_t graph_copies(cudaGraph_t graph, cudaGraphNode_t node, void *device)
{
	cudaGraphNode_t copy = NULL;
	cudaMemcpy3DParms box;

	SHOW(cudaGraphAddMemcpyNode1D(
		&copy, graph, &node, 1, device, host, 64, (cudaMemcpyKind)77));
	SHOW(cudaGraphAddMemcpyNode1D(
		&copy, graph, &node, 1, device, host, 64, cudaMemcpyHostToDevice));
	SHOW(cudaGraphMemcpyNodeGetParams(copy, &box));
	NUMBER(box.kind);
	NUMBER(box.extent.width);
	NUMBER(box.extent.height);
	NUMBER(box.srcPtr.ptr == host);
	NUMBER(box.dstPtr.ptr == device);
	NUMBER(box.srcPtr.pitch);
	NUMBER(box.srcPtr.xsize);
	NUMBER(box.srcPtr.ysize);
	NUMBER(box.dstPtr.pitch);
	NUMBER(box.dstPtr.xsize);
	NUMBER(box.dstPtr.ysize);
	NUMBER(box.extent.depth);
	memset(&box, 0, sizeof(box));
	box.srcPtr = make_cudaPitchedPtr(host, 32, 24, 2);
	box.dstPtr = make_cudaPitchedPtr(device, 64, 48, 3);
	box.srcPos = make_cudaPos(1, 0, 0);
	box.extent = make_cudaExtent(16, 2, 1);
	box.kind = cudaMemcpyHostToDevice;
	SHOW(cudaGraphAddMemcpyNode(&copy, graph, &node, 1, &box));
	SHOW(cudaGraphMemcpyNodeGetParams(copy, &box));
	NUMBER(box.kind);
	NUMBER(box.srcPos.x);
	NUMBER(box.extent.width);
	NUMBER(box.srcPtr.pitch);
	NUMBER(box.srcPtr.xsize);
	NUMBER(box.srcPtr.ysize);
	NUMBER(box.dstPtr.pitch);
	NUMBER(box.dstPtr.xsize);
	NUMBER(box.dstPtr.ysize);
	SHOW(cudaGraphMemcpyNodeSetParams(copy, &box));
	box.extent.width = 0;
	SHOW(cudaGraphMemcpyNodeSetParams(copy, &box));
	SHOW(cudaGraphAddMemcpyNode1D(
		&copy, graph, NULL, 0, device, host, 0, cudaMemcpyHostToDevice));
	SHOW(cudaGraphAddMemcpyNode1D(
		&copy, graph, NULL, 0, device, NULL, 4, cudaMemcpyHostToDevice));
	SHOW(cudaGraphAddMemcpyNode1D(
		&copy, graph, NULL, 0, device, device, 4, cudaMemcpyDefault));
	SHOW(cudaGraphMemcpyNodeGetParams(copy, &box));
	NUMBER(box.kind);
	SHOW(cudaGraphAddMemcpyNodeToSymbol(
		&copy, graph, NULL, 0, no_variable, host, 4, 0, cudaMemcpyHostToDevice));
	SHOW(cudaGraphAddMemcpyNodeToSymbol(
		&copy, graph, NULL, 0, variable, host, 64, 0, cudaMemcpyHostToDevice));
	SHOW(cudaGraphAddMemcpyNodeToSymbol(
		&copy, graph, NULL, 0, variable, host, 4, 0, cudaMemcpyDeviceToHost));
	SHOW(cudaGraphAddMemcpyNodeFromSymbol(
		&copy, graph, NULL, 0, host, variable, 4, 0, cudaMemcpyDeviceToHost));
	return copy;
}

static void graphs()
{
	cudaGraph_t graph, child;
	cudaGraphNode_t node, copy;
	cudaGraphExec_t exec;
	cudaKernelNodeParams params, found;
	cudaGraphNodeParams any = { cudaGraphNodeTypeEmpty };
	cudaMemsetParams fill, found_fill;
	void *device, *values[] = { &device };
	size_t n;

	CUDA(cudaMalloc(&device, 4096));
	SHOW(cudaGraphCreate(&graph, 77));
	SHOW(cudaGraphCreate(NULL, 0));
	CUDA(cudaGraphCreate(&graph, 0));
	memset(&params, 0, sizeof(params));
	SHOW(cudaGraphAddKernelNode(&node, graph, NULL, 0, NULL));
	params.func = (void *)no_kernel;
	SHOW(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
	params.func = (void *)kernel;
	params.kernelParams = values;
	SHOW(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
	params.gridDim = params.blockDim = dim3(1);
	SHOW(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
	SHOW(cudaGraphKernelNodeGetParams(node, &found));
	NUMBER(found.func == (void *)kernel);
	NUMBER(found.blockDim.x);
	SHOW(cudaGraphKernelNodeGetParams(NULL, &found));
	copy = graph_copies(graph, node, device);
	SHOW(cudaGraphKernelNodeGetParams(copy, &found));
	memset(&fill, 0, sizeof(fill));
	SHOW(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
	fill.dst = device;
	fill.elementSize = 4;
	fill.width = 16;
	fill.height = 1;
	SHOW(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
	SHOW(cudaGraphMemsetNodeGetParams(node, &found_fill));
	NUMBER(found_fill.width);
	memset(&any, 0, sizeof(any));
	any.type = (cudaGraphNodeType)77;
	SHOW(ADD_NODE(&node, graph, &any));
	any.type = cudaGraphNodeTypeKernel;
	any.kernel.func = (void *)kernel;
	any.kernel.gridDim = any.kernel.blockDim = dim3(1);
	any.kernel.kernelParams = values;
	SHOW(ADD_NODE(&node, graph, &any));
	SHOW(ADD_NODE(&node, graph, NULL));
	SHOW(cudaGraphGetNodes(graph, NULL, &n));
	NUMBER(n);
	SHOW(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, graph));
	SHOW(cudaGraphInstantiate(&exec, NULL, 0));
	SHOW(cudaGraphInstantiate(&exec, graph, 0));
	SHOW(cudaGraphInstantiateWithParams(&exec, graph, NULL));
	SHOW(cudaGraphLaunch(NULL, 0));
	SHOW(cudaGraphExecKernelNodeSetParams(exec, copy, &params));
	SHOW(cudaGraphExecMemcpyNodeSetParams1D(
		NULL, copy, device, host, 64, cudaMemcpyHostToDevice));
	SHOW(cudaGraphExecDestroy(exec));
	SHOW(cudaGraphExecDestroy(NULL));
	SHOW(cudaGraphClone(&child, NULL));
	SHOW(cudaGraphDestroy(graph));
	SHOW(cudaGraphDestroy(NULL));
	SHOW(cudaFree(device));
}

static void captures()
{
	cudaStreamCaptureStatus status;
	cudaStreamCaptureMode mode = (cudaStreamCaptureMode)77;
	cudaStream_t stream;
	cudaGraph_t graph;

	CUDA(cudaStreamCreate(&stream));
	SHOW(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal));
	SHOW(cudaStreamBeginCapture(stream, mode));
	SHOW(cudaStreamEndCapture(stream, &graph));
	SHOW(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	SHOW(cudaStreamIsCapturing(stream, &status));
	NUMBER(status);
	SHOW(cudaStreamSynchronize(stream));
	SHOW(cudaStreamIsCapturing(stream, &status));
	NUMBER(status);
	SHOW(cudaStreamEndCapture(stream, &graph));
	SHOW(cudaThreadExchangeStreamCaptureMode(&mode));
	SHOW(cudaStreamDestroy(stream));
}

static void rest()
{
	void *function = bad;
	cudaDriverEntryPointQueryResult status;

	SHOW(cudaGetDriverEntryPointByVersion(NULL, &function, 12000, 0, &status));
	SHOW(cudaGetDriverEntryPointByVersion("cuInit", NULL, 12000, 0, &status));
	SHOW(cudaGetDriverEntryPointByVersion("cuInit", &function, 12000, 77, &status));
	SHOW(cudaGetDriverEntryPointByVersion("cuNone", &function, 12000, 0, NULL));
	NUMBER(function == NULL);
	SHOW(cudaGetDriverEntryPointByVersion("cuInit", &function, 12000, 0, NULL));
	NUMBER(function != NULL);
	SHOW(cudaProfilerStart());
	SHOW(cudaProfilerStop());
	NUMBER(cudaGetErrorName((cudaError_t)12345) != NULL);
	printf("%s\n", cudaGetErrorName((cudaError_t)12345));
	printf("%s\n", cudaGetErrorString((cudaError_t)12345));
	for (int i = 0; i < 1000; i++) {
		if (cudaGetErrorName((cudaError_t)i)[0] == 'c')
			printf("%d %s\n", i, cudaGetErrorName((cudaError_t)i));
	}
	SHOW(cudaSetDevice(0));
	SHOW(cudaDeviceReset());
	SHOW(cudaFree(0));
	SHOW(cudaDeviceReset());
}

__global__ void trap()
{
	asm("trap;");
}

/* The context is lost; the manual says that the program must end. */
static void faults()
{
	void *p;
	int n;

	trap<<<1, 1>>>();
	SHOW(cudaGetLastError());
	SHOW(cudaDeviceSynchronize());
	SHOW(cudaGetLastError());
	SHOW(cudaMalloc(&p, 16));
	SHOW(cudaFree(NULL));
	SHOW(cudaGetDevice(&n));
	SHOW(cudaGetDeviceCount(&n));
	SHOW(cudaSetDevice(0));
	SHOW(cudaMemset(NULL, 0, 0));
	kernel<<<1, 1>>>(NULL);
	SHOW(cudaGetLastError());
	SHOW(cudaFreeHost(NULL));
	SHOW(cudaDeviceReset());
}

int main()
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	SHOW(cudaPeekAtLastError());
	devices();
	memory();
	copies();
	symbols();
	launches();
	streams();
	unfinished();
	arrays();
	textures();
	formats();
	pools();
	graphs();
	captures();
	rest();
	faults();
	printf("misuse: PASS\n");
	return EXIT_SUCCESS;
}
