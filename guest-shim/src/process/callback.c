/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks: functions of the program that a stream calls
 *
 * The thread asks the host for the next one only while callbacks are pending, so a
 * program that is done with callbacks has a thread that sleeps, and no more. A function
 * that ends its thread (pthread_exit, cancellation) counts as run: a new thread takes
 * over.
 */

#include <pthread.h>
#include <stdlib.h>

#include "vgpu/g-driver.pb-c.h"
#include "vgpu/log.h"
#include "vgpu/wake.h"

#include "process/call.h"
#include "process/callback.h"
#include "process/thread.h"
#include "wire/error.h"
#include "wire/lock.h"
#include "wire/wait.h"

#define FIRST_ENTRIES 64u

struct entry {
	struct shim_callback callback;
	uint32_t generation;
	uint32_t next_free; /* index + 1 */
	bool is_live;
};

static struct {
	struct shim_lock lock;
	struct entry *entries;
	uint32_t n;
	uint32_t max;
	uint32_t first_free;
	uint32_t n_live; /* the thread sleeps on it while it is 0 */
	uint32_t n_of_streams;
	bool has_thread;

	/* The thread's own: what it runs, or 0. */
	uint64_t token;
} callbacks;

static void *serve(void *unused);

/* With the lock. */
static bool has_room(enum shim_callback_kind kind)
{
	uint32_t n_of_graphs = callbacks.n_live - callbacks.n_of_streams;

	return kind == SHIM_CALLBACK_OF_STREAM
		       ? callbacks.n_of_streams < SHIM_CALLBACKS_MAX
		       : n_of_graphs < SHIM_CALLBACKS_OF_GRAPHS_MAX;
}

/* With the lock. Returns: NULL where there are too many, or no memory. */
static struct entry *take_entry(enum shim_callback_kind kind)
{
	struct entry *entry;

	if (!has_room(kind))
		return NULL;

	if (callbacks.first_free) {
		entry = &callbacks.entries[callbacks.first_free - 1];
		callbacks.first_free = entry->next_free;
		return entry;
	}
	if (callbacks.n == callbacks.max) {
		uint32_t max = callbacks.max ? callbacks.max * 2 : FIRST_ENTRIES;
		struct entry *entries;

		entries = realloc(callbacks.entries, max * sizeof(*entries));
		if (!entries)
			return NULL;
		callbacks.entries = entries;
		callbacks.max = max;
	}
	entry = &callbacks.entries[callbacks.n++];
	*entry = (struct entry){};
	return entry;
}

static bool try_add(const struct shim_callback *callback, uint64_t *cookiep)
{
	struct entry *entry;
	bool is_first = false;

	shim_lock(&callbacks.lock);
	entry = take_entry(callback->kind);
	if (entry) {
		callbacks.n_of_streams += callback->kind == SHIM_CALLBACK_OF_STREAM;
		entry->callback = *callback;
		entry->generation++;
		entry->is_live = true;
		*cookiep = (uint64_t)entry->generation << 32 |
			   (uint32_t)(entry - callbacks.entries);
		/* Partner: the load in await_any(). */
		is_first = !__atomic_fetch_add(&callbacks.n_live, 1, __ATOMIC_RELEASE);
	}
	shim_unlock(&callbacks.lock);
	if (is_first)
		vgpu_wake_word(&callbacks.n_live, 1);
	return entry;
}

/* With the lock. */
static void release(struct entry *entry)
{
	callbacks.n_of_streams -= entry->callback.kind == SHIM_CALLBACK_OF_STREAM;
	entry->is_live = false;
	entry->next_free = callbacks.first_free;
	callbacks.first_free = (uint32_t)(entry - callbacks.entries) + 1;
	__atomic_fetch_sub(&callbacks.n_live, 1, __ATOMIC_RELAXED);
}

/* With the lock. Returns: NULL where there is none with that cookie. */
static struct entry *find(uint64_t cookie)
{
	uint32_t index = (uint32_t)cookie;
	struct entry *entry;

	if (index >= callbacks.n)
		return NULL;
	entry = &callbacks.entries[index];
	return entry->is_live && entry->generation == cookie >> 32 ? entry : NULL;
}

/* Takes the entry of a cookie out, unless it is that of a function in a graph which is
 * only due. Returns: false where there is none. */
static bool take(uint64_t cookie, bool is_due, struct shim_callback *callback)
{
	struct entry *entry;
	SHIM_LOCKED(&callbacks.lock);

	entry = find(cookie);
	if (!entry)
		return false;
	*callback = entry->callback;
	if (!is_due || callback->kind != SHIM_CALLBACK_OF_GRAPH)
		release(entry);
	return true;
}

bool shim_callback_find(uint64_t cookie, struct shim_callback *callback)
{
	const struct entry *entry;
	SHIM_LOCKED(&callbacks.lock);

	entry = find(cookie);
	if (entry)
		*callback = entry->callback;
	return entry;
}

CUresult shim_callback_add(const struct shim_callback *callback, uint64_t *cookiep)
{
	struct shim_wait wait = {};
	bool starts, is_full;

	while (!try_add(callback, cookiep)) {
		shim_lock(&callbacks.lock);
		is_full = !has_room(callback->kind);
		shim_unlock(&callbacks.lock);
		if (!is_full)
			return CUDA_ERROR_OUT_OF_MEMORY;
		if (!shim_wait_turn(&wait, &shim_channel))
			return SHIM_ERROR_HOST_GONE;
	}
	shim_lock(&callbacks.lock);
	starts = !callbacks.has_thread;
	callbacks.has_thread = true;
	shim_unlock(&callbacks.lock);
	if (!starts || shim_thread_start(serve))
		return CUDA_SUCCESS;
	__atomic_store_n(&callbacks.has_thread, false, __ATOMIC_RELAXED);
	shim_callback_withdraw(*cookiep);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

void shim_callback_withdraw(uint64_t cookie)
{
	struct shim_callback callback;

	take(cookie, false, &callback);
}

static void await_any(void)
{
	struct vgpu_nap nap = {};

	/* Partner: the addition in try_add(). */
	while (!__atomic_load_n(&callbacks.n_live, __ATOMIC_ACQUIRE))
		vgpu_nap_word(&callbacks.n_live, 0, vgpu_nap_ms(&nap));
}

static CUresult report(void)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuCallbackDone);
	Vgpu__VgpuCallbackDoneRequest request = VGPU__VGPU_CALLBACK_DONE_REQUEST__INIT;

	request.token = callbacks.token;
	callbacks.token = 0;
	return shim_call_async(&call, &request.base, NULL);
}

static void run(const struct shim_callback *callback, CUresult status)
{
	shim_thread_is_in_callback = true;
	if (callback->host_function)
		callback->host_function(callback->data);
	else
		callback->stream_callback(callback->stream, status, callback->data);
	shim_thread_is_in_callback = false;
}

/* Return: CUDA_SUCCESS, or the error of a host that is gone or a process that ends. */
static CUresult serve_one(void)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuCallbackNext);
	Vgpu__VgpuCallbackNextRequest request = VGPU__VGPU_CALLBACK_NEXT_REQUEST__INIT;
	const Vgpu__VgpuCallbackNextReply *due;
	struct shim_callback callback;
	const ProtobufCMessage *reply;
	CUresult result, status;

	result = shim_call_sync(&call, &request.base,
		&vgpu__vgpu_callback_next_reply__descriptor, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	due = (const Vgpu__VgpuCallbackNextReply *)reply;
	status = (CUresult)due->status;
	callbacks.token = due->token;
	if (take(due->cookie, !due->is_void, &callback)) {
		if (!due->is_void)
			run(&callback, status);
		else if (callback.released)
			callback.released(callback.data);
	}
	return report();
}

/* The function ended its thread. */
static void hand_over(void *unused)
{
	shim_thread_is_in_callback = false;
	if (!shim_is_ready())
		return;
	if ((!callbacks.token || report() == CUDA_SUCCESS) && shim_thread_start(serve))
		return;
	__atomic_store_n(&callbacks.has_thread, false, __ATOMIC_RELAXED);
}

static void *serve(void *unused)
{
	CUresult result;

	pthread_cleanup_push(hand_over, NULL);
	do {
		await_any();
		result = serve_one();
	} while (result == CUDA_SUCCESS);
	pthread_cleanup_pop(0);
	if (result != CUDA_ERROR_DEINITIALIZED)
		vgpu_log_info("callbacks are run no more: %s", shim_error_name(result));
	return NULL;
}
