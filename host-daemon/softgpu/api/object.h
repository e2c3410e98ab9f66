/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Objects: what handles of the API point to
 *
 * A handle is the address of its object. Each object starts with a mark of its kind,
 * which is cleared when the object goes; the memory of the last OBJECT_GRAVES objects
 * is kept, so that a stale handle is told from a live one and not from garbage. A
 * handle that was never one is as fatal here as with any driver; the worker has
 * handle tables of its own in front of this.
 *
 * Streams, events and modules belong to a context and go with it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define OBJECT_GRAVES 4096

enum object_kind {
	OBJECT_NONE,
	OBJECT_CONTEXT = 0x43545831,
	OBJECT_STREAM = 0x53545231,
	OBJECT_EVENT = 0x45564e31,
	OBJECT_MODULE = 0x4d4f4431,
	OBJECT_LIBRARY = 0x4c494231,
	OBJECT_FUNCTION = 0x46554e31,
	OBJECT_KERNEL = 0x4b524e31,
};

struct CUctx_st;

struct object {
	uint32_t kind; /* enum object_kind, NONE once it is gone */
	struct CUctx_st *context;
	/* Ends the object with its context, which has let go of it already. */
	void (*release)(struct object *object);
	TAILQ_ENTRY(object) link; /* in the context */
};

TAILQ_HEAD(objects, object);

/* Return: zeroed memory that starts with a struct object, or NULL. */
void *object_new(enum object_kind kind, size_t size);

/* The handle is stale from now on. */
void object_free(struct object *object);

/* Return: whether a handle is a live object of that kind. NULL is none. */
static inline bool object_is(const void *handle, enum object_kind kind)
{
	const struct object *object = handle;

	return object && __atomic_load_n(&object->kind, __ATOMIC_RELAXED) == (uint32_t)kind;
}
