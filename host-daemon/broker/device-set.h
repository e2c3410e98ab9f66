/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Device set: VMs that have the same devices in the same order, and their workers
 *
 * A driver chooses its devices in cuInit, so workers are started for a set, and wait for
 * processes of its VMs only. The first set is that of all devices, of VMs without a list.
 */

#include <stdint.h>

#include "broker/loop.h"

struct account;
struct broker;
struct vgpu_status;

struct device_set {
	struct broker *broker;
	const char *list; /* of the configuration; NULL: all devices */
	uint32_t
		request; /* of LINK_SPAWN: 0, or 1 + the index of a section that has it */
	unsigned int n_sections;
	struct vgpu_status *status; /* of the last VM; NULL: its devices are not known */

	/* Its workers, see pool.c. */
	unsigned int n_spawning; /* requested from the keeper, not started yet */
	unsigned int n_failures; /* in a row, before READY */
	struct loop_timer pause; /* while set, none are started in advance */

	/* At the last count. */
	unsigned int n_vms;  /* connections */
	unsigned int n_idle; /* workers without a channel, also those starting */
	unsigned int n_warm;
	unsigned int n_waiting; /* channels that wait for a worker */
	uint64_t turn;		/* the lowest of those channels' sections */
};

/* Makes broker->sets, and tells each account its own. Return: 0 or -ENOMEM. */
int device_sets_init(struct broker *broker);
/* After the loop, which has their timers. */
void device_sets_deinit(struct broker *broker);

/* Return: the set of a LINK_SPAWN, or NULL. */
struct device_set *device_set_find(struct broker *broker, uint64_t request);
