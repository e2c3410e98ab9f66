/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Histogram: how often a call took how long
 *
 * Buckets are log-linear: 8 for each power of two of nanoseconds, and one for each of the
 * values below 8. A bucket is at most an eighth of its lowest value wide, so a percentile
 * read from it, which is its highest value, is at most 12.5 % too long and never too
 * short. Values of HISTOGRAM_HIGHEST and above are in the last bucket, whose highest
 * value is unknown: there the percentile is the longest time that was measured.
 *
 * Counts only grow. Where they come from another process they can be any numbers: sums
 * of them saturate.
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_SUB_BITS 3u
/* Values have fewer bits than that, except those of the last bucket: 137 s. */
#define HISTOGRAM_BITS 37u
#define HISTOGRAM_BUCKETS                                                                \
	(((HISTOGRAM_BITS - HISTOGRAM_SUB_BITS) + 1u) << HISTOGRAM_SUB_BITS)
#define HISTOGRAM_HIGHEST ((1ull << HISTOGRAM_BITS) - 1)

/* Part of files that processes share: the layout changes with CALL_TIMES_VERSION. */
struct histogram {
	uint64_t total_ns;
	uint64_t max_ns;
	uint64_t reserved[6];
	uint64_t counts[HISTOGRAM_BUCKETS];
};

static_assert(sizeof(struct histogram) == 2304, "whole cache lines");

/* The bucket of a value: always less than HISTOGRAM_BUCKETS. */
static inline uint32_t histogram_bucket_of(uint64_t ns)
{
	uint32_t shift;

	if (ns < 1u << HISTOGRAM_SUB_BITS)
		return (uint32_t)ns;
	if (ns > HISTOGRAM_HIGHEST)
		return HISTOGRAM_BUCKETS - 1;
	shift = 63u - (uint32_t)__builtin_clzll(ns) - HISTOGRAM_SUB_BITS;
	return (shift << HISTOGRAM_SUB_BITS) + (uint32_t)(ns >> shift);
}

/* The lowest value of a bucket; of HISTOGRAM_BUCKETS: the first above all. */
uint64_t histogram_lowest(uint32_t bucket);

/* The highest value of a bucket, UINT64_MAX of the last one. */
uint64_t histogram_highest(uint32_t bucket);

/* Relaxed: partner is the reader, in another process, to whom each number is one of its
 * own. */
static inline void histogram_grow(uint64_t *countp, uint64_t n)
{
	__atomic_store_n(
		countp, __atomic_load_n(countp, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

/* Adds n values that are together `total_ns` long; by the only thread that writes. In the
 * header because it is on the way of each launch. */
static inline void histogram_add(
	struct histogram *histogram, uint64_t ns, uint32_t n, uint64_t total_ns)
{
	histogram_grow(&histogram->counts[histogram_bucket_of(ns)], n);
	histogram_grow(&histogram->total_ns, total_ns);
	if (ns > __atomic_load_n(&histogram->max_ns, __ATOMIC_RELAXED))
		__atomic_store_n(&histogram->max_ns, ns, __ATOMIC_RELAXED);
}

/* Adds one value; by any thread. */
void histogram_add_shared(struct histogram *histogram, uint64_t ns);

/* Adds all values of another one, which nobody writes meanwhile. */
void histogram_merge(struct histogram *histogram, const struct histogram *other);

/* Return: the number of values. */
uint64_t histogram_count(const struct histogram *histogram);

/*
 * A histogram as vgpud tells vgpuctl of it: buckets that have values, with the highest
 * value of each, which ascend.
 */
struct histogram_list {
	const uint64_t *highest;
	const uint64_t *counts;
	size_t n;
	uint64_t max_ns;
};

/* Return: the number of values up to that one, which is to be the highest value of a
 * bucket. */
uint64_t histogram_count_up_to(const struct histogram_list *list, uint64_t ns);

/* Return: a value that at least so many in a thousand do not exceed, at most max_ns; 0 of
 * an empty histogram. */
uint64_t histogram_percentile(const struct histogram_list *list, uint32_t per_mille);
