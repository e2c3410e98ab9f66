/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histogram: buckets, percentiles, and numbers of other processes
 */

#include <pthread.h>
#include <string.h>

#include "control/histogram.h"
#include "test.h"

static struct histogram one, other;

/* All buckets, those without values as well. */
static struct histogram_list list_of(const struct histogram *histogram)
{
	static uint64_t highest[HISTOGRAM_BUCKETS];

	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		highest[i] = histogram_highest(i);
	return (struct histogram_list){
		.highest = highest,
		.counts = histogram->counts,
		.n = HISTOGRAM_BUCKETS,
		.max_ns = histogram->max_ns,
	};
}

static uint64_t percentile(uint32_t per_mille)
{
	const struct histogram_list list = list_of(&one);

	return histogram_percentile(&list, per_mille);
}

static uint64_t count_up_to(uint64_t ns)
{
	const struct histogram_list list = list_of(&one);

	return histogram_count_up_to(&list, ns);
}

static void clear(void)
{
	memset(&one, 0, sizeof(one));
	memset(&other, 0, sizeof(other));
}

TEST(buckets_cover_all_values_without_gaps)
{
	check_eq(histogram_lowest(0), 0);
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		check_eq(histogram_bucket_of(histogram_lowest(i)), i);
		check_eq(histogram_bucket_of(histogram_highest(i)), i);
		if (i + 1 < HISTOGRAM_BUCKETS)
			check_eq(histogram_highest(i) + 1, histogram_lowest(i + 1));
	}
	check_eq(histogram_highest(HISTOGRAM_BUCKETS - 1), UINT64_MAX);
	check_eq(histogram_lowest(HISTOGRAM_BUCKETS), HISTOGRAM_HIGHEST + 1);
	check_eq(histogram_bucket_of(HISTOGRAM_HIGHEST), HISTOGRAM_BUCKETS - 1);
	check_eq(histogram_bucket_of(HISTOGRAM_HIGHEST + 1), HISTOGRAM_BUCKETS - 1);
	check_eq(histogram_bucket_of(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

TEST(a_bucket_is_at_most_an_eighth_of_its_lowest_value_wide)
{
	for (uint32_t i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
		const uint64_t width = histogram_highest(i) - histogram_lowest(i);

		check(width * 8 <= histogram_lowest(i));
	}
}

/* The bounds that vgpu-metrics serves. */
TEST(powers_of_two_are_bounds)
{
	clear();
	for (uint32_t bit = 0; bit < HISTOGRAM_BITS; bit++)
		histogram_add(&one, 1ull << bit, 1, 1ull << bit);
	for (uint32_t bit = 0; bit < HISTOGRAM_BITS; bit++)
		check_eq(count_up_to((1ull << bit) - 1), bit);
}

TEST(percentiles_are_at_most_an_eighth_too_long_and_never_too_short)
{
	static const uint32_t per_mille[] = { 1, 100, 500, 900, 990, 1000 };

	clear();
	for (uint64_t ns = 1; ns <= 100000; ns++)
		histogram_add(&one, ns, 1, ns);
	check_eq(histogram_count(&one), 100000);
	check_eq(one.total_ns, 100000ull * 100001 / 2);
	check_eq(one.max_ns, 100000);
	for (size_t i = 0; i < sizeof(per_mille) / sizeof(*per_mille); i++) {
		const uint64_t right = 100ull * per_mille[i];
		const uint64_t got = percentile(per_mille[i]);

		check(got >= right);
		check(got <= right + right / 8);
	}
	check_eq(percentile(1000), 100000);
}

TEST(few_values_have_percentiles)
{
	clear();
	check_eq(percentile(500), 0);
	histogram_add(&one, 1000, 1, 1000);
	check_eq(percentile(0), 1000);
	check_eq(percentile(500), 1000);
	check_eq(percentile(999), 1000);
	histogram_add(&one, HISTOGRAM_HIGHEST + 5, 1, 1);
	check_eq(percentile(1000), HISTOGRAM_HIGHEST + 5);
}

TEST(calls_that_were_timed_together_have_their_mean)
{
	clear();
	histogram_add(&one, 62, 16, 1000);
	check_eq(histogram_count(&one), 16);
	check_eq(one.total_ns, 1000);
	check_eq(one.max_ns, 62);
	check_eq(percentile(500), 62);
}

TEST(merging_adds)
{
	clear();
	histogram_add(&one, 10, 1, 10);
	histogram_add(&other, 10, 2, 20);
	histogram_add(&other, 5000, 1, 5000);
	histogram_merge(&one, &other);
	check_eq(histogram_count(&one), 4);
	check_eq(one.total_ns, 5030);
	check_eq(one.max_ns, 5000);
	check_eq(count_up_to(10), 3);
}

TEST(numbers_of_another_process_do_not_overflow)
{
	memset(&one, 0xff, sizeof(one));
	memset(&other, 0xff, sizeof(other));
	histogram_merge(&one, &other);
	check_eq(histogram_count(&one), UINT64_MAX);
	check_eq(one.total_ns, UINT64_MAX);
	for (uint32_t per_mille = 0; per_mille <= 1000; per_mille++)
		check_eq(percentile(per_mille), 0);
	/* A maximum that is shorter than the values is believed. */
	clear();
	one.counts[HISTOGRAM_BUCKETS - 1] = UINT64_MAX;
	one.counts[0] = UINT64_MAX;
	check_eq(percentile(1000), 0);
}

#define N_ADDED 20000

static void *add_many(void *data)
{
	const uint64_t ns = *(const uint64_t *)data;

	for (uint64_t i = 0; i < N_ADDED; i++)
		histogram_add_shared(&one, ns + i);
	return NULL;
}

TEST(threads_that_add_at_the_same_time_lose_nothing)
{
	static const uint64_t starts[] = { 0, 100, 1000, 100000 };
	pthread_t threads[4];
	uint64_t total = 0;

	clear();
	for (int i = 0; i < 4; i++)
		check_eq(pthread_create(&threads[i], NULL, add_many, (void *)&starts[i]),
			0);
	for (int i = 0; i < 4; i++) {
		check_eq(pthread_join(threads[i], NULL), 0);
		total += starts[i] * N_ADDED + (uint64_t)N_ADDED * (N_ADDED - 1) / 2;
	}
	check_eq(histogram_count(&one), 4 * N_ADDED);
	check_eq(one.total_ns, total);
	check_eq(one.max_ns, 100000 + N_ADDED - 1);
}
