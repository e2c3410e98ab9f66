/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects: the tables to which the guest's handles refer
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/error.h"
#include "worker/base/objects.h"

#define N_BUCKETS 4096u

int object_table_init(struct object_table *table, enum vgpu_handle_kind kind,
	size_t entry_size, uint32_t first, bool unique, struct object_totals *totals)
{
	assert(entry_size >= sizeof(struct object));
	*table = (struct object_table){
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.kind = kind,
		.entry_size = entry_size,
		.unique = unique,
		.first = first,
		.n_used = first,
		.totals = totals,
	};
	if (!unique)
		return 0;
	table->buckets = calloc(N_BUCKETS, sizeof(*table->buckets));
	return table->buckets ? 0 : vgpu_error_origin(-ENOMEM);
}

void object_table_deinit(struct object_table *table)
{
	size_t i;

	for (i = 0; i < OBJECTS_CHUNKS_MAX; i++)
		free(table->chunks[i]);
	free(table->buckets);
	pthread_mutex_destroy(&table->lock);
}

static int chunk_ensure(struct object_table *table, uint32_t index)
{
	uint8_t **chunkp = &table->chunks[index / OBJECTS_CHUNK], *chunk;
	uint32_t i;

	if (*chunkp)
		return 0;
	chunk = calloc(OBJECTS_CHUNK, table->entry_size);
	if (!chunk)
		return vgpu_error_origin(-ENOMEM);
	for (i = 0; i < OBJECTS_CHUNK; i++) {
		struct object *object = (struct object *)(chunk + i * table->entry_size);

		object->index = index / OBJECTS_CHUNK * OBJECTS_CHUNK + i;
	}
	/* Partner: the load in entry(). */
	__atomic_store_n(chunkp, chunk, __ATOMIC_RELEASE);
	return 0;
}

bool object_totals_charge(struct object_totals *totals, uint64_t image_bytes)
{
	if (__atomic_add_fetch(&totals->image_bytes, image_bytes, __ATOMIC_RELAXED) <=
		__atomic_load_n(&totals->image_bytes_max, __ATOMIC_RELAXED))
		return true;
	object_totals_refund(totals, image_bytes);
	return false;
}

void object_totals_refund(struct object_totals *totals, uint64_t image_bytes)
{
	__atomic_fetch_sub(&totals->image_bytes, image_bytes, __ATOMIC_RELAXED);
}

static uint32_t *bucket_of(struct object_table *table, const void *driver)
{
	return &table->buckets[((uintptr_t)driver >> 4) * 0x9e3779b97f4a7c15ull >> 52];
}

static struct object *find_driver(
	struct object_table *table, const void *driver, const void *owner)
{
	struct object *object;
	uint32_t next;

	if (!table->unique)
		return NULL;
	for (next = *bucket_of(table, driver); next; next = object->next) {
		object = object_table_entry(table, next - 1);
		if (object->driver == driver &&
			(!table->per_owner || object->owner == owner))
			return object;
	}
	return NULL;
}

static void fill(
	struct object_table *table, struct object *object, const struct object *like)
{
	size_t size = table->entry_size - sizeof(*object);

	if (like)
		memcpy(object + 1, like + 1, size);
	else
		memset(object + 1, 0, size);
}

static void publish(struct object_table *table, struct object *object,
	uint32_t generation, void *driver, const void *owner, const void *parent)
{
	object->driver = driver;
	object->owner = owner;
	object->parent = parent;
	object->last_generation = generation;
	object->image_bytes = 0;
	object->next = 0;
	if (table->unique) {
		uint32_t *bucket = bucket_of(table, driver);

		object->next = *bucket;
		*bucket = object->index + 1;
	}
	table->n_live++;
	/* Partner: the load in object_table_find(). */
	__atomic_store_n(&object->generation, generation, __ATOMIC_RELEASE);
}

static void withdraw(struct object_table *table, struct object *object)
{
	uint32_t *nextp;

	/* Partner: the load in object_table_find(). */
	__atomic_store_n(&object->generation, 0, __ATOMIC_RELEASE);
	if (table->unique) {
		nextp = bucket_of(table, object->driver);
		while (*nextp != object->index + 1)
			nextp = &object_table_entry(table, *nextp - 1)->next;
		*nextp = object->next;
	}
	table->n_live--;
	__atomic_fetch_sub(&table->totals->n, 1, __ATOMIC_RELAXED);
	object_totals_refund(table->totals,
		__atomic_exchange_n(&object->image_bytes, 0, __ATOMIC_RELAXED));
	/* An index whose generations are exhausted is never reused. */
	if (object->last_generation == UINT32_MAX)
		return;
	object->next = table->free;
	table->free = object->index + 1;
}

/* Charges one object to the session. Return: false beyond the limit. */
static bool charge(struct object_table *table)
{
	if (__atomic_add_fetch(&table->totals->n, 1, __ATOMIC_RELAXED) <=
		__atomic_load_n(&table->totals->n_max, __ATOMIC_RELAXED))
		return true;
	__atomic_fetch_sub(&table->totals->n, 1, __ATOMIC_RELAXED);
	return false;
}

static int pick_index(struct object_table *table, uint32_t *indexp)
{
	int r;

	if (table->free) {
		*indexp = table->free - 1;
		table->free = object_table_entry(table, *indexp)->next;
		return 0;
	}
	if (table->n_used > VGPU_HANDLE_INDEX_MAX)
		return OBJECTS_E_LIMIT;
	r = chunk_ensure(table, table->n_used);
	if (r)
		return vgpu_error_trace(r);
	*indexp = table->n_used++;
	return 0;
}

static int add_locked(struct object_table *table, void *driver, const void *owner,
	const void *parent, const struct object *like, struct object **objectp)
{
	struct object *object = find_driver(table, driver, owner);
	uint32_t index = 0;
	int r;

	if (object) {
		if (like)
			fill(table, object, like);
		*objectp = object;
		return 0;
	}
	if (!charge(table))
		return OBJECTS_E_LIMIT;
	r = pick_index(table, &index);
	if (r) {
		__atomic_fetch_sub(&table->totals->n, 1, __ATOMIC_RELAXED);
		return r;
	}
	object = object_table_entry(table, index);
	fill(table, object, like);
	publish(table, object, object->last_generation + 1, driver, owner, parent);
	*objectp = object;
	return 0;
}

int object_table_add(struct object_table *table, void *driver, const void *owner,
	const void *parent, const struct object *like, struct object **objectp)
{
	int r;

	pthread_mutex_lock(&table->lock);
	r = add_locked(table, driver, owner, parent, like, objectp);
	pthread_mutex_unlock(&table->lock);
	return r;
}

/* Either the guest chooses all indices of a table or the worker does: the free list would
 * contain indices that the guest has taken. */
static int add_at_locked(struct object_table *table, uint64_t handle, void *driver,
	const void *owner, const struct object *like, struct object **objectp)
{
	uint32_t index = vgpu_handle_index(handle);
	struct object *object;
	int r;

	r = chunk_ensure(table, index);
	if (r)
		return vgpu_error_trace(r);
	object = object_table_entry(table, index);
	if (object->generation)
		return OBJECTS_E_TAKEN;
	if (!charge(table))
		return OBJECTS_E_LIMIT;
	fill(table, object, like);
	publish(table, object, vgpu_handle_generation(handle), driver, owner, NULL);
	*objectp = object;
	return 0;
}

int object_table_add_at(struct object_table *table, uint64_t handle, void *driver,
	const void *owner, const struct object *like, struct object **objectp)
{
	int r;

	if (vgpu_handle_kind(handle) != table->kind || !vgpu_handle_generation(handle))
		return OBJECTS_E_INVALID;
	pthread_mutex_lock(&table->lock);
	r = add_at_locked(table, handle, driver, owner, like, objectp);
	pthread_mutex_unlock(&table->lock);
	return r;
}

bool object_table_adopt(struct object_table *table, uint64_t handle, const void *parent)
{
	struct object *object;
	bool is_adopted;

	pthread_mutex_lock(&table->lock);
	object = object_table_find(table, handle);
	is_adopted = object && !object->parent;
	if (is_adopted)
		object->parent = parent;
	pthread_mutex_unlock(&table->lock);
	return is_adopted;
}

bool object_table_remove(struct object_table *table, uint64_t handle, void **driverp)
{
	struct object *object;

	pthread_mutex_lock(&table->lock);
	object = object_table_find(table, handle);
	if (object) {
		if (driverp)
			*driverp = object->driver;
		withdraw(table, object);
	}
	pthread_mutex_unlock(&table->lock);
	return object;
}

bool object_table_find_driver(struct object_table *table, const void *driver,
	const void *owner, struct object *copy, size_t size)
{
	const struct object *object;

	assert(size <= table->entry_size);
	pthread_mutex_lock(&table->lock);
	object = find_driver(table, driver, owner);
	if (object)
		memcpy(copy, object, size);
	pthread_mutex_unlock(&table->lock);
	return object;
}

uint32_t object_table_remove_owned(struct object_table *table, const void *owner)
{
	uint32_t i, n = 0, left;
	struct object *object;

	pthread_mutex_lock(&table->lock);
	left = table->n_live;
	for (i = 0; i <= VGPU_HANDLE_INDEX_MAX && left; i++) {
		object = object_table_entry(table, i);
		if (!object) {
			i += OBJECTS_CHUNK - 1;
			continue;
		}
		if (!object->generation)
			continue;
		left--;
		if (object->owner != owner && object->parent != owner)
			continue;
		withdraw(table, object);
		n++;
	}
	pthread_mutex_unlock(&table->lock);
	return n;
}

bool object_table_find_owned(
	struct object_table *table, const void *owner, uint64_t *handlep)
{
	const struct object *object;
	bool is_found = false;
	uint32_t i;

	pthread_mutex_lock(&table->lock);
	for (i = 0; i <= VGPU_HANDLE_INDEX_MAX && !is_found; i++) {
		object = object_table_entry(table, i);
		if (!object) {
			i += OBJECTS_CHUNK - 1;
			continue;
		}
		is_found = object->generation &&
			   (object->owner == owner || object->parent == owner);
		if (is_found)
			*handlep = object_handle(table, object);
	}
	pthread_mutex_unlock(&table->lock);
	return is_found;
}

bool object_table_search(
	struct object_table *table, const void *driver, uint64_t *handlep)
{
	struct object *object;
	bool is_found = false;
	uint32_t i;

	pthread_mutex_lock(&table->lock);
	for (i = 0; i <= VGPU_HANDLE_INDEX_MAX && !is_found; i++) {
		object = object_table_entry(table, i);
		if (!object) {
			i += OBJECTS_CHUNK - 1;
			continue;
		}
		is_found = object->generation && object->driver == driver;
		if (is_found)
			*handlep = object_handle(table, object);
	}
	pthread_mutex_unlock(&table->lock);
	return is_found;
}
