/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of pools
 */

#include <stdlib.h>

#include "test.h"

#include "memory/blocks.h"

#define MIB (1ull << 20)
#define BASE 0x100000000000ull

static struct shim_blocks *blocks;
static uint64_t n_frees;

/* The stream that the operations of a test are complete in, and how many. */
static struct {
	uint64_t stream;
	uint64_t count;
} done;

static bool is_past(const struct shim_free_point *point, void *data)
{
	check(!data);
	return point->stream == done.stream && point->count <= done.count;
}

static bool any(const struct shim_free_point *point, void *data)
{
	(void)point;
	return data != NULL;
}

static void begin(uint64_t size)
{
	blocks = shim_blocks_new();
	check(blocks);
	check(shim_blocks_add(blocks, BASE, size));
}

static void end(void)
{
	blocks = shim_blocks_free(blocks);
}

static uint64_t take(uint64_t size, uint64_t stream)
{
	return shim_blocks_take(blocks, size, stream, NULL);
}

static bool give(uint64_t address, uint64_t stream, uint64_t count)
{
	struct shim_free_point point = {
		.stream = stream,
		.count = count,
		.order = n_frees++,
		.handle = 100 + stream,
	};

	return shim_blocks_give(blocks, address, &point);
}

static void settle(uint64_t stream, uint64_t count)
{
	done.stream = stream;
	done.count = count;
	shim_blocks_settle(blocks, is_past, NULL);
}

TEST(blocks_do_not_overlap_and_are_rounded_up)
{
	uint64_t a, b;

	begin(MIB);
	a = take(1, 1);
	b = take(513, 1);
	check_eq(a, BASE);
	check_eq(b, BASE + 512);
	check_eq(shim_blocks_counts(blocks)->used, 512 + 1024);
	check_eq(shim_blocks_counts(blocks)->reserved, MIB);
	check(!take(0, 1));
	check(!take(UINT64_MAX, 1));
	check(!take(MIB, 1));
	end();
}

TEST(a_pending_block_is_for_its_own_stream)
{
	uint64_t a;

	begin(MIB);
	a = take(MIB, 1);
	check(give(a, 1, 5));
	check(!give(a, 1, 5));
	check(!take(MIB, 2));
	check_eq(take(MIB, 1), a);
	check(give(a, 1, 6));
	settle(1, 5);
	check(!take(MIB, 2));
	settle(1, 6);
	check_eq(take(MIB, 2), a);
	end();
}

TEST(a_borrowed_block_comes_with_its_point)
{
	struct shim_free_point point;
	uint64_t a, b, yes = 1;

	begin(MIB);
	a = take(MIB / 2, 1);
	b = take(MIB / 2, 2);
	check(give(a, 1, 7));
	check(!shim_blocks_borrow(blocks, MIB / 2, NULL, any, NULL, &point));
	check(!shim_blocks_borrow(blocks, MIB, NULL, any, &yes, &point));
	check_eq(shim_blocks_borrow(blocks, MIB / 2, NULL, any, &yes, &point), a);
	check_eq(point.stream, 1);
	check_eq(point.count, 7);
	check_eq(point.handle, 101);
	check(!shim_blocks_borrow(blocks, MIB / 2, NULL, any, &yes, &point));
	check(give(b, 2, 1));
	end();
}

TEST(a_block_is_taken_after_the_work_in_front_of_its_free)
{
	struct shim_order order = {};
	uint64_t all[3];

	begin(MIB);
	for (int i = 0; i < 3; i++)
		all[i] = take(MIB / 4, 1);
	check(take(MIB / 4, 1));
	/* Not neighbours, which would be one block. */
	check(give(all[0], 1, 5));
	check(give(all[2], 1, 7));
	check(!shim_blocks_take_after(blocks, MIB / 4, &order, NULL));
	shim_order_note(&order, 2, 100);
	shim_order_note(&order, 1, 4);
	check(!shim_blocks_take_after(blocks, MIB / 4, &order, NULL));
	shim_order_note(&order, 1, 6);
	check(!shim_blocks_take_after(blocks, MIB / 2, &order, NULL));
	check_eq(shim_blocks_take_after(blocks, MIB / 8, &order, NULL), all[0]);
	/* The rest of it. */
	check_eq(shim_blocks_take_after(blocks, MIB / 8, &order, NULL), all[0] + MIB / 8);
	check(!shim_blocks_take_after(blocks, MIB / 8, &order, NULL));
	shim_order_note(&order, 1, 7);
	check_eq(shim_blocks_take_after(blocks, MIB / 4, &order, NULL), all[2]);
	check(!shim_blocks_take_after(blocks, 0, &order, NULL));
	check(!shim_blocks_take_after(blocks, UINT64_MAX, &order, NULL));
	end();
}

TEST(free_neighbours_are_one_block)
{
	uint64_t all[4];

	begin(MIB);
	for (int i = 0; i < 4; i++)
		all[i] = take(MIB / 4, 1);
	check(give(all[0], 1, 1));
	check(give(all[2], 1, 9));
	check(give(all[3], 2, 1));
	check(!take(MIB / 2, 1));
	check(give(all[1], 1, 2));
	/* Three of one stream are merged, and pending until the last is past. */
	settle(1, 8);
	check(!take(MIB / 2, 3));
	settle(1, 9);
	check_eq(take(3 * MIB / 4, 3), all[0]);
	check(give(all[0], 3, 1));
	settle(3, 1);
	settle(2, 1);
	check_eq(take(MIB, 4), all[0]);
	end();
}

TEST(only_segments_that_are_ready_are_removed)
{
	uint64_t base, size, a;

	begin(MIB);
	check(shim_blocks_add(blocks, BASE + MIB, 2 * MIB));
	a = take(2 * MIB, 1);
	check_eq(a, BASE + MIB);
	check(!shim_blocks_remove(blocks, 3 * MIB, &base, &size));
	check(!shim_blocks_remove(blocks, 2 * MIB + 1, &base, &size));
	check(shim_blocks_remove(blocks, 0, &base, &size));
	check_eq(base, BASE);
	check_eq(size, MIB);
	check(!shim_blocks_remove(blocks, 0, &base, &size));
	check(give(a, 1, 1));
	check(!shim_blocks_remove(blocks, 0, &base, &size));
	settle(1, 1);
	check(shim_blocks_remove(blocks, 0, &base, &size));
	check_eq(shim_blocks_counts(blocks)->reserved, 0);
	check_eq(shim_blocks_counts(blocks)->reserved_high, 3 * MIB);
	shim_blocks_reset_reserved_high(blocks);
	check_eq(shim_blocks_counts(blocks)->reserved_high, 0);
	end();
}

TEST(an_address_finds_its_block_in_use)
{
	uint64_t a, b, base, size;

	begin(MIB);
	a = take(4096, 1);
	b = take(8192, 1);
	check(shim_blocks_find(blocks, b + 8191, &base, &size));
	check_eq(base, b);
	check_eq(size, 8192);
	check(!shim_blocks_find(blocks, b + 8192, &base, &size));
	check(!shim_blocks_find(blocks, BASE - 1, &base, &size));
	check(give(a, 1, 1));
	check(!shim_blocks_find(blocks, a, &base, &size));
	end();
}

TEST(the_end_of_an_owner_frees_its_blocks)
{
	int first, second;

	begin(MIB);
	for (int i = 0; i < 64; i++)
		check(shim_blocks_take(blocks, MIB / 64, 1, i % 2 ? &first : &second));
	shim_blocks_give_owned(blocks, &first);
	check_eq(shim_blocks_counts(blocks)->used, MIB / 2);
	check(take(MIB / 64, 5));
	check(!take(MIB / 32, 5));
	shim_blocks_give_owned(blocks, &second);
	check_eq(shim_blocks_counts(blocks)->used, MIB / 64);
	end();
}

TEST(a_pool_has_a_limited_number_of_blocks)
{
	uint64_t n = 0;

	begin(2ull * SHIM_BLOCKS_MAX * SHIM_BLOCK_UNIT);
	while (take(1, 1))
		n++;
	/* One is what is left. */
	check_eq(n, SHIM_BLOCKS_MAX - 1);
	check_eq(shim_blocks_counts(blocks)->n_blocks, SHIM_BLOCKS_MAX);
	shim_blocks_give_owned(blocks, NULL);
	check_eq(shim_blocks_counts(blocks)->used, 0);
	check_eq(shim_blocks_counts(blocks)->n_blocks, 1);
	end();
}

/* Random blocks in random streams, which wait for random events: each byte belongs to one
 * block at most, and to another stream only after the work in front of its free. */
enum { UNITS = 512, STREAMS = 14, EVENTS = 6 };

static struct {
	uint8_t is_used[UNITS];
	uint64_t freed_in[UNITS]; /* 0: in none */
	uint64_t freed_at[UNITS];
	uint64_t done[STREAMS];
	uint64_t count[STREAMS];
	uint64_t live[UNITS];
	uint64_t sizes[UNITS];
	uint32_t n_live;
	/* What streams wait for, all of it here and the last of it there. */
	struct {
		uint64_t counts[STREAMS];
		struct shim_order order;
	} streams[STREAMS], events[EVENTS];
	uint32_t n_after;
} model;

static bool is_past_in_model(const struct shim_free_point *point, void *data)
{
	(void)data;
	return point->count <= model.done[point->stream];
}

static void take_at_random(void)
{
	uint64_t stream = 1 + (uint64_t)rand() % (STREAMS - 1);
	uint64_t units = 1 + (uint64_t)rand() % 40;
	uint64_t address = 0, first;

	if (rand() % 2)
		address = shim_blocks_take_after(blocks, units * SHIM_BLOCK_UNIT,
			&model.streams[stream].order, NULL);
	model.n_after += address != 0;
	if (!address)
		address = take(units * SHIM_BLOCK_UNIT, stream);
	first = (address - BASE) / SHIM_BLOCK_UNIT;
	if (!address)
		return;
	check(first + units <= UNITS);
	for (uint64_t i = first; i < first + units; i++) {
		uint64_t other = model.freed_in[i];

		check(!model.is_used[i]);
		check(!other || other == stream ||
			model.freed_at[i] <= model.done[other] ||
			model.freed_at[i] <= model.streams[stream].counts[other]);
		model.is_used[i] = 1;
	}
	model.sizes[model.n_live] = units;
	model.live[model.n_live++] = address;
}

static void give_at_random(void)
{
	uint64_t stream = 1 + (uint64_t)rand() % (STREAMS - 1);
	uint64_t address, first, units;
	uint32_t i;

	if (!model.n_live)
		return;
	i = (uint32_t)rand() % model.n_live;
	address = model.live[i];
	units = model.sizes[i];
	model.n_live--;
	model.live[i] = model.live[model.n_live];
	model.sizes[i] = model.sizes[model.n_live];
	first = (address - BASE) / SHIM_BLOCK_UNIT;
	for (uint64_t j = first; j < first + units; j++) {
		model.is_used[j] = 0;
		model.freed_in[j] = stream;
		model.freed_at[j] = model.count[stream];
	}
	check(give(address, stream, model.count[stream]));
}

/* A record of an event, or a wait. */
static void order_at_random(uint64_t stream)
{
	uint32_t event = (uint32_t)rand() % EVENTS;

	if (rand() % 2) {
		model.events[event] = model.streams[stream];
		model.events[event].counts[stream] = model.count[stream];
		shim_order_note(&model.events[event].order, stream, model.count[stream]);
		return;
	}
	for (int i = 0; i < STREAMS; i++)
		if (model.streams[stream].counts[i] < model.events[event].counts[i])
			model.streams[stream].counts[i] = model.events[event].counts[i];
	shim_order_add(&model.streams[stream].order, &model.events[event].order);
}

TEST(given_addresses_are_taken_where_all_is_free)
{
	uint64_t base, size, block;

	begin(16 * SHIM_BLOCK_UNIT);
	check(shim_blocks_take_at(blocks, BASE + 4 * SHIM_BLOCK_UNIT, 1024, NULL));
	check(shim_blocks_find(blocks, BASE + 5 * SHIM_BLOCK_UNIT, &base, &size));
	check_eq(base, BASE + 4 * SHIM_BLOCK_UNIT);
	check_eq(size, 2 * SHIM_BLOCK_UNIT);
	/* In use, in part, and beyond the end. */
	check(!shim_blocks_take_at(blocks, BASE + 5 * SHIM_BLOCK_UNIT, 1, NULL));
	check(!shim_blocks_take_at(blocks, BASE + 3 * SHIM_BLOCK_UNIT, 1024, NULL));
	check(!shim_blocks_take_at(blocks, BASE + 15 * SHIM_BLOCK_UNIT, 513, NULL));
	check(!shim_blocks_take_at(blocks, BASE - SHIM_BLOCK_UNIT, 1, NULL));
	check(!shim_blocks_take_at(blocks, BASE, 0, NULL));
	check(!shim_blocks_take_at(blocks, BASE, UINT64_MAX, NULL));
	check_eq(shim_blocks_counts(blocks)->used, 2 * SHIM_BLOCK_UNIT);
	/* Of pieces that are pending in different streams, and ready. */
	check(shim_blocks_take_at(blocks, BASE, 4 * SHIM_BLOCK_UNIT, NULL));
	check(give(BASE, 1, 1));
	check(give(BASE + 4 * SHIM_BLOCK_UNIT, 2, 1));
	check(shim_blocks_take_at(blocks, BASE + 2 * SHIM_BLOCK_UNIT, 8 * 512, NULL));
	check(shim_blocks_give(blocks, BASE + 2 * SHIM_BLOCK_UNIT, NULL));
	/* What was cut off is pending where it was. */
	block = take(2 * SHIM_BLOCK_UNIT, 1);
	check_eq(block, BASE);
	end();
}

TEST(random_blocks_are_exclusive)
{
	begin(UNITS * SHIM_BLOCK_UNIT);
	srand(1);
	for (uint64_t i = 0; i < STREAMS; i++)
		model.streams[i].order.life = i;
	for (int i = 0; i < 200000; i++) {
		uint64_t stream = 1 + (uint64_t)rand() % (STREAMS - 1);

		model.count[stream]++;
		if (rand() % 2)
			take_at_random();
		else
			give_at_random();
		if (!(rand() % 8))
			order_at_random(stream);
		if (!(rand() % 50)) {
			model.done[stream] = model.count[stream];
			shim_blocks_settle(blocks, is_past_in_model, NULL);
		}
	}
	check(model.n_after > 1000);
	while (model.n_live)
		give_at_random();
	for (int i = 0; i < STREAMS; i++)
		model.done[i] = model.count[i];
	shim_blocks_settle(blocks, is_past_in_model, NULL);
	check_eq(take(UNITS * SHIM_BLOCK_UNIT, 1), BASE);
	end();
}
