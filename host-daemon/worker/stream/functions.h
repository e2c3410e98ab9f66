/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Functions of the guest that graphs name: those of host nodes, and destructors of user
 * objects
 *
 * The driver gets a function of the worker, and a token as its argument: an index into
 * the table and the entry's sequence, so a stale token is detected. In a host node it may
 * call any number of times, from graphs, their copies and executable graphs at once.
 * Each call is a callback of its own (callbacks.h), with the cookie by which the guest
 * knows the function.
 *
 * Who needs a function is known to the driver only. So each host node has a user object
 * of the driver, which its graph retains: copies of the graph, executable graphs and
 * launches in flight retain it, too, and its destructor ends the function. A function
 * that was set in an executable graph belongs to that graph alone, and is called once by
 * each launch: it ends when it was replaced and all launches have called it. The guest
 * gets each cookie back, as void, when its function has ended.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "worker/base/objects.h"

struct session;

/* In graphs and user objects of one session at a time. */
#define FUNCTIONS_MAX (64u << 10)

/* Calls of a function that never ends. */
#define FUNCTION_CALLS_UNKNOWN UINT64_MAX

struct function {
	uint32_t sequence;
	uint32_t next; /* in the free list: index + 1 */
	bool is_live;
	bool is_retired;
	uint64_t cookie;
	uint64_t handle;     /* of the guest's user object, or 0 */
	uint64_t n_calls;    /* that have returned */
	uint64_t n_expected; /* once it is retired */
	CUuserObject object; /* that ends it, or NULL */
};

/* A user object of the guest. */
struct user_object {
	struct object object;
	uint64_t n_owned; /* references that the guest has; destroy_lock */
};

struct functions {
	pthread_mutex_t lock;
	struct function *entries;
	uint32_t n;
	uint32_t max;
	uint32_t n_live;
	uint32_t first_free;
};

void functions_init(struct session *session);
void functions_deinit(struct session *session);

/* Whether there are any: a context may be waiting for one then. */
bool functions_any(struct session *session);

/*
 * Adds a function, or a destructor.
 *
 * Return: CUDA_ERROR_OUT_OF_MEMORY beyond FUNCTIONS_MAX; the cookie is not returned then.
 */
CUresult function_add(struct session *session, uint64_t cookie, void **tokenp);

/* Host functions for the driver, with the token as argument: calls a function, ends it,
 * calls it as the destructor of a user object. */
void function_run(void *token);
void function_end(void *token);
void function_destroy(void *token);

/* Sets the handle that becomes invalid before a destructor is called. Return: false if it
 * was called already. */
bool function_set_handle(struct session *session, const void *token, uint64_t handle);

/* Return: false if no function has this token. */
bool function_find(struct session *session, const void *token, uint64_t *cookiep);

/* The driver did not take it: the guest keeps the cookie. */
void function_withdraw(struct session *session, const void *token);

/*
 * Ends a function once neither this graph nor anything made from it needs it.
 *
 * Return: CUDA_ERROR_OUT_OF_MEMORY and the like; drivers without user objects keep
 * functions until the session ends, and return CUDA_SUCCESS.
 */
CUresult function_tie(struct session *session, CUgraph graph, void *token);

/* A node of the graph names the function no longer. With destroy_lock. */
void function_untie(struct session *session, CUgraph graph, const void *token);

/* An executable graph has no use for it any more, after that many launches. */
void function_retire(struct session *session, void *token, uint64_t n_launches);
