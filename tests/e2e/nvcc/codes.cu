/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error codes that the Runtime API documents
 */

#include "runtime.h"

__global__ void fill(int *p)
{
	if (p)
		*p = 1;
}

__global__ void __launch_bounds__(256) small(int *p)
{
	if (p)
		*p = 1;
}

__global__ void shares(int *p)
{
	extern __shared__ int words[];

	words[threadIdx.x] = 1;
	if (p)
		*p = words[0];
}

static void no_kernel(int *p)
{
}

static size_t n_tried, n_wrong;

static void expect(const char *what, cudaError_t got, cudaError_t expected)
{
	n_tried++;
	cudaGetLastError();
	if (got == expected)
		return;
	n_wrong++;
	printf("%s is %s, not %s\n", what, cudaGetErrorName(got),
		cudaGetErrorName(expected));
}

#define EXPECT(_call, _expected) expect(#_call, _call, _expected)

static cudaError_t launch(void (*kernel)(int *), dim3 grid, dim3 block, size_t shared)
{
	int *p = NULL;
	void *arguments[] = { &p };
	cudaError_t r = cudaLaunchKernel(
		(const void *)kernel, grid, block, arguments, shared, NULL);

	return r != cudaSuccess ? r : cudaDeviceSynchronize();
}

static void launches()
{
	const cudaError_t wrong = cudaErrorInvalidConfiguration;

	EXPECT(launch(fill, 1, 1, 0), cudaSuccess);
	EXPECT(launch(fill, 0, 1, 0), wrong);
	EXPECT(launch(fill, dim3(1, 0, 1), 1, 0), wrong);
	EXPECT(launch(fill, 1, 0, 0), wrong);
	EXPECT(launch(fill, 1, dim3(0, 0, 0), 0), wrong);
	EXPECT(launch(fill, 1, 1025, 0), wrong);
	EXPECT(launch(fill, 1, dim3(41, 25), 0), wrong);
	EXPECT(launch(fill, 1, dim3(1, 1, 65), 0), wrong);
	EXPECT(launch(fill, dim3(1, 65536), 1, 0), wrong);
	EXPECT(launch(fill, dim3(1, 1, 65536), 1, 0), wrong);
	EXPECT(launch(shares, 1, 1, 49152), cudaSuccess);
	EXPECT(launch(shares, 1, 1, 49153), wrong);
	EXPECT(launch(shares, 1, 1, 1 << 20), wrong);
	/* The sizes are legal, but not for this kernel. */
	EXPECT(launch(small, 1, 512, 0), cudaErrorInvalidValue);
	/* A launch that is refused changes nothing for the next one. */
	EXPECT(launch(fill, 1, 1, 0), cudaSuccess);
}

static void functions()
{
	const cudaError_t wrong = cudaErrorInvalidDeviceFunction;
	const void *host = (const void *)no_kernel;
	cudaFuncAttributes attributes;
	int n;

	EXPECT(launch(no_kernel, 1, 1, 0), wrong);
	EXPECT(launch(NULL, 1, 1, 0), wrong);
	EXPECT(cudaFuncGetAttributes(&attributes, host), wrong);
	EXPECT(cudaFuncSetAttribute(
		       host, cudaFuncAttributeMaxDynamicSharedMemorySize, 100),
		wrong);
	EXPECT(cudaFuncSetCacheConfig(host, cudaFuncCachePreferL1), wrong);
	EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, host, 32, 0), wrong);
	EXPECT(cudaFuncSetAttribute((const void *)fill,
		       cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
		cudaSuccess);
	EXPECT(cudaFuncGetAttributes(&attributes, (const void *)fill), cudaSuccess);
	n_wrong += attributes.nonPortableClusterSizeAllowed != 1;
}

static void memory()
{
	const cudaMemLocation device = { cudaMemLocationTypeDevice, { 0 } };
	const cudaMemLocation host = { cudaMemLocationTypeHost, { 0 } };
	int concurrent = 0, word, *p;
	cudaError_t on_device;
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMallocManaged(&p, 1 << 20));
	CUDA(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
	on_device = concurrent ? cudaSuccess : cudaErrorInvalidDevice;
	EXPECT(cudaStreamAttachMemAsync(stream, p, 0, cudaMemAttachGlobal), cudaSuccess);
	EXPECT(cudaStreamAttachMemAsync(stream, p, 0, cudaMemAttachHost), cudaSuccess);
	EXPECT(cudaStreamAttachMemAsync(stream, p, 0, cudaMemAttachSingle), cudaSuccess);
	EXPECT(cudaStreamAttachMemAsync(NULL, p, 0, cudaMemAttachSingle),
		cudaErrorInvalidValue);
	EXPECT(cudaStreamAttachMemAsync(stream, p, 100, cudaMemAttachGlobal),
		cudaErrorInvalidValue);
	EXPECT(cudaMemAdvise(p, 1 << 20, cudaMemAdviseSetReadMostly, device),
		cudaSuccess);
	EXPECT(cudaMemAdvise(p, 1 << 20, cudaMemAdviseSetPreferredLocation, host),
		cudaSuccess);
	EXPECT(cudaMemAdvise(p, 1 << 20, cudaMemAdviseSetPreferredLocation, device),
		on_device);
	EXPECT(cudaMemAdvise(p, 1 << 20, cudaMemAdviseSetAccessedBy, device), on_device);
	EXPECT(cudaMemPrefetchAsync(p, 1 << 20, device, 0, stream), on_device);
	EXPECT(cudaMemPrefetchAsync(p, 1 << 20, host, 0, stream), cudaSuccess);
	EXPECT(cudaHostUnregister(&word), cudaErrorHostMemoryNotRegistered);
	EXPECT(cudaHostUnregister(NULL), cudaErrorInvalidValue);
	EXPECT(cudaDestroyTextureObject(0), cudaSuccess);
	EXPECT(cudaDestroySurfaceObject(0), cudaSuccess);
	EXPECT(cudaFree(&word), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(p, &word, 4, (cudaMemcpyKind)77),
		cudaErrorInvalidMemcpyDirection);
}

static void entries()
{
	cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
	void *function = &status;

	EXPECT(cudaGetDriverEntryPointByVersion(
		       "cuNoSuchThing", &function, 12000, cudaEnableDefault, &status),
		cudaSuccess);
	n_wrong += status != cudaDriverEntryPointSymbolNotFound || function;
	EXPECT(cudaGetDriverEntryPointByVersion(
		       "cuLibraryLoadData", &function, 11000, cudaEnableDefault, &status),
		cudaSuccess);
	n_wrong += status != cudaDriverEntryPointVersionNotSufficent || function;
	EXPECT(cudaGetDriverEntryPointByVersion(
		       "cuMemAlloc", &function, 99000, cudaEnableDefault, &status),
		cudaErrorInvalidValue);
	EXPECT(cudaGetDriverEntryPointByVersion(
		       "cuMemAlloc", &function, 12000, 0x100, &status),
		cudaErrorInvalidValue);
}

int main()
{
	launches();
	functions();
	memory();
	entries();
	return result("codes", n_tried, n_wrong);
}
