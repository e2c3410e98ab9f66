/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synchronisation of the C++ library for devices (libcu++) and of cooperative groups:
 * atomic objects, barriers, latches, semaphores, pipelines; groups of several kinds
 */

#include <new>
#include <utility>

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>

#include "runtime.h"

/* Barriers in shared memory have no constructor there: init() is theirs. */
#pragma nv_diag_suppress static_var_with_dynamic_init

#define N 128
#define N_STAGES 2
#define N_PIECES 10

namespace cg = cooperative_groups;
namespace std_ = cuda::std;

static size_t n_checks, n_wrong;

static void check(const char *what, bool is_right)
{
	n_checks++;
	n_wrong += !is_right;
	if (!is_right)
		printf("%s: wrong\n", what);
}

/* Managed memory, zeroed. */
template <typename T> static T *managed(size_t n)
{
	T *p;

	CUDA(cudaMallocManaged(&p, n * sizeof(T)));
	CUDA(cudaMemset(p, 0, n * sizeof(T)));
	CUDA(cudaDeviceSynchronize());
	return p;
}

static void wait()
{
	CUDA(cudaGetLastError());
	CUDA(cudaDeviceSynchronize());
}

/*
 * Atomic objects
 */

/* Adds 7, in each order and in other ways. */
template <typename T, cuda::thread_scope S> __global__ void add_7(T *p)
{
	constexpr std_::memory_order orders[] = { std_::memory_order_relaxed,
		std_::memory_order_acquire, std_::memory_order_release,
		std_::memory_order_acq_rel, std_::memory_order_seq_cst };
	cuda::atomic_ref<T, S> a(*p);
	T x;

	for (std_::memory_order order : orders)
		a.fetch_add((T)1, order);
	x = a.load();
	while (!a.compare_exchange_weak(x, (T)(x + 1)))
		;
	a.fetch_add((T)2);
	a.fetch_sub((T)2, std_::memory_order_relaxed);
	x = a.load(std_::memory_order_acquire);
	while (!a.compare_exchange_strong(
		x, (T)(x + 1), std_::memory_order_acq_rel, std_::memory_order_relaxed))
		;
}

template <typename T> static void atomics(const char *what)
{
	T *p = managed<T>(3);

	add_7<T, cuda::thread_scope_block><<<1, 64>>>(&p[0]);
	add_7<T, cuda::thread_scope_device><<<4, 64>>>(&p[1]);
	add_7<T, cuda::thread_scope_system><<<4, 64>>>(&p[2]);
	wait();
	check(what, p[0] == (T)(64 * 7) && p[1] == (T)(256 * 7) && p[2] == (T)(256 * 7));
}

/* A word that is handed from block to block; what was written before it is seen. */
__global__ void pass_on(int *flag, volatile int *data, int *errors)
{
	cuda::atomic_ref<int, cuda::thread_scope_device> turn(*flag);

	while (turn.load(std_::memory_order_acquire) != (int)blockIdx.x)
		;
	if (*data != 3 * (int)blockIdx.x)
		atomicAdd(errors, 1);
	*data = 3 * (blockIdx.x + 1);
	turn.store(blockIdx.x + 1, std_::memory_order_release);
}

/* Pairs whose halves belong together: 128 bits are one object. */
__global__ void pairs(ulonglong2 *p, int *errors)
{
#if __CUDA_ARCH__ >= 900
	for (int i = 0; i < 10; i++) {
		unsigned long long old[2], found[2] = { 0, ~0ull };

		do {
			old[0] = found[0];
			old[1] = found[1];
			if (old[1] != ~old[0])
				atomicAdd(errors, 1);
			asm volatile("{ .reg .b128 e, n, o; mov.b128 e, {%2, %3};\n"
				     "mov.b128 n, {%4, %5};\n"
				     "atom.acq_rel.gpu.global.cas.b128 o, [%6], e, n;\n"
				     "mov.b128 {%0, %1}, o; }"
				     : "=l"(found[0]), "=l"(found[1])
				     : "l"(old[0]), "l"(old[1]), "l"(old[0] + 1),
				     "l"(~(old[0] + 1)), "l"(p)
				     : "memory");
		} while (found[0] != old[0] || found[1] != old[1]);
	}
#else
	for (int i = 0; i < 10; i++) {
		atomicAdd(&p->x, 1ull);
		atomicAdd(&p->y, ~0ull);
	}
#endif
}

static void words_and_pairs()
{
	int *words = managed<int>(3);
	ulonglong2 *pair = managed<ulonglong2>(1);

	pass_on<<<20, 1>>>(&words[0], &words[1], &words[2]);
	wait();
	check("release and acquire", words[0] == 20 && words[1] == 60 && !words[2]);
	pair->y = ~0ull;
	pairs<<<4, 64>>>(pair, &words[2]);
	wait();
	check("128 bits", pair->x == 2560 && pair->y == ~2560ull && !words[2]);
}

/*
 * Barriers and their kind
 */

__global__ void barriers(int *out)
{
	__shared__ cuda::barrier<cuda::thread_scope_block> barrier;
	__shared__ int values[N];
	cg::thread_block block = cg::this_thread_block();
	int sum = 0;

	if (!block.thread_rank())
		init(&barrier, block.size());
	block.sync();
	for (int round = 1; round < 6; round++) {
		values[threadIdx.x] = threadIdx.x * round;
		cuda::barrier<cuda::thread_scope_block>::arrival_token token =
			barrier.arrive();
		barrier.wait(std_::move(token));
		sum += values[(threadIdx.x + 37) % N];
		barrier.arrive_and_wait();
	}
	out[threadIdx.x] = sum;
}

__global__ void latches(int *out)
{
	typedef cuda::latch<cuda::thread_scope_block> latch;
	__shared__ alignas(latch) char memory[sizeof(latch)];
	__shared__ int n;
	latch *l = (latch *)memory;

	if (!threadIdx.x) {
		new (memory) latch(blockDim.x - 1);
		n = 0;
	}
	__syncthreads();
	if (threadIdx.x) {
		atomicAdd(&n, 1);
		l->count_down();
	} else {
		l->wait();
		*out = n;
	}
}

__device__ cuda::counting_semaphore<cuda::thread_scope_device, 4> semaphore(2);

__global__ void semaphores(int *inside, int *most, int *entries)
{
	semaphore.acquire();
	atomicMax(most, atomicAdd(inside, 1) + 1);
	__nanosleep(100);
	atomicAdd(inside, -1);
	semaphore.release();
	atomicAdd(entries, 1);
}

__global__ void pipelines(const int *in, int *out)
{
	__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, N_STAGES> state;
	__shared__ alignas(16) int stages[N_STAGES][N];
	cg::thread_block block = cg::this_thread_block();
	cuda::pipeline<cuda::thread_scope_block> pipeline =
		cuda::make_pipeline(block, &state);
	int sum = 0;

	for (int i = 0, next = 0; i < N_PIECES; i++) {
		for (; next < N_PIECES && next < i + N_STAGES; next++) {
			pipeline.producer_acquire();
			cuda::memcpy_async(block, stages[next % N_STAGES], in + next * N,
				cuda::aligned_size_t<16>(sizeof(int) * N), pipeline);
			pipeline.producer_commit();
		}
		pipeline.consumer_wait();
		sum += stages[i % N_STAGES][threadIdx.x] * (i + 1);
		pipeline.consumer_release();
	}
	out[threadIdx.x] = sum;
}

static void synchronisation()
{
	int *out = managed<int>(N), *in = managed<int>(N * N_PIECES);
	bool is_right = true;

	barriers<<<1, N>>>(out);
	wait();
	for (int i = 0; i < N; i++)
		is_right = is_right && out[i] == (i + 37) % N * 15;
	check("barriers", is_right);
	latches<<<1, N>>>(out);
	wait();
	check("latches", out[0] == N - 1);
	out[0] = out[1] = out[2] = 0;
	semaphores<<<8, 4>>>(&out[0], &out[1], &out[2]);
	wait();
	check("semaphores", !out[0] && out[1] >= 1 && out[1] <= 2 && out[2] == 32);
	for (int i = 0; i < N * N_PIECES; i++)
		in[i] = 3 * i + 1;
	pipelines<<<1, N>>>(in, out);
	wait();
	for (int i = 0; i < N; i++) {
		int sum = 0;

		for (int k = 0; k < N_PIECES; k++)
			sum += in[k * N + i] * (k + 1);
		is_right = is_right && out[i] == sum;
	}
	check("pipelines", is_right);
}

/*
 * Groups
 */

enum {
	LABELED,
	BINARY,
	INCLUSIVE,
	EXCLUSIVE,
	EIGHT,
	ONE,
	ONE_BROADCAST,
	COPY,
	LARGE,
	LARGE_SCAN,
	_GROUPS_N,
};

__global__ void groups(int (*out)[N], const int *in)
{
	__shared__ cg::block_tile_memory<N> memory;
	__shared__ int copy[N];
	cg::thread_block block = cg::this_thread_block(memory);
	cg::thread_block_tile<32, cg::thread_block> warp = cg::tiled_partition<32>(block);
	cg::thread_block_tile<8, cg::thread_block> eight = cg::tiled_partition<8>(block);
	cg::thread_block_tile<64, cg::thread_block> large =
		cg::tiled_partition<64>(block);
	int i = threadIdx.x, one = 0;

	out[LABELED][i] =
		cg::reduce(cg::labeled_partition(cg::coalesced_threads(), i % 5), i,
			cg::plus<int>());
	out[BINARY][i] =
		cg::reduce(cg::binary_partition(warp, i % 3 == 0), i, cg::greater<int>());
	out[INCLUSIVE][i] = cg::inclusive_scan(warp, i);
	out[EXCLUSIVE][i] = cg::exclusive_scan(warp, i, cg::plus<int>());
	out[EIGHT][i] = cg::reduce(eight, i ^ 5, cg::bit_xor<int>());
	cg::invoke_one(warp, [&] { one = 1; });
	out[ONE][i] = cg::reduce(warp, one, cg::plus<int>());
	out[ONE_BROADCAST][i] = cg::invoke_one_broadcast(warp, [&] { return i; }) / 32;
	cg::memcpy_async(block, copy, in, sizeof(copy));
	cg::wait(block);
	out[COPY][i] = copy[N - 1 - i];
	out[LARGE][i] = cg::reduce(large, i, cg::plus<int>());
	out[LARGE_SCAN][i] = cg::inclusive_scan(large, i);
}

static int expect_group(int what, int i, const int *in)
{
	int size = what == EIGHT ? 8 : what >= LARGE ? 64 : 32, x = 0;

	if (what == ONE)
		return 1;
	if (what == ONE_BROADCAST)
		return i / 32;
	if (what == COPY)
		return in[N - 1 - i];
	for (int k = i / size * size; k < i / size * size + size; k++)
		switch (what) {
		case LABELED:
			x += k % 5 == i % 5 ? k : 0;
			break;
		case BINARY:
			x = (k % 3 == 0) == (i % 3 == 0) ? k : x;
			break;
		case INCLUSIVE:
		case LARGE_SCAN:
			x += k <= i ? k : 0;
			break;
		case EXCLUSIVE:
			x += k < i ? k : 0;
			break;
		case EIGHT:
			x ^= k ^ 5;
			break;
		default:
			x += k;
		}
	return x;
}

/* Each round reads what all blocks have written in the one before. */
__global__ void rounds(int *x, int n)
{
	cg::grid_group grid = cg::this_grid();
	unsigned int i = grid.thread_rank(), size = grid.size();

	for (int k = 0; k < n; k++) {
		x[i + (k + 1) * size] = x[(i + 1) % size + k * size] + 1;
		grid.sync();
	}
}

static void groups_and_grids()
{
	int(*out)[N] = (int(*)[N])managed<int>(_GROUPS_N * N), *in = managed<int>(N);
	int *x = managed<int>(256 * 5), n = 4;
	void *arguments[] = { &x, &n };
	bool is_right = true;

	for (int i = 0; i < N; i++)
		in[i] = 5 * i + 2;
	groups<<<1, N>>>(out, in);
	wait();
	for (int what = 0; what < _GROUPS_N; what++)
		for (int i = 0; i < N; i++)
			if (out[what][i] != expect_group(what, i, in))
				is_right = false;
	check("groups", is_right);
	for (int i = 0; i < 256; i++)
		x[i] = i;
	CUDA(cudaLaunchCooperativeKernel((void *)rounds, 4, 64, arguments, 0, NULL));
	wait();
	for (int i = 0; i < 256; i++)
		is_right = is_right && x[n * 256 + i] == (i + n) % 256 + n;
	check("grids", is_right);
}

int main()
{
	atomics<unsigned char>("atomics of 8 bits");
	atomics<short>("atomics of 16 bits");
	atomics<int>("atomics of 32 bits");
	atomics<unsigned long long>("atomics of 64 bits");
	atomics<float>("atomic floats");
	atomics<double>("atomic doubles");
	words_and_pairs();
	synchronisation();
	groups_and_grids();
	return result("groups", n_checks, n_wrong);
}
