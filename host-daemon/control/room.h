/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Room: how much of a worker's device memory may be on the device
 *
 * With device-memory-total the workers of all VMs share a number of bytes. In the file
 * that a worker shares with vgpud, the worker says how much it needs, which it raises
 * before it takes memory and lowers after it has released some; vgpud says how much it
 * grants. A worker has no more on the device than it was granted. It asks by a number
 * and CONTROL_ROOM, and vgpud answers in the same words and wakes it.
 *
 * The driver may refuse what vgpud has granted: others use the device as well. Then the
 * worker makes a request with what it lacks, while the grant stays, and vgpud has idle
 * memory of other workers moved. The answer says that some has gone, not that it is
 * enough: the worker asks the driver again.
 *
 * vgpud may ask a worker to move its memory elsewhere, by CONTROL_MOVE and a number. The
 * worker answers with that number, after it has moved it or found that it cannot.
 *
 * Either side writes its own number and reads the other's then (seq_cst), so of a worker
 * that raises its need and vgpud, which lowers the grant, at least one sees the other.
 *
 * A worker may be compromised: vgpud keeps what it has granted, and takes no number of
 * the worker for more than a wish.
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"
#include "control/trace.h"

struct worker_room {
	/* of vgpud */
	uint32_t is_on;	    /* 0: anything may be on the device */
	uint32_t n_answers; /* a futex: incremented, and woken, after each change */
	uint64_t granted;   /* bytes */
	uint32_t refused;   /* the last request that was refused */
	uint32_t move;	    /* a number of its own: memory is to go */
	/* of the worker */
	uint64_t need;	     /* bytes on the device, and of the request */
	uint32_t asked;	     /* the last request, 0: none so far */
	uint32_t moved;	     /* the last `move` that was answered */
	uint32_t is_back;    /* the request is for memory that was moved before */
	uint32_t is_waiting; /* for the request */
	uint64_t idle_since; /* ns of CLOCK_MONOTONIC; 0: it has calls */
	uint64_t evicted;    /* bytes that are elsewhere */
	uint64_t lacking;    /* bytes of the grant that the driver refuses; 0: none */
	/* of vgpud */
	uint32_t met; /* the last request with `lacking` for which memory has gone */
	uint32_t takes_lack; /* such requests are answered */
	uint64_t reserved[6];
};

#define WORKER_ROOM_OFF 3584u

static_assert(WORKER_WISHES_OFF + sizeof(struct worker_wishes) <= WORKER_ROOM_OFF,
	"they have room");
static_assert(WORKER_ROOM_OFF + sizeof(struct worker_room) <= WORKER_DEVICES_OFF,
	"it has room");

/* Maps the room of a worker's file. Return: 0 or -errno. */
int room_map(struct worker_room **roomp, int fd);
struct worker_room *room_unmap(struct worker_room *room);

/*
 * For the worker
 */

/* Whether grants apply. */
static inline bool room_is_on(const struct worker_room *room)
{
	return __atomic_load_n(&room->is_on, __ATOMIC_ACQUIRE);
}

/* Sets the need. Return: whether so much is granted. */
bool room_need(struct worker_room *room, uint64_t need);

/* Makes a request for the need of now. Return: its number, never 0. */
uint32_t room_ask(struct worker_room *room, bool is_back);

/* The same for so much of what is granted, which the driver has refused. Not 0. */
uint32_t room_ask_lacking(struct worker_room *room, uint64_t lacking, bool is_back);

/* Whether vgpud answers such requests. */
static inline bool room_takes_lack(const struct worker_room *room)
{
	return room_is_on(room) && __atomic_load_n(&room->takes_lack, __ATOMIC_RELAXED);
}

enum room_answer {
	ROOM_WAITS,
	ROOM_GRANTED,
	ROOM_REFUSED,
};

/* The answer to a request so far; n_answers is that of before. */
enum room_answer room_look(struct worker_room *room, uint32_t request);
void room_end_ask(struct worker_room *room);

/* Waits until n_answers is not that any more, for at most that time. */
void room_nap(struct worker_room *room, uint32_t n_answers, uint32_t ms);

/* Return: the number of vgpud's wish that is not answered yet, or 0. */
static inline uint32_t room_wish(const struct worker_room *room)
{
	const uint32_t move = __atomic_load_n(&room->move, __ATOMIC_ACQUIRE);

	return move != __atomic_load_n(&room->moved, __ATOMIC_RELAXED) ? move : 0;
}

/*
 * For vgpud
 */

/* One reading of what the worker says; each number may be anything. */
struct room_reading {
	uint64_t need;
	uint64_t idle_since;
	uint64_t evicted;
	uint64_t lacking;
	uint32_t asked;
	uint32_t moved;
	bool is_back;
	bool is_waiting;
};

void room_read(const struct worker_room *room, struct room_reading *reading);

/* Lets anything be on the device. */
void room_off(struct worker_room *room);

/* Grants so much, from now on. */
void room_grant(struct worker_room *room, uint64_t granted);
/* Lowers a grant. Return: what is granted now: more, if the worker needs more. */
uint64_t room_trim(struct worker_room *room, uint64_t granted, uint64_t to);
void room_refuse(struct worker_room *room, uint32_t request);
/* Answers a request with `lacking`: memory of others has gone. */
void room_meet(struct worker_room *room, uint32_t request);
void room_wish_move(struct worker_room *room, uint32_t number);
