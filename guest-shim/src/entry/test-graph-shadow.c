/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests: shadows, filled and drained without a device
 */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

#include "entry/graph-shadow.h"

/* Two layers of two rows of three bytes, from the middle of rows of five. */
#define LAYER 15
#define SIZE (2 * LAYER)

static uint8_t pinned[12], before[12];

static struct shim_shadow shadow_of(uint8_t *memory)
{
	return (struct shim_shadow){
		.rows = {
			.memory = memory + 6,
			.width = 3,
			.height = 2,
			.depth = 2,
			.pitch = 5,
			.layer = LAYER,
		},
		.pinned = pinned,
		.before = before,
	};
}

static bool is_inside(int at)
{
	return at % LAYER >= 5 && at % 5 >= 1 && at % 5 < 4;
}

TEST(rows_are_filled_without_gaps)
{
	uint8_t memory[SIZE];
	struct shim_shadow shadow = shadow_of(memory);
	int n = 0;

	for (int i = 0; i < SIZE; i++)
		memory[i] = (uint8_t)i;
	check_eq(shim_rows_span(&shadow.rows), LAYER + 5 + 3);
	shim_shadow_fill(&shadow);
	for (int i = 0; i < SIZE; i++)
		if (is_inside(i))
			check_eq(pinned[n++], i);
	check_eq(n, 12);
	check(!memcmp(pinned, before, 12));
}

TEST(what_the_device_has_not_changed_is_not_written)
{
	uint8_t memory[SIZE] = {};
	struct shim_shadow shadow = shadow_of(memory);

	shim_shadow_fill(&shadow);
	pinned[4] = 44;
	/* The program writes other bytes meanwhile. */
	memset(memory, 9, SIZE);
	shim_shadow_drain(&shadow);
	for (int i = 0; i < SIZE; i++)
		/* The second byte of the second row. */
		check_eq(memory[i], i == 12 ? 44 : 9);
	/* One that is only read is not written at all. */
	shadow.before = NULL;
	shim_shadow_fill(&shadow);
	memset(pinned, 1, 12);
	shim_shadow_drain(&shadow);
	check_eq(memory[12], 44);
}

TEST(long_rows_are_compared_to_their_ends)
{
	enum { LONG = 1000 };
	static uint8_t memory[LONG], now[LONG], then[LONG];
	struct shim_shadow shadow = {
		.rows = {
			.memory = memory,
			.width = LONG,
			.height = 1,
			.depth = 1,
			.pitch = LONG,
			.layer = LONG,
		},
		.pinned = now,
		.before = then,
	};

	for (int i = 0; i < LONG; i++) {
		memset(memory, 3, LONG);
		shim_shadow_fill(&shadow);
		now[i] = 5;
		shim_shadow_drain(&shadow);
		for (int j = 0; j < LONG; j++)
			check_eq(memory[j], i == j ? 5 : 3);
	}
}

/* One copy writes all of it, or nothing. */
TEST(a_marked_shadow_is_written_if_the_copy_was_done)
{
	enum { LONG = 100 };
	uint8_t memory[LONG], now[LONG] = {}, first[SHIM_SHADOW_MARK];
	uint8_t then[SHIM_SHADOW_MARK] = {};
	struct shim_shadow shadow = {
		.rows = {
			.memory = memory,
			.width = LONG,
			.height = 1,
			.depth = 1,
			.pitch = LONG,
			.layer = LONG,
		},
		.pinned = now,
		.before = then,
		.is_marked = true,
	};

	memset(memory, 3, LONG);
	shim_shadow_fill(&shadow);
	memcpy(first, then, sizeof(first));
	shim_shadow_drain(&shadow);
	for (int i = 0; i < LONG; i++)
		check_eq(memory[i], 3);
	/* Also with what the memory has already. */
	memset(now, 3, LONG);
	memset(memory, 4, LONG);
	shim_shadow_drain(&shadow);
	for (int i = 0; i < LONG; i++)
		check_eq(memory[i], 3);
	/* The number is another one each time. */
	shim_shadow_fill(&shadow);
	check(memcmp(first, then, sizeof(first)));
}

/* The first row is in a page that is there, the second one in none. */
TEST(memory_that_is_unmapped_is_not_read)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct shim_shadow shadow = shadow_of(memory);

	check(memory != MAP_FAILED);
	shadow.rows.depth = 1;
	shadow.rows.pitch = page;
	shadow.rows.layer = 2 * page;
	memset(memory, 7, page);
	memset(pinned, 1, 12);
	check_eq(munmap(memory + page, page), 0);
	shim_shadow_fill(&shadow);
	for (int i = 0; i < 6; i++)
		check_eq(pinned[i], i < 3 ? 7 : 1);
	shim_shadow_drain(&shadow);
	check_eq(munmap(memory, page), 0);
	shim_shadow_fill(&shadow);
	check_eq(pinned[0], 7);
}

TEST(a_side_is_located)
{
	CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = (void *)0x10000,
		.srcXInBytes = 4,
		.srcY = 2,
		.srcZ = 3,
		.srcPitch = 100,
		.srcHeight = 10,
		.WidthInBytes = 50,
		.Height = 5,
		.Depth = 2,
	};
	struct shim_graph_side side = shim_graph_side_from(&copy);
	struct shim_rows rows;

	check_eq(shim_graph_side_locate(&side, &copy, &rows), CUDA_SUCCESS);
	check_eq((uintptr_t)rows.memory, 0x10000 + 3 * 1000 + 2 * 100 + 4);
	check(rows.pitch == 100 && rows.layer == 1000);
	check_eq(shim_rows_span(&rows), 1000 + 4 * 100 + 50);
	/* Rows without gaps. */
	copy.srcPitch = copy.srcHeight = 0;
	side = shim_graph_side_from(&copy);
	check_eq(shim_graph_side_locate(&side, &copy, &rows), CUDA_SUCCESS);
	check(rows.pitch == 50 && rows.layer == 250);
	copy.srcPitch = 49;
	side = shim_graph_side_from(&copy);
	check_eq(shim_graph_side_locate(&side, &copy, &rows), CUDA_ERROR_INVALID_VALUE);
	copy.srcPitch = UINT64_MAX / 2;
	side = shim_graph_side_from(&copy);
	check_eq(shim_graph_side_locate(&side, &copy, &rows), CUDA_ERROR_INVALID_VALUE);
	copy.srcPitch = 100;
	copy.Depth = 0;
	side = shim_graph_side_from(&copy);
	check_eq(shim_graph_side_locate(&side, &copy, &rows), CUDA_ERROR_INVALID_VALUE);
}
