/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room: how much of a worker's device memory may be on the device
 */

#include <errno.h>
#include <limits.h>
#include <sys/mman.h>

#include "control/room.h"
#include "vgpu/error.h"
#include "vgpu/wake.h"

/* The page of the file that has it. */
#define PAGE_SIZE 4096u

static_assert(WORKER_ROOM_OFF + sizeof(struct worker_room) <= PAGE_SIZE, "one page");

int room_map(struct worker_room **roomp, int fd)
{
	uint8_t *page = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return vgpu_error_origin(-errno);
	*roomp = (struct worker_room *)(void *)(page + WORKER_ROOM_OFF);
	return 0;
}

struct worker_room *room_unmap(struct worker_room *room)
{
	if (room)
		munmap((uint8_t *)room - WORKER_ROOM_OFF, PAGE_SIZE);
	return NULL;
}

bool room_need(struct worker_room *room, uint64_t need)
{
	/* Partner: room_trim(). */
	__atomic_store_n(&room->need, need, __ATOMIC_SEQ_CST);
	return need <= __atomic_load_n(&room->granted, __ATOMIC_SEQ_CST);
}

uint32_t room_ask_lacking(struct worker_room *room, uint64_t lacking, bool is_back)
{
	uint32_t request = __atomic_load_n(&room->asked, __ATOMIC_RELAXED) + 1;

	if (!request)
		request = 1;
	__atomic_store_n(&room->is_back, is_back, __ATOMIC_RELAXED);
	__atomic_store_n(&room->lacking, lacking, __ATOMIC_RELAXED);
	/* Partner: room_read(), for both. */
	__atomic_store_n(&room->asked, request, __ATOMIC_RELEASE);
	__atomic_store_n(&room->is_waiting, 1, __ATOMIC_RELEASE);
	return request;
}

uint32_t room_ask(struct worker_room *room, bool is_back)
{
	return room_ask_lacking(room, 0, is_back);
}

/* The grant is there already, whoever has the memory. */
static enum room_answer look_for_lack(const struct worker_room *room, uint32_t request)
{
	if (__atomic_load_n(&room->met, __ATOMIC_ACQUIRE) == request)
		return ROOM_GRANTED;
	return !room_is_on(room) || __atomic_load_n(&room->refused, __ATOMIC_ACQUIRE) ==
					    request
		       ? ROOM_REFUSED
		       : ROOM_WAITS;
}

enum room_answer room_look(struct worker_room *room, uint32_t request)
{
	const uint64_t need = __atomic_load_n(&room->need, __ATOMIC_RELAXED);

	if (__atomic_load_n(&room->lacking, __ATOMIC_RELAXED))
		return look_for_lack(room, request);
	if (need <= __atomic_load_n(&room->granted, __ATOMIC_SEQ_CST))
		return ROOM_GRANTED;
	return __atomic_load_n(&room->refused, __ATOMIC_ACQUIRE) == request ? ROOM_REFUSED
									    : ROOM_WAITS;
}

void room_end_ask(struct worker_room *room)
{
	__atomic_store_n(&room->is_waiting, 0, __ATOMIC_RELEASE);
}

void room_nap(struct worker_room *room, uint32_t n_answers, uint32_t ms)
{
	vgpu_nap_shared_word(&room->n_answers, n_answers, ms);
}

void room_read(const struct worker_room *room, struct room_reading *reading)
{
	/* Statements, which have an order, as expressions of an initializer have not.
	 * First: what it says of the request belongs to it. */
	reading->is_waiting = __atomic_load_n(&room->is_waiting, __ATOMIC_ACQUIRE);
	reading->asked = __atomic_load_n(&room->asked, __ATOMIC_ACQUIRE);
	reading->moved = __atomic_load_n(&room->moved, __ATOMIC_ACQUIRE);
	/* The need that goes with `moved` was lowered before. */
	reading->need = __atomic_load_n(&room->need, __ATOMIC_SEQ_CST);
	reading->idle_since = __atomic_load_n(&room->idle_since, __ATOMIC_RELAXED);
	reading->evicted = __atomic_load_n(&room->evicted, __ATOMIC_RELAXED);
	reading->is_back = __atomic_load_n(&room->is_back, __ATOMIC_RELAXED);
	/* After the number, of whose request it is, or of a later one. */
	reading->lacking = __atomic_load_n(&room->lacking, __ATOMIC_RELAXED);
}

static void tell(struct worker_room *room)
{
	/* Partner: room_nap(), whose caller reads the number before it looks. */
	__atomic_fetch_add(&room->n_answers, 1, __ATOMIC_SEQ_CST);
	vgpu_wake_shared_word(&room->n_answers, INT_MAX);
}

void room_grant(struct worker_room *room, uint64_t granted)
{
	__atomic_store_n(&room->granted, granted, __ATOMIC_SEQ_CST);
	__atomic_store_n(&room->takes_lack, 1, __ATOMIC_RELAXED);
	/* After the grant, which whoever sees it sees, too. */
	__atomic_store_n(&room->is_on, 1, __ATOMIC_RELEASE);
	tell(room);
}

void room_off(struct worker_room *room)
{
	if (!room_is_on(room))
		return;
	__atomic_store_n(&room->granted, UINT64_MAX, __ATOMIC_SEQ_CST);
	__atomic_store_n(&room->is_on, 0, __ATOMIC_RELEASE);
	tell(room);
}

uint64_t room_trim(struct worker_room *room, uint64_t granted, uint64_t to)
{
	uint64_t need;

	/* Partner: room_need(). */
	__atomic_store_n(&room->granted, to, __ATOMIC_SEQ_CST);
	need = __atomic_load_n(&room->need, __ATOMIC_SEQ_CST);
	if (need <= to)
		return to;
	/* It may have seen the old grant. */
	to = need < granted ? need : granted;
	room_grant(room, to);
	return to;
}

void room_refuse(struct worker_room *room, uint32_t request)
{
	__atomic_store_n(&room->refused, request, __ATOMIC_RELEASE);
	tell(room);
}

void room_meet(struct worker_room *room, uint32_t request)
{
	__atomic_store_n(&room->met, request, __ATOMIC_RELEASE);
	tell(room);
}

void room_wish_move(struct worker_room *room, uint32_t number)
{
	__atomic_store_n(&room->move, number, __ATOMIC_RELEASE);
	tell(room);
}
