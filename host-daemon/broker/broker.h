/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Broker: policy, channels and workers; the keeper's replaceable child
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "broker/channel.h"
#include "broker/loop.h"
#include "broker/pool.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "vgpud/account.h"
#include "vgpud/config.h"
#include "vgpud/wiper.h"

struct broker {
	const struct config *config;
	struct loop loop;
	int link;
	struct loop_source link_source;
	bool synced;   /* the keeper has told all there was before this broker */
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

/*
 * Takes up the link with the keeper, which stays the caller's; its loop is to be run
 * then.
 *
 * Return: 0 or -errno; deinitialise in any case.
 */
int broker_init(struct broker *broker, const struct config *config, int link);
void broker_deinit(struct broker *broker);

/* Runs until the keeper ends or says so. Returns: the exit status. */
int broker_run(const struct config *config, int link);

/* Ends the broker once it drains and nothing is left. */
void broker_check_drained(struct broker *broker);
