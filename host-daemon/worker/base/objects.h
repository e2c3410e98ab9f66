/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Objects: the tables to which the guest's handles refer
 *
 * One table per kind of handle. The memory of an entry is never freed and always holds an
 * object of its kind, so a look-up takes no lock: chunks are only added, and a generation
 * is published last and cleared first. A guest that races the use of a handle with its
 * destruction gets, at worst, the driver's result for such a race. The legal cases,
 * destroying events and streams for which another thread waits, are handled in uses.h.
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

/* Live objects of all kinds in one session: frameworks have some 10^4 events and streams,
 * large model libraries some 10^4 kernels. Bounds the tables to 32 MiB. */
#define OBJECTS_MAX (1u << 18)

/* The beginning of each entry; kinds with additional state embed it as first member. */
struct object {
	uint32_t generation;	  /* 0: free; atomic, partner in object_table_find() */
	uint32_t last_generation; /* of the latest object here */
	uint32_t index;
	uint32_t next; /* in the free list or hash chain: index + 1 */
	void *driver;  /* the driver's handle */
	/* The object is removed with either of these: its context, its module or
	 * library. */
	const void *owner;
	const void *parent;
	/* Charged to the totals; atomic, refunded with the object. */
	uint64_t image_bytes;
};

/* Use and limits of all objects of a session. */
struct object_totals {
	uint32_t n;		  /* live objects of all tables, atomic */
	uint32_t n_max;		  /* atomic: limits of running sessions change */
	uint64_t image_bytes;	  /* of loaded code, atomic */
	uint64_t image_bytes_max; /* atomic, too */
};

struct object_table {
	pthread_mutex_t lock;
	enum vgpu_handle_kind kind;
	size_t entry_size;
	bool unique;	 /* a driver object has one entry, found by hash */
	bool per_owner;	 /* objects of other owners are not found */
	uint32_t first;	 /* the lowest index to use */
	uint32_t n_used; /* indices below were in use at least once */
	uint32_t free;	 /* list of indices to reuse */
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
	OBJECTS_E_NO_OWNER, /* the context was destroyed; set by callers */
};

/* entry_size: of the structure that begins with struct object. */
int object_table_init(struct object_table *table, enum vgpu_handle_kind kind,
	size_t entry_size, uint32_t first, bool unique, struct object_totals *totals);
void object_table_deinit(struct object_table *table);

/* Charges code that is about to be loaded. Return: false beyond the limit. */
bool object_totals_charge(struct object_totals *totals, uint64_t image_bytes);
void object_totals_refund(struct object_totals *totals, uint64_t image_bytes);

/* Return: the entry of an index, or NULL if its chunk was never allocated. */
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

/* Return: the object, or NULL if no live object has that handle. */
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

/* Whether an entry still has that handle. */
static inline bool object_is(const struct object *object, uint64_t handle)
{
	return __atomic_load_n(&object->generation, __ATOMIC_ACQUIRE) ==
	       vgpu_handle_generation(handle);
}

/*
 * Adds an entry. A guest can guess the handle before it gets the reply, so the entry is
 * complete when it is published, and may be freed or reused when this function returns.
 * In a unique table a driver object that has an entry already keeps it.
 *
 * @like:	source of the entry's additional state (behind its struct object);
 *		NULL: zeros
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

/* Makes an object one that is removed with `parent`. Return: false if no live object has
 * that handle, or it has a parent. */
bool object_table_adopt(struct object_table *table, uint64_t handle, const void *parent);

/* Frees an entry. Return: false if no live object has that handle. */
bool object_table_remove(struct object_table *table, uint64_t handle, void **driverp);

/*
 * In a unique table, copies the entry of a driver object and owner: the first @size
 * bytes of it.
 *
 * Return: false if there is no such entry.
 */
bool object_table_find_driver(struct object_table *table, const void *driver,
	const void *owner, struct object *copy, size_t size);

/* Finds the handle of a driver object in any table by linear search. Return: false if it
 * has none. */
bool object_table_search(
	struct object_table *table, const void *driver, uint64_t *handlep);

/* Finds any object of an owner or parent. Return: false if there is none. */
bool object_table_find_owned(
	struct object_table *table, const void *owner, uint64_t *handlep);

/* Removes all objects of an owner or parent. Return: their number. */
uint32_t object_table_remove_owned(struct object_table *table, const void *owner);

static inline uint64_t object_handle(
	const struct object_table *table, const struct object *object)
{
	return vgpu_handle_make(table->kind, object->index,
		__atomic_load_n(&object->generation, __ATOMIC_RELAXED));
}
