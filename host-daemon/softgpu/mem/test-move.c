/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is moved: what can be, and what is left of it
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mem/chunk.h"
#include "mem/move.h"
#include "mem/virtual.h"
#include "test.h"

#define LIMIT (64ull << 20)
#define UNIT VIRTUAL_GRANULARITY

static struct memory memory;
static struct softgpu_piece *pieces;
static size_t n_pieces;

static void begin(uint32_t n_devices)
{
	check_eq(memory_init(&memory, n_devices, LIMIT, 0, 0, 0, 0), 0);
}

static void end(void)
{
	memory_deinit(&memory);
	free(pieces);
	pieces = NULL;
}

static void list(size_t n)
{
	free(pieces);
	pieces = NULL;
	check_eq(move_list(&memory, &pieces, &n_pieces), 0);
	check_eq(n_pieces, n);
}

static uint64_t must_alloc(enum range_kind kind, uint64_t size)
{
	struct range range = { .kind = kind, .size = size, .owner = &memory };
	uint64_t address = 0;

	check_eq(memory_alloc(&memory, &range, &address), 0);
	memset((void *)(uintptr_t)address, 0xa5, size);
	return address;
}

/* Maps a piece of memory without an address, at one of its own. */
static uint64_t must_map(struct physical *physical, uint64_t offset, uint64_t size)
{
	uint64_t address;

	check_eq(virtual_reserve(&memory, size, 0, 0, &address), 0);
	check_eq(virtual_map(&memory, address, size, offset, physical), 0);
	memset((void *)(uintptr_t)address, 0xa5, size);
	return address;
}

static struct physical *must_create(uint64_t size, bool is_shared)
{
	const struct physical template = { .size = size, .is_shared = is_shared };
	struct physical *physical;

	check_eq(physical_new(&memory, &template, &physical), 0);
	return physical;
}

static bool holds(uint64_t address, uint64_t size, uint8_t value)
{
	const uint8_t *bytes = (const uint8_t *)(uintptr_t)address;

	for (uint64_t i = 0; i < size; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

/* Whether the process has memory for a page. */
static bool has_page(uint64_t address)
{
	unsigned char present;

	check_eq(mincore((void *)(uintptr_t)(address & ~UINT64_C(4095)), 4096, &present),
		0);
	return present & 1;
}

TEST(allocations_of_all_kinds_and_sizes_are_listed_and_dropped)
{
	static const enum range_kind kinds[] = { RANGE_DEVICE, RANGE_MODULE, RANGE_ARRAY,
		RANGE_HEAP, RANGE_DRIVER };
	uint64_t addresses[2 * 5];

	begin(1);
	for (int i = 0; i < 5; i++) {
		addresses[2 * i] = must_alloc(kinds[i], 1000);
		addresses[2 * i + 1] = must_alloc(kinds[i], CHUNK_ALLOCATION_MAX + 1);
	}
	list(10);
	for (size_t i = 0; i < n_pieces; i++)
		check(holds(pieces[i].address, pieces[i].size, 0xa5));
	for (int i = 0; i < 10; i++)
		check(has_page(addresses[i]));
	move_drop(&memory, pieces, n_pieces);
	for (int i = 0; i < 10; i++)
		check(!has_page(addresses[i]));
	for (size_t i = 0; i < n_pieces; i++) {
		check(move_has(&memory, &pieces[i]));
		check(holds(pieces[i].address, pieces[i].size, 0));
		memset((void *)(uintptr_t)pieces[i].address, 0x5a, pieces[i].size);
	}
	for (int i = 0; i < 10; i++)
		check(holds(addresses[i], i % 2 ? CHUNK_ALLOCATION_MAX + 1 : 1000, 0x5a));
	end();
}

TEST(an_allocation_in_the_place_of_another_is_not_that)
{
	uint64_t address;

	begin(1);
	address = must_alloc(RANGE_DEVICE, 4 << 20);
	list(1);
	check_eq(memory_free(&memory, address, MEMORY_KIND(RANGE_DEVICE)), 0);
	check(!move_has(&memory, &pieces[0]));
	check_eq(must_alloc(RANGE_DEVICE, 4 << 20), address);
	check(!move_has(&memory, &pieces[0]));
	/* And keeps what it holds. */
	move_drop(&memory, pieces, 1);
	check(holds(address, 4 << 20, 0xa5));
	end();
}

TEST(a_mapping_is_listed_once_and_its_file_emptied)
{
	struct physical *physical;
	uint64_t first, second;

	begin(1);
	physical = must_create(2 * UNIT, false);
	first = must_map(physical, 0, 2 * UNIT);
	second = must_map(physical, 0, 2 * UNIT);
	list(1);
	move_drop(&memory, pieces, n_pieces);
	check(holds(first, 2 * UNIT, 0) && holds(second, 2 * UNIT, 0));
	memset((void *)(uintptr_t)pieces[0].address, 0x77, pieces[0].size);
	check(holds(first, 2 * UNIT, 0x77) && holds(second, 2 * UNIT, 0x77));
	physical_unref(&memory, physical);
	end();
}

TEST(memory_that_others_may_have_and_parts_stay)
{
	struct physical *shared, *parts;
	uint64_t at_shared, at_part;

	begin(1);
	shared = must_create(UNIT, true);
	parts = must_create(2 * UNIT, false);
	at_shared = must_map(shared, 0, UNIT);
	at_part = must_map(parts, UNIT, UNIT);
	list(0);
	move_drop(&memory, pieces, n_pieces);
	check(holds(at_shared, UNIT, 0xa5) && holds(at_part, UNIT, 0xa5));
	physical_unref(&memory, shared);
	physical_unref(&memory, parts);
	end();
}

TEST(a_chunk_that_was_exported_stays)
{
	const struct physical template = {
		.size = UNIT, .is_shared = true, .is_import = true
	};
	struct physical *physical;
	struct memory_share share;
	uint64_t small, large;

	begin(1);
	small = must_alloc(RANGE_DEVICE, 1000);
	must_alloc(RANGE_DEVICE, 2000);
	large = must_alloc(RANGE_DEVICE, 4 << 20);
	check_eq(memory_find_share(&memory, small, &share), 0);
	check_eq(physical_new(&memory, &template, &physical), 0);
	check_eq(memory_share(&memory, small, &share, physical), 0);
	list(1);
	check_eq(pieces[0].address, large);
	move_drop(&memory, pieces, n_pieces);
	check(holds(small, 1000, 0xa5));
	check(holds(large, 4 << 20, 0));
	end();
}

TEST(memory_of_all_devices_is_listed)
{
	struct range range = { .kind = RANGE_DEVICE, .size = 5000, .owner = &memory };
	uint64_t address;

	begin(3);
	for (range.device = 0; range.device < 3; range.device++)
		check_eq(memory_alloc(&memory, &range, &address), 0);
	list(3);
	move_drop(&memory, pieces, n_pieces);
	end();
}

TEST(memory_that_a_program_reaches_itself_keeps_all_there)
{
	begin(1);
	must_alloc(RANGE_HOST, 1000);
	check_eq(move_list(&memory, &pieces, &n_pieces), -ENOTSUP);
	end();
	begin(1);
	memory.is_checked = true;
	must_alloc(RANGE_DEVICE, 1000);
	check_eq(move_list(&memory, &pieces, &n_pieces), -ENOTSUP);
	end();
}
