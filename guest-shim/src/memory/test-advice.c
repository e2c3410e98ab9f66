/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advice of managed memory, by page
 */

#include "test.h"

#include "memory/advice.h"

#define PAGE 0x1000ull
#define RUNS_MAX 16

/* What shim_advice_look() has reported. */
static struct {
	struct shim_advice runs[RUNS_MAX];
	unsigned int n;
} seen;

static void see(const struct shim_advice *advice, void *data)
{
	check(data == &seen);
	check(seen.n < RUNS_MAX);
	seen.runs[seen.n++] = *advice;
}

static void look(uint64_t address, uint64_t size)
{
	seen.n = 0;
	shim_advice_look(address, size, see, &seen);
}

static void set_read_mostly(struct shim_advice *advice, const void *argument)
{
	advice->is_read_mostly = *(const bool *)argument;
}

static void add_device(struct shim_advice *advice, const void *argument)
{
	advice->accessed_by |= 1ull << *(const unsigned int *)argument;
}

static void mark_read_mostly(uint64_t address, uint64_t size)
{
	const bool yes = true;

	check(shim_advice_change(address, size, set_read_mostly, &yes));
}

static void access_by(uint64_t address, uint64_t size, unsigned int device)
{
	check(shim_advice_change(address, size, add_device, &device));
}

TEST(memory_without_advice_has_no_locations)
{
	look(0x10000, 4 * PAGE);
	check_eq(seen.n, 1);
	check(!seen.runs[0].is_read_mostly);
	check_eq(seen.runs[0].accessed_by, 0);
	check_eq(seen.runs[0].preferred.type, CU_MEM_LOCATION_TYPE_INVALID);
	check_eq(seen.runs[0].prefetched.type, CU_MEM_LOCATION_TYPE_INVALID);
}

TEST(advice_on_a_byte_is_advice_on_its_page)
{
	mark_read_mostly(0x10800, 1);
	look(0x10000, PAGE);
	check_eq(seen.n, 1);
	check(seen.runs[0].is_read_mostly);
	look(0x10fff, 1);
	check_eq(seen.n, 1);
	check(seen.runs[0].is_read_mostly);
	look(0x11000, PAGE);
	check_eq(seen.n, 1);
	check(!seen.runs[0].is_read_mostly);
}

TEST(advice_that_crosses_a_page_boundary_covers_both_pages)
{
	mark_read_mostly(0x10fff, 2);
	look(0x10000, 2 * PAGE);
	check_eq(seen.n, 1);
	check(seen.runs[0].is_read_mostly);
}

TEST(a_look_reports_runs_and_gaps_in_order)
{
	mark_read_mostly(0x11000, PAGE);
	mark_read_mostly(0x13000, PAGE);
	look(0x10000, 5 * PAGE);
	check_eq(seen.n, 5);
	for (unsigned int i = 0; i < 5; i++)
		check_eq(seen.runs[i].is_read_mostly, i % 2);
}

TEST(a_change_in_the_middle_leaves_both_ends)
{
	access_by(0x10000, 4 * PAGE, 0);
	access_by(0x11000, 2 * PAGE, 1);
	look(0x10000, 4 * PAGE);
	check_eq(seen.n, 3);
	check_eq(seen.runs[0].accessed_by, 1);
	check_eq(seen.runs[1].accessed_by, 3);
	check_eq(seen.runs[2].accessed_by, 1);
}

TEST(a_change_over_runs_and_gaps_keeps_what_each_had)
{
	access_by(0x11000, PAGE, 0);
	access_by(0x13000, PAGE, 1);
	access_by(0x10000, 5 * PAGE, 2);
	look(0x10000, 5 * PAGE);
	check_eq(seen.n, 5);
	check_eq(seen.runs[0].accessed_by, 4);
	check_eq(seen.runs[1].accessed_by, 5);
	check_eq(seen.runs[2].accessed_by, 4);
	check_eq(seen.runs[3].accessed_by, 6);
	check_eq(seen.runs[4].accessed_by, 4);
}

TEST(freed_memory_loses_its_advice_and_only_that)
{
	mark_read_mostly(0x10000, 4 * PAGE);
	shim_advice_forget(0x11000, 2 * PAGE);
	look(0x10000, 4 * PAGE);
	check_eq(seen.n, 3);
	check(seen.runs[0].is_read_mostly);
	check(!seen.runs[1].is_read_mostly);
	check(seen.runs[2].is_read_mostly);
	/* An allocation at the same address begins without advice. */
	access_by(0x11000, PAGE, 5);
	look(0x11000, PAGE);
	check(!seen.runs[0].is_read_mostly);
	check_eq(seen.runs[0].accessed_by, 1 << 5);
}

TEST(random_changes_agree_with_a_table_of_pages)
{
	enum { N = 64 };
	uint64_t pages[N] = { 0 };
	uint32_t random = 1;

	for (int round = 0; round < 400; round++) {
		unsigned int first, n, device, page;

		random = random * 1664525 + 1013904223;
		first = random >> 8 & (N - 1);
		n = 1 + (random >> 16) % (N - first);
		device = random >> 26;
		if (round % 7 == 6)
			shim_advice_forget(0x10000 + first * PAGE, n * PAGE);
		else
			access_by(0x10000 + first * PAGE, n * PAGE, device);
		for (page = first; page < first + n; page++)
			pages[page] = round % 7 == 6 ? 0 : pages[page] | 1ull << device;
		for (page = 0; page < N; page++) {
			look(0x10000 + page * PAGE, PAGE);
			check_eq(seen.n, 1);
			check_eq(seen.runs[0].accessed_by, pages[page]);
		}
	}
}
