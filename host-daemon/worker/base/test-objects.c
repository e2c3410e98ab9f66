/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handle tables: what a guest may name, and what it may not any more
 */

#include "test.h"
#include "worker/base/objects.h"

#define DRIVER(_n) ((void *)(uintptr_t)(0x1000 * (_n)))

static struct object_table table;
static struct object_totals totals;

static void setup(bool unique)
{
	totals = (struct object_totals){ .n_max = OBJECTS_MAX, .image_bytes_max = 1000 };
	check_eq(object_table_init(&table, VGPU_HANDLE_STREAM, sizeof(struct object) + 16,
			 0, unique, &totals),
		0);
}

static uint64_t add(unsigned int n, const void *owner)
{
	struct object *object;

	check_eq(object_table_add(&table, DRIVER(n), owner, NULL, NULL, &object), 0);
	return object_handle(&table, object);
}

TEST(an_object_is_found_by_its_handle)
{
	uint64_t handle;

	setup(false);
	handle = add(1, NULL);
	check(handle > 0xffff);
	check(object_table_find(&table, handle)->driver == DRIVER(1));
	object_table_deinit(&table);
}

TEST(a_stale_handle_finds_nothing_although_its_index_lives_again)
{
	uint64_t first, second;
	void *driver;

	setup(false);
	first = add(1, NULL);
	check(object_table_remove(&table, first, &driver));
	check(driver == DRIVER(1));
	second = add(2, NULL);
	check_eq(vgpu_handle_index(first), vgpu_handle_index(second));
	check(first != second);
	check(!object_table_find(&table, first));
	check(!object_table_remove(&table, first, &driver));
	check(object_table_find(&table, second));
	object_table_deinit(&table);
}

TEST(a_handle_of_another_kind_or_never_given_finds_nothing)
{
	uint64_t handle;

	setup(false);
	handle = add(1, NULL);
	check(!object_table_find(&table,
		vgpu_handle_make(VGPU_HANDLE_EVENT, vgpu_handle_index(handle), 1)));
	check(!object_table_find(&table, handle + 1));
	check(!object_table_find(&table, handle | 1ull << 63));
	check(!object_table_find(&table, 0));
	check(!object_table_find(&table, 1));
	check(!object_table_find(&table, UINT64_MAX));
	check(!object_table_find(
		&table, vgpu_handle_make(VGPU_HANDLE_STREAM, VGPU_HANDLE_INDEX_MAX, 1)));
	object_table_deinit(&table);
}

TEST(an_owner_takes_its_objects_with_it)
{
	static int one, two;
	uint64_t a, b, c;

	setup(false);
	a = add(1, &one);
	b = add(2, &two);
	c = add(3, &one);
	check_eq(object_table_remove_owned(&table, &one), 2);
	check(!object_table_find(&table, a) && !object_table_find(&table, c));
	check(object_table_find(&table, b));
	check_eq(totals.n, 1);
	object_table_deinit(&table);
}

TEST(an_object_is_adopted_once)
{
	int parent, other;
	uint64_t handle;

	setup(false);
	handle = add(1, NULL);
	check(!object_table_adopt(&table, handle + (1 << 20), &parent));
	check(object_table_adopt(&table, handle, &parent));
	check(!object_table_adopt(&table, handle, &other));
	check_eq(object_table_remove_owned(&table, &other), 0);
	check_eq(object_table_remove_owned(&table, &parent), 1);
	check(!object_table_adopt(&table, handle, &parent));
	object_table_deinit(&table);
}

TEST(a_unique_table_gives_a_driver_object_one_handle)
{
	uint64_t a, b;

	setup(true);
	a = add(1, NULL);
	b = add(2, NULL);
	check(a != b);
	check(add(1, NULL) == a);
	check(object_table_remove(&table, a, NULL));
	check(add(1, NULL) != a);
	check(add(2, NULL) == b);
	object_table_deinit(&table);
}

TEST(the_guest_may_choose_a_handle_once)
{
	uint64_t handle = vgpu_handle_make(VGPU_HANDLE_STREAM, 70000, 5);
	struct object *object;

	setup(false);
	check_eq(object_table_add_at(&table, handle, DRIVER(1), NULL, NULL, &object), 0);
	check(object_table_find(&table, handle) == object);
	check_eq(object_table_add_at(&table, handle, DRIVER(2), NULL, NULL, &object),
		OBJECTS_E_TAKEN);
	check_eq(object_table_add_at(&table, vgpu_handle_make(VGPU_HANDLE_STREAM, 7, 0),
			 DRIVER(2), NULL, NULL, &object),
		OBJECTS_E_INVALID);
	check_eq(object_table_add_at(&table, vgpu_handle_make(VGPU_HANDLE_EVENT, 7, 1),
			 DRIVER(2), NULL, NULL, &object),
		OBJECTS_E_INVALID);
	check(object_table_remove(&table, handle, NULL));
	check_eq(object_table_add_at(&table, handle, DRIVER(2), NULL, NULL, &object), 0);
	object_table_deinit(&table);
}

TEST(an_entry_begins_with_the_state_it_was_given)
{
	struct {
		struct object object;
		uint64_t state[2];
	} like = { .state = { 7, UINT64_MAX } }, *entry;
	struct object *object;

	setup(true);
	check_eq(object_table_add(&table, DRIVER(1), NULL, NULL, &like.object, &object),
		0);
	entry = (void *)object;
	check_eq(entry->state[0], 7);
	check(entry->state[1] == UINT64_MAX);
	/* The next object in its place has no charge. */
	check(object_table_remove(&table, object_handle(&table, object), NULL));
	add(2, NULL);
	check(entry->object.driver == DRIVER(2));
	check_eq(entry->state[0] | entry->state[1], 0);
	object_table_deinit(&table);
}

TEST(a_session_may_not_have_objects_without_end)
{
	struct object *object;
	uint32_t i;

	setup(false);
	for (i = 0; i < OBJECTS_MAX; i++)
		check_eq(object_table_add(&table, DRIVER(1), NULL, NULL, NULL, &object),
			0);
	check_eq(object_table_add(&table, DRIVER(1), NULL, NULL, NULL, &object),
		OBJECTS_E_LIMIT);
	check(object_table_remove(&table, object_handle(&table, object), NULL));
	check_eq(object_table_add(&table, DRIVER(1), NULL, NULL, NULL, &object), 0);
	object_table_deinit(&table);
}

TEST(the_limit_of_a_session_is_what_it_was_given)
{
	struct object *object;

	setup(false);
	totals.n_max = 3;
	for (int i = 0; i < 3; i++)
		add(i + 1, NULL);
	check_eq(object_table_add(&table, DRIVER(9), NULL, NULL, NULL, &object),
		OBJECTS_E_LIMIT);
	object_table_deinit(&table);
}

TEST(code_is_charged_until_its_object_is_destroyed)
{
	struct object *object;
	static int owner;
	uint64_t handle;

	setup(false);
	check(object_totals_charge(&totals, 600));
	check(!object_totals_charge(&totals, 401));
	check_eq(totals.image_bytes, 600);
	handle = add(1, NULL);
	object = object_table_find(&table, handle);
	object->image_bytes = 600;
	check(object_totals_charge(&totals, 400));
	object_table_find(&table, add(2, &owner))->image_bytes = 400;
	check(!object_totals_charge(&totals, 1));
	check(object_table_remove(&table, handle, NULL));
	check_eq(totals.image_bytes, 400);
	/* With its context as well. */
	check_eq(object_table_remove_owned(&table, &owner), 1);
	check_eq(totals.image_bytes, 0);
	/* The next object of the entry has nothing of the previous one. */
	check(object_table_remove(&table, add(3, NULL), NULL));
	check_eq(totals.image_bytes, 0);
	object_table_deinit(&table);
}
