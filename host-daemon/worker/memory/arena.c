/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena: the shared memory that this session may access
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vgpu/checked.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "worker/base/context.h"
#include "worker/base/recorder.h"
#include "worker/base/session.h"
#include "worker/memory/arena.h"

/* The part of the channel's area that the device writes: not the ring, not the reply
 * slots. */
static const struct {
	uint32_t off;
	uint32_t size;
} word_pieces[ARENA_WORD_PIECES] = {
	{ VGPU_WORDS_OFF, VGPU_WORDS_MAX * sizeof(struct vgpu_word) },
	{ VGPU_RECORDS_OFF, VGPU_RECORDS_MAX * sizeof(uint64_t) },
};

/* Maps a piece of the shared memory at its place in W, over the reservation. */
static int map_piece(struct session *session, uint64_t offset, uint64_t size)
{
	void *address = (void *)(uintptr_t)(session->window.base + offset);

	if (mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		    session->arena->memfd, offset) == MAP_FAILED)
		return vgpu_error_origin(-errno);
	if (session->hugepages)
		madvise(address, size, MADV_HUGEPAGE);
	return 0;
}

int arena_init(
	struct session *session, int memfd, uint32_t first_extent, uint32_t n_extents)
{
	struct arena *arena = session->arena;
	int r;

	pthread_mutex_init(&arena->lock, NULL);
	arena->memfd = memfd;
	session->register_fn = arena_register;
	arena->base = session->window.base + session->extents_off;
	arena->n_extents = (session->shm_size - session->extents_off) / VGPU_EXTENT_SIZE;
	arena->owned = calloc(arena->n_extents + 1, 1);
	if (!arena->owned)
		return vgpu_error_origin(-ENOMEM);
	r = map_piece(session, session->area_off, VGPU_AREA_SIZE);
	if (!r && n_extents)
		r = arena_add_run(session, first_extent, n_extents);
	return r ? vgpu_error_trace(r) : 0;
}

void arena_deinit(struct session *session)
{
	free(session->arena->owned);
	session->arena->owned = NULL;
	session->arena->memfd = vgpu_close(session->arena->memfd);
	pthread_mutex_destroy(&session->arena->lock);
}

/* A capture prohibits that the program registers memory, which this is not. */
static CUresult register_range(struct session *session, uint64_t address, uint64_t size)
{
	const struct vgpu_driver *driver = &session->driver->table;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	bool is_relaxed;
	CUresult result;

	if (!driver->cuMemHostRegister_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	is_relaxed = driver->cuThreadExchangeStreamCaptureMode &&
		     driver->cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
	result = driver->cuMemHostRegister_v2((void *)(uintptr_t)address, size,
		CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	if (is_relaxed)
		driver->cuThreadExchangeStreamCaptureMode(&mode);
	if (result != CUDA_SUCCESS)
		vgpu_log_error(
			"the driver refuses to register %llu bytes of shared memory: %d",
			(unsigned long long)size, result);
	return result;
}

/* The same for memory that one mapping of the guest had. */
static void unregister_range(struct session *session, uint64_t address)
{
	const struct vgpu_driver *driver = &session->driver->table;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	bool is_relaxed;

	is_relaxed = driver->cuThreadExchangeStreamCaptureMode &&
		     driver->cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
	driver->cuMemHostUnregister((void *)(uintptr_t)address);
	if (is_relaxed)
		driver->cuThreadExchangeStreamCaptureMode(&mode);
}

static uint64_t run_address(const struct session *session, const struct arena_run *run)
{
	return session->arena->base + (uint64_t)run->first * VGPU_EXTENT_SIZE;
}

static CUresult register_words(struct session *session)
{
	struct arena *arena = session->arena;
	CUresult result = CUDA_SUCCESS;
	uint32_t i;

	for (i = arena->n_words_registered; i < ARENA_WORD_PIECES; i++) {
		result = register_range(session,
			(uintptr_t)session->area + word_pieces[i].off,
			word_pieces[i].size);
		if (result != CUDA_SUCCESS)
			break;
		arena->n_words_registered = i + 1;
	}
	return result;
}

static CUresult register_aliases(struct session *session)
{
	struct arena_alias *alias;
	CUresult result;

	for (alias = session->arena->aliases; alias; alias = alias->next) {
		if (!alias->is_open || alias->registered)
			continue;
		result = register_range(session, alias->address, alias->size);
		if (result != CUDA_SUCCESS)
			return result;
		alias->registered = true;
	}
	return CUDA_SUCCESS;
}

static CUresult register_locked(struct session *session)
{
	struct arena *arena = session->arena;
	CUresult result;
	uint32_t i;

	result = register_words(session);
	if (result != CUDA_SUCCESS)
		return result;
	for (i = 0; i < arena->n_runs; i++) {
		struct arena_run *run = &arena->runs[i];

		if (run->registered || run->is_pageable)
			continue;
		result = register_range(session, run_address(session, run),
			(uint64_t)run->n_extents * VGPU_EXTENT_SIZE);
		if (result != CUDA_SUCCESS)
			return result;
		run->registered = true;
	}
	return register_aliases(session);
}

CUresult arena_register(struct session *session, struct context *context)
{
	struct arena *arena = session->arena;
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&arena->lock);
	if (!session->home)
		__atomic_store_n(&session->home, context, __ATOMIC_RELEASE);
	if (session->home == context)
		result = register_locked(session);
	pthread_mutex_unlock(&arena->lock);
	return result;
}

CUresult arena_register_growth(struct session *session, struct runner *runner)
{
	struct context *home = __atomic_load_n(&session->home, __ATOMIC_ACQUIRE);
	CUresult result;

	/* Without a home, the first context will register all runs. */
	if (!home)
		return CUDA_SUCCESS;
	result = context_enter(session, runner, home);
	return result == CUDA_SUCCESS ? arena_register(session, home) : result;
}

static void unregister_aliases(struct session *session)
{
	struct arena_alias *alias;

	for (alias = session->arena->aliases; alias; alias = alias->next) {
		if (alias->registered && session->driver->table.cuMemHostUnregister)
			session->driver->table.cuMemHostUnregister(
				(void *)(uintptr_t)alias->address);
		alias->registered = false;
	}
}

void arena_unregister(struct session *session, struct context *context)
{
	const struct vgpu_driver *driver = &session->driver->table;
	struct arena *arena = session->arena;
	uint32_t i;

	pthread_mutex_lock(&arena->lock);
	if (session->home == context && driver->cuMemHostUnregister) {
		for (i = 0; i < arena->n_runs; i++)
			if (arena->runs[i].registered)
				driver->cuMemHostUnregister(
					(void *)(uintptr_t)run_address(
						session, &arena->runs[i]));
		for (i = 0; i < arena->n_words_registered; i++)
			driver->cuMemHostUnregister(session->area + word_pieces[i].off);
	}
	if (session->home == context) {
		unregister_aliases(session);
		for (i = 0; i < arena->n_runs; i++)
			arena->runs[i].registered = false;
		arena->n_words_registered = 0;
		__atomic_store_n(&session->home, NULL, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&arena->lock);
}

/* Records extents and maps them; vgpud has checked the numbers. */
static int add_run_locked(
	struct session *session, uint32_t first_extent, uint32_t n_extents)
{
	struct arena *arena = session->arena;
	uint32_t i;
	int r;

	if (first_extent > arena->n_extents ||
		n_extents > arena->n_extents - first_extent || !n_extents ||
		arena->n_runs == ARENA_RUNS_MAX)
		return vgpu_error_origin(-EINVAL);
	r = map_piece(session,
		session->extents_off + (uint64_t)first_extent * VGPU_EXTENT_SIZE,
		(uint64_t)n_extents * VGPU_EXTENT_SIZE);
	if (r)
		return vgpu_error_trace(r);
	arena->runs[arena->n_runs++] =
		(struct arena_run){ .first = first_extent, .n_extents = n_extents };
	for (i = 0; i < n_extents; i++)
		/* Partner: the load in arena_covers(). */
		__atomic_store_n(&arena->owned[first_extent + i], 1, __ATOMIC_RELEASE);
	return 0;
}

int arena_add_run(struct session *session, uint32_t first_extent, uint32_t n_extents)
{
	int r;

	pthread_mutex_lock(&session->arena->lock);
	r = add_run_locked(session, first_extent, n_extents);
	pthread_mutex_unlock(&session->arena->lock);
	return r;
}

void arena_keep_pageable(struct session *session, uint32_t first_extent)
{
	struct arena *arena = session->arena;

	pthread_mutex_lock(&arena->lock);
	for (uint32_t i = 0; i < arena->n_runs; i++)
		if (arena->runs[i].first == first_extent)
			arena->runs[i].is_pageable = true;
	pthread_mutex_unlock(&arena->lock);
}

bool arena_has_extent(const struct session *session, uint32_t extent)
{
	const struct arena *arena = session->arena;

	/* Partner: the store in add_run_locked(). */
	return extent < arena->n_extents &&
	       __atomic_load_n(&arena->owned[extent], __ATOMIC_ACQUIRE);
}

bool arena_covers(const struct session *session, uint64_t address, uint64_t size)
{
	const struct arena *arena = session->arena;
	uint64_t first, last, i;

	if (!vgpu_range_within(address, size ? size : 1, arena->base,
		    (uint64_t)arena->n_extents * VGPU_EXTENT_SIZE))
		return false;
	first = (address - arena->base) / VGPU_EXTENT_SIZE;
	last = (address - arena->base + (size ? size - 1 : 0)) / VGPU_EXTENT_SIZE;
	for (i = first; i <= last; i++)
		/* Partner: the store in add_run_locked(). */
		if (!__atomic_load_n(&arena->owned[i], __ATOMIC_ACQUIRE))
			return false;
	if (session_is_recorded(session))
		recorder_touch((struct session *)session, address, size);
	return true;
}

/*
 * Aliases
 */

int arena_map_at(
	struct session *session, uint64_t address, uint64_t size, uint64_t arena_address)
{
	if (mmap((void *)(uintptr_t)address, size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED, session->arena->memfd,
		    (off_t)(arena_address - session->window.base)) == MAP_FAILED)
		return vgpu_error_origin(-errno);
	return 0;
}

void arena_add_alias(struct session *session, struct arena_alias *alias)
{
	struct arena *arena = session->arena;

	pthread_mutex_lock(&arena->lock);
	alias->next = arena->aliases;
	if (alias->next)
		alias->next->previous = alias;
	arena->aliases = alias;
	pthread_mutex_unlock(&arena->lock);
}

CUresult arena_open_alias(
	struct session *session, struct runner *runner, struct arena_alias *alias)
{
	struct arena *arena = session->arena;
	CUresult result;

	pthread_mutex_lock(&arena->lock);
	alias->is_open = true;
	pthread_mutex_unlock(&arena->lock);
	result = arena_register_growth(session, runner);
	if (result == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&arena->lock);
	alias->is_open = alias->registered;
	pthread_mutex_unlock(&arena->lock);
	return result;
}

void arena_close_alias(
	struct session *session, struct runner *runner, struct arena_alias *alias)
{
	struct context *home = __atomic_load_n(&session->home, __ATOMIC_ACQUIRE);
	struct arena *arena = session->arena;
	bool was_registered;

	pthread_mutex_lock(&arena->lock);
	was_registered = alias->registered;
	alias->is_open = alias->registered = false;
	pthread_mutex_unlock(&arena->lock);
	/* Without the lock, because the driver waits for work. Registrations end with the
	 * home; a fault of it is returned by other calls. */
	if (was_registered && home &&
		context_enter(session, runner, home) == CUDA_SUCCESS)
		unregister_range(session, alias->address);
}

void arena_remove_alias(struct session *session, struct arena_alias *alias)
{
	struct arena *arena = session->arena;

	pthread_mutex_lock(&arena->lock);
	if (alias->previous)
		alias->previous->next = alias->next;
	else
		arena->aliases = alias->next;
	if (alias->next)
		alias->next->previous = alias->previous;
	pthread_mutex_unlock(&arena->lock);
}
