/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Residency: device memory that leaves the device for a while
 */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "vgpu/checked.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpu/rate.h"
#include "worker/base/reason.h"
#include "worker/base/session.h"
#include "worker/memory/arena.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/growth.h"
#include "worker/memory/residency.h"
#include "worker/wait/debts.h"

/* A broker that was replaced has not seen the message: it is sent again. */
#define ASK_AGAIN_MS 1000u
/* vgpud answers within this, unless it is away. */
#define ASK_MS 20000u
/* How often a driver that fails is asked again, and the pause before it. */
#define RETURN_TRIES 10u
#define RETURN_PAUSE_NS 50000000u
/* Pieces start at such multiples in the extents: a cache line. */
#define PIECE_ALIGN 64u

void residency_init(struct session *session)
{
	pthread_mutex_init(&session->residency->turn, NULL);
	pthread_mutex_init(&session->residency->lock, NULL);
}

void residency_deinit(struct session *session)
{
	struct residency *residency = session->residency;

	mover_list_deinit(&residency->list);
	residency->room = room_unmap(residency->room);
	pthread_mutex_destroy(&residency->lock);
	pthread_mutex_destroy(&residency->turn);
}

int residency_open(struct session *session, int stats)
{
	int r;

	r = room_map(&session->residency->room, stats);
	return r ? vgpu_error_trace(r) : 0;
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void tell(struct session *session)
{
	const struct control_message message = { .type = CONTROL_ROOM };

	control_send(session->control, &message, NULL);
}

/* With the turn. Return: whether it was granted. */
static bool wait_for_answer(struct session *session, uint32_t request)
{
	struct worker_room *room = session->residency->room;
	const uint64_t until = clock_ns() + ASK_MS * UINT64_C(1000000);
	enum room_answer answer;
	uint32_t n;

	for (;;) {
		tell(session);
		n = __atomic_load_n(&room->n_answers, __ATOMIC_SEQ_CST);
		answer = room_look(room, request);
		if (answer == ROOM_WAITS && clock_ns() < until)
			room_nap(room, n, ASK_AGAIN_MS);
		else
			break;
	}
	room_end_ask(room);
	return answer == ROOM_GRANTED;
}

/* Changes what is on the device by so much, or by what it is less. Return: whether it is
 * granted. */
static bool change_locked(struct residency *residency, uint64_t by)
{
	residency->resident += by;
	return !residency->room || room_need(residency->room, residency->resident) ||
	       !room_is_on(residency->room);
}

static bool take(struct session *session, uint64_t size, bool is_back)
{
	struct residency *residency = session->residency;
	bool has;

	pthread_mutex_lock(&residency->lock);
	has = change_locked(residency, size);
	pthread_mutex_unlock(&residency->lock);
	if (has)
		return true;
	pthread_mutex_lock(&residency->turn);
	has = wait_for_answer(session, room_ask(residency->room, is_back));
	if (!has) {
		pthread_mutex_lock(&residency->lock);
		change_locked(residency, -size);
		pthread_mutex_unlock(&residency->lock);
	}
	pthread_mutex_unlock(&residency->turn);
	return has;
}

bool residency_take(struct session *session, uint64_t size)
{
	return take(session, size, false);
}

bool residency_ask_lacking(struct session *session, uint64_t size, bool is_back)
{
	struct residency *residency = session->residency;
	bool has_gone;

	/* softgpu's memory is its worker's: none of another worker makes room in it. */
	if (!size || session->driver->list_memory || !residency->room ||
		!room_takes_lack(residency->room))
		return false;
	pthread_mutex_lock(&residency->turn);
	has_gone = wait_for_answer(
		session, room_ask_lacking(residency->room, size, is_back));
	pthread_mutex_unlock(&residency->turn);
	return has_gone;
}

/* With the lock. */
static void set_evicted(struct residency *residency, uint64_t evicted)
{
	residency->evicted = evicted;
	if (residency->room)
		__atomic_store_n(&residency->room->evicted, evicted, __ATOMIC_RELAXED);
}

void residency_give(struct session *session, uint64_t size)
{
	struct residency *residency = session->residency;
	uint64_t away;

	pthread_mutex_lock(&residency->lock);
	/* Which of both it was is not known; it is put right when memory comes back. */
	away = size < residency->evicted ? size : residency->evicted;
	if (away)
		set_evicted(residency, residency->evicted - away);
	change_locked(residency, away - size);
	pthread_mutex_unlock(&residency->lock);
}

bool residency_is_out(const struct session *session)
{
	return session->residency->is_out;
}

bool residency_is_wanted(const struct session *session)
{
	const struct worker_room *room = session->residency->room;

	return room && room_wish(room);
}

void residency_note_idle(struct session *session, uint64_t since)
{
	struct worker_room *room = session->residency->room;

	if (room && (!since || !__atomic_load_n(&room->idle_since, __ATOMIC_RELAXED)))
		__atomic_store_n(&room->idle_since, since, __ATOMIC_RELAXED);
}

/* The guest asks for a reply to each call: one without could not fail. It does so as long
 * as the number is not 0, and no capture is live. */
static void want_replies(struct session *session, bool wants)
{
	/* Partner: the guest's acquire load, before each call. */
	__atomic_store_n(&session_control(session)->n_captures,
		wants ? VGPU_CAPTURES_NONE : 0, __ATOMIC_SEQ_CST);
}

/*
 * Extents
 */

static uint64_t place_of(const struct session *session, const struct residency_run *run)
{
	return session->arena->base + (uint64_t)run->first * VGPU_EXTENT_SIZE;
}

/* Requests extents until there is so much room in them. Return: 0 or -errno. */
static int find_places(struct session *session, uint64_t size)
{
	struct residency *residency = session->residency;
	uint64_t n = (size + VGPU_EXTENT_SIZE - 1) / VGPU_EXTENT_SIZE;
	uint32_t at_once = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
	struct residency_run run;

	while (residency->runs_size < size) {
		uint64_t rest = (size - residency->runs_size + VGPU_EXTENT_SIZE - 1) /
				VGPU_EXTENT_SIZE;

		if (residency->n_runs == RESIDENCY_RUNS_MAX)
			return -ENOSPC;
		if (at_once > rest)
			at_once = (uint32_t)rest;
		if (growth_request(session, at_once, &run.first, &run.n_extents)) {
			/* A run of so many is not free; two shorter ones may be. */
			at_once /= 2;
			if (!at_once)
				return -ENOSPC;
			continue;
		}
		arena_keep_pageable(session, run.first);
		residency->runs[residency->n_runs++] = run;
		residency->runs_size += (uint64_t)run.n_extents * VGPU_EXTENT_SIZE;
	}
	return 0;
}

/* Gives the pages of the extents back to the host, zeros and all. */
static void empty_places(struct session *session)
{
	const struct residency *residency = session->residency;

	for (uint32_t i = 0; i < residency->n_runs; i++)
		madvise((void *)(uintptr_t)place_of(session, &residency->runs[i]),
			(uint64_t)residency->runs[i].n_extents * VGPU_EXTENT_SIZE,
			MADV_REMOVE);
}

/* Copies a piece to its place in the extents, or back. */
static CUresult copy_piece(
	struct session *session, const struct mover_piece *piece, bool is_out)
{
	const struct residency_run *run = session->residency->runs;
	uint64_t place = piece->place, at = 0;
	CUresult result = CUDA_SUCCESS;

	while (at < piece->size && result == CUDA_SUCCESS) {
		const uint64_t room = (uint64_t)run->n_extents * VGPU_EXTENT_SIZE;
		uint64_t n = piece->size - at;

		if (place >= room) {
			place -= room;
			run++;
			continue;
		}
		if (n > room - place)
			n = room - place;
		result = session->residency->mover->copy(session, piece, at,
			(void *)(uintptr_t)(place_of(session, run) + place), n, is_out);
		at += n;
		place += n;
	}
	return result;
}

static CUresult copy_all(struct session *session, bool is_out)
{
	const struct mover_list *list = &session->residency->list;
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < list->n && result == CUDA_SUCCESS; i++)
		result = copy_piece(session, &list->pieces[i], is_out);
	return result;
}

static uint64_t rounded(uint64_t size, uint64_t unit)
{
	return (size + unit - 1) / unit * unit;
}

/* Return: how much room the pieces take in the extents. */
static uint64_t place_all(struct mover_list *list)
{
	uint64_t size = 0;

	for (size_t i = 0; i < list->n; i++) {
		list->pieces[i].place = size;
		size += rounded(list->pieces[i].size, PIECE_ALIGN);
	}
	return size;
}

/* What they are charged. */
static uint64_t cost_of_all(const struct mover_list *list)
{
	uint64_t size = 0;

	for (size_t i = 0; i < list->n; i++)
		size += rounded(list->pieces[i].size, DEVICE_MEMORY_UNIT);
	return size;
}

/*
 * Out
 */

/* Return: that of the driver, or NULL. */
static const struct mover *find_mover(const struct session *session)
{
	if (session->driver->list_memory)
		return &mover_of_softgpu;
	return session->memory->placement ? &mover_of_driver : NULL;
}

/* Lists what can go. Return: 0, or -errno: -EBUSY: calls or work are under way, -ENOENT:
 * there is nothing. */
static int list(struct session *session)
{
	struct residency *residency = session->residency;
	int r;

	if (!residency->mover)
		residency->mover = find_mover(session);
	if (!residency->mover)
		return -ENOTSUP;
	/* Partner: lane_main(). Calls of the lanes that wait for callbacks or notices are
	 * not counted, and use no memory. */
	if (__atomic_load_n(&session->debts->n_running, __ATOMIC_ACQUIRE) ||
		session_is_capturing(session))
		return -EBUSY;
	r = residency->mover->list(session, &residency->list);
	if (r)
		return r;
	return residency->list.n ? 0 : -ENOENT;
}

/* Removes the pieces that the driver has kept. */
static void keep_gone(struct mover_list *list)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++)
		if (list->pieces[i].is_gone)
			list->pieces[n++] = list->pieces[i];
	list->n = n;
}

/* Return: 0 or -EIO: the driver has kept all of it. */
static int move_out(struct session *session)
{
	struct residency *residency = session->residency;
	CUresult result;

	result = copy_all(session, true);
	if (result != CUDA_SUCCESS) {
		vgpu_log_error("the driver does not copy memory that is to make room: %d",
			result);
		return -EIO;
	}
	residency->mover->drop(session, &residency->list);
	keep_gone(&residency->list);
	return residency->list.n ? 0 : -EIO;
}

static void note_out(struct session *session, uint64_t ns)
{
	struct residency *residency = session->residency;
	uint64_t moved = cost_of_all(&residency->list);

	pthread_mutex_lock(&residency->lock);
	/* softgpu has a little more than what is charged. */
	if (moved > residency->resident)
		moved = residency->resident;
	set_evicted(residency, moved);
	change_locked(residency, -moved);
	pthread_mutex_unlock(&residency->lock);
	residency->is_out = true;
	session_count(session, evictions, 1);
	session_count(session, evicted_bytes, moved);
	vgpu_log_info("%llu bytes of device memory have made room, in %llu us",
		(unsigned long long)moved, (unsigned long long)ns / 1000);
}

static int leave(struct session *session)
{
	struct residency *residency = session->residency;
	uint64_t began;
	int r;

	if (residency->is_out)
		return 0;
	r = list(session);
	if (!r)
		r = find_places(session, place_all(&residency->list));
	if (r) {
		mover_list_deinit(&residency->list);
		return r;
	}
	want_replies(session, true);
	began = clock_ns();
	r = move_out(session);
	if (r) {
		want_replies(session, false);
		empty_places(session);
		mover_list_deinit(&residency->list);
		return r;
	}
	note_out(session, clock_ns() - began);
	return 0;
}

static const char *reason_of(int r)
{
	switch (r) {
	case -ENOSPC:
		return "too little of the shared memory is free; size = in vgpud.conf on "
		       "the host sets it";
	case -ENOTSUP:
		return "this driver does not place it at addresses of ours";
	default:
		return strerror(-r);
	}
}

void residency_leave(struct session *session)
{
	struct worker_room *room = session->residency->room;
	const uint32_t wish = room_wish(room);
	static struct rate rate;
	int r;

	r = leave(session);
	if (r && r != -EBUSY && r != -ENOENT && rate_allows(&rate))
		vgpu_log_info("device memory cannot make room: %s", reason_of(r));
	/* Partner: room_read(): the need was lowered before. */
	__atomic_store_n(&room->moved, wish, __ATOMIC_RELEASE);
	tell(session);
}

/*
 * Back
 */

static CUresult move_back(struct session *session)
{
	struct residency *residency = session->residency;
	CUresult result = CUDA_SUCCESS;

	if (residency->mover->make)
		result = residency->mover->make(session, &residency->list);
	if (result == CUDA_SUCCESS)
		result = copy_all(session, false);
	if (result != CUDA_SUCCESS)
		residency->mover->drop(session, &residency->list);
	return result;
}

/* The same; if the driver has no memory for it, again when others have made room. */
static CUresult move_back_with_others(
	struct session *session, uint64_t size, uint64_t *beganp)
{
	CUresult result;
	uint32_t n = 0;

	do {
		*beganp = clock_ns();
		result = move_back(session);
	} while (result == CUDA_ERROR_OUT_OF_MEMORY && n++ < RESIDENCY_LACK_TRIES &&
		 residency_ask_lacking(session, size, true));
	return result;
}

static void note_back(struct session *session, uint64_t size, uint64_t ns)
{
	struct residency *residency = session->residency;

	pthread_mutex_lock(&residency->lock);
	set_evicted(residency, 0);
	pthread_mutex_unlock(&residency->lock);
	residency->is_out = false;
	want_replies(session, false);
	session_count(session, returns, 1);
	session_count(session, returned_bytes, size);
	vgpu_log_info("%llu bytes of device memory are back, in %llu us",
		(unsigned long long)size, (unsigned long long)ns / 1000);
}

/* Takes room and moves memory there, once. Return: CUDA_ERROR_OUT_OF_MEMORY: vgpud has no
 * room, with *is_fullp, or the driver has none. */
static CUresult try_back(struct session *session, bool *is_fullp)
{
	struct residency *residency = session->residency;
	CUresult result;
	uint64_t size, began;

	pthread_mutex_lock(&residency->lock);
	size = residency->evicted;
	pthread_mutex_unlock(&residency->lock);
	*is_fullp = !take(session, size, true);
	if (*is_fullp)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = move_back_with_others(session, size, &began);
	if (result == CUDA_SUCCESS) {
		empty_places(session);
		mover_list_deinit(&residency->list);
		note_back(session, size, clock_ns() - began);
		return CUDA_SUCCESS;
	}
	pthread_mutex_lock(&residency->lock);
	change_locked(residency, -size);
	pthread_mutex_unlock(&residency->lock);
	return result;
}

static void say_no_room(bool is_full)
{
	if (is_full)
		reason_say(VGPU_REPLY_REASON_LIMIT,
			"the memory of this process has made room on the device, and "
			"there is no room for it now: device-memory-total = in "
			"vgpud.conf on the host sets how much there is");
	else
		reason_say(VGPU_REPLY_REASON_LIMIT,
			"the memory of this process has made room on the device, and the "
			"driver has none for it now: device-memory-total = in vgpud.conf "
			"on the host may be more than the device has");
}

CUresult residency_return(struct session *session, bool may_fail)
{
	const struct timespec pause = { .tv_nsec = RETURN_PAUSE_NS };
	static struct rate rate;
	CUresult result;
	bool is_full;

	for (uint32_t n = 1;; n++) {
		result = try_back(session, &is_full);
		if (result == CUDA_SUCCESS)
			return CUDA_SUCCESS;
		/* vgpud has waited for room already. */
		if (is_full ? may_fail
			    : n >= RETURN_TRIES &&
					(may_fail || result != CUDA_ERROR_OUT_OF_MEMORY))
			break;
		if (!is_full)
			nanosleep(&pause, NULL);
	}
	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		say_no_room(is_full);
	if (!is_full && rate_allows(&rate))
		vgpu_log_error(
			"the driver does not bring memory back that has made room: %d",
			result);
	return result;
}
