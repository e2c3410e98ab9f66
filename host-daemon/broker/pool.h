/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pool: the workers, and the channels that wait for one
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "broker/loop.h"
#include "broker/worker.h"
#include "vgpud/budget.h"

struct broker;

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

void pool_init(struct worker_pool *pool);

/* Gives warm workers to channels that wait, and asks for as many as are missing. */
void pool_update(struct broker *broker);

/* The keeper could not start a worker, with -errno. Where the host is short of something
 * channels wait for it; else they are refused. */
void pool_handle_no_worker(struct broker *broker, int error);

/* A worker died early, or has no driver: channels that wait are refused. */
void pool_handle_failure(struct broker *broker, uint32_t reason);
