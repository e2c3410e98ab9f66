/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles of tensors through shared memory: loaded by a map, with and without a swizzle,
 * changed, and stored by a map; in clusters, whose first block loads for all of them;
 * sums in global memory
 */

#include <cuda/barrier>
#include <cuda/ptx>

#include "driver.h"

namespace ptx = cuda::ptx;

#define WIDTH 96
#define HEIGHT 40
#define TILE_X 32
#define TILE_Y 8
#define TILE_SIZE (TILE_X * TILE_Y * (int)sizeof(int))

using barrier = cuda::barrier<cuda::thread_scope_block>;

/* As in the CUDA guide: cuda::barrier with a copy of a tensor, for one tile a block. */
__global__ void add_one(
	const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out)
{
	__shared__ alignas(1024) int tile[TILE_Y][TILE_X];
#pragma nv_diag_suppress static_var_with_dynamic_init
	__shared__ barrier bar;
	int x = blockIdx.x * TILE_X, y = blockIdx.y * TILE_Y;
	barrier::arrival_token token;

	if (threadIdx.x == 0) {
		init(&bar, blockDim.x);
		cuda::device::experimental::fence_proxy_async_shared_cta();
	}
	__syncthreads();
	if (threadIdx.x == 0) {
		cuda::device::experimental::cp_async_bulk_tensor_2d_global_to_shared(
			&tile, &in, x, y, bar);
		token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(tile));
	} else {
		token = bar.arrive();
	}
	bar.wait(std::move(token));
	for (int i = threadIdx.x; i < TILE_X * TILE_Y; i += blockDim.x)
		tile[i / TILE_X][i % TILE_X] += 1;
	cuda::device::experimental::fence_proxy_async_shared_cta();
	__syncthreads();
	if (threadIdx.x == 0) {
		cuda::device::experimental::cp_async_bulk_tensor_2d_shared_to_global(
			&out, x, y, &tile);
		cuda::device::experimental::cp_async_bulk_commit_group();
		cuda::device::experimental::cp_async_bulk_wait_group_read<0>();
	}
}

/* Each thread reads the tile by the swizzle of 128 bytes, and transposes it. */
__global__ void transpose(const __grid_constant__ CUtensorMap in, int *out)
{
	__shared__ alignas(1024) int tile[TILE_Y * TILE_X];
	__shared__ uint64_t bar;
	int x = blockIdx.x * TILE_X, y = blockIdx.y * TILE_Y;

	if (threadIdx.x == 0) {
		ptx::mbarrier_init(&bar, 1);
		ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
		int at[2] = { x, y };

		ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta,
			ptx::space_shared, &bar, TILE_SIZE);
		ptx::cp_async_bulk_tensor(
			ptx::space_cluster, ptx::space_global, tile, &in, at, &bar);
	}
	__syncthreads();
	while (!ptx::mbarrier_try_wait_parity(&bar, 0))
		;
	for (int i = threadIdx.x; i < TILE_X * TILE_Y; i += blockDim.x) {
		int row = i / TILE_X, column = i % TILE_X;
		int piece = column / 4 ^ row % 8;

		if (x + column < WIDTH && y + row < HEIGHT)
			out[(x + column) * HEIGHT + y + row] =
				tile[row * TILE_X + piece * 4 + column % 4];
	}
}

/* To the blocks of a mask; libcu++ has it for some architectures only. */
__device__ static void load_for_all(void *tile, const CUtensorMap *map, const int at[2],
	uint64_t *bar, uint16_t blocks)
{
	asm volatile(
		"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::"
		"complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
		:
		: "r"((unsigned int)__cvta_generic_to_shared(tile)), "l"(map), "r"(at[0]),
		"r"(at[1]), "r"((unsigned int)__cvta_generic_to_shared(bar)), "h"(blocks)
		: "memory");
}

/* The first block loads what all of them add to one tile in global memory. */
__global__ void __cluster_dims__(4, 1, 1) sum(
	const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out)
{
	__shared__ alignas(1024) int tile[TILE_Y * TILE_X];
	__shared__ uint64_t bar;
	int at[2] = { 16, 3 }, to[2] = { 0, 8 };

	if (threadIdx.x == 0) {
		ptx::mbarrier_init(&bar, 1);
		ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
		ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta,
			ptx::space_shared, &bar, TILE_SIZE);
	}
	ptx::barrier_cluster_arrive();
	ptx::barrier_cluster_wait();
	if (threadIdx.x == 0 && ptx::get_sreg_cluster_ctarank() == 0)
		load_for_all(tile, &in, at, &bar, 0xf);
	while (!ptx::mbarrier_try_wait_parity(&bar, 0))
		;
	ptx::fence_proxy_async(ptx::space_shared);
	if (threadIdx.x == 0) {
		ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared,
			ptx::op_add, &out, to, tile);
		ptx::cp_async_bulk_commit_group();
		ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
	}
	ptx::barrier_cluster_arrive();
	ptx::barrier_cluster_wait();
}

static decltype(cuTensorMapEncodeTiled) *encode;

static CUtensorMap map_of(int *memory, CUtensorMapSwizzle swizzle)
{
	const cuuint64_t sizes[2] = { WIDTH, HEIGHT };
	const cuuint64_t strides[1] = { WIDTH * sizeof(int) };
	const cuuint32_t box[2] = { TILE_X, TILE_Y }, steps[2] = { 1, 1 };
	CUtensorMap map;

	DRIVER(encode(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, memory, sizes, strides, box,
		steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	return map;
}

int main()
{
	std::vector<int> numbers(WIDTH * HEIGHT), got(WIDTH * HEIGHT);
	const dim3 grid((WIDTH + TILE_X - 1) / TILE_X, (HEIGHT + TILE_Y - 1) / TILE_Y);
	const size_t size = numbers.size() * sizeof(int);
	size_t n_wrong = 0, n = 0;
	int *in, *out;

	find(encode, "cuTensorMapEncodeTiled");
	for (size_t i = 0; i < numbers.size(); i++)
		numbers[i] = (int)(i * 37 % 1009);
	CUDA(cudaMalloc(&in, size));
	CUDA(cudaMalloc(&out, size));
	CUDA(cudaMemcpy(in, numbers.data(), size, cudaMemcpyHostToDevice));

	add_one<<<grid, 64>>>(map_of(in, CU_TENSOR_MAP_SWIZZLE_NONE),
		map_of(out, CU_TENSOR_MAP_SWIZZLE_NONE));
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(got.data(), out, size, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < numbers.size(); i++, n++)
		n_wrong += got[i] != numbers[i] + 1;

	transpose<<<grid, 64>>>(map_of(in, CU_TENSOR_MAP_SWIZZLE_128B), out);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(got.data(), out, size, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < numbers.size(); i++, n++)
		n_wrong += got[i % WIDTH * HEIGHT + i / WIDTH] != numbers[i];

	CUDA(cudaMemcpy(out, in, size, cudaMemcpyDeviceToDevice));
	sum<<<4, 32>>>(map_of(in, CU_TENSOR_MAP_SWIZZLE_128B),
		map_of(out, CU_TENSOR_MAP_SWIZZLE_128B));
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(got.data(), out, size, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < numbers.size(); i++, n++) {
		size_t x = i % WIDTH, y = i / WIDTH;
		int want = numbers[i];

		if (x < TILE_X && y >= 8 && y < 8 + TILE_Y)
			want += 4 * numbers[(y - 8 + 3) * WIDTH + x + 16];
		n_wrong += got[i] != want;
	}
	return result("tensors", n, n_wrong);
}
