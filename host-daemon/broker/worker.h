/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Worker: the broker's view of a worker process
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "broker/busy-time.h"
#include "broker/image-files.h"
#include "broker/loop.h"
#include "broker/room-state.h"
#include "broker/worker-log.h"
#include "control/control.h"
#include "vgpud/budget.h"
#include "vgpud/link.h"

struct arbiter_worker;
struct broker;
struct channel;
struct device_set;

enum worker_state {
	WORKER_STARTING, /* before READY */
	WORKER_WARM,
	WORKER_BUSY,   /* has, or had, a channel: never reused */
	WORKER_ENDING, /* STOP was sent, or it was killed */
};

struct worker {
	TAILQ_ENTRY(worker) entry;
	struct broker *broker;
	enum worker_state state;
	uint64_t id; /* identifies it to the keeper */
	pid_t pid;
	int control;
	int stats;
	struct loop_source source;
	loop_source_fn receive_fn; /* handles the control socket */
	struct budget messages;	   /* budget of messages */
	struct loop_timer rest;	   /* set: it exceeded the budget, and is ignored */
	struct worker_log log;
	struct loop_timer deadline; /* SIGKILL follows, or after that it is stuck */
	struct channel *channel;    /* NULL: none */
	struct device_set *devices; /* for whose VMs it was started; of the broker
				     * before this one: NULL */
	void (*stuck_fn)(struct worker *worker); /* of who set the channel */
	bool is_condemned;	  /* ended for its memory, and not counted any more */
	bool is_orphan;		  /* its VM is unknown to this broker */
	bool is_killed;		  /* SIGKILL was sent to end it */
	bool is_stuck;		  /* and it has not exited for a long time */
	bool hung_up;		  /* closed its end; its exit will be reported */
	bool has_exited;	  /* only messages that are still in its socket are
				   * handled */
	bool waits;		  /* its next message waits for arena */
	struct image_files files; /* image files that it may have */
	uint64_t host_memory;	  /* bytes of private memory at the last check */
	uint64_t memory_seen;	  /* bytes of device memory, see quota-watch.h */
	int32_t driver_version;
	uint32_t protocol_minor; /* of the calls that it knows */
	struct busy_time busy;	 /* of the processor, while it has a session */
	uint64_t shown_us;	 /* when that session was first published; 0: not yet */
	struct worker_use use;	 /* at the last look */
	struct arbiter_worker *share;  /* of the device's time; NULL: it has no session */
	struct room_state room;	       /* of its memory on the device */
	struct account *group_account; /* in whose control group it is, or NULL */
	uint64_t n_faults;	       /* of these, noted in the VM's history */
};

/*
 * Creates a worker that the keeper announced.
 *
 * @fds:	control, stats, log; takes ownership in any case
 * @receive_fn:	handles messages on the control socket
 *
 * Return: 0 or -errno.
 */
int worker_new(struct worker **workerp, struct broker *broker,
	const struct link_message *message, const int fds[3], loop_source_fn receive_fn);
struct worker *worker_free(struct worker *worker);

/* Starts to receive messages; all channels must be known. Return: 0 or -errno. */
int worker_listen(struct worker *worker);
struct worker *worker_find(struct broker *broker, uint64_t id);

/* Sends a message; a worker that cannot take it is killed. */
void worker_send(
	struct worker *worker, const struct control_message *message, const int *fds);

/* Sends STOP now and SIGKILL after the grace time; 0: SIGKILL now. A shorter time
 * replaces a longer one. */
void worker_end(struct worker *worker, unsigned int grace_ms);

/* Sends SIGKILL; nothing else changes until the exit is reported. */
void worker_kill(struct worker *worker);

/* Resumes a worker that waited for arena. */
void worker_go_on(struct worker *worker);
