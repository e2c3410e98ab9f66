/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices: functions of the program that are called when it is over its memory budget
 *
 * Registrations are numbered, and a handle is such a number, which is never used twice.
 * The thread calls the live registration with the lowest number that it has not called
 * for this notice yet, so none of them has to stay while it calls another. A function
 * that ends its thread (pthread_exit, cancellation) counts as called: a new thread goes
 * on with the next one.
 */

#include <limits.h>
#include <pthread.h>

#include "vgpu/g-driver.pb-c.h"
#include "vgpu/log.h"
#include "vgpu/wake.h"

#include "process/call.h"
#include "process/notice.h"
#include "process/thread.h"
#include "wire/error.h"
#include "wire/lock.h"

/* In the upper bits of handles: no address, and no number that a program has by chance.
 */
#define HANDLE_MARK (0xb0d6ull << 48)

struct entry {
	uint64_t number; /* from 1; 0: free */
	CUasyncCallback function;
	void *data;
	CUdevice device;
	bool is_leaving; /* is called no more */
};

static struct {
	struct shim_lock lock;
	struct entry entries[SHIM_NOTICES_MAX];
	uint32_t n;
	uint64_t n_registered;
	bool has_thread;

	/* The notice that is being delivered: to the registrations up to `until`. */
	uint64_t excess;
	uint64_t called; /* the last number */
	uint64_t until;
	uint64_t running; /* the number whose function runs, or 0 */
	pthread_t runner; /* the thread that runs it */
	/* Counts functions that have returned; threads that end a registration sleep on
	 * it. */
	uint32_t n_returned;
} notices;

bool shim_notice_is_running_here(void)
{
	SHIM_LOCKED(&notices.lock);

	return notices.running && pthread_equal(notices.runner, pthread_self());
}

bool shim_notice_has_room(void)
{
	SHIM_LOCKED(&notices.lock);

	return notices.n < SHIM_NOTICES_MAX;
}

/* With the lock. Returns: the free entry for number 0; NULL if there is none. */
static struct entry *find(uint64_t number)
{
	for (uint32_t i = 0; i < SHIM_NOTICES_MAX; i++)
		if (notices.entries[i].number == number)
			return &notices.entries[i];
	return NULL;
}

/* With the lock. */
static void release(struct entry *entry)
{
	entry->number = 0;
	notices.n--;
}

/* With the lock. Returns: the next one to call, or NULL. */
static const struct entry *find_next(void)
{
	const struct entry *entry, *next = NULL;

	for (uint32_t i = 0; i < SHIM_NOTICES_MAX; i++) {
		entry = &notices.entries[i];
		if (entry->number > notices.called && entry->number <= notices.until &&
			!entry->is_leaving && (!next || entry->number < next->number))
			next = entry;
	}
	return next;
}

static bool take_next(struct entry *copy)
{
	const struct entry *entry;
	SHIM_LOCKED(&notices.lock);

	entry = find_next();
	if (!entry)
		return false;
	*copy = *entry;
	notices.called = notices.running = entry->number;
	notices.runner = pthread_self();
	return true;
}

static void finish(void)
{
	shim_lock(&notices.lock);
	notices.running = 0;
	shim_unlock(&notices.lock);
	__atomic_add_fetch(&notices.n_returned, 1, __ATOMIC_RELEASE);
	vgpu_wake_word(&notices.n_returned, INT_MAX);
}

static void call_all(void)
{
	struct entry entry;

	while (take_next(&entry)) {
		CUasyncNotificationInfo info = {
			.type = CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET,
			.info.overBudget.bytesOverBudget = notices.excess,
		};

		entry.function(&info, entry.data,
			(CUasyncCallbackHandle)(uintptr_t)(HANDLE_MARK | entry.number));
		finish();
	}
}

/* Return: CUDA_SUCCESS, or the error of a host that is gone or a process that ends. */
static CUresult await_one(void)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuNoticeNext);
	Vgpu__VgpuNoticeNextRequest request = VGPU__VGPU_NOTICE_NEXT_REQUEST__INIT;
	const ProtobufCMessage *reply;
	CUresult result;

	call.rests = true;
	result = shim_call_sync(
		&call, &request.base, &vgpu__vgpu_notice_next_reply__descriptor, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	shim_lock(&notices.lock);
	notices.excess = ((const Vgpu__VgpuNoticeNextReply *)reply)->bytes_over_budget;
	notices.called = 0;
	notices.until = notices.n_registered;
	shim_unlock(&notices.lock);
	return CUDA_SUCCESS;
}

static void *serve(void *unused);

/* The function ended its thread. */
static void hand_over(void *unused)
{
	finish();
	if (!shim_is_ready() || shim_thread_start(serve))
		return;
	shim_lock(&notices.lock);
	notices.has_thread = false;
	shim_unlock(&notices.lock);
}

static void *serve(void *unused)
{
	CUresult result;

	pthread_cleanup_push(hand_over, NULL);
	/* First what another thread has left. */
	do {
		call_all();
		result = await_one();
	} while (result == CUDA_SUCCESS);
	pthread_cleanup_pop(0);
	if (result != CUDA_ERROR_DEINITIALIZED)
		vgpu_log_info(
			"notices are delivered no more: %s", shim_error_name(result));
	return NULL;
}

/* Return: false without memory for a thread. */
static bool ensure_thread(void)
{
	bool starts;

	shim_lock(&notices.lock);
	starts = !notices.has_thread;
	notices.has_thread = true;
	shim_unlock(&notices.lock);
	if (!starts || shim_thread_start(serve))
		return true;
	shim_lock(&notices.lock);
	notices.has_thread = false;
	shim_unlock(&notices.lock);
	return false;
}

static bool try_add(const struct entry *like, uint64_t *numberp)
{
	struct entry *entry;
	SHIM_LOCKED(&notices.lock);

	entry = notices.n < SHIM_NOTICES_MAX ? find(0) : NULL;
	if (!entry)
		return false;
	*entry = *like;
	entry->number = ++notices.n_registered;
	notices.n++;
	*numberp = entry->number;
	return true;
}

CUresult shim_notice_add(CUdevice device, CUasyncCallback function, void *data,
	CUasyncCallbackHandle *handlep)
{
	const struct entry like = {
		.function = function,
		.data = data,
		.device = device,
	};
	uint64_t number;

	if (!try_add(&like, &number))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*handlep = (CUasyncCallbackHandle)(uintptr_t)(HANDLE_MARK | number);
	if (ensure_thread())
		return CUDA_SUCCESS;
	shim_notice_remove(device, *handlep);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Waits until the function of a registration does not run. */
static void await_return(uint64_t number)
{
	struct vgpu_nap nap = {};
	bool runs = true;

	while (runs) {
		/* Partner: the addition in finish(). */
		const uint32_t seen =
			__atomic_load_n(&notices.n_returned, __ATOMIC_ACQUIRE);

		shim_lock(&notices.lock);
		runs = notices.running == number;
		shim_unlock(&notices.lock);
		if (runs)
			vgpu_nap_word(&notices.n_returned, seen, vgpu_nap_ms(&nap));
	}
}

/* Return: the number of a registration that is called no more from now on, or 0. */
static uint64_t begin_to_leave(CUdevice device, CUasyncCallbackHandle handle)
{
	const uint64_t number = (uint64_t)(uintptr_t)handle ^ HANDLE_MARK;
	struct entry *entry;
	SHIM_LOCKED(&notices.lock);

	entry = number ? find(number) : NULL;
	if (!entry || entry->device != device || entry->is_leaving)
		return 0;
	entry->is_leaving = true;
	return number;
}

CUresult shim_notice_remove(CUdevice device, CUasyncCallbackHandle handle)
{
	const uint64_t number = begin_to_leave(device, handle);

	if (!number)
		return CUDA_ERROR_INVALID_VALUE;
	await_return(number);
	shim_lock(&notices.lock);
	release(find(number));
	shim_unlock(&notices.lock);
	return CUDA_SUCCESS;
}
