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

/* The driver refuses so much of what it has. */
static void lacks(unsigned int i, uint64_t lacking, uint64_t waited_ms)
{
	asks(i, members[i].need, waited_ms);
	members[i].lacking = lacking;
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

TEST(what_the_driver_refuses_makes_others_go_whatever_is_free)
{
	begin();
	has(0, 10, 2000);
	has(1, 10, 3000);
	has(2, 10, 1500);
	has(3, 20, 0);
	lacks(3, 11, 0);
	decide();
	check_eq(members[1].verdict, ROOM_MOVE);
	check_eq(members[0].verdict, ROOM_MOVE);
	check(members[0].for_lack_of == &members[3]);
	check_eq(members[2].verdict, ROOM_KEEP);
	check_eq(members[3].verdict, ROOM_KEEP);
	check(members[3].is_asking && members[3].has_told);
	/* While one of them is on its way no others are told. */
	members[0].is_going = true;
	members[1].granted = members[1].need = 0;
	decide();
	check_eq(members[2].verdict, ROOM_KEEP);
	check_eq(members[3].verdict, ROOM_KEEP);
	members[0].is_going = false;
	members[0].granted = members[0].need = 0;
	decide();
	check_eq(members[2].verdict, ROOM_KEEP);
	check_eq(members[3].verdict, ROOM_MEET);
	check_eq(members[3].granted, 20);
	check(!members[3].is_asking);
}

TEST(what_can_go_for_what_the_driver_refuses_goes_if_it_is_less)
{
	begin();
	has(0, 5, 2000);
	has(3, 50, 0);
	lacks(3, 50, 0);
	decide();
	check_eq(members[0].verdict, ROOM_MOVE);
	/* Busy, not evictable, asking itself or granted and not there: none can go. */
	begin();
	has(0, 10, 999);
	has(1, 10, 5000);
	members[1].is_evictable = false;
	has(2, 10, 5000);
	members[2].need = 0;
	has(3, 20, 0);
	lacks(3, 10, 0);
	decide();
	check_eq(members[0].verdict, ROOM_KEEP);
	check_eq(members[1].verdict, ROOM_KEEP);
	check_eq(members[2].verdict, ROOM_KEEP);
	check_eq(members[3].verdict, ROOM_REFUSE);
	check(!members[3].has_told);
	/* What comes back takes from those that were busy a moment ago. */
	members[3].is_asking = members[3].is_back = true;
	decide();
	check_eq(members[0].verdict, ROOM_MOVE);
}

TEST(two_that_lack_memory_do_not_move_each_other)
{
	begin();
	has(0, 20, 5000);
	has(1, 20, 5000);
	lacks(0, 10, 20);
	lacks(1, 10, 10);
	members[0].idle_ms = members[1].idle_ms = 5000;
	decide();
	check_eq(members[0].verdict, ROOM_REFUSE);
	check_eq(members[1].verdict, ROOM_REFUSE);
}

TEST(one_that_lacks_memory_has_its_turn_and_then_the_others)
{
	begin();
	has(0, 10, 5000);
	has(1, 20, 0);
	lacks(1, 10, 10);
	asks(2, 30, 20);
	asks(3, 10, 5);
	decide();
	/* The younger one gets nothing of what goes. */
	check_eq(members[2].verdict, ROOM_GRANT);
	check_eq(members[0].verdict, ROOM_MOVE);
	check_eq(members[3].verdict, ROOM_KEEP);
	/* It has gone, and the next request for the same is behind. */
	members[0].granted = members[0].need = 0;
	decide();
	check_eq(members[1].verdict, ROOM_MEET);
	check_eq(members[3].verdict, ROOM_GRANT);
	lacks(1, 10, 0);
	members[1].has_told = false;
	decide();
	check_eq(members[1].verdict, ROOM_REFUSE);
}

TEST(a_trim_leaves_the_answer_to_one_that_lacks_memory)
{
	for (int has_told = 0; has_told < 2; has_told++) {
		begin();
		has(0, 60, 0);
		members[0].need = 50;
		lacks(0, 10, 20);
		members[0].has_told = has_told;
		asks(1, 50, 10);
		decide();
		check_eq(members[0].verdict, has_told ? ROOM_MEET : ROOM_REFUSE);
		check_eq(members[0].granted, 60);
	}
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
	unsigned int seed = 1, n_moves = 0, n_grants = 0, n_refusals = 0, n_met = 0;

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
			if (rand_r(&seed) % 8 == 0 && members[i].granted)
				members[i].lacking =
					1 + (uint64_t)rand_r(&seed) % members[i].granted;
			members[i].has_told =
				members[i].lacking && rand_r(&seed) % 2 == 0;
			before += members[i].granted;
		}
		decide();
		for (unsigned int i = 0; i < MEMBERS; i++) {
			after += members[i].granted;
			n_moves += members[i].verdict == ROOM_MOVE;
			n_grants += members[i].verdict == ROOM_GRANT;
			n_refusals += members[i].verdict == ROOM_REFUSE;
			n_met += members[i].verdict == ROOM_MEET;
			if (members[i].verdict == ROOM_MEET)
				check(members[i].lacking && members[i].has_told);
			if (members[i].verdict == ROOM_MOVE && members[i].for_lack_of)
				check(members[i].for_lack_of->lacking &&
					members[i].for_lack_of != &members[i]);
			if (members[i].verdict == ROOM_MOVE)
				check(members[i].is_evictable && !members[i].is_asking &&
					!members[i].is_going);
			if (members[i].verdict == ROOM_GRANT)
				check(!members[i].lacking &&
					members[i].granted >= members[i].need);
		}
		check(after <= policy.total || after <= before);
	}
	check(n_moves > 1000 && n_grants > 1000 && n_refusals > 1000 && n_met > 1000);
}
