/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room: needs, grants and answers between a worker and vgpud
 */

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/room.h"
#include "test.h"

#define ROUNDS 1000u

static struct worker_room *room, *theirs;

static void begin(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	check(fd >= 0);
	check_eq(ftruncate(fd, 8192), 0);
	check_eq(room_map(&room, fd), 0);
	check_eq(room_map(&theirs, fd), 0);
	close(fd);
}

static void end(void)
{
	room = room_unmap(room);
	theirs = room_unmap(theirs);
}

TEST(it_is_off_before_anything_was_granted)
{
	begin();
	check(!room_is_on(room));
	room_grant(theirs, 0);
	check(room_is_on(room));
	room_off(theirs);
	check(!room_is_on(room));
	check(room_need(room, UINT64_MAX));
	end();
}

TEST(a_need_is_met_by_a_grant)
{
	begin();
	room_grant(theirs, 1000);
	check(room_need(room, 1000));
	check(!room_need(room, 1001));
	room_grant(theirs, 1001);
	check(room_need(room, 1001));
	end();
}

TEST(a_request_has_one_answer)
{
	struct room_reading reading;
	uint32_t first, second;

	begin();
	room_grant(theirs, 10);
	check(!room_need(room, 20));
	first = room_ask(room, false);
	check_eq(room_look(room, first), ROOM_WAITS);
	room_read(theirs, &reading);
	check(reading.is_waiting && !reading.is_back);
	check_eq(reading.asked, first);
	check_eq(reading.need, 20);
	room_refuse(theirs, first);
	check_eq(room_look(room, first), ROOM_REFUSED);
	room_end_ask(room);
	room_read(theirs, &reading);
	check(!reading.is_waiting);
	second = room_ask(room, true);
	check(first != second);
	check_eq(room_look(room, second), ROOM_WAITS);
	room_read(theirs, &reading);
	check(reading.is_back);
	room_grant(theirs, 20);
	check_eq(room_look(room, second), ROOM_GRANTED);
	end();
}

TEST(a_request_for_what_the_driver_refuses_is_not_met_by_the_grant)
{
	struct room_reading reading;
	uint32_t first, second;

	begin();
	check(!room_takes_lack(room));
	room_grant(theirs, 30);
	check(room_takes_lack(room));
	check(room_need(room, 20));
	first = room_ask_lacking(room, 15, false);
	check_eq(room_look(room, first), ROOM_WAITS);
	room_read(theirs, &reading);
	check(reading.is_waiting);
	check_eq(reading.lacking, 15);
	/* More room is no answer. */
	room_grant(theirs, 40);
	check_eq(room_look(room, first), ROOM_WAITS);
	room_meet(theirs, first);
	check_eq(room_look(room, first), ROOM_GRANTED);
	room_end_ask(room);
	second = room_ask_lacking(room, 15, true);
	check_eq(room_look(room, second), ROOM_WAITS);
	room_refuse(theirs, second);
	check_eq(room_look(room, second), ROOM_REFUSED);
	room_end_ask(room);
	/* The next one is for room. */
	check(!room_need(room, 50));
	second = room_ask(room, false);
	room_read(theirs, &reading);
	check_eq(reading.lacking, 0);
	check_eq(room_look(room, second), ROOM_WAITS);
	room_end_ask(room);
	/* A vgpud that does not limit anything any more answers none. */
	second = room_ask_lacking(room, 15, false);
	room_off(theirs);
	check_eq(room_look(room, second), ROOM_REFUSED);
	check(!room_takes_lack(room));
	end();
}

TEST(requests_have_numbers_but_0)
{
	begin();
	room->asked = UINT32_MAX;
	check_eq(room_ask(room, false), 1);
	end();
}

TEST(a_wish_is_there_until_it_is_answered)
{
	begin();
	check_eq(room_wish(room), 0);
	room_wish_move(theirs, 7);
	check_eq(room_wish(room), 7);
	room->moved = 7;
	check_eq(room_wish(room), 0);
	end();
}

TEST(a_trim_leaves_what_is_needed)
{
	begin();
	room_grant(theirs, 100);
	check(room_need(room, 60));
	check_eq(room_trim(theirs, 100, 60), 60);
	check(!room_need(room, 61));
	/* It has said so before the trim. */
	room_grant(theirs, 100);
	check(room_need(room, 80));
	check_eq(room_trim(theirs, 100, 60), 80);
	check(room_need(room, 80));
	/* No more than it had, whatever it says. */
	check(!room_need(room, UINT64_MAX));
	check_eq(room_trim(theirs, 80, 60), 80);
	end();
}

/* The worker's: whether it has memory now, how often it had, and when to end. */
static bool is_holding, ends;
static uint64_t n_taken;

static void *take_and_release(void *data)
{
	while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) {
		/* Memory is taken only with a grant. */
		if (room_need(room, 100)) {
			__atomic_store_n(&is_holding, true, __ATOMIC_SEQ_CST);
			__atomic_fetch_add(&n_taken, 1, __ATOMIC_RELAXED);
			__atomic_store_n(&is_holding, false, __ATOMIC_SEQ_CST);
		}
		room_need(room, 0);
	}
	return data;
}

TEST(a_worker_and_vgpud_do_not_miss_each_other)
{
	pthread_t thread;
	uint64_t n_lowered = 0;

	begin();
	check_eq(pthread_create(&thread, NULL, take_and_release, NULL), 0);
	while (n_lowered < ROUNDS ||
		__atomic_load_n(&n_taken, __ATOMIC_RELAXED) < ROUNDS) {
		room_grant(theirs, 100);
		if (room_trim(theirs, 100, 0))
			continue;
		/* It has none, and gets none before the next grant. */
		n_lowered++;
		check(!__atomic_load_n(&is_holding, __ATOMIC_SEQ_CST));
	}
	__atomic_store_n(&ends, true, __ATOMIC_RELAXED);
	check_eq(pthread_join(thread, NULL), 0);
	end();
}
