/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * State of one guest thread
 *
 * Allocated at its first call, freed when the thread ends. Only the thread itself
 * accesses it. Its lane, a reply slot of the channel, is taken at the first call that is
 * sent and returned at the end; if none is free, the thread waits for one.
 */

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/frame.h"
#include "vgpu/launch.h"

#include "process/shim.h"
#include "wire/wait.h"

struct shim_channel;
struct shim_context;

/* Room for an unpacked reply: the packed one has at most VGPU_REPLY_MAX bytes, and the
 * worst growth, one-byte varints to 64-bit numbers in a doubling array, is sixteenfold.
 * The rest is for a second reply, of plain text, that is unpacked while the first is in
 * use. */
#define SHIM_THREAD_ARENA_SIZE (36u << 10)

struct shim_thread {
	/* The context stack; the top is current. */
	struct shim_context **contexts;
	uint32_t n_contexts;
	uint32_t max_contexts;

	/* Lane: number and the context that the worker knows to be its current one. */
	bool has_lane;
	uint32_t lane;
	uint32_t sequence;
	uint32_t first_sequence; /* when the lane was taken */
	uint64_t lane_context;

	/* Fetches what kernels printed, which no call it makes for that does again. */
	bool is_fetching;

	/* Learned from earlier waits. */
	struct shim_pace pace;

	/* Per-thread default streams, one for each context that used it. */
	struct shim_stream *streams;

	/* Parameters of a launch on their way into a message. */
	uint8_t params[VGPU_LAUNCH_PARAMS_MAX];

	/* A packed message before it is copied to the ring. */
	uint8_t message[VGPU_FRAME_MAX];

	/* Replies are unpacked here; emptied at each call, down to what is kept. */
	ProtobufCAllocator allocator;
	uint32_t arena_used;
	uint32_t arena_kept;
	uint8_t arena[SHIM_THREAD_ARENA_SIZE] __attribute__((aligned(16)));
};

/*
 * Creates what the functions below need. Called once, before the first thread.
 *
 * @on_lane_exit:	called before a thread that ends gives its lane back
 * @on_exit:		called after that, for what else the thread owns
 */
typedef void (*shim_thread_exit_fn)(struct shim_thread *thread);
int shim_thread_setup(shim_thread_exit_fn on_lane_exit, shim_thread_exit_fn on_exit);

extern __thread struct shim_thread *shim_current_thread
	__attribute__((tls_model("initial-exec")));

/* Makes the calling thread's. Called by the following alone. */
struct shim_thread *shim_thread_make(void);

/* Returns: the calling thread's, or NULL without memory. */
static inline struct shim_thread *shim_thread_get(void)
{
	struct shim_thread *thread = shim_current_thread;

	return __builtin_expect(thread != NULL, 1) ? thread : shim_thread_make();
}

/* Starts a thread of the library's own, detached. Return: false without memory for it. */
bool shim_thread_start(void *(*main_fn)(void *));

/* Returns: how many messages the calling thread has sent. */
uint32_t shim_thread_n_messages(void);

/* Takes a lane if the thread has none yet; waits for one. Return: 0 or -ECONNRESET. */
int shim_thread_take_lane(struct shim_thread *thread, struct shim_channel *channel);

static inline void shim_thread_reset_arena(struct shim_thread *thread)
{
	thread->arena_used = thread->arena_kept;
}

/* The calling thread runs a callback. */
extern __thread bool shim_thread_is_in_callback
	__attribute__((__tls_model__("initial-exec"), __visibility__("hidden")));

/* Whether CUDA has to refuse calls of this thread because it runs a callback. A child
 * that a callback forks blocks no stream: its calls fail like those of any forked
 * child. */
static inline bool shim_thread_must_not_call(void)
{
	return __builtin_expect(shim_thread_is_in_callback, 0) && shim_is_ready();
}

/* Returns: the current context, which may be a green one, or NULL. */
static inline struct shim_context *shim_thread_top(const struct shim_thread *thread)
{
	return thread->n_contexts ? thread->contexts[thread->n_contexts - 1] : NULL;
}
