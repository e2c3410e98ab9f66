/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and lanes
 *
 * The thread's structure is found by one initial-exec thread-local pointer; a pthread key
 * exists besides for its destructor alone. Lanes are a bitmap under a lock. The sequence
 * of a lane continues with its next thread, so a late reply to a thread that has ended
 * never matches a call of the next one.
 */

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "vgpu/error.h"
#include "vgpu/wake.h"

#include "process/shim.h"
#include "process/thread.h"
#include "wire/channel.h"
#include "wire/lock.h"

#define LANE_WORDS (VGPU_SLOTS_MAX / 64)

__thread struct shim_thread *shim_current_thread;
__thread bool shim_thread_is_in_callback;

static pthread_key_t thread_key;

static struct {
	struct shim_lock lock;
	uint64_t taken[LANE_WORDS];
	uint32_t sequence[VGPU_SLOTS_MAX];
	/* Counts lanes that were returned; threads that wait for one sleep on it. */
	uint32_t n_returned;
	uint32_t n_waiting;
} lanes;

/* Set once, by shim_thread_setup(). */
static shim_thread_exit_fn lane_exit_fn, exit_fn;

static int find_free_lane(void)
{
	for (uint32_t i = 0; i < LANE_WORDS; i++) {
		if (~lanes.taken[i]) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~lanes.taken[i]);

			lanes.taken[i] |= 1ull << bit;
			return (int)(i * 64 + bit);
		}
	}
	return -1;
}

int shim_thread_take_lane(struct shim_thread *thread, struct shim_channel *channel)
{
	struct vgpu_nap nap = {};

	while (!thread->has_lane) {
		uint32_t seen = __atomic_load_n(&lanes.n_returned, __ATOMIC_ACQUIRE);
		int lane;

		shim_lock(&lanes.lock);
		lane = find_free_lane();
		shim_unlock(&lanes.lock);
		if (lane >= 0) {
			thread->has_lane = true;
			thread->lane = (uint32_t)lane;
			thread->sequence = lanes.sequence[lane];
			thread->first_sequence = thread->sequence;
			thread->lane_context = 0;
			return 0;
		}
		if (shim_channel_find_dead(channel))
			return vgpu_error_origin(-ECONNRESET);
		__atomic_add_fetch(&lanes.n_waiting, 1, __ATOMIC_SEQ_CST);
		vgpu_nap_word(&lanes.n_returned, seen, vgpu_nap_ms(&nap));
		__atomic_sub_fetch(&lanes.n_waiting, 1, __ATOMIC_SEQ_CST);
	}
	return 0;
}

static void give_lane_back(struct shim_thread *thread)
{
	if (!thread->has_lane)
		return;
	lane_exit_fn(thread);
	lanes.sequence[thread->lane] = thread->sequence;
	shim_lock(&lanes.lock);
	lanes.taken[thread->lane / 64] &= ~(1ull << thread->lane % 64);
	shim_unlock(&lanes.lock);

	__atomic_add_fetch(&lanes.n_returned, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&lanes.n_waiting, __ATOMIC_SEQ_CST))
		vgpu_wake_word(&lanes.n_returned, 1);
}

static void thread_free(void *argument)
{
	struct shim_thread *thread = argument;

	/* In a forked child the lane belongs to the parent. */
	if (shim_is_ready()) {
		give_lane_back(thread);
		exit_fn(thread);
	}
	shim_current_thread = NULL;
	free(thread->contexts);
	free(thread);
}

/* Allocator of protobuf-c: a bump pointer that never frees. */
static void *arena_alloc(void *data, size_t size)
{
	struct shim_thread *thread = data;
	uint32_t start = (thread->arena_used + 15) & ~15u;

	if (size > SHIM_THREAD_ARENA_SIZE || start > SHIM_THREAD_ARENA_SIZE - size)
		return NULL;
	thread->arena_used = start + (uint32_t)size;
	return thread->arena + start;
}

static void arena_free(void *data, void *pointer)
{
}

int shim_thread_setup(shim_thread_exit_fn on_lane_exit, shim_thread_exit_fn on_exit)
{
	lane_exit_fn = on_lane_exit;
	exit_fn = on_exit;
	return -pthread_key_create(&thread_key, thread_free);
}

static struct shim_thread *thread_new(void)
{
	struct shim_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->allocator = (ProtobufCAllocator){
		.alloc = arena_alloc,
		.free = arena_free,
		.allocator_data = thread,
	};
	if (pthread_setspecific(thread_key, thread)) {
		free(thread);
		return NULL;
	}
	return thread;
}

struct shim_thread *shim_thread_make(void)
{
	shim_current_thread = thread_new();
	return shim_current_thread;
}

bool shim_thread_start(void *(*main_fn)(void *))
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int r;

	if (pthread_attr_init(&attributes))
		return false;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	/* The program's signals are for its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attributes, main_fn, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return !r;
}

uint32_t shim_thread_n_messages(void)
{
	const struct shim_thread *thread = shim_current_thread;

	return thread && thread->has_lane ? thread->sequence - thread->first_sequence : 0;
}
