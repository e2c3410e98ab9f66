/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two halves of a device: kernels of either stay on its multiprocessors, in streams and
 * in the default stream of a green context, which shares memory with all others
 */

#include "driver.h"

#define N 256

/* The driver's functions, as programs that link the runtime alone get them. */
static struct {
	CUresult (*resource)(CUdevice, CUdevResource *, CUdevResourceType);
	CUresult (*split)(CUdevResource *, unsigned int *, const CUdevResource *,
		CUdevResource *, unsigned int, unsigned int);
	CUresult (*describe)(CUdevResourceDesc *, CUdevResource *, unsigned int);
	CUresult (*create)(CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned int);
	CUresult (*destroy)(CUgreenCtx);
	CUresult (*convert)(CUcontext *, CUgreenCtx);
	CUresult (*stream)(CUstream *, CUgreenCtx, unsigned int, int);
	CUresult (*current)(CUcontext);
} driver;

__global__ void where(unsigned int *out, unsigned int *sum)
{
	unsigned int smid, x = blockIdx.x;

	asm volatile("mov.u32 %0, %%smid;" : "=r"(smid));
	for (int i = 0; i < 3000; i++)
		x = 3 * x + 1;
	if (threadIdx.x == 0)
		out[blockIdx.x] = smid;
	atomicAdd(sum, x);
}

/* Returns: how many multiprocessors the blocks have seen, which are marked. */
static unsigned int look(const unsigned int *out, std::vector<bool> &seen)
{
	std::vector<unsigned int> sms(N);
	unsigned int n = 0;

	CUDA(cudaMemcpy(
		sms.data(), out, N * sizeof(unsigned int), cudaMemcpyDeviceToHost));
	for (unsigned int sm : sms)
		seen[sm % seen.size()] = true;
	for (bool is_seen : seen)
		n += is_seen;
	return n;
}

int main()
{
	std::vector<bool> seen[2] = { std::vector<bool>(1024), std::vector<bool>(1024) };
	CUdevResource whole, halves[2];
	unsigned int *out, *sum, n = 2, sums[2];
	CUdevResourceDesc desc;
	size_t n_wrong = 0;
	CUgreenCtx green[2];
	CUcontext context;
	CUstream stream;

	CUDA(cudaSetDevice(0));
	CUDA(cudaMalloc(&out, N * sizeof(*out)));
	CUDA(cudaMalloc(&sum, 2 * sizeof(*sum)));
	CUDA(cudaMemset(sum, 0, 2 * sizeof(*sum)));
	find(driver.resource, "cuDeviceGetDevResource");
	find(driver.split, "cuDevSmResourceSplitByCount");
	find(driver.describe, "cuDevResourceGenerateDesc");
	find(driver.create, "cuGreenCtxCreate");
	find(driver.destroy, "cuGreenCtxDestroy");
	find(driver.convert, "cuCtxFromGreenCtx");
	find(driver.stream, "cuGreenCtxStreamCreate");
	find(driver.current, "cuCtxSetCurrent");
	DRIVER(driver.resource(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
	DRIVER(driver.split(halves, &n, &whole, NULL, 0, whole.sm.smCount / 2));
	if (n != 2) {
		fprintf(stderr, "%u groups of %u\n", n, whole.sm.smCount);
		return EXIT_FAILURE;
	}
	for (int i = 0; i < 2; i++) {
		DRIVER(driver.describe(&desc, &halves[i], 1));
		DRIVER(driver.create(&green[i], desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	}

	/* In a stream of the first, and with the second one current. */
	DRIVER(driver.stream(&stream, green[0], CU_STREAM_NON_BLOCKING, 0));
	where<<<N, 64, 0, stream>>>(out, &sum[0]);
	CUDA(cudaStreamSynchronize(stream));
	n_wrong += look(out, seen[0]) > halves[0].sm.smCount;
	CUDA(cudaStreamDestroy(stream));
	DRIVER(driver.convert(&context, green[1]));
	DRIVER(driver.current(context));
	where<<<N, 64>>>(out, &sum[1]);
	CUDA(cudaDeviceSynchronize());
	n_wrong += look(out, seen[1]) > halves[1].sm.smCount;
	CUDA(cudaSetDevice(0));
	for (size_t i = 0; i < 1024; i++)
		n_wrong += seen[0][i] && seen[1][i];
	CUDA(cudaMemcpy(sums, sum, sizeof(sums), cudaMemcpyDeviceToHost));
	n_wrong += sums[0] != sums[1] || !sums[0];
	for (int i = 0; i < 2; i++)
		DRIVER(driver.destroy(green[i]));
	CUDA(cudaFree(out));
	CUDA(cudaFree(sum));
	return result("halves of a device", 2 * N, n_wrong);
}
