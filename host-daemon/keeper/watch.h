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
	uint64_t cpu_ms; /* that it has used */
};

struct watch {
	pid_t pid;
	uint64_t asked;	      /* pings sent */
	uint64_t answered;    /* the last one that was answered */
	int64_t look_at;      /* ms: the next look */
	uint64_t cpu_ms;      /* used when it was seen first without an answer */
	unsigned int n_seen;  /* looks without an answer */
	unsigned int n_still; /* of those, in a row, at which it did not even try */
};

void watch_begin(struct watch *watch, pid_t pid, int64_t now);

/* It answered that ping. */
void watch_handle_answer(struct watch *watch, uint64_t ping);

/* Returns: ms until the next look. */
int watch_timeout(const struct watch *watch, int64_t now);

enum watch_verdict {
	WATCH_NOTHING,
	WATCH_PING, /* send the ping watch->asked */
	WATCH_HUNG,
};

/* Looks at it, if it is time to. */
enum watch_verdict watch_look(struct watch *watch, int64_t now);

/* Judges one that has not answered. Returns: whether it hangs. */
bool watch_judge(struct watch *watch, const struct watch_sight *sight);
