/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * State: the data of one broker
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "broker/loop.h"
#include "broker/recordings.h"
#include "broker/vm-group.h"
#include "vgpu/handle.h"
#include "vgpud/account.h"
#include "vgpud/budget.h"
#include "vgpud/config.h"
#include "vgpud/wiper.h"

struct arbiter;
struct channel;
struct ctl_server;
struct device_set;
struct sensors_page;
struct vgpu_status;
struct vm;
struct worker;

/* Worker processes and their start, see pool.c. */
struct worker_pool {
	TAILQ_HEAD(, worker) workers;
	struct loop_timer turn; /* when a VM may start its next process */
	struct loop_timer rest; /* set: a guest starts up, spare workers are delayed */
	struct loop_timer shortage; /* set: the host lacks resources for a worker */
	uint64_t n_turns;	    /* workers given to channels */
	bool is_version_told;	    /* a version mismatch was logged */
	struct budget log;	    /* log lines of workers without a guest */
};

struct broker {
	const struct config *config;
	const char *path; /* of the configuration, NULL: unknown */
	int sources;	  /* the texts of it, not owned; -1: none */
	struct loop loop;
	int link;
	struct loop_source link_source;
	bool synced;   /* SYNC was received: all existing VMs and workers are known */
	bool draining; /* SIGTERM: no new sessions */

	struct ctl_server *ctl;
	struct recordings recordings; /* that wait for a process; of the server */
	struct account *accounts;     /* one for each [vm NAME] */
	struct arbiter *arbiter;      /* of the device's time */
	struct vm_groups groups;      /* of the workers */
	TAILQ_HEAD(, vm) vms;
	struct loop_timer heartbeat;
	struct wiper wiper; /* of released memory of its VMs */
	struct loop_source wiper_source;
	int64_t memory_checked;	       /* ms: the last check of host memory */
	int64_t quotas_checked;	       /* ms: the last check of device memory */
	struct loop_timer rooms;       /* set: a worker waits for room on the device */
	struct sensors_page *sensors;  /* shared, NULL: there are none */
	struct sensors_page *measured; /* the last copy of it */
	struct device_set *sets;       /* the first one is that of all devices */
	unsigned int n_sets;
	uint32_t n_units;	 /* of softgpu that work at the same time */
	uint32_t n_shared_units; /* as the arbiter has it */
	/* UUIDs of all devices that workers have had; the arbiter's numbers. */
	uint8_t known_devices[VGPU_DEVICES_MAX][16];
	uint32_t n_known_devices;
	int64_t status_renewed; /* ms */

	/* Workers, and channels that wait for one, in order of arrival within a
	 * section. */
	struct worker_pool pool;
	TAILQ_HEAD(, channel) waiting;
};
