/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Keeper: its state, for keeper.c and succession.c
 */

#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper/endpoints.h"
#include "keeper/held-ctl.h"
#include "keeper/held-sensors.h"
#include "keeper/held-worker.h"
#include "keeper/store.h"
#include "keeper/trial.h"
#include "keeper/watch.h"
#include "vgpud/config.h"

/* A broker that dies this often in a short time is not started again. */
#define KEEPER_RESTARTS_MAX 5

struct keeper {
	struct config **configp;
	const char *path;	/* of the configuration */
	char program[PATH_MAX]; /* path of vgpud's program on the disk */
	int previous;		/* the program before this one, or -1 */
	int sources;		/* sealed memfd with those of the configuration */
	int signals;

	struct endpoints endpoints;
	struct held_ctl ctl;
	struct held_workers workers;
	uint64_t last_worker;
	unsigned int last_uid; /* place in the range, from 1 */
	int network;	       /* namespace without any network, or -1 */
	int earlier; /* readable when a worker of an earlier process exits, or -1 */
	struct held_sensors sensors;
	struct store store;

	pid_t broker; /* 0: none runs */
	int link;
	struct watch watch;
	int64_t start_at;	  /* ms; not 0: the next start of a broker */
	unsigned int n_shortages; /* failed starts in a row for lack of resources */
	struct trial trial;	  /* of the program on the disk */
	bool is_leaving;	  /* the successor follows the broker's exit */
	bool is_stepping_aside;	  /* the next process follows it */
	int ended_by;		  /* signal that arrived meanwhile */
	bool broker_ready;	  /* LINK_READY was received from it */
	bool is_broker_gone;	  /* its last messages get no answer */
	bool replacing;		  /* it was killed on purpose */
	bool ready;		  /* any broker was ready */
	bool draining;
	int64_t drain_end;
	int64_t report_at; /* next notify_alive(), ms; 0: none yet */
	int status;	   /* exit status so far */
	int64_t restarts[KEEPER_RESTARTS_MAX];

	struct pollfd *polls;
	unsigned int n_polls_max;
};
