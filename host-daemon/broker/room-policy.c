/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room policy: who may have how much on the device, and whose memory makes room
 */

#include "broker/room-policy.h"
#include "vgpu/checked.h"

struct round {
	const struct room_policy *policy;
	struct room_member *members;
	size_t n;
	uint64_t free;
};

static uint64_t sum_granted(const struct round *round)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < round->n; i++)
		if (!vgpu_add_u64(sum, round->members[i].granted, &sum))
			return UINT64_MAX;
	return sum;
}

static void grant(struct round *round, struct room_member *member)
{
	const uint64_t wanted = member->need - member->granted;
	const uint64_t left = round->free - wanted;
	const uint64_t slack = round->policy->slack;

	/* A worker that takes a little more need not ask again. */
	member->granted = member->need + (left / 4 > slack ? slack : 0);
	round->free = left - (member->granted - member->need);
	member->verdict = ROOM_GRANT;
	member->is_asking = false;
}

/* Whether something was decided about it that is not to be replaced. */
static bool is_answered(const struct room_member *member)
{
	return member->verdict == ROOM_GRANT || member->verdict == ROOM_MEET ||
	       member->verdict == ROOM_REFUSE;
}

/* Takes back what nobody needs. */
static void trim(struct round *round)
{
	for (size_t i = 0; i < round->n; i++) {
		struct room_member *member = &round->members[i];

		if (member->granted <= member->need || is_answered(member))
			continue;
		round->free += member->granted - member->need;
		member->granted = member->need;
		member->verdict = ROOM_TRIM;
	}
}

/* What those that are going will leave. */
static uint64_t coming(const struct round *round)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < round->n; i++)
		if (round->members[i].is_going || round->members[i].verdict == ROOM_MOVE)
			sum += round->members[i].granted;
	return sum;
}

/* What it has on the device. */
static uint64_t held(const struct room_member *member)
{
	return member->granted < member->need ? member->granted : member->need;
}

static bool can_go(const struct room_member *member, uint64_t idle_ms)
{
	return member->is_evictable && !member->is_asking && !member->is_going &&
	       held(member) && member->idle_ms >= idle_ms && member->idle_ms &&
	       (member->verdict == ROOM_KEEP || member->verdict == ROOM_TRIM);
}

static struct room_member *longest_idle(struct round *round, uint64_t idle_ms)
{
	struct room_member *found = NULL;

	for (size_t i = 0; i < round->n; i++) {
		struct room_member *member = &round->members[i];

		if (can_go(member, idle_ms) &&
			(!found || member->idle_ms > found->idle_ms))
			found = member;
	}
	return found;
}

/* Return: whether so much can be had of others that are idle. */
static bool is_there(const struct round *round, uint64_t wanted, uint64_t idle_ms)
{
	uint64_t sum = round->free;

	for (size_t i = 0; i < round->n && sum < wanted; i++)
		if (can_go(&round->members[i], idle_ms))
			sum += round->members[i].granted;
	return sum >= wanted;
}

/* Return: whether memory is on its way out that will do. */
static bool make_room(
	struct round *round, const struct room_member *member, uint64_t wanted)
{
	const uint64_t idle_ms =
		member->is_back ? round->policy->back_idle_ms : round->policy->idle_ms;
	uint64_t left = coming(round);

	if (left >= wanted - round->free)
		return true;
	/* Nothing moves in vain. */
	if (!is_there(round, wanted - left, idle_ms))
		return false;
	while (round->free + left < wanted) {
		struct room_member *going = longest_idle(round, idle_ms);

		left += going->granted;
		going->verdict = ROOM_MOVE;
	}
	return true;
}

/* Return: whether the next request may have its turn. */
static bool decide_lack(struct round *round, struct room_member *member)
{
	const uint64_t idle_ms =
		member->is_back ? round->policy->back_idle_ms : round->policy->idle_ms;
	uint64_t left = coming(round);
	struct room_member *going;

	if (member->has_told) {
		if (left)
			return false;
		member->verdict = ROOM_MEET;
		member->is_asking = false;
		return true;
	}
	/* How much of it the driver has already is not known: nothing is too little. */
	while (left < member->lacking && (going = longest_idle(round, idle_ms))) {
		left += held(going);
		going->verdict = ROOM_MOVE;
		going->for_lack_of = member;
	}
	if (!left) {
		member->verdict = ROOM_REFUSE;
		return true;
	}
	member->has_told = true;
	return false;
}

/* Return: whether the next request may have its turn. */
static bool decide_one(struct round *round, struct room_member *member)
{
	uint64_t wanted;

	if (member->is_over) {
		member->verdict = ROOM_REFUSE;
		member->is_asking = false;
		return true;
	}
	if (member->lacking)
		return decide_lack(round, member);
	wanted = member->need > member->granted ? member->need - member->granted : 0;
	if (wanted > round->free)
		trim(round);
	if (wanted <= round->free) {
		if (member->need > member->granted)
			grant(round, member);
		member->verdict = ROOM_GRANT;
		member->is_asking = false;
		return true;
	}
	if (wanted <= round->policy->total && make_room(round, member, wanted))
		return false;
	if (member->is_back && member->waited_ms < round->policy->back_wait_ms &&
		member->need <= round->policy->total)
		return true;
	member->verdict = ROOM_REFUSE;
	return true;
}

static struct room_member *longest_waiting(struct round *round, uint64_t less_than)
{
	struct room_member *found = NULL;

	for (size_t i = 0; i < round->n; i++) {
		struct room_member *member = &round->members[i];

		if (member->is_asking && member->waited_ms < less_than &&
			(!found || member->waited_ms > found->waited_ms))
			found = member;
	}
	return found;
}

/* Requests of the same millisecond have their turn in the order of the members. */
static void decide_same(struct round *round, uint64_t waited_ms, bool *goes_onp)
{
	for (size_t i = 0; i < round->n && *goes_onp; i++) {
		struct room_member *member = &round->members[i];

		if (member->is_asking && member->waited_ms == waited_ms)
			*goes_onp = decide_one(round, member);
	}
}

void room_decide(
	const struct room_policy *policy, struct room_member *members, size_t n_members)
{
	struct round round = { policy, members, n_members, 0 };
	uint64_t sum = sum_granted(&round), waited = UINT64_MAX;
	struct room_member *next;
	bool goes_on = true;

	round.free = policy->total > sum ? policy->total - sum : 0;
	for (size_t i = 0; i < n_members; i++)
		members[i].verdict = ROOM_KEEP;
	while (goes_on && (next = longest_waiting(&round, waited))) {
		waited = next->waited_ms;
		decide_same(&round, waited, &goes_on);
	}
}
