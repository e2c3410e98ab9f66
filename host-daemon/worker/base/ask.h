/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ask: one request to vgpud at a time, and its answer
 *
 * A lane asks and waits; the first thread, which listens to vgpud, receives the answer. A
 * cookie identifies the request, because an answer may arrive after its lane gave up.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct control_message;
struct session;

/* How long vgpud may take: it only looks into a table, but may be restarting. */
#define ASK_TIMEOUT_S 5

struct ask {
	pthread_mutex_t turn; /* held by the lane that asks */
	pthread_mutex_t lock; /* guards the rest, and the answer; taken after turn */
	pthread_cond_t answered;
	uint32_t cookie;
	bool is_awaited;
	bool has_arrived;
};

void ask_init(struct ask *ask);
void ask_deinit(struct ask *ask);

/*
 * With both locks: sends a request, which has the cookie already, and waits for
 * ask_answer(). The lock is released while it waits.
 *
 * @fds:	those that go with the request, or NULL
 *
 * Return: 0, -EPIPE if vgpud is gone, -ETIMEDOUT.
 */
int ask_locked(struct session *session, struct ask *ask,
	const struct control_message *message, const int *fds);

/* With the lock: wakes the lane that waits for an answer with that cookie. Return: false
 * if no lane does any more. */
bool ask_answer(struct ask *ask, uint32_t cookie);
