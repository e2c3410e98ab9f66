/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histogram: how often a call took how long
 */

#include <stdbool.h>

#include "control/histogram.h"

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

uint64_t histogram_lowest(uint32_t bucket)
{
	const uint32_t n_sub = 1u << HISTOGRAM_SUB_BITS;
	const uint32_t power = bucket >> HISTOGRAM_SUB_BITS;

	if (power < 2)
		return bucket;
	return (uint64_t)(n_sub + bucket % n_sub) << (power - 1);
}

uint64_t histogram_highest(uint32_t bucket)
{
	return bucket < HISTOGRAM_BUCKETS - 1 ? histogram_lowest(bucket + 1) - 1
					      : UINT64_MAX;
}

void histogram_add_shared(struct histogram *histogram, uint64_t ns)
{
	uint64_t max = __atomic_load_n(&histogram->max_ns, __ATOMIC_RELAXED);

	__atomic_fetch_add(
		&histogram->counts[histogram_bucket_of(ns)], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&histogram->total_ns, ns, __ATOMIC_RELAXED);
	while (ns > max && !__atomic_compare_exchange_n(&histogram->max_ns, &max, ns,
				   true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void histogram_merge(struct histogram *histogram, const struct histogram *other)
{
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		histogram->counts[i] = add(histogram->counts[i], other->counts[i]);
	histogram->total_ns = add(histogram->total_ns, other->total_ns);
	if (other->max_ns > histogram->max_ns)
		histogram->max_ns = other->max_ns;
}

uint64_t histogram_count(const struct histogram *histogram)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		n = add(n, histogram->counts[i]);
	return n;
}

uint64_t histogram_count_up_to(const struct histogram_list *list, uint64_t ns)
{
	uint64_t n = 0;

	for (size_t i = 0; i < list->n && list->highest[i] <= ns; i++)
		n = add(n, list->counts[i]);
	return n;
}

uint64_t histogram_percentile(const struct histogram_list *list, uint32_t per_mille)
{
	const uint64_t n = histogram_count_up_to(list, UINT64_MAX);
	/* Rounded up, without a product that overflows. */
	const uint64_t wanted =
		n / 1000 * per_mille + (n % 1000 * per_mille + 999) / 1000;
	uint64_t seen = 0;

	for (size_t i = 0; i < list->n; i++) {
		seen = add(seen, list->counts[i]);
		if (list->counts[i] && seen >= wanted)
			return list->highest[i] < list->max_ns ? list->highest[i]
							       : list->max_ns;
	}
	return 0;
}
