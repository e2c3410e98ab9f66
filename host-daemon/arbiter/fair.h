/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fair: weighted fair sharing of device time
 *
 * Those that share a device are *groups*, the virtual machines, with weights and
 * priorities; a group's time is shared equally by its *members*, the guest processes. The
 * caller reads what each member has used, lets fair_round() decide, and publishes how
 * much device time each may have used until the next round.
 *
 * This is fair queueing by virtual time. The virtual time of a group is the device time
 * that it has used, divided by its weight. A group is *backlogged* if it was held by its
 * limit since the last round, or has had work most of the time lately. Among the
 * backlogged groups the one with the least virtual time is served next, and none may be
 * ahead of it by more than the quantum. So a group that has used too much, because a
 * kernel cannot be interrupted, waits until the others have caught up: its lead is its
 * deficit. A group that was not backlogged has no claim to the time that it did not use:
 * its virtual time follows that of the others, and it may use a quantum at once when it
 * has work.
 *
 * Time that none of the backlogged groups uses, because their kernels leave a part of the
 * device idle, is given to those that are held, and not charged to their virtual time. It
 * has a virtual time of its own, so it is shared by weight, too. So sharing keeps no unit
 * of the device idle for long that somebody has work for.
 *
 * A round may be late where the host's processors are busy. So the one that is served
 * next has a limit that lasts for several rounds, each of which sets it anew.
 *
 * Groups of a lower priority have only what higher ones leave.
 *
 * A group may have a limit of its own: a token bucket, which fills by a part of the time
 * that passes and is emptied by device time. While it is empty the group has nothing,
 * also if the device is idle, and the others share the device as if it had no work. A
 * kernel that cannot be interrupted may leave a debt, which has to fill up first.
 *
 * The readings come from workers, which a guest may have compromised: any number is
 * taken, and bounded by what the device could have done since the last round.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define FAIR_WEIGHT_DEFAULT 100u
#define FAIR_WEIGHT_MAX 10000u
#define FAIR_PRIORITIES 3u

#define FAIR_QUANTUM_NS UINT64_C(5000000)
/* No round gives less than this to the one that is served next, per unit, so that rounds
 * are not more frequent than that. */
#define FAIR_TURN_NS UINT64_C(1000000)

/* What a member has done since it began, and does now. */
struct fair_reading {
	uint64_t used_ns; /* device time */
	uint64_t held_ns; /* its work has waited for the limit */
	uint32_t n_busy;  /* units that it has work for, whether they are at it or not */
	bool is_held;	  /* it has more work, which waits for the limit */
};

struct fair_member {
	struct fair_group *group;
	TAILQ_ENTRY(fair_member) entry;

	/* set by the caller before each round */
	struct fair_reading reading;

	/* set by a round: how much it may have used; UINT64_MAX: any */
	uint64_t limit_ns;

	/* what it has used so far; where times overlap, its part of them */
	uint64_t used_ns;

	/* fair.c's */
	struct fair_reading last;
	uint64_t delta_ns; /* used since the last round */
	uint64_t vtime;
	uint64_t claimed_ns; /* that it was let work, and did not */
	uint32_t duty;	     /* how much of the time lately it had work, of 1 << 16 */
	bool is_active, is_backlogged;
};

struct fair_group {
	TAILQ_ENTRY(fair_group) entry;
	TAILQ_HEAD(, fair_member) members;
	uint32_t weight;
	uint32_t priority; /* below FAIR_PRIORITIES; higher ones first */
	bool is_paused;
	uint32_t percent; /* of one unit's time that it may have; 0: any */

	/* fair.c's */
	uint64_t vtime;	  /* ns at the default weight */
	uint64_t free_ns; /* that it may use without a charge */
	uint64_t free_vtime;
	uint64_t credit_ns;
	uint32_t n_active;
	bool is_backlogged;
	bool is_next;	   /* it was the one to be served next, in the last round */
	int64_t tokens_ns; /* with a percentage: device time that it may use now */
	bool is_spent;	   /* it has none */
};

struct fair {
	TAILQ_HEAD(, fair_group) groups;
	uint32_t n_units; /* of the device that work at the same time */
	uint64_t quantum_ns;
	/* Members measure for how long the device has had work of theirs: what it does
	 * while it has work of several is theirs together. */
	bool overlaps;

	/* fair.c's */
	uint64_t vtimes[FAIR_PRIORITIES]; /* of the backlogged ones, the least */
	uint64_t room_ns;    /* of the device's time, which nobody has said yet */
	uint64_t free_vtime; /* of the last one that was given free time */
	uint32_t busy;	   /* units for which there is work lately, but for free time, in
			      1 << 16 of all */
	uint32_t n_active; /* members */
	uint32_t n_active_groups;
};

void fair_init(struct fair *fair, uint32_t n_units, uint64_t quantum_ns);

/* Its weight, priority and pause may be changed at any time. */
void fair_add_group(struct fair *fair, struct fair_group *group, uint32_t weight);
void fair_remove_group(struct fair *fair, struct fair_group *group);

/* The reading is the one at which it begins. */
void fair_add_member(struct fair_group *group, struct fair_member *member);
void fair_remove_member(struct fair_member *member);

/*
 * Decides about all members.
 *
 * @elapsed_ns:	since the last round
 *
 * Return: ns until the next one.
 */
uint64_t fair_round(struct fair *fair, uint64_t elapsed_ns);
