/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Objects: what handles of the API point to, and how long they live
 *
 * A handle is the address of its object. All live handles are in one table, so a number
 * that a program passes is recognised as a handle without being dereferenced.
 *
 * Any thread may destroy any object at any time, also one that a call of another thread
 * uses or waits for. So the end of an object has two steps:
 *
 *	- It *ends* when it is destroyed, or with its context: its handle is no longer
 *	  valid, it releases its resources of the device, and takes no new work.
 *	- Its memory is *freed* with the last reference.
 *
 * References are counted. One is the handle's, and object_end() drops it. Each object has
 * one to its context, nodes of graphs to the objects they use, and each call to every
 * object that it looked up by a handle: object_hold() records them with the calling
 * thread, and API_CALL, which begins every call, drops them when the call returns. So a
 * pointer stays valid within the call that looked it up, over any wait, and nothing has
 * to be released by hand. But the object may have ended in the meantime: a call that
 * changes something, or submits work, checks again with the lock in question.
 *
 * If several threads destroy an object one succeeds: the one that takes it off the list
 * of its context (context_remove()), or out of the table if it is on no such list.
 *
 * An object enters the table when it is complete: a stale handle of an earlier object at
 * the same address may still be in use.
 *
 * Functions, kernels and levels of arrays are parts of other objects, which are counted
 * in their place.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "vgpu/cleanup.h"

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
	OBJECT_USER,
	OBJECT_ALLOCATION,
	OBJECT_GREEN,
	OBJECT_ORPHAN,	      /* a stream that was left in a green context */
	OBJECT_GREEN_CONTEXT, /* the part of it that is a CUcontext */
	OBJECT_TEXTURE,	      /* found by its number, never by its address */
	_OBJECT_N,
};

struct CUctx_st;

struct object {
	enum object_kind kind;
	uint32_t n_refs;	  /* atomic; of a part: not used */
	bool is_listed;		  /* in its context; context.lock */
	struct object *whole;	  /* that it is part of, or NULL */
	struct CUctx_st *context; /* a reference unless it is a part; or NULL */
	uint64_t generation;	  /* of the context when it was begun */
	/* First step: called once, by who took it off its list. */
	void (*end)(struct object *object);
	/* Second step, except for the memory; NULL: nothing to do. */
	void (*release)(struct object *object);
	TAILQ_ENTRY(object) link; /* in the context */
};

TAILQ_HEAD(objects, object);

/*
 * Life
 */

/* Return: zeroed memory that begins with a struct object, with one reference and no
 * handle yet; or NULL. */
void *object_new(enum object_kind kind, size_t size, struct CUctx_st *context);

/* The object whose references are counted: itself, or the one it is part of. */
static inline struct object *object_whole(struct object *object)
{
	return object->whole ? object->whole : object;
}

void object_ref(struct object *object);
void object_unref(struct object *object);

/* Ends an object and drops the reference of its handle. */
void object_end(struct object *object);

/*
 * Handles
 */

/* The address is a handle from now on. Return: 0 or -ENOMEM. */
int object_enter(struct object *object);

/* It is none any more. Return: whether it was one. */
bool object_leave(struct object *object);

/* Return: whether a handle is a live object of that kind; it may end at any time. */
bool object_is(const void *handle, enum object_kind kind);

/* The same, and the object stays until the calling thread's call returns. */
bool object_hold(const void *handle, enum object_kind kind);

/* Holds an object that is known not to be freed yet. Return: whether there is room. */
bool object_keep(struct object *object);

/* Holds an object that the caller has until the thread calls this again, or ends: a call
 * returns a pointer into it, which the worker follows after the call. */
void object_keep_for_thread(struct object *object);

/*
 * Calls
 *
 * Nested calls count as one. A call uses fewer objects than this; nodes of graphs have
 * references of their own.
 */
#define CALL_OBJECTS_MAX 48u

struct call_objects;

struct call_section {
	struct call_objects *objects;
};

struct call_section call_begin(void);
void call_end(const struct call_section *section);

#define API_CALL                                                                         \
	_vgpu_cleanup_(call_end) const struct call_section section_ = call_begin()
