/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUB and Thrust of the toolkit: sorting, scanning, reducing, selecting; each result is
 * compared with that of the C++ library
 */

/* An ArgMin that all versions of CUB have. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#include <algorithm>
#include <functional>
#include <numeric>

#include <cub/cub.cuh>
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/partition.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

#include "runtime.h"

#define N 30000
#define SEGMENT 150
#define N_BINS 16

typedef unsigned int uint;
template <typename T> using host = std::vector<T>;
template <typename T> using device = thrust::device_vector<T>;

static size_t n_checks, n_wrong;

static void check(const char *what, bool is_right)
{
	n_checks++;
	n_wrong += !is_right;
	if (!is_right)
		printf("%s: wrong\n", what);
}

static host<uint> numbers(size_t n, uint below, uint seed)
{
	host<uint> values(n);

	for (uint &value : values) {
		seed = seed * 1664525 + 1013904223;
		value = (seed >> 8) % below;
	}
	return values;
}

template <typename T> static T *at(device<T> &values)
{
	return thrust::raw_pointer_cast(values.data());
}

template <typename T> static host<T> first(const device<T> &values, size_t n)
{
	host<T> result(n);

	thrust::copy(values.begin(), values.begin() + n, result.begin());
	return result;
}

/* Algorithms of CUB are called twice: for the size of their memory, and with it. */
template <typename Call> static void run(Call call)
{
	size_t size = 0;
	void *memory;

	CUDA(call(NULL, size));
	CUDA(cudaMalloc(&memory, size + 1));
	CUDA(call(memory, size));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaFree(memory));
}

struct by_remainder {
	__host__ __device__ bool operator()(uint a, uint b) const
	{
		return a % 1000 < b % 1000;
	}
};

struct is_odd {
	__host__ __device__ bool operator()(uint a) const
	{
		return a & 1;
	}
};

struct square {
	__host__ __device__ unsigned long long operator()(uint a) const
	{
		return (unsigned long long)a * a;
	}
};

static void sorts(const host<uint> &keys)
{
	device<uint> in(keys.begin(), keys.end()), out(N), indices(N), order(N);
	host<uint> expected(N), sorted = keys;
	host<double> reals(N);
	device<double> reals_in(N), reals_out(N);

	thrust::sequence(indices.begin(), indices.end());
	run([&](void *memory, size_t &size) {
		return cub::DeviceRadixSort::SortPairs(
			memory, size, at(in), at(out), at(indices), at(order), N);
	});
	std::iota(expected.begin(), expected.end(), 0u);
	std::stable_sort(expected.begin(), expected.end(),
		[&](uint a, uint b) { return keys[a] < keys[b]; });
	check("radix sort of pairs", first(order, N) == expected);

	for (uint i = 0; i < N; i++)
		reals[i] = ((int)(keys[i] % 20001) - 10000) / 3.0;
	thrust::copy(reals.begin(), reals.end(), reals_in.begin());
	run([&](void *memory, size_t &size) {
		return cub::DeviceRadixSort::SortKeysDescending(
			memory, size, at(reals_in), at(reals_out), N);
	});
	std::sort(reals.begin(), reals.end(), std::greater<double>());
	check("radix sort of doubles", first(reals_out, N) == reals);

	run([&](void *memory, size_t &size) {
		return cub::DeviceMergeSort::StableSortKeys(
			memory, size, at(in), N, by_remainder());
	});
	std::stable_sort(sorted.begin(), sorted.end(), by_remainder());
	check("merge sort", first(in, N) == sorted);
}

static void segments(const host<uint> &keys)
{
	device<uint> in(keys.begin(), keys.end()), out(N), sums(N / SEGMENT);
	host<uint> expected = keys, expected_sums(N / SEGMENT);
	host<int> ends(N / SEGMENT + 1);
	device<int> offsets;

	for (size_t i = 0; i < ends.size(); i++)
		ends[i] = i * SEGMENT;
	offsets = ends;
	run([&](void *memory, size_t &size) {
		return cub::DeviceSegmentedSort::SortKeys(memory, size, at(in), at(out),
			N, N / SEGMENT, at(offsets), at(offsets) + 1);
	});
	for (size_t i = 0; i < N / SEGMENT; i++)
		std::sort(expected.begin() + ends[i], expected.begin() + ends[i + 1]);
	check("segmented sort", first(out, N) == expected);
	thrust::fill(out.begin(), out.end(), 0);
	run([&](void *memory, size_t &size) {
		return cub::DeviceSegmentedRadixSort::SortKeys(memory, size, at(in),
			at(out), N, N / SEGMENT, at(offsets), at(offsets) + 1);
	});
	check("segmented radix sort", first(out, N) == expected);
	run([&](void *memory, size_t &size) {
		return cub::DeviceSegmentedReduce::Sum(memory, size, at(in), at(sums),
			N / SEGMENT, at(offsets), at(offsets) + 1);
	});
	for (size_t i = 0; i < N; i++)
		expected_sums[i / SEGMENT] += keys[i];
	check("segmented sums", first(sums, N / SEGMENT) == expected_sums);
}

static void scans(const host<uint> &keys)
{
	device<uint> in(keys.begin(), keys.end()), out(N);
	device<unsigned long long> wide(N);
	host<unsigned long long> expected_wide(N);
	host<uint> expected(N);

	run([&](void *memory, size_t &size) {
		return cub::DeviceScan::InclusiveSum(memory, size, at(in), at(out), N);
	});
	std::partial_sum(keys.begin(), keys.end(), expected.begin());
	check("inclusive sums", first(out, N) == expected);
	run([&](void *memory, size_t &size) {
		return cub::DeviceScan::ExclusiveScan(
			memory, size, at(in), at(out), cuda::maximum<>(), 0u, N);
	});
	std::exclusive_scan(keys.begin(), keys.end(), expected.begin(), 0u,
		[](uint a, uint b) { return std::max(a, b); });
	check("exclusive maxima", first(out, N) == expected);
	thrust::transform(in.begin(), in.end(), wide.begin(), square());
	run([&](void *memory, size_t &size) {
		return cub::DeviceScan::InclusiveSum(memory, size, at(wide), at(wide), N);
	});
	std::transform_inclusive_scan(keys.begin(), keys.end(), expected_wide.begin(),
		std::plus<unsigned long long>(), square());
	check("sums of 64 bits in place", first(wide, N) == expected_wide);
}

static void runs_of_keys(const host<uint> &values)
{
	device<uint> in(values.begin(), values.end()), keys, unique(N), out(N), n(1);
	host<uint> of(N), expected_keys, expected_sums, expected_lengths;

	for (uint i = 0; i < N; i++) {
		of[i] = i / (1 + i / 1000);
		if (expected_keys.empty() || expected_keys.back() != of[i]) {
			expected_keys.push_back(of[i]);
			expected_sums.push_back(0);
			expected_lengths.push_back(0);
		}
		expected_sums.back() += values[i];
		expected_lengths.back()++;
	}
	keys = of;
	run([&](void *memory, size_t &size) {
		return cub::DeviceReduce::ReduceByKey(memory, size, at(keys), at(unique),
			at(in), at(out), at(n), cuda::std::plus<>(), N);
	});
	check("keys of a reduction", first(unique, n[0]) == expected_keys);
	check("sums by key", first(out, n[0]) == expected_sums);
	run([&](void *memory, size_t &size) {
		return cub::DeviceRunLengthEncode::Encode(
			memory, size, at(keys), at(unique), at(out), at(n), N);
	});
	check("lengths of runs", first(out, n[0]) == expected_lengths);
	run([&](void *memory, size_t &size) {
		return cub::DeviceSelect::Unique(
			memory, size, at(keys), at(unique), at(n), N);
	});
	check("unique keys", first(unique, n[0]) == expected_keys);
	run([&](void *memory, size_t &size) {
		return cub::DeviceScan::InclusiveSumByKey(
			memory, size, at(keys), at(in), at(out), N);
	});
	of[0] = values[0];
	for (uint i = 1, key = 0; i < N; i++) {
		uint previous = key;

		key = i / (1 + i / 1000);
		of[i] = values[i] + (key == previous ? of[i - 1] : 0);
	}
	check("running sums by key", first(out, N) == of);
}

static void selections(const host<uint> &values)
{
	device<uint> in(values.begin(), values.end()), out(N), n(1);
	device<cub::KeyValuePair<int, uint>> least(1);
	host<uint> odd, even, found, bytes(N);
	host<int> expected_bins(N_BINS);
	device<int> bins(N_BINS);
	cub::KeyValuePair<int, uint> pair;

	for (uint value : values)
		(value & 1 ? odd : even).push_back(value);
	run([&](void *memory, size_t &size) {
		return cub::DeviceSelect::If(
			memory, size, at(in), at(out), at(n), N, is_odd());
	});
	check("selection", first(out, n[0]) == odd);
	run([&](void *memory, size_t &size) {
		return cub::DevicePartition::If(
			memory, size, at(in), at(out), at(n), N, is_odd());
	});
	found = first(out, N);
	std::reverse(found.begin() + odd.size(), found.end());
	odd.insert(odd.end(), even.begin(), even.end());
	check("partition", found == odd);

	run([&](void *memory, size_t &size) {
		return cub::DeviceReduce::Max(memory, size, at(in), at(n), N);
	});
	check("maximum", n[0] == *std::max_element(values.begin(), values.end()));
	run([&](void *memory, size_t &size) {
		return cub::DeviceReduce::ArgMin(memory, size, at(in), at(least), N);
	});
	pair = least[0];
	check("place of the minimum",
		pair.key ==
			std::min_element(values.begin(), values.end()) - values.begin());

	for (uint i = 0; i < N; i++) {
		bytes[i] = values[i] % 256;
		expected_bins[bytes[i] / (256 / N_BINS)]++;
	}
	in = bytes;
	run([&](void *memory, size_t &size) {
		return cub::DeviceHistogram::HistogramEven(
			memory, size, at(in), at(bins), N_BINS + 1, 0u, 256u, N);
	});
	check("histogram", first(bins, N_BINS) == expected_bins);
}

static void sets()
{
	host<uint> a = numbers(N, 1 << 20, 3), b = numbers(N / 2, 1 << 20, 5);
	host<uint> expected(N + N / 2), common, places(N / 2);
	device<uint> in_a, in_b, out(N + N / 2);
	size_t n;

	std::sort(a.begin(), a.end());
	std::sort(b.begin(), b.end());
	in_a = a;
	in_b = b;
	run([&](void *memory, size_t &size) {
		return cub::DeviceMerge::MergeKeys(
			memory, size, at(in_a), N, at(in_b), N / 2, at(out));
	});
	std::merge(a.begin(), a.end(), b.begin(), b.end(), expected.begin());
	check("merge", first(out, N + N / 2) == expected);
	n = thrust::set_intersection(
		    in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), out.begin()) -
	    out.begin();
	std::set_intersection(
		a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
	check("intersection", first(out, n) == common);
	thrust::lower_bound(
		in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), out.begin());
	for (uint i = 0; i < N / 2; i++)
		places[i] = std::lower_bound(a.begin(), a.end(), b[i]) - a.begin();
	check("lower bounds", first(out, N / 2) == places);
}

static void thrusts(const host<uint> &values)
{
	device<uint> in(values.begin(), values.end());
	host<uint> expected = values;
	unsigned long long sum = 0;
	size_t middle;

	middle = thrust::stable_partition(in.begin(), in.end(), is_odd()) - in.begin();
	check("middle", middle == (size_t)(std::stable_partition(expected.begin(),
						   expected.end(), is_odd()) -
					   expected.begin()));
	check("stable partition", first(in, N) == expected);
	for (uint value : values)
		sum += square()(value);
	check("transformed sum", thrust::transform_reduce(in.begin(), in.end(), square(),
					 0ull, cuda::std::plus<>()) == sum);
	thrust::sort(in.begin(), in.end());
	std::sort(expected.begin(), expected.end());
	check("sort", first(in, N) == expected);
	expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
	middle = thrust::unique(in.begin(), in.end()) - in.begin();
	check("unique", first(in, middle) == expected);
}

int main()
{
	const host<uint> values = numbers(N, 1 << 24, 7);

	sorts(values);
	segments(values);
	scans(values);
	runs_of_keys(values);
	selections(values);
	sets();
	thrusts(values);
	return result("cub", n_checks, n_wrong);
}
