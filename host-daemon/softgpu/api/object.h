/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Objects: what handles of the API point to
 *
 * A handle is the address of its object. All live handles stand in one table, so any
 * number that a program passes is told from a handle without being followed.
 *
 * Streams, events and modules belong to a context and go with it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum object_kind {
	OBJECT_NONE,
	OBJECT_CONTEXT,
	OBJECT_STREAM,
	OBJECT_EVENT,
	OBJECT_MODULE,
	OBJECT_LIBRARY,
	OBJECT_FUNCTION,
	OBJECT_KERNEL,
	OBJECT_ARRAY,
	OBJECT_MIPMAP,
	OBJECT_LINK,
	OBJECT_TEXREF,
	OBJECT_SURFREF,
	OBJECT_GRAPH,
	OBJECT_GRAPH_NODE,
	OBJECT_GRAPH_EXEC,
	_OBJECT_N,
};

struct CUctx_st;

struct object {
	enum object_kind kind;
	struct CUctx_st *context;
	/* Ends the object with its context, which has let go of it already. */
	void (*release)(struct object *object);
	TAILQ_ENTRY(object) link; /* in the context */
};

TAILQ_HEAD(objects, object);

/* Return: zeroed memory that starts with a struct object, a live handle; or NULL. */
void *object_new(enum object_kind kind, size_t size);

/* The handle is none from now on, the memory is free. */
void object_free(struct object *object);

/* The same for objects that are part of another. Return: 0 or -ENOMEM. */
int object_enter(struct object *object, enum object_kind kind);
void object_leave(struct object *object);

/* Return: whether a handle is a live object of that kind. */
bool object_is(const void *handle, enum object_kind kind);
