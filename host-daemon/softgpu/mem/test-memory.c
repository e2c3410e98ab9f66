/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory: exactly the allocated memory may be accessed
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mem/memory.h"
#include "test.h"

#define LIMIT (16ull << 20)

static struct memory memory;

static bool is_open(uint64_t address, uint64_t size)
{
	struct softgpu_space space;

	memory_space(&memory, 0, 1, &space);
	return softgpu_space_check_range(
		&space, address, size, SOFTGPU_READ | SOFTGPU_WRITE);
}

static uint64_t must_alloc(uint64_t size)
{
	struct range range = { .kind = RANGE_DEVICE, .size = size, .owner = &memory };
	uint64_t address = 0;

	check_eq(memory_alloc(&memory, &range, &address), 0);
	check_eq(address % 512, 0);
	return address;
}

static void must_free(uint64_t address)
{
	check_eq(memory_free(&memory, address, MEMORY_KIND(RANGE_DEVICE)), 0);
}

static uint64_t free_memory(void)
{
	uint64_t free, total;

	memory_info(&memory, 0, &free, &total);
	check_eq(total, LIMIT);
	return free;
}

/* What somebody else counts, and how much of it there may be. */
static uint64_t charged, charge_limit;

static int charge(void *data, uint32_t device, uint64_t size)
{
	check(data == &charged && device == 0);
	if (size > charge_limit - charged)
		return -1;
	charged += size;
	return 0;
}

static void refund(void *data, uint32_t device, uint64_t size)
{
	check(data == &charged && device == 0 && size <= charged);
	charged -= size;
}

TEST(memory_that_no_call_names_is_charged_until_it_is_freed)
{
	static const enum range_kind kinds[] = { RANGE_MODULE, RANGE_HEAP };
	uint64_t address, other, before;

	check_eq(memory_init(&memory, 1, LIMIT, 0, 0, 0, 0), 0);
	memory.charging = (struct memory_charging){ charge, refund, &charged };
	charge_limit = 8 << 20;
	must_free(must_alloc(1 << 20));
	check_eq(charged, 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct range range = { .kind = kinds[i], .size = 1000, .owner = &range };

		check_eq(memory_alloc(&memory, &range, &address), 0);
		check_eq(charged, 1024);
		range.size = (8 << 20) - 1024;
		check_eq(memory_alloc(&memory, &range, &other), 0);
		check_eq(charged, 8 << 20);
		/* Refused: nothing is taken. */
		before = free_memory();
		range.size = 1;
		check_eq(memory_alloc(&memory, &range, &other), MEMORY_E_FULL);
		check_eq(free_memory(), before);
		check_eq(memory_free(&memory, address, MEMORY_KIND(kinds[i])), 0);
		check_eq(charged, (8 << 20) - 1024);
		/* The device has less than is allowed: nothing stays charged. */
		charge_limit = UINT64_MAX;
		range.size = LIMIT;
		check_eq(memory_alloc(&memory, &range, &other), MEMORY_E_FULL);
		check_eq(charged, (8 << 20) - 1024);
		charge_limit = 8 << 20;
		memory_free_owner(&memory, &range);
		check_eq(charged, 0);
	}
	memory_deinit(&memory);
}

TEST(an_allocation_is_open_until_it_is_freed)
{
	static const uint64_t sizes[] = { 1, 511, 512, 32768, 32769, 65536, 5000000 };

	check_eq(memory_init(&memory, 1, LIMIT, 0, 0, 0, 0), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t address = must_alloc(sizes[i]);

		check(is_open(address, sizes[i]));
		memset((void *)(uintptr_t)address, 0x5a, sizes[i]);
		must_free(address);
		check(!is_open(address, sizes[i]));
	}
	check_eq(free_memory(), LIMIT);
	memory_deinit(&memory);
}

TEST(the_page_after_a_large_allocation_stays_inaccessible)
{
	uint64_t first, second;

	check_eq(memory_init(&memory, 1, LIMIT, 0, 0, 0, 0), 0);
	first = must_alloc(1 << 20);
	second = must_alloc(1 << 20);
	check(second >= first + (1 << 20) + SOFTGPU_PAGE_SIZE);
	check(!is_open(first + (1 << 20) + SOFTGPU_PAGE_SIZE, 1));
	check(!is_open(first, (1 << 20) + SOFTGPU_PAGE_SIZE + 1));
	check(!memory_covers(&memory, 0, SOFTGPU_WRITE, first, (1 << 20) + 1));
	check(memory_covers(&memory, 0, SOFTGPU_WRITE, first, 1 << 20));
	memory_deinit(&memory);
}

TEST(an_access_less_than_a_unit_out_of_bounds_is_tolerated)
{
	uint64_t small, page, large;

	check_eq(memory_init(&memory, 1, LIMIT, 0, 0, 0, 0), 0);
	small = must_alloc(4);
	check(is_open(small - 511, 511) && is_open(small + 4, 511));
	/* To the last byte of a page, and pages in one piece. */
	page = must_alloc(32768);
	for (int i = 0; i < 200; i++) {
		check(is_open(page - 511, 32768 + 2 * 511));
		page = must_alloc(32768);
	}
	large = must_alloc(1 << 20);
	check(is_open(large + (1 << 20), 511));
	must_free(large);
	check(!is_open(large, 1) && !is_open(large + (1 << 20), 1));
	memory_deinit(&memory);
}

TEST(memory_that_is_checked_is_open_to_the_byte)
{
	static const uint64_t sizes[] = { 1, 512, 1000, 32768, 65536, 70000, 1 << 20 };
	struct range range = { .kind = RANGE_DRIVER, .size = 1000 };
	uint64_t address, driver;

	check_eq(memory_init(&memory, 1, LIMIT, 0, 0, 0, 0), 0);
	memory.is_checked = true;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		address = must_alloc(sizes[i]);
		check(is_open(address, sizes[i]));
		check(!is_open(address - 1, 1) && !is_open(address - 1, 2));
		check(!is_open(address + sizes[i], 1));
		check(!is_open(address + sizes[i] - 1, 2));
		must_free(address);
		check(!is_open(address, 1));
	}
	check_eq(memory_alloc(&memory, &range, &driver), 0);
	check(is_open(driver, 1000));
	memory_deinit(&memory);
}

TEST(small_allocations_share_pages_and_do_not_overlap)
{
	enum { N = 2000 };
	static uint64_t addresses[N];

	check_eq(memory_init(&memory, 1, LIMIT, 0, 0, 0, 0), 0);
	for (int i = 0; i < N; i++) {
		addresses[i] = must_alloc(1000);
		memset((void *)(uintptr_t)addresses[i], i, 1000);
	}
	for (int i = 0; i < N; i += 2)
		must_free(addresses[i]);
	for (int i = 1; i < N; i += 2) {
		const uint8_t *bytes = (const uint8_t *)(uintptr_t)addresses[i];

		check(is_open(addresses[i], 1000));
		check_eq(bytes[0], i & 0xff);
		check_eq(bytes[999], i & 0xff);
		must_free(addresses[i]);
	}
	check_eq(free_memory(), LIMIT);
	check_eq(memory.parts[0].n_chunks, 0);
	check_eq(memory.parts[0].spans.n_entries, 1);
	memory_deinit(&memory);
}

TEST(the_limit_is_enforced_and_freed_memory_is_available)
{
	struct range range = { .kind = RANGE_DEVICE, .size = LIMIT };
	uint64_t address, other;

	check_eq(memory_init(&memory, 1, LIMIT, 0, 0, 0, 0), 0);
	check_eq(memory_alloc(&memory, &range, &address), 0);
	check_eq(free_memory(), 0);
	range.size = 1;
	check_eq(memory_alloc(&memory, &range, &other), MEMORY_E_FULL);
	range.kind = RANGE_HOST;
	check_eq(memory_alloc(&memory, &range, &other), 0);
	must_free(address);
	range.kind = RANGE_DEVICE;
	range.size = UINT64_MAX - 4096;
	check_eq(memory_alloc(&memory, &range, &address), MEMORY_E_FULL);
	memory_deinit(&memory);
}

TEST(only_the_start_of_an_allocation_of_the_right_kind_frees_it)
{
	uint64_t address;

	check_eq(memory_init(&memory, 1, LIMIT, 0, 0, 0, 0), 0);
	address = must_alloc(4096);
	check_eq(memory_free(&memory, address + 512, MEMORY_KIND(RANGE_DEVICE)),
		MEMORY_E_UNKNOWN);
	check_eq(
		memory_free(&memory, address, MEMORY_KIND(RANGE_HOST)), MEMORY_E_UNKNOWN);
	must_free(address);
	check_eq(memory_free(&memory, address, MEMORY_KIND(RANGE_DEVICE)),
		MEMORY_E_UNKNOWN);
	memory_deinit(&memory);
}

TEST(random_allocations_leak_nothing)
{
	enum { N = 64 };
	struct {
		uint64_t address, size;
		uint8_t byte;
	} slots[N] = { 0 };

	srand(1);
	check_eq(memory_init(&memory, 1, LIMIT, 0, 0, 0, 0), 0);
	for (int i = 0; i < 20000; i++) {
		int at = rand() % N;

		if (slots[at].size) {
			const uint8_t *bytes = (void *)(uintptr_t)slots[at].address;

			check_eq(bytes[0], slots[at].byte);
			check_eq(bytes[slots[at].size - 1], slots[at].byte);
			must_free(slots[at].address);
			slots[at].size = 0;
			continue;
		}
		slots[at].size = 1 + rand() % (rand() % 4 ? 3000 : 200000);
		slots[at].byte = rand();
		slots[at].address = must_alloc(slots[at].size);
		memset((void *)(uintptr_t)slots[at].address, slots[at].byte,
			slots[at].size);
	}
	memory_free_owner(&memory, &memory);
	check_eq(free_memory(), LIMIT);
	check_eq(memory.parts[0].spans.n_entries, 1);
	memory_deinit(&memory);
}

TEST(memory_of_the_driver_is_for_kernels_alone)
{
	struct range range = { .kind = RANGE_DRIVER, .size = 1000 };
	uint64_t address;

	check_eq(memory_init(&memory, 1, LIMIT, 0, 0, 0, 0), 0);
	check_eq(memory_alloc(&memory, &range, &address), 0);
	check(is_open(address, 1000));
	check(!memory_covers(&memory, 0, SOFTGPU_WRITE, address, 1));
	check(!memory_find(&memory, address, &range));
	check_eq(free_memory(), LIMIT);
	memory_deinit(&memory);
}

/* Windows of a worker: device memory follows an arena. */
TEST(registered_pages_of_the_host_window_are_open_until_unregistered)
{
	struct range range = { .size = 3 * 4096 };
	uint64_t base, size = 1ull << 30;
	void *whole;

	whole = mmap(NULL, 2 * size, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	check(whole != MAP_FAILED);
	base = ((uint64_t)(uintptr_t)whole + SOFTGPU_PAGE_SIZE - 1) &
	       ~(SOFTGPU_PAGE_SIZE - 1);
	check_eq(
		memory_init(&memory, 1, LIMIT, base + (1 << 20), size, base, 1 << 20), 0);
	range.address = base + SOFTGPU_PAGE_SIZE;
	check(!is_open(range.address, 1));
	check_eq(memory_register(&memory, &range), 0);
	check(is_open(range.address, range.size));
	check(memory_covers(&memory, 0, SOFTGPU_WRITE, range.address, range.size));
	check_eq(memory_register(&memory, &range), MEMORY_E_TWICE);

	/* A neighbour in the same page keeps it open. */
	range.address += range.size;
	check_eq(memory_register(&memory, &range), 0);
	check(memory_covers(&memory, 0, SOFTGPU_WRITE, range.address - 10, 20));
	check_eq(memory_unregister(&memory, base + SOFTGPU_PAGE_SIZE), 0);
	check(is_open(range.address, range.size));
	check_eq(memory_unregister(&memory, range.address), 0);
	check(!is_open(range.address, 1));

	range.address = base + (1 << 20) - 4096;
	check_eq(memory_register(&memory, &range), MEMORY_E_OUTSIDE);
	range.address = must_alloc(100000);
	check_eq(memory_register(&memory, &range), MEMORY_E_USED);
	check(must_alloc(100000) >= base + (1 << 20));
	memory_deinit(&memory);
	munmap(whole, 2 * size);
}

TEST(devices_have_memory_of_their_own_and_some_together)
{
	struct range range = { .kind = RANGE_DEVICE, .size = 100000 };
	struct softgpu_space own, both;
	uint64_t first, second, shared, free, total;

	check_eq(memory_init(&memory, 2, LIMIT, 0, 0, 0, 0), 0);
	check_eq(memory_alloc(&memory, &range, &first), 0);
	range.device = 1;
	check_eq(memory_alloc(&memory, &range, &second), 0);
	range.kind = RANGE_HOST;
	check_eq(memory_alloc(&memory, &range, &shared), 0);
	memory_space(&memory, 0, 1, &own);
	memory_space(&memory, 0, 3, &both);
	check(softgpu_space_check_range(&own, first, 100000, SOFTGPU_WRITE));
	check(!softgpu_space_check_range(&own, second, 100000, SOFTGPU_WRITE));
	check(softgpu_space_check_range(&own, shared, 100000, SOFTGPU_WRITE));
	check(softgpu_space_check_range(&both, second, 100000, SOFTGPU_WRITE));
	memory_info(&memory, 1, &free, &total);
	check_eq(total - free, 2 * SOFTGPU_PAGE_SIZE);
	check_eq(memory_free(&memory, second, MEMORY_KIND(RANGE_DEVICE)), 0);
	check(!softgpu_space_check_range(&both, second, 100000, SOFTGPU_WRITE));
	memory_info(&memory, 1, &free, &total);
	check_eq(free, total);
	memory_info(&memory, 0, &free, &total);
	check(free < total);
	memory_deinit(&memory);
}

static struct physical *file_of(uint64_t size)
{
	const struct physical template = {
		.size = size,
		.is_shared = true,
		.is_import = true,
	};
	struct physical *physical = NULL;

	check_eq(physical_new(&memory, &template, &physical), 0);
	return physical;
}

/* A word of a file, whose descriptor is closed. */
static uint32_t *word_of(int fd, uint64_t offset)
{
	uint8_t *at = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	check(at != MAP_FAILED);
	close(fd);
	return (uint32_t *)(at + offset);
}

TEST(pages_that_are_shared_are_a_file_until_they_are_free)
{
	uint64_t large, small, neighbour, before;
	struct memory_share share, again;
	uint32_t *word;

	check_eq(memory_init(&memory, 1, LIMIT, 0, 0, 0, 0), 0);
	large = must_alloc(3 << 20);
	small = must_alloc(100);
	neighbour = must_alloc(100);
	*(uint32_t *)(uintptr_t)large = 1;
	*(uint32_t *)(uintptr_t)small = 2;
	*(uint32_t *)(uintptr_t)neighbour = 3;
	before = free_memory();
	check_eq(memory_find_share(&memory, large + 5, &share), 0);
	check(share.address == large && share.size == 3 << 20 && share.fd < 0);
	check_eq(memory_share(&memory, large, &share, file_of(4 << 20)), 0);
	check_eq(memory_find_share(&memory, large, &again), 0);
	check(again.fd >= 0);
	word = word_of(again.fd, 0);
	check_eq(*word, 1);
	*word = 4;
	check_eq(*(uint32_t *)(uintptr_t)large, 4);
	/* Small ones share a chunk, which is shared whole. */
	check_eq(memory_find_share(&memory, small, &share), 0);
	check(share.address < small && share.size == 2 << 20);
	check_eq(memory_share(&memory, small, &share, file_of(share.size)), 0);
	check_eq(memory_find_share(&memory, neighbour, &again), 0);
	check_eq(again.address, share.address);
	check_eq(*word_of(again.fd, neighbour - share.address), 3);
	check_eq(*(uint32_t *)(uintptr_t)small, 2);
	check_eq(free_memory(), before);
	/* Twice, or what is not there. */
	check_eq(memory_share(&memory, small, &share, NULL), MEMORY_E_TWICE);
	check_eq(memory_find_share(&memory, large + (3 << 20), &share), MEMORY_E_UNKNOWN);
	must_free(small);
	check_eq(*(uint32_t *)(uintptr_t)neighbour, 3);
	must_free(neighbour);
	must_free(large);
	/* The same addresses are nobody else's any more. */
	check_eq(must_alloc(3 << 20), large);
	*(uint32_t *)(uintptr_t)large = 9;
	check_eq(*word, 4);
	check_eq(memory_find_share(&memory, large, &share), 0);
	check(share.fd < 0);
	memory_deinit(&memory);
}

static void check_described(uint64_t address, const char *beginning, uint64_t of)
{
	char text[192], expected[192];

	snprintf(expected, sizeof(expected), "%s 0x%llx", beginning,
		(unsigned long long)of);
	memory_describe(&memory, address, text, sizeof(text));
	check(!strncmp(text, expected, strlen(expected)));
}

static void check_far(uint64_t address)
{
	char text[192];

	memory_describe(&memory, address, text, sizeof(text));
	check_str(text, "far from all allocations");
}

TEST(an_address_is_described_by_what_is_near)
{
	uint64_t first, second;

	check_eq(memory_init(&memory, 1, LIMIT, 0, 0, 0, 0), 0);
	check_far(0x1000);
	first = must_alloc(1 << 20);
	check_described(
		first + 5, "5 bytes into an allocation of 1048576 bytes at", first);
	check_described(
		first - 4, "4 bytes before an allocation of 1048576 bytes at", first);
	check_described(first + (1 << 20),
		"0 bytes past the end of an allocation of 1048576 bytes at", first);
	second = must_alloc(1 << 16);
	check(second > first);
	check_described(
		second - 1, "1 bytes before an allocation of 65536 bytes at", second);
	must_free(first);
	check_described(first + 7, "7 bytes into memory of 1048576 bytes at", first);
	check_described(second + 65536 + 100,
		"100 bytes past the end of an allocation of 65536 bytes at", second);
	must_free(second);
	for (unsigned int i = 0; i < 2 * MEMORY_ENDED_MAX; i++)
		must_free(must_alloc(1));
	check_far(second);
	memory_deinit(&memory);
}
