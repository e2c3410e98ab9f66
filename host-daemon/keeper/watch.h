/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Watch: whether the broker still answers
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The state of a thread (proc_pid_stat(5)). */
struct watch_sight {
	char state;	 /* 0: unknown */
	uint64_t cpu_ms; /* processor time */
};

struct watch {
	pid_t pid;
	uint64_t asked;	      /* pings sent */
	uint64_t answered;    /* the last answered ping */
	int64_t look_at;      /* ms: time of the next sample */
	uint64_t cpu_ms;      /* at the first sample without an answer */
	unsigned int n_seen;  /* samples without an answer */
	unsigned int n_still; /* of these, in a row, not runnable */
};

void watch_begin(struct watch *watch, pid_t pid, int64_t now);

/* The broker has answered that ping. */
void watch_handle_answer(struct watch *watch, uint64_t ping);

/* Return: ms until the next sample. */
int watch_timeout(const struct watch *watch, int64_t now);

enum watch_verdict {
	WATCH_NOTHING,
	WATCH_PING, /* send the ping watch->asked */
	WATCH_HUNG,
};

/* Takes a sample, if it is time to. */
enum watch_verdict watch_look(struct watch *watch, int64_t now);

/* Judges a broker without an answer. Return: whether it hangs. */
bool watch_judge(struct watch *watch, const struct watch_sight *sight);
