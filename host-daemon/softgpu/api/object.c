/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects: what handles of the API point to
 *
 * The table is open addressed with linear probing; an entry that leaves is marked as
 * left, and a table that is three quarters full of entries and marks is built anew.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "vgpu/error.h"

#include "api/api.h"

#define TABLE_SIZE_MIN 256

struct entry {
	const void *handle; /* NULL: free, &left: was one */
	enum object_kind kind;
};

static const char left;

static struct {
	pthread_rwlock_t lock;
	struct entry *entries;
	size_t size;   /* a power of two */
	size_t n_used; /* entries and marks */
	size_t n_live;
} table = { .lock = PTHREAD_RWLOCK_INITIALIZER };

static size_t table_hash(const void *handle)
{
	return ((uintptr_t)handle >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

/* Return: the entry of a handle, or NULL. */
static struct entry *table_find(const void *handle)
{
	size_t at = table_hash(handle);

	if (!table.size)
		return NULL;
	for (;; at++) {
		struct entry *entry = &table.entries[at & (table.size - 1)];

		if (!entry->handle || entry->handle == handle)
			return entry->handle ? entry : NULL;
	}
}

static void table_put(struct entry *entries, size_t size, struct entry new)
{
	size_t at = table_hash(new.handle);

	while (entries[at & (size - 1)].handle)
		at++;
	entries[at & (size - 1)] = new;
}

static int table_rebuild(void)
{
	size_t size = TABLE_SIZE_MIN;
	struct entry *entries;

	while (size < 4 * table.n_live)
		size *= 2;
	entries = calloc(size, sizeof(*entries));
	if (!entries)
		return vgpu_error_origin(-ENOMEM);
	for (size_t i = 0; i < table.size; i++)
		if (table.entries[i].handle && table.entries[i].handle != &left)
			table_put(entries, size, table.entries[i]);
	free(table.entries);
	table.entries = entries;
	table.size = size;
	table.n_used = table.n_live;
	return 0;
}

int object_enter(struct object *object)
{
	int r = 0;

	pthread_rwlock_wrlock(&table.lock);
	if (4 * (table.n_used + 1) > 3 * table.size)
		r = table_rebuild();
	if (!r) {
		table_put(table.entries, table.size,
			(struct entry){ .handle = object, .kind = object->kind });
		table.n_used++;
		table.n_live++;
	}
	pthread_rwlock_unlock(&table.lock);
	return r;
}

bool object_leave(struct object *object)
{
	struct entry *entry;

	pthread_rwlock_wrlock(&table.lock);
	entry = table_find(object);
	if (entry) {
		entry->handle = &left;
		table.n_live--;
	}
	pthread_rwlock_unlock(&table.lock);
	return entry;
}

bool object_is(const void *handle, enum object_kind kind)
{
	const struct entry *entry;
	bool found;

	if (!handle)
		return false;
	pthread_rwlock_rdlock(&table.lock);
	entry = table_find(handle);
	found = entry && entry->kind == kind && handle != &left;
	pthread_rwlock_unlock(&table.lock);
	return found;
}

/*
 * Life
 */

void *object_new(enum object_kind kind, size_t size, CUcontext context)
{
	struct object *object = calloc(1, size);

	if (!object)
		return NULL;
	object->kind = kind;
	object->n_refs = 1;
	object->context = context;
	if (context) {
		object_ref(&context->object);
		object->generation = context_generation(context);
	}
	return object;
}

void object_ref(struct object *object)
{
	__atomic_fetch_add(&object_whole(object)->n_refs, 1, __ATOMIC_RELAXED);
}

void object_unref(struct object *object)
{
	CUcontext context;

	object = object_whole(object);
	if (__atomic_sub_fetch(&object->n_refs, 1, __ATOMIC_ACQ_REL))
		return;
	context = object->context;
	if (object->release)
		object->release(object);
	free(object);
	if (context)
		object_unref(&context->object);
}

void object_end(struct object *object)
{
	object->end(object);
	object_unref(object);
}

static pthread_once_t kept_once = PTHREAD_ONCE_INIT;
static pthread_key_t kept_key;

static void kept_end(void *object)
{
	object_unref(object);
}

static void kept_begin(void)
{
	if (pthread_key_create(&kept_key, kept_end))
		abort();
}

void object_keep_for_thread(struct object *object)
{
	struct object *before;

	pthread_once(&kept_once, kept_begin);
	before = pthread_getspecific(kept_key);
	object_ref(object);
	if (pthread_setspecific(kept_key, object)) {
		object_unref(object);
		return;
	}
	if (before)
		object_unref(before);
}

bool object_hold(const void *handle, enum object_kind kind)
{
	const struct entry *entry;
	bool found;

	if (!handle)
		return false;
	/* The reference of a handle is dropped after it has left the table. */
	pthread_rwlock_rdlock(&table.lock);
	entry = table_find(handle);
	found = entry && entry->kind == kind && handle != &left &&
		object_keep((struct object *)handle);
	pthread_rwlock_unlock(&table.lock);
	return found;
}
