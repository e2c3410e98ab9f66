/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Contexts
 *
 * The current context of each thread, and its stack of contexts, exist only in the shim;
 * the worker learns of a change with the next call. A primary context has the same handle
 * for life, whether it is retained or not. Context-local storage, where CUDA runtimes
 * keep their state, never leaves the process.
 *
 * The context that a green context is converted to is the primary one with another
 * default stream: memory, code, events and local storage are those of its `home`.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

#include "process/shim.h"
#include "process/stream.h"
#include "process/thread.h"
#include "wire/channel.h"
#include "wire/lock.h"

typedef void (*shim_local_destroy_fn)(CUcontext context, void *key, void *value);

/* One value in a context's local storage. */
struct shim_local {
	void *key;
	void *value;
	shim_local_destroy_fn destroy;
	struct shim_local *next;
};

struct shim_context {
	uint64_t handle;
	uint64_t id;
	CUdevice device;
	bool is_primary;

	/* Whose contents it shares: of a green context the primary one, until it is
	 * destroyed; else itself. Atomic. */
	struct shim_context *home;
	/* Of a green context: its own handle, and its multiprocessors. */
	uint64_t green;
	unsigned int n_sms;

	/* Grows whenever all that lives in the context is destroyed. */
	uint32_t epoch;

	uint32_t is_live; /* atomic */
	unsigned int flags;

	/* Atomic: what broke the context, as far as the host was asked, and how many
	 * faults the process had met then. */
	uint32_t fault;
	uint32_t n_faults_known;

	/* Atomic: blocks of pools that were freed before this one, in the order of the
	 * process, are used by no work of the context any more. */
	uint64_t n_frees_waited_for;

	/* Atomic: uses beyond the first, by cuCtxAttach. */
	uint32_t n_attached;

	/* Primary contexts, under retain_lock. */
	struct shim_lock retain_lock;
	uint32_t n_retains;

	/* Under the lock of contexts. */
	struct shim_local *locals;
	struct shim_context *next;

	/* The default stream, who binds it, and, atomic, whether the context ever had a
	 * blocking stream in its present life. */
	struct shim_lock bind_lock;
	struct shim_stream default_stream;
	bool has_blocking_streams;
};

/* Prepares the primary contexts of so many devices. */
void shim_context_setup(int n_devices);

/* Returns: the context of a handle, live or not, or NULL. */
struct shim_context *shim_context_find(CUcontext handle);
struct shim_context *shim_context_primary(CUdevice device);

/* Makes a context known that the host created. Return: NULL without memory. */
struct shim_context *shim_context_add(
	uint64_t handle, CUdevice device, unsigned int flags);

/* The same for a green context, which the primary one holds. */
struct shim_context *shim_context_add_green(
	uint64_t handle, uint64_t green, unsigned int n_sms, struct shim_context *home);

/* Returns: the context of a green context, live or not, or NULL. */
struct shim_context *shim_context_find_green(CUgreenCtx handle);

/* All that lives in the context is gone: its streams, its memory, its local storage. The
 * destructors of the latter run before this returns. */
void shim_context_wipe(struct shim_context *context);

/* Sets what is called at the end of each wipe, for what the layers above know of the
 * context. Called before the first context is made. */
typedef void (*shim_context_wiped_fn)(struct shim_context *context);
void shim_context_on_wipe(shim_context_wiped_fn fn);

/* Primary contexts: the retain that makes one live and its last release are messages to
 * the host. */
CUresult shim_context_retain(struct shim_context *context);
CUresult shim_context_release(struct shim_context *context);

/* The host has reset a primary context: it is not live until the next retain. Earlier
 * retains have still to be released, as the manual of cuDevicePrimaryCtxReset says. */
void shim_context_reset(struct shim_context *context);

static inline struct shim_context *shim_context_home(const struct shim_context *context)
{
	return __atomic_load_n(&context->home, __ATOMIC_RELAXED);
}

/* Returns: the context whose memory and code the current one uses, or NULL. */
static inline struct shim_context *shim_thread_context(const struct shim_thread *thread)
{
	const struct shim_context *top = shim_thread_top(thread);

	return top ? shim_context_home(top) : NULL;
}

static inline CUcontext shim_context_public(const struct shim_context *context)
{
	return context ? (CUcontext)(uintptr_t)context->handle : NULL;
}

static inline uint64_t shim_context_handle(const struct shim_context *context)
{
	return context ? context->handle : 0;
}

/* Returns: the error of a call that needs the context current. */
static inline CUresult shim_context_check(const struct shim_context *context)
{
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!__atomic_load_n(&context->is_live, __ATOMIC_ACQUIRE))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return CUDA_SUCCESS;
}

/* Whether those who wait for work of the context are to sleep at once. */
static inline bool shim_context_blocks(const struct shim_context *context)
{
	return (context->flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC;
}

/* Asks the host. Called by the following alone. */
CUresult shim_context_ask_fault(struct shim_context *context, uint32_t n_faults);

/* Returns: the fault that broke the context, CUDA_SUCCESS if none did. It stays until the
 * context is reset or destroyed. */
static inline CUresult shim_context_fault(struct shim_context *context)
{
	uint32_t n_faults = shim_channel_n_faults(&shim_channel);

	context = shim_context_home(context);
	if (__builtin_expect(n_faults == __atomic_load_n(&context->n_faults_known,
						 __ATOMIC_ACQUIRE),
		    1))
		return (CUresult)__atomic_load_n(&context->fault, __ATOMIC_RELAXED);
	return shim_context_ask_fault(context, n_faults);
}

/* The stack of the calling thread. */
CUresult shim_context_push(struct shim_context *context);
CUresult shim_context_pop(struct shim_context **contextp);
CUresult shim_context_set_current(struct shim_context *context);

/*
 * Makes a context current if none is: for the end of what has its own context, by which
 * the driver finds it. Programs free such things in threads and at times without any.
 *
 * @context:	NULL: nothing is done
 *
 * Return: whether the caller has to pop it.
 */
bool shim_context_lend(struct shim_context *context);

/* Context-local storage. Return of get: CUDA_ERROR_INVALID_HANDLE where there is none. */
CUresult shim_context_local_put(struct shim_context *context, void *key, void *value,
	shim_local_destroy_fn destroy);
CUresult shim_context_local_delete(struct shim_context *context, void *key);
CUresult shim_context_local_get(struct shim_context *context, void *key, void **valuep);
