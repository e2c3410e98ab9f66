/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Wiper: empties shared memory in the background
 *
 * The kernel takes half a second to free a GiB of memory. So memory is freed in pieces,
 * by a thread with the priority of a guest, and never by an event loop. One piece is in
 * progress at a time; sections take turns, and so do the wipes of a section: the amount
 * that one VM returns does not delay another VM.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Takes two milliseconds; a multiple of an extent. */
#define WIPER_PIECE_SIZE (4ull << 20)

struct wipe;
struct wiper;

/* A piece was emptied. */
typedef void (*wipe_piece_fn)(struct wipe *wipe, uint64_t offset, uint64_t size);
/* A wipe has ended: it is complete, or it was cut, or a piece failed with -errno. The
 * function may add the wipe again, or free it. */
typedef void (*wipe_done_fn)(struct wiper *wiper, struct wipe *wipe, int error);

struct wipe {
	TAILQ_ENTRY(wipe) entry;
	struct wiper *wiper;  /* NULL: not added, or ended */
	unsigned int section; /* the section whose turn it uses */
	int fd;		      /* owned by the caller, open until the wipe ends */
	uint64_t offset;
	uint64_t end;
	wipe_piece_fn piece_fn; /* may be NULL */
	wipe_done_fn done_fn;
};

struct wiper {
	TAILQ_HEAD(, wipe) wipes;
	struct wipe *current; /* of the piece in progress */
	unsigned int last_section;
	bool has_thread;
	pthread_t thread;
	int asked; /* eventfd: a piece, or a request to exit */
	int done;  /* eventfd: the piece is empty; to be polled */

	/* The piece: written by one side while the other waits for its eventfd. */
	int fd; /* -1: end */
	uint64_t offset;
	uint64_t size;
	int result;
};

/* clang-format off */
#define WIPER_NULL { .asked = -1, .done = -1 }
/* clang-format on */

/* Return: 0 or -errno; deinitialise in any case. */
int wiper_init(struct wiper *wiper);

/* Waits for the piece in progress; other wipes are dropped. */
void wiper_deinit(struct wiper *wiper);

/* Begins to empty [wipe->offset, wipe->end) of wipe->fd; calls no callback. */
void wiper_add(struct wiper *wiper, struct wipe *wipe);

/* Skips the rest of a wipe. Return: true if it has ended now; otherwise done_fn is called
 * after the piece in progress. */
bool wiper_cut(struct wipe *wipe);

/* Call when wiper->done is readable. */
void wiper_handle_done(struct wiper *wiper);

/*
 * Empties bytes of a file, so that they read as zero. If its file system cannot punch
 * holes, zeros are written, up to the file's end.
 *
 * Return: 0 or -errno.
 */
int wiper_empty(int fd, uint64_t offset, uint64_t size);
