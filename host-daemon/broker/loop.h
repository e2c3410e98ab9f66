/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Loop: the broker's event loop on io_uring
 */

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct loop_source;
struct loop_timer;

/* Called when the descriptor is readable or hung up. Returns: 0 or -errno, which ends
 * the loop. The source may be removed and freed inside. */
typedef int (*loop_source_fn)(struct loop_source *source);
typedef int (*loop_timer_fn)(struct loop_timer *timer);

struct loop_source {
	struct loop *loop; /* NULL: not added */
	int fd;		   /* owned by the user of the source */
	uint32_t slot;
	loop_source_fn fn;
};

struct loop_timer {
	TAILQ_ENTRY(loop_timer) entry;
	struct loop *loop; /* NULL: not set */
	int64_t deadline;  /* ms, of clock_now() */
	loop_timer_fn fn;
};

struct loop_slot {
	struct loop_source *source; /* NULL: free */
	uint32_t generation;
};

struct loop {
	struct io_uring ring;
	bool has_ring;
	bool quit;
	int status;
	struct loop_slot *slots;
	uint32_t n_slots;
	TAILQ_HEAD(, loop_timer) timers; /* by deadline */
};

/* Return: 0 or -errno: -EPERM or -ENOSYS if the machine does not permit io_uring. */
int loop_init(struct loop *loop);
void loop_deinit(struct loop *loop);

/* Runs until loop_quit() or an error. Return: the status of loop_quit(), or -errno. */
int loop_run(struct loop *loop);
void loop_quit(struct loop *loop, int status);

/* Watches a descriptor until the source is removed. Returns: 0 or -errno. */
int loop_add(struct loop *loop, struct loop_source *source, int fd, loop_source_fn fn);
/* Afterwards the source can be freed and the descriptor closed. Has no effect on a source
 * that was not added. */
void loop_remove(struct loop_source *source);

/* An eventfd shared with other processes, which is incremented without blocking. */
struct loop_bell {
	struct loop_source source; /* added while a write is in flight */
	bool again;
};

/* Increments an eventfd; rings during a write in flight are merged. Initialise a bell
 * with zeroes, and call loop_remove(&bell->source) before freeing it. */
void loop_ring(struct loop *loop, struct loop_bell *bell, int fd);

/* Calls the function once, not before that many milliseconds. Replaces an earlier
 * setting. */
void loop_set_timer(
	struct loop *loop, struct loop_timer *timer, unsigned int ms, loop_timer_fn fn);
void loop_clear_timer(struct loop_timer *timer);
