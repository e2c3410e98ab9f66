/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Held worker: a worker process and vgpud's ends of its sockets and pipes
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "vgpud/config.h"

struct held_worker {
	TAILQ_ENTRY(held_worker) entry;
	uint64_t id; /* never used twice in a keeper's life */
	pid_t pid;
	int control;
	int stats;
	int log;     /* read end of its standard error */
	int pidfd;   /* -1: it is a child of this process, or has exited */
	uid_t uid;   /* 0: vgpud's own */
	bool exited; /* reaped: its pid may be reused */
	int status;  /* LINK_STATUS_UNKNOWN: of no child of this process */
};

TAILQ_HEAD(held_workers, held_worker);

/* Descriptors per worker in a process of vgpud. */
#define HELD_WORKER_FDS 3

/*
 * Starts a worker. It has only the standard descriptors and two others.
 *
 * @list:	of the devices that it has (vgpud/device-list.h); NULL: all
 * @uid:	user id in its sandbox; 0: unchanged
 * @network:	namespace, or -1
 * @outlives:	it does not die with the keeper, but with its control socket
 *
 * Return: 0 or -errno.
 */
int held_worker_new(struct held_worker **workerp, const struct config *config,
	const char *list, uint64_t id, uid_t uid, int network, bool outlives);

/* Return: the worker, or NULL. */
struct held_worker *held_workers_find(const struct held_workers *workers, uint64_t id);

/*
 * @other:	a user id that is taken, or 0
 * @lastp:	place of the last one in the range, from 1; updated
 * Return: a user id that no worker has, which config-check.c ensures, or 0: vgpud's own.
 */
uid_t held_workers_pick_uid(const struct held_workers *workers,
	const struct config *config, uid_t other, unsigned int *lastp);

/* Kills and reaps the process if that has not been done. */
struct held_worker *held_worker_free(struct held_worker *worker);

/*
 * Workers that another process has started, of which this one has pidfds instead of
 * exit statuses.
 *
 * held_workers_watch() makes a descriptor that becomes readable when one of them exits;
 * held_workers_next_exit() returns one that has exited, or NULL.
 */
int held_workers_watch(const struct held_workers *workers, int *fdp);
struct held_worker *held_workers_next_exit(const struct held_workers *workers, int fd);

void held_worker_kill(const struct held_worker *worker);

/* Moves it to a control group, whose file cgroup.procs that is. A failure is logged, and
 * it stays where it is. */
void held_worker_join(const struct held_worker *worker, int procs);

/* Announces the worker to the broker, with the id of its LINK_SPAWN or 0. Return: 0,
 * LINK_E_* or -errno. */
int held_worker_tell(const struct held_worker *worker, uint64_t request, int link);
int held_worker_tell_exited(const struct held_worker *worker, int link);
