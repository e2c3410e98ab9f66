/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Totals: what all sessions of a [vm NAME] did since vgpud has it
 *
 * The counters of a session are in the file of its worker and end with it. So the broker
 * adds them up in the section's quota file (control/quota.h), where the next broker finds
 * them. If a broker dies while it does that, one session can be missing or counted twice.
 *
 * The section's workers can write that file, too: what a compromised one writes there is
 * told of its own VM.
 */

#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"

struct account;
struct broker;
struct worker;

/* Room for reasons to come. */
#define TOTALS_REASONS_MAX 32u
/* Changes with the layout. */
#define TOTALS_VERSION 1u

/* At QUOTA_TOTALS_OFF. */
struct totals {
	uint32_t version; /* TOTALS_VERSION, or 0: there are none yet */
	uint32_t reserved;
	uint64_t sessions; /* that were opened */
	uint64_t faults;
	uint64_t ended[TOTALS_REASONS_MAX];   /* sessions, by enum vgpu_channel_reason */
	uint64_t refused[TOTALS_REASONS_MAX]; /* processes that got no session */
	/* Of the device's time, see arbiter_read_worker(). 0 of an earlier build. */
	uint64_t device_ns;
	uint64_t held_ns;
	uint64_t oom_kills;	    /* workers that the kernel has ended, see oom.h */
	uint64_t oom_kills_counted; /* of those that their present group had */
	uint64_t reserved2[4];
	struct worker_stats stats; /* sums; not of what is in use now */
};

/* A session was opened, a process was refused one, or the worker of a session is gone.
 * Reasons are of enum vgpu_channel_reason. */
void totals_note_open(const struct account *account);
void totals_note_refusal(const struct account *account, uint32_t reason);
void totals_note_end(
	const struct account *account, const struct worker *worker, uint32_t reason);

/* The totals with the sessions that run. */
struct totals totals_of(const struct broker *broker, const struct account *account);

/*
 * The control group of the workers counts so many that the kernel has ended.
 *
 * Return: whether one of them is not counted yet. Now it is.
 */
bool totals_take_oom_kill(const struct account *account, uint64_t n_kills);

/* The next group counts from 0. */
void totals_forget_group(const struct account *account);
