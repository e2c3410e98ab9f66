/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose memory makes room: decisions about a few workers, and about random ones
 */

#include <stdlib.h>
#include <string.h>

#include "broker/room-policy.h"
#include "test.h"

#define MEMBERS 4u

static const struct room_policy policy = {
	.total = 100,
	.idle_ms = 1000,
	.back_idle_ms = 100,
	.back_wait_ms = 500,
};

static struct room_member members[MEMBERS];

static void begin(void)
{
	memset(members, 0, sizeof(members));
}

static void has(unsigned int i, uint64_t granted, uint64_t idle_ms)
{
	members[i].granted = members[i].need = granted;
	members[i].idle_ms = idle_ms;
	members[i].is_evictable = true;
}

static void asks(unsigned int i, uint64_t need, uint64_t waited_ms)
{
	members[i].need = need;
	members[i].idle_ms = 0;
	members[i].waited_ms = waited_ms;
	members[i].is_asking = true;
}

static void decide(void)
{
	room_decide(&policy, members, MEMBERS);
}

TEST(free_room_is_granted)
{
	begin();
	has(0, 60, 5000);
	asks(1, 40, 0);
	decide();
	check_eq(members[0].verdict, ROOM_KEEP);
	check_eq(members[1].verdict, ROOM_GRANT);
	check_eq(members[1].granted, 40);
}

TEST(the_one_that_is_idle_longest_goes)
{
	begin();
	has(0, 30, 2000);
	has(1, 40, 3000);
	has(2, 30, 1500);
	asks(3, 40, 0);
	decide();
	check_eq(members[1].verdict, ROOM_MOVE);
	check_eq(members[0].verdict, ROOM_KEEP);
	check_eq(members[2].verdict, ROOM_KEEP);
	check_eq(members[3].verdict, ROOM_KEEP);
	check(members[3].is_asking);
	/* And another one only if that is not enough. */
	begin();
	has(0, 30, 2000);
	has(1, 40, 3000);
	has(2, 30, 1500);
	asks(3, 41, 0);
	decide();
	check_eq(members[1].verdict, ROOM_MOVE);
	check_eq(members[0].verdict, ROOM_MOVE);
	check_eq(members[2].verdict, ROOM_KEEP);
}

TEST(nothing_goes_in_vain)
{
	begin();
	has(0, 30, 2000);
	has(1, 70, 0);
	asks(2, 31, 0);
	decide();
	check_eq(members[0].verdict, ROOM_KEEP);
	check_eq(members[2].verdict, ROOM_REFUSE);
	/* More than there is at all. */
	begin();
	has(0, 100, 5000);
	asks(1, 101, 0);
	decide();
	check_eq(members[0].verdict, ROOM_KEEP);
	check_eq(members[1].verdict, ROOM_REFUSE);
}

TEST(who_has_not_agreed_or_is_busy_stays)
{
	begin();
	has(0, 50, 60000);
	members[0].is_evictable = false;
	has(1, 50, 999);
	asks(2, 1, 0);
	decide();
	check_eq(members[0].verdict, ROOM_KEEP);
	check_eq(members[1].verdict, ROOM_KEEP);
	check_eq(members[2].verdict, ROOM_REFUSE);
	members[1].idle_ms = 1000;
	members[2].is_asking = true;
	decide();
	check_eq(members[1].verdict, ROOM_MOVE);
}

TEST(memory_that_comes_back_waits_and_takes_from_those_that_were_busy)
{
	begin();
	has(0, 100, 99);
	asks(1, 50, 0);
	members[1].is_back = true;
	decide();
	check_eq(members[0].verdict, ROOM_KEEP);
	check_eq(members[1].verdict, ROOM_KEEP);
	members[1].waited_ms = 500;
	decide();
	check_eq(members[1].verdict, ROOM_REFUSE);
	members[1].waited_ms = 10;
	members[1].is_asking = true;
	members[0].idle_ms = 100;
	decide();
	check_eq(members[0].verdict, ROOM_MOVE);
}

TEST(what_is_going_is_waited_for)
{
	begin();
	has(0, 50, 3000);
	members[0].is_going = true;
	has(1, 50, 2000);
	asks(2, 50, 0);
	decide();
	check_eq(members[0].verdict, ROOM_KEEP);
	check_eq(members[1].verdict, ROOM_KEEP);
	check_eq(members[2].verdict, ROOM_KEEP);
	members[2].need = 51;
	decide();
	check_eq(members[0].verdict, ROOM_KEEP);
	check_eq(members[1].verdict, ROOM_MOVE);
}

TEST(what_nobody_needs_is_taken_back_first)
{
	begin();
	has(0, 60, 0);
	members[0].need = 20;
	has(1, 40, 9000);
	asks(2, 40, 0);
	decide();
	check_eq(members[0].verdict, ROOM_TRIM);
	check_eq(members[0].granted, 20);
	check_eq(members[1].verdict, ROOM_KEEP);
	check_eq(members[2].verdict, ROOM_GRANT);
}

TEST(the_longest_wait_comes_first)
{
	begin();
	has(0, 60, 9000);
	asks(1, 30, 10);
	asks(2, 60, 20);
	decide();
	/* The second has its turn first, and the other gets nothing of its room. */
	check_eq(members[0].verdict, ROOM_MOVE);
	check_eq(members[1].verdict, ROOM_KEEP);
	check_eq(members[2].verdict, ROOM_KEEP);
}

TEST(one_that_may_not_have_it_is_refused)
{
	begin();
	asks(0, 10, 0);
	members[0].is_over = true;
	asks(1, 10, 0);
	decide();
	check_eq(members[0].verdict, ROOM_REFUSE);
	check_eq(members[1].verdict, ROOM_GRANT);
}

TEST(slack_is_given_while_there_is_plenty)
{
	const struct room_policy with_slack = { .total = 1000, .slack = 100 };

	begin();
	asks(0, 10, 0);
	room_decide(&with_slack, members, MEMBERS);
	check_eq(members[0].granted, 110);
	begin();
	has(1, 700, 0);
	asks(0, 10, 0);
	room_decide(&with_slack, members, MEMBERS);
	check_eq(members[0].granted, 10);
}

/* Grants never add up to more than there is, and each request that is not met is refused,
 * waited for or waits its turn. */
TEST(random_members)
{
	unsigned int seed = 1, n_moves = 0, n_grants = 0, n_refusals = 0;

	for (int round = 0; round < 100000; round++) {
		uint64_t before = 0, after = 0;

		begin();
		for (unsigned int i = 0; i < MEMBERS; i++) {
			has(i, (uint64_t)rand_r(&seed) % 30,
				(uint64_t)rand_r(&seed) % 3000);
			members[i].is_evictable = rand_r(&seed) % 2;
			members[i].is_going = rand_r(&seed) % 8 == 0;
			if (rand_r(&seed) % 3 == 0)
				asks(i, (uint64_t)rand_r(&seed) % 120,
					(uint64_t)rand_r(&seed) % 3);
			members[i].is_back = rand_r(&seed) % 2;
			before += members[i].granted;
		}
		decide();
		for (unsigned int i = 0; i < MEMBERS; i++) {
			after += members[i].granted;
			n_moves += members[i].verdict == ROOM_MOVE;
			n_grants += members[i].verdict == ROOM_GRANT;
			n_refusals += members[i].verdict == ROOM_REFUSE;
			if (members[i].verdict == ROOM_MOVE)
				check(members[i].is_evictable && !members[i].is_asking &&
					!members[i].is_going);
			if (members[i].verdict == ROOM_GRANT)
				check(members[i].granted >= members[i].need);
		}
		check(after <= policy.total || after <= before);
	}
	check(n_moves > 1000 && n_grants > 1000 && n_refusals > 1000);
}
