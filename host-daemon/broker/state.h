/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * State: what one broker has
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "broker/loop.h"
#include "vgpud/account.h"
#include "vgpud/budget.h"
#include "vgpud/config.h"
#include "vgpud/wiper.h"

struct channel;
struct vm;
struct worker;

/* Worker processes, and how they are made; see pool.c. */
struct worker_pool {
	TAILQ_HEAD(, worker) workers;
	unsigned int n_spawning; /* asked of the keeper, not answered */
	unsigned int n_failures; /* in a row, before READY */
	struct loop_timer pause; /* no warm workers are made while it is set */
	struct loop_timer turn;	 /* when a VM may begin its next process */
	struct loop_timer rest;	 /* set: a guest starts, spare workers come after that */
	struct loop_timer shortage; /* set: the host has no room for another worker */
	uint64_t n_turns;	    /* workers given to channels */
	bool is_version_told;	    /* that workers are of another build */
	struct budget log;	    /* lines of workers that have met no guest */
};

struct broker {
	const struct config *config;
	struct loop loop;
	int link;
	struct loop_source link_source;
	bool synced;   /* SYNC was received: all existing VMs and workers are known */
	bool draining; /* SIGTERM: no new sessions */

	struct account *accounts; /* one for each [vm NAME] */
	TAILQ_HEAD(, vm) vms;
	struct loop_timer heartbeat;
	struct wiper wiper; /* of what its VMs give back */
	struct loop_source wiper_source;
	int64_t memory_checked; /* ms: when workers were looked at last */

	/* Workers, and channels that wait for one, of each section the first first. */
	struct worker_pool pool;
	TAILQ_HEAD(, channel) waiting;
};
