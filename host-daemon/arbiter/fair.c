/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair: weighted fair sharing of device time
 */

#include <string.h>

#include "arbiter/fair.h"

#define FULL (1u << 16)
/* Units that are busy for less than this have time to give away: 15/16. */
#define NEARLY_FULL (FULL - FULL / 16)
/* "Lately" is about this time. */
#define LATELY_NS UINT64_C(32000000)
#define SLACK_QUANTA 4
/* Time that may be said in a later round: those who measure it look once in 2 ms, or as
 * late as they get a processor. */
#define ROOM_NS UINT64_C(50000000)
/* One that claims to have work, and is not held, uses at least this part of a unit. */
#define CLAIM_PART 8
#define CLAIM_NS UINT64_C(100000000)
/* Of a group with a percentage: the time in which its bucket fills, the longest debt, and
 * the time between rounds that is counted. */
#define BUCKET_NS UINT64_C(50000000)
#define DEBT_NS INT64_C(60000000000)
#define FILL_NS UINT64_C(1000000000)
/* Rounds while there is work, but only of one member, and while there is none. */
#define ROUND_ACTIVE_NS FAIR_QUANTUM_NS
#define ROUND_IDLE_NS (10 * FAIR_QUANTUM_NS)

/* Virtual times wrap around, and are never far apart. */
static bool is_before(uint64_t vtime, uint64_t other)
{
	return (int64_t)(vtime - other) < 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t to_vtime(const struct fair_group *group, uint64_t ns)
{
	return ns * FAIR_WEIGHT_DEFAULT / group->weight;
}

static uint64_t to_ns(const struct fair_group *group, uint64_t vtime)
{
	return vtime * group->weight / FAIR_WEIGHT_DEFAULT;
}

void fair_init(struct fair *fair, uint32_t n_units, uint64_t quantum_ns)
{
	*fair = (struct fair){
		.n_units = n_units ? n_units : 1,
		.quantum_ns = quantum_ns,
	};
	TAILQ_INIT(&fair->groups);
}

void fair_add_group(struct fair *fair, struct fair_group *group, uint32_t weight)
{
	*group = (struct fair_group){ .weight = weight };
	TAILQ_INIT(&group->members);
	TAILQ_INSERT_TAIL(&fair->groups, group, entry);
}

void fair_remove_group(struct fair *fair, struct fair_group *group)
{
	TAILQ_REMOVE(&fair->groups, group, entry);
}

void fair_add_member(struct fair_group *group, struct fair_member *member)
{
	member->group = group;
	member->last = member->reading;
	member->used_ns = member->reading.used_ns;
	member->limit_ns = UINT64_MAX;
	member->vtime = 0;
	member->is_active = false;
	member->is_backlogged = false;
	TAILQ_INSERT_TAIL(&group->members, member, entry);
}

void fair_remove_member(struct fair_member *member)
{
	TAILQ_REMOVE(&member->group->members, member, entry);
}

/*
 * What was used since the last round
 */

/* Of a counter that a compromised process may set to anything. */
static uint64_t delta_of(uint64_t now, uint64_t before, uint64_t max)
{
	return now > before ? least(now - before, max) : 0;
}

/* Moves an average towards a sample, of which there is one each round. */
static void average(uint32_t *averagep, uint64_t sample, uint64_t elapsed_ns)
{
	const uint64_t part = least(elapsed_ns, LATELY_NS) * 1024 / LATELY_NS;

	*averagep = (uint32_t)((*averagep * (1024 - part) + sample * part) / 1024);
}

/* One that claims to have work, but uses no time although nobody holds it, would be the
 * next one for ever, and the others held. Return: what it is charged for that. */
static uint64_t charge_claim(
	struct fair_member *member, uint64_t used, bool was_held, uint64_t elapsed_ns)
{
	uint64_t charge;

	if (!member->is_backlogged || was_held || !member->group->is_next) {
		member->claimed_ns = 0;
		return 0;
	}
	member->claimed_ns += elapsed_ns / CLAIM_PART;
	member->claimed_ns -= least(member->claimed_ns, used);
	if (member->claimed_ns <= CLAIM_NS / CLAIM_PART)
		return 0;
	charge = member->claimed_ns - CLAIM_NS / CLAIM_PART;
	member->claimed_ns -= charge;
	return charge;
}

/* Counters are read a little later than the clock, and grow in steps. */
static uint64_t delta_max(const struct fair *fair, uint64_t elapsed_ns)
{
	const uint64_t late_ns = fair->overlaps ? ROOM_NS : fair->quantum_ns;

	return 2 * fair->n_units * (elapsed_ns + late_ns);
}

static uint64_t account_member(
	const struct fair *fair, struct fair_member *member, uint64_t elapsed_ns)
{
	const uint64_t max = delta_max(fair, elapsed_ns);
	const struct fair_reading *now = &member->reading;
	uint64_t used = member->delta_ns;
	const uint64_t held = delta_of(now->held_ns, member->last.held_ns, max);

	member->used_ns += used;
	average(&member->duty, now->n_busy || now->is_held ? FULL : 0, elapsed_ns);
	member->vtime += used;
	member->group->tokens_ns -= (int64_t)used;
	member->is_active = now->n_busy || now->is_held || used;
	member->is_backlogged = now->is_held || held || member->duty >= FULL / 2;
	used += charge_claim(member, used, now->is_held || held, elapsed_ns);
	member->last = *now;
	return used;
}

/* Members that were not backlogged follow the others of the group. */
static void even_members(struct fair_group *group)
{
	struct fair_member *member;
	bool is_any = false;
	uint64_t vtime = 0;

	TAILQ_FOREACH(member, &group->members, entry) {
		if (!member->is_backlogged ||
			(is_any && !is_before(member->vtime, vtime)))
			continue;
		vtime = member->vtime;
		is_any = true;
	}
	TAILQ_FOREACH(member, &group->members, entry)
		if (is_any && !member->is_backlogged && is_before(member->vtime, vtime))
			member->vtime = vtime;
}

/* Whether a group has nothing, whatever the others do. */
static bool is_out(const struct fair_group *group)
{
	return group->is_paused || group->is_spent;
}

static uint64_t bucket_of(const struct fair_group *group)
{
	return most(BUCKET_NS * group->percent / 100, 2 * FAIR_TURN_NS);
}

/* Adds the tokens of the time since the last round, after its use was subtracted. */
static void fill(struct fair_group *group, uint64_t elapsed_ns)
{
	const int64_t bucket = (int64_t)bucket_of(group);
	int64_t tokens = group->tokens_ns;

	if (!group->percent) {
		group->tokens_ns = 0;
		group->is_spent = false;
		return;
	}
	if (tokens < -DEBT_NS)
		tokens = -DEBT_NS;
	tokens += (int64_t)(least(elapsed_ns, FILL_NS) * group->percent / 100);
	group->tokens_ns = tokens < bucket ? tokens : bucket;
	group->is_spent = group->tokens_ns < (int64_t)FAIR_TURN_NS;
}

/* Return: units for which its members have work, but not if that is free time. */
static uint64_t account_group(
	const struct fair *fair, struct fair_group *group, uint64_t elapsed_ns)
{
	struct fair_member *member;
	uint64_t used = 0, n_busy = 0, free;

	group->n_active = 0;
	group->is_backlogged = false;
	TAILQ_FOREACH(member, &group->members, entry) {
		used += account_member(fair, member, elapsed_ns);
		n_busy += least(member->reading.n_busy, fair->n_units);
		group->n_active += member->is_active;
		group->is_backlogged |= member->is_backlogged;
	}
	free = least(used, group->free_ns);
	group->vtime += to_vtime(group, used - free);
	group->free_vtime += to_vtime(group, free);
	/* One that had free time had no other. */
	if (group->free_ns)
		n_busy = 0;
	group->free_ns = 0;
	fill(group, elapsed_ns);
	if (group->n_active > 1)
		even_members(group);
	return n_busy;
}

/* Groups that were not backlogged follow the others of their priority. */
static void even_groups(struct fair *fair)
{
	bool is_any[FAIR_PRIORITIES] = {};
	struct fair_group *group;

	TAILQ_FOREACH(group, &fair->groups, entry) {
		const uint32_t priority = group->priority;

		if (!group->is_backlogged || is_out(group) ||
			(is_any[priority] &&
				!is_before(group->vtime, fair->vtimes[priority])))
			continue;
		fair->vtimes[priority] = group->vtime;
		is_any[priority] = true;
	}
	TAILQ_FOREACH(group, &fair->groups, entry)
		if ((!group->is_backlogged || is_out(group)) &&
			is_before(group->vtime, fair->vtimes[group->priority]))
			group->vtime = fair->vtimes[group->priority];
}

/*
 * What members have used, where the times that they say overlap. The device was at work
 * for no more time than has passed, and for as much of the rounds before as nobody has
 * said yet, because readings come in steps.
 */
static void share_overlap(struct fair *fair, uint64_t said_ns, uint64_t elapsed_ns)
{
	const uint64_t room = fair->n_units * elapsed_ns + least(fair->room_ns, ROOM_NS);
	struct fair_group *group;
	struct fair_member *member;

	fair->room_ns = room - least(room, said_ns);
	if (said_ns <= room)
		return;
	TAILQ_FOREACH(group, &fair->groups, entry)
		TAILQ_FOREACH(member, &group->members, entry)
			member->delta_ns = (uint64_t)((double)member->delta_ns *
						      (double)room / (double)said_ns);
}

/* What each has used: of what it says, as much as may be. */
static void read_members(struct fair *fair, uint64_t elapsed_ns)
{
	const uint64_t max = delta_max(fair, elapsed_ns);
	struct fair_group *group;
	struct fair_member *member;
	uint64_t said = 0;

	TAILQ_FOREACH(group, &fair->groups, entry)
		TAILQ_FOREACH(member, &group->members, entry) {
			member->delta_ns = delta_of(
				member->reading.used_ns, member->last.used_ns, max);
			said += member->delta_ns;
		}
	if (fair->overlaps)
		share_overlap(fair, said, elapsed_ns);
}

static void account(struct fair *fair, uint64_t elapsed_ns)
{
	struct fair_group *group;
	uint64_t n_busy = 0;

	read_members(fair, elapsed_ns);
	fair->n_active = 0;
	fair->n_active_groups = 0;
	TAILQ_FOREACH(group, &fair->groups, entry) {
		n_busy += account_group(fair, group, elapsed_ns);
		fair->n_active += group->n_active;
		fair->n_active_groups += group->n_active && !is_out(group);
	}
	average(&fair->busy, least(n_busy * FULL / fair->n_units, FULL), elapsed_ns);
	even_groups(fair);
}

/*
 * What each may use until the next round
 */

/* The highest priority of those that have more work than they are given. */
static uint32_t served_priority(const struct fair *fair)
{
	const struct fair_group *group;
	uint32_t priority = 0;

	TAILQ_FOREACH(group, &fair->groups, entry)
		if (group->is_backlogged && !is_out(group) && group->priority > priority)
			priority = group->priority;
	return priority;
}

static uint32_t greatest_weight(const struct fair *fair, uint32_t priority)
{
	const struct fair_group *group;
	uint32_t weight = 1;

	TAILQ_FOREACH(group, &fair->groups, entry)
		if (group->is_backlogged && !is_out(group) &&
			group->priority == priority && group->weight > weight)
			weight = group->weight;
	return weight;
}

static uint64_t credit_of(const struct fair *fair, const struct fair_group *group,
	uint32_t priority, uint64_t window)
{
	const uint64_t lead = group->vtime - fair->vtimes[priority];
	uint64_t credit;

	if (is_out(group) || group->priority < priority)
		return 0;
	if (!group->is_backlogged || group->priority > priority)
		return fair->n_units * fair->quantum_ns;
	credit = (int64_t)(window - lead) > 0 ? to_ns(group, window - lead) : 0;
	if (!lead)
		return most(credit, fair->n_units * FAIR_TURN_NS);
	return credit >= FAIR_TURN_NS ? credit : 0;
}

/* Whether a group is held although it has work. */
static bool is_kept_out(const struct fair_group *group)
{
	return !group->credit_ns && group->n_active && !is_out(group);
}

/* Return: of those that are held the one to be served next, or NULL. */
static struct fair_group *next_kept_out(struct fair *fair)
{
	struct fair_group *group, *next = NULL;

	TAILQ_FOREACH(group, &fair->groups, entry) {
		if (!is_kept_out(group)) {
			if (is_before(group->free_vtime, fair->free_vtime))
				group->free_vtime = fair->free_vtime;
			continue;
		}
		if (!next || group->priority > next->priority ||
			(group->priority == next->priority &&
				is_before(group->free_vtime, next->free_vtime)))
			next = group;
	}
	return next;
}

/* Whether time is left that nobody uses. Where times overlap, one that may work and has
 * work leaves none: what another is given would be taken from it. */
static bool is_time_left(const struct fair *fair)
{
	const struct fair_group *group;

	if (!fair->overlaps)
		return fair->busy < NEARLY_FULL;
	TAILQ_FOREACH(group, &fair->groups, entry)
		if (group->credit_ns && group->n_active)
			return false;
	return true;
}

/* Gives the time that nobody uses to one that is held. */
static void give_away(struct fair *fair)
{
	const uint64_t turn = fair->n_units * FAIR_TURN_NS;
	struct fair_group *group;

	if (!is_time_left(fair))
		return;
	group = next_kept_out(fair);
	if (!group)
		return;
	if (is_before(fair->free_vtime, group->free_vtime))
		fair->free_vtime = group->free_vtime;
	group->free_ns = fair->overlaps ? turn : turn * (FULL - fair->busy) / FULL;
	group->credit_ns = group->free_ns;
}

/* The group that is served next goes on if the next round is late, since somebody has to.
 */
static uint64_t slack_of(const struct fair *fair, const struct fair_group *group)
{
	return group->is_next ? SLACK_QUANTA * fair->n_units * fair->quantum_ns : 0;
}

/* A member of a group with a percentage has no more than its part of the tokens. */
static void bound(struct fair_member *member)
{
	const struct fair_group *group = member->group;
	const uint64_t used = member->reading.used_ns;
	const uint64_t n = group->n_active ? group->n_active : 1;
	uint64_t tokens;

	if (!group->percent)
		return;
	tokens = group->is_spent ? 0 : (uint64_t)group->tokens_ns / n;
	if (used <= UINT64_MAX - tokens)
		member->limit_ns = least(member->limit_ns, used + tokens);
}

/* Shares a group's credit. Return: the time after which the first member may have used
 * what it has. */
static uint64_t limit_members(const struct fair *fair, struct fair_group *group)
{
	const uint32_t n = group->n_active ? group->n_active : 1;
	uint64_t slack;
	struct fair_member *member;
	uint64_t first = UINT64_MAX, vtime = 0;
	bool is_any = false;

	group->is_next = group->is_backlogged && group->credit_ns &&
			 group->vtime == fair->vtimes[group->priority];
	slack = slack_of(fair, group);
	TAILQ_FOREACH(member, &group->members, entry)
		if (member->is_active && (!is_any || is_before(member->vtime, vtime))) {
			vtime = member->vtime;
			is_any = true;
		}
	TAILQ_FOREACH(member, &group->members, entry) {
		const uint64_t lead = is_any ? member->vtime - vtime : 0;
		uint64_t credit = group->credit_ns / n;

		if (credit && credit < FAIR_TURN_NS)
			credit = least(FAIR_TURN_NS, group->credit_ns);
		/* One that has had more than others of its group. */
		if (member->is_backlogged && n > 1 && (int64_t)lead > 0)
			credit -= least(credit, lead);
		/* Nothing is 0: what is read may be ahead of what the member's gate sees,
		 * and the difference would be a credit. */
		member->limit_ns = credit ? member->reading.used_ns + credit : 0;
		if (credit && !lead)
			member->limit_ns += slack;
		bound(member);
		if (credit && member->is_active)
			first = least(first, credit / fair->n_units);
	}
	return first;
}

static uint64_t limit_all(struct fair *fair)
{
	const uint32_t priority = served_priority(fair);
	const uint64_t window =
		fair->quantum_ns * FAIR_WEIGHT_DEFAULT / greatest_weight(fair, priority);
	struct fair_group *group;
	uint64_t next = fair->quantum_ns / 2;

	TAILQ_FOREACH(group, &fair->groups, entry)
		group->credit_ns = credit_of(fair, group, priority, window);
	give_away(fair);
	TAILQ_FOREACH(group, &fair->groups, entry)
		next = least(next, limit_members(fair, group));
	return most(next, FAIR_TURN_NS);
}

/* One has all of the device; a paused one has nothing. */
static void limit_none(struct fair *fair)
{
	struct fair_group *group;
	struct fair_member *member;

	TAILQ_FOREACH(group, &fair->groups, entry)
		TAILQ_FOREACH(member, &group->members, entry) {
			member->limit_ns = group->is_paused ? 0 : UINT64_MAX;
			bound(member);
		}
}

uint64_t fair_round(struct fair *fair, uint64_t elapsed_ns)
{
	account(fair, elapsed_ns);
	if (fair->n_active_groups > 1 || fair->n_active > 1)
		return limit_all(fair);
	limit_none(fair);
	return fair->n_active ? ROUND_ACTIVE_NS : ROUND_IDLE_NS;
}
