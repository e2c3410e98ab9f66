/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Output of kernels
 *
 * Output is kept until the guest fetches it, for its own standard output; messages of
 * failed assertions for its standard error. A word in the control page counts all bytes
 * received, so that a guest that waits for kernels sees in memory whether there is any;
 * it is increased before the reply to the call that made the driver flush the output.
 *
 * softgpu passes output to a function. NVIDIA's driver writes to the descriptors 1 and 2
 * of its process: these are pipes then, read by a separate thread, so that the driver
 * never blocks, and read again before the reply to each call that may block. Only
 * messages of assertions on descriptor 2 are for the guest; all other text there is
 * logged.
 *
 * A guest that does not fetch its output loses what exceeds PRINT_KEPT_MAX.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;

/* Bytes kept of either kind: the largest printf buffer of softgpu. */
#define PRINT_KEPT_MAX (16u << 20)

/* Bytes of text in one reply. */
#define PRINT_FETCH_MAX 1900u

/* A ring that grows; positions are free-running byte counts. */
struct print_ring {
	char *bytes;
	size_t size;
	uint64_t head;
	uint64_t tail;
};

struct prints {
	pthread_mutex_t lock;
	struct print_ring rings[2]; /* standard output and standard error */
	uint64_t n_in;		    /* bytes received, including lost ones */
	uint64_t n_out;		    /* of these, fetched or lost */
	uint64_t n_lost;
	uint64_t n_lost_told;
};

/* A piece of the output. */
struct print_piece {
	uint64_t position; /* n_out after it */
	uint64_t lost;	   /* since the previous piece */
	bool is_error;
	size_t size;
	char text[PRINT_FETCH_MAX];
};

void print_init(struct session *session);
void print_deinit(struct session *session);

/* For softgpu_config.print and .print_error; data is the session. Any thread. */
void print_from_kernel(void *data, const char *text, size_t size);
void print_error_from_kernel(void *data, const char *text, size_t size);

/* Takes the next piece, whose size is 0 if there is no output. */
void print_fetch(struct session *session, struct print_piece *piece);

/* Logs output that was not fetched before the session's end. */
void print_tell_lost(const struct session *session);
