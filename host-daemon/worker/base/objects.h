/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Objects: the tables behind the guest's handles
 *
 * One table per kind of handle. An entry is never given back to the allocator and
 * always holds an object of its kind, so a look-up takes no lock: chunks only
 * appear, and a generation is published last and withdrawn first. A guest that
 * uses a handle in one thread while it destroys it in another gets, at worst,
 * the driver's answer to such a program; what an honest one may do so, to events and
 * streams that others wait for, is in uses.h.
 *
 * Changes are made under the table's lock, by the dispatcher and by lanes.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/handle.h"

#define OBJECTS_CHUNK 1024u
#define OBJECTS_CHUNKS_MAX ((VGPU_HANDLE_INDEX_MAX + 1) / OBJECTS_CHUNK)

/* Live objects of one session, all kinds: frameworks hold some 10^4 events and
 * streams, large model libraries some 10^4 kernels. Bounds the tables to 32 MiB. */
#define OBJECTS_MAX (1u << 18)

/* Begins each entry; kinds with state of their own embed it first. */
struct object {
	uint32_t generation;	  /* 0: free; atomic, partner in object_table_find() */
	uint32_t last_generation; /* of the last that lived here */
	uint32_t index;
	uint32_t next; /* in the free list or hash chain: index + 1 */
	void *driver;  /* the driver's handle */
	/* With either of them it goes away too: its context, its module or library. */
	const void *owner;
	const void *parent;
	/* What it holds of the totals; atomic, back with the object. */
	uint64_t image_bytes;
};

/* What all objects of a session hold, and may hold. */
struct object_totals {
	uint32_t n; /* live objects of all tables, atomic */
	uint32_t n_max;
	uint64_t image_bytes; /* of code that is loaded, atomic */
	uint64_t image_bytes_max;
};

struct object_table {
	pthread_mutex_t lock;
	enum vgpu_handle_kind kind;
	size_t entry_size;
	bool unique;	 /* a driver object has one entry, found again by hash */
	bool per_owner;	 /* of those with another owner nothing is known */
	uint32_t first;	 /* lowest index handed out */
	uint32_t n_used; /* indices below were in use at least once */
	uint32_t free;	 /* list of those free again */
	uint32_t n_live;
	struct object_totals *totals;
	uint32_t *buckets; /* with unique */
	uint8_t *chunks[OBJECTS_CHUNKS_MAX];
};

enum {
	_OBJECTS_E_SUCCESS,
	OBJECTS_E_LIMIT,    /* the session has too many objects */
	OBJECTS_E_TAKEN,    /* the index chosen is in use */
	OBJECTS_E_INVALID,  /* not a handle of this kind */
	OBJECTS_E_NO_OWNER, /* the context has gone; not from here, but from who looked */
};

/* entry_size: of the structure that begins with struct object. */
int object_table_init(struct object_table *table, enum vgpu_handle_kind kind,
	size_t entry_size, uint32_t first, bool unique, struct object_totals *totals);
void object_table_deinit(struct object_table *table);

/* Charges code that is about to be loaded. Returns: whether there is room for it. */
bool object_totals_charge(struct object_totals *totals, uint64_t image_bytes);
void object_totals_refund(struct object_totals *totals, uint64_t image_bytes);

/* Returns: the entry of an index, or NULL where none was ever made near it. */
static inline struct object *object_table_entry(
	const struct object_table *table, uint32_t index)
{
	/* Partner: the store in chunk_ensure(). */
	uint8_t *chunk =
		__atomic_load_n(&table->chunks[index / OBJECTS_CHUNK], __ATOMIC_ACQUIRE);

	if (!chunk)
		return NULL;
	return (struct object *)(chunk + (index % OBJECTS_CHUNK) * table->entry_size);
}

/* Return: the object, or NULL where the handle is not that of a live one. */
static inline struct object *object_table_find(
	const struct object_table *table, uint64_t handle)
{
	uint32_t generation = vgpu_handle_generation(handle);
	struct object *object;

	if (vgpu_handle_kind(handle) != table->kind || !generation)
		return NULL;
	object = object_table_entry(table, vgpu_handle_index(handle));
	/* Partner: the stores of generation in publish() and withdraw(). */
	if (!object ||
		__atomic_load_n(&object->generation, __ATOMIC_ACQUIRE) != generation)
		return NULL;
	return object;
}

/* Whether an entry that was found is still that handle's. */
static inline bool object_is(const struct object *object, uint64_t handle)
{
	return __atomic_load_n(&object->generation, __ATOMIC_ACQUIRE) ==
	       vgpu_handle_generation(handle);
}

/*
 * Makes an entry. A guest can guess its handle before it is told: the entry is whole from
 * the start, and may be gone, or that of another object, when this returns. In a unique
 * table a driver object that has an entry keeps it.
 *
 * @like:	what stands behind its struct object begins the entry's own state; NULL:
 *		zeros
 *
 * Return: 0, OBJECTS_E_LIMIT or -ENOMEM.
 */
int object_table_add(struct object_table *table, void *driver, const void *owner,
	const void *parent, const struct object *like, struct object **objectp);

/*
 * As object_table_add(), under a handle of the guest's choice.
 *
 * Return: 0, OBJECTS_E_LIMIT, OBJECTS_E_TAKEN, OBJECTS_E_INVALID or -ENOMEM.
 */
int object_table_add_at(struct object_table *table, uint64_t handle, void *driver,
	const void *owner, const struct object *like, struct object **objectp);

/* Frees an entry. Return: whether it was that handle's until now. */
bool object_table_remove(struct object_table *table, uint64_t handle, void **driverp);

/*
 * In a unique table, copies the entry of a driver object and owner: the first @size
 * bytes of it.
 *
 * Return: whether there is one.
 */
bool object_table_find_driver(struct object_table *table, const void *driver,
	const void *owner, struct object *copy, size_t size);

/* The handle of a driver object in any table, looked for one by one. Return: whether
 * there is one. */
bool object_table_search(
	struct object_table *table, const void *driver, uint64_t *handlep);

/* Removes all objects of an owner or parent. Return: how many. */
uint32_t object_table_remove_owned(struct object_table *table, const void *owner);

static inline uint64_t object_handle(
	const struct object_table *table, const struct object *object)
{
	return vgpu_handle_make(table->kind, object->index,
		__atomic_load_n(&object->generation, __ATOMIC_RELAXED));
}
