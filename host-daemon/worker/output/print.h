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
 * of its process: those are pipes then, read by a thread of their own, so that the driver
 * never blocks, and once more before each reply that may owe output. Of descriptor 2 only
 * messages of assertions are the guest's; the rest is logged.
 *
 * A guest that does not fetch its output loses what exceeds PRINT_KEPT_MAX.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;

/* Bytes kept of either kind: what the largest buffer of softgpu's kernels holds. */
#define PRINT_KEPT_MAX (16u << 20)

/* Bytes of text in one reply. */
#define PRINT_FETCH_MAX 1900u

/* A ring that grows; positions count bytes for ever. */
struct print_ring {
	char *bytes;
	size_t size;
	uint64_t head;
	uint64_t tail;
};

struct prints {
	pthread_mutex_t lock;
	struct print_ring rings[2]; /* standard output and standard error */
	uint64_t n_in;		    /* bytes that came, lost ones too */
	uint64_t n_out;		    /* of them fetched or lost */
	uint64_t n_lost;
	uint64_t n_lost_told;
};

/* A piece of what was printed. */
struct print_piece {
	uint64_t position; /* n_out after it */
	uint64_t lost;	   /* since the piece before */
	bool is_error;
	size_t size;
	char text[PRINT_FETCH_MAX];
};

void print_init(struct session *session);
void print_deinit(struct session *session);

/* As struct softgpu_config wants them; data is the session. Any thread. */
void print_from_kernel(void *data, const char *text, size_t size);
void print_error_from_kernel(void *data, const char *text, size_t size);

/* Takes the next piece. One without text: there is none. */
void print_fetch(struct session *session, struct print_piece *piece);

/* Logs output that was not fetched before the session's end. */
void print_tell_lost(const struct session *session);
