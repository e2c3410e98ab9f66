/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stage: a real broker, with all its peers played by an input
 *
 * The stage is keeper, workers, guests and clock. Each message of the broker is checked
 * against the state of the stage: the owners of extents, images and memories, and the
 * live processes. A violation aborts.
 *
 * Memories are files that the stage writes and never maps, because a truncated one would
 * end the fuzzer.
 */

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>

#include "broker/broker.h"
#include "broker/channel.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "control/control.h"
#include "reader.h"
#include "vgpud/layout.h"
#include "vgpud/share-table.h"

/* For a file that can no longer be changed. */
#define STAGE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

#define STAGE_VMS 4u
#define STAGE_PLAIN (STAGE_VMS - 1) /* the one with transport plain */
#define STAGE_WORKERS 8u
#define STAGE_IMAGES 64u
#define STAGE_MAX_WORKERS 6u
#define STAGE_DOORBELLS 3u
/* Above all numbers of the kernel: no memory of another process is read. */
#define STAGE_NO_PID (1 << 23)

/* One [vm NAME]; its memory is reused once the broker has released it. */
struct stage_vm {
	uint64_t id; /* 0: the broker knows of none */
	bool gone;
	int shm, ledger, quota, eventfds[2 * STAGE_DOORBELLS];
	uint64_t inode, quota_inode; /* of shm and quota */
	uint32_t n_doorbells, n_interrupts, n_channels_max;
	struct layout layout;
	uint64_t *owners; /* of each extent: the worker's id, or 0 */
};

struct stage_worker {
	uint64_t id;	  /* 0: free */
	int keeper[3];	  /* control, stats, log: what the broker is given */
	int control, log; /* the worker's own ends, or -1 */
	bool is_deaf;	  /* it no longer reads its messages */
	bool exited;
	int status;
	int vm; /* that it was assigned, or -1 */
	uint32_t channel, quota_slot;
	struct control_grant grant; /* the last one */
};

/* A memory file that the broker gave to a worker, and what became of it. */
struct stage_image {
	uint64_t inode;
	uint64_t worker;
	int section;	     /* of the worker's VM */
	unsigned int broker; /* which one gave it */
	uint32_t cookie;
	int own;       /* the worker's, or -1: it has ended */
	int kept;      /* the keeper's, or -1 */
	bool was_kept; /* once */
	uint64_t owner;
	struct link_image link; /* as the broker reported to the keeper */
};

struct stage {
	struct reader reader;
	bool honest; /* the keeper is */
	struct broker broker;
	bool running;
	int link; /* the keeper's end */
	/* LINK_SPAWNs without an answer; the ids of the first ones, oldest first */
	unsigned int n_spawns, n_restarts;
	uint32_t spawns[STAGE_MAX_WORKERS];
	uint64_t last_id, pinged, ponged;
	bool draining;
	struct stage_vm *vms;
	struct stage_worker workers[STAGE_WORKERS];
	struct stage_image images[STAGE_IMAGES];
	unsigned int n_images;
	struct share_table shares[STAGE_VMS]; /* the keeper's */
};

enum stage_kind {
	STAGE_HONEST, /* the keeper is, and the books are checked */
	STAGE_ANY,    /* the input determines whether it is */
};

/* Plays the input to its end, and then the end of all sessions. */
void stage_play(const uint8_t *data, size_t size, enum stage_kind kind);

/* A descriptor of some kind or other; *sizep: of what may be an image. */
int stage_make_fd(struct stage *stage, uint64_t *sizep);

/* Lets the broker do all its work for the current time, and reads its messages. */
void stage_settle(struct stage *stage);

struct stage_worker *stage_find_worker(struct stage *stage, uint64_t id);

/*
 * stage-worker.c
 */

/* One that the broker requested, which is reported to it. */
void stage_worker_start(struct stage *stage);
/* @request:	the id of the LINK_SPAWN, 0 after a restart */
void stage_worker_tell(
	struct stage *stage, const struct stage_worker *worker, uint32_t request);
void stage_worker_say(struct stage *stage);
void stage_worker_answer(struct stage *stage);
void stage_worker_log(struct stage *stage);
void stage_worker_count(struct stage *stage);
void stage_worker_hang_up(struct stage *stage);
void stage_worker_reap(struct stage *stage);
void stage_worker_reap_all(struct stage *stage);
void stage_worker_free(struct stage_worker *worker);

/* Messages to workers. Returns: whether there was one. */
bool stage_worker_hear(struct stage *stage);

/* A worker that can send messages, chosen by the input, or NULL. */
struct stage_worker *stage_any_worker(struct stage *stage);

/*
 * stage-image.c
 */

/* A worker was given a file, which becomes the stage's. */
void stage_image_take(struct stage *stage, const struct stage_worker *worker,
	const struct control_image *answer, int fd);
void stage_image_ask(struct stage *stage);
void stage_image_keep(struct stage *stage);
void stage_image_drop(struct stage *stage);

/* The worker has ended, and its descriptors with it. */
void stage_image_forget(struct stage *stage, uint64_t worker);

/* The broker's messages about images to the keeper. The callee owns the descriptor. */
void stage_image_kept(struct stage *stage, const struct link_message *message, int fd);
void stage_image_done(struct stage *stage, const struct link_message *message);

/* To a new broker; and once a VM has gone. */
void stage_image_tell_all(struct stage *stage);
void stage_image_lose(struct stage *stage, uint64_t owner);

void stage_image_end(struct stage *stage);

/*
 * stage-share.c
 */

void stage_share_begin(struct stage *stage);
void stage_share_end(struct stage *stage);

/* The token[0]-th of all tokens; unchanged if there are not that many. */
void stage_share_choose(const struct stage *stage, uint8_t token[CONTROL_TOKEN_SIZE]);

/* An answer to a worker. */
void stage_share_check(const struct stage *stage, const struct stage_worker *worker,
	const struct control_message *message);

/* The worker has ended. */
void stage_share_forget(struct stage *stage, uint64_t worker);

/* The broker's messages about shares to the keeper. The callee owns the descriptor. */
void stage_share_hear(struct stage *stage, const struct link_message *message, int fd);

/* To a new broker. */
void stage_share_tell_all(const struct stage *stage);

/*
 * stage-link.c
 */

/* The broker's messages to its keeper. Returns: whether there was one. */
bool stage_link_hear(struct stage *stage);

/* A message that no keeper sends, or not now. */
void stage_link_say(struct stage *stage);

/*
 * stage-books.c
 */

/* The broker's accounts are consistent and agree with the state of the stage. */
void stage_books_check(struct stage *stage);

/* All sessions have ended, and there is no VM: nothing is held any more. */
void stage_books_check_empty(struct stage *stage);

#define stage_check(_condition)                                                          \
	do {                                                                             \
		if (!(_condition))                                                       \
			stage_fail(__FILE__, __LINE__, #_condition);                     \
	} while (0)

void stage_fail(const char *file, int line, const char *condition)
	__attribute__((__noreturn__));
