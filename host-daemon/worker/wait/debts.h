/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Debts: synchronising calls that the driver is still owed
 *
 * A wait that a word ends never reaches the driver, whose waits also trim memory pools:
 * the dispatcher makes up for it before it sleeps.
 */

#include <pthread.h>
#include <stdint.h>

struct context;
struct runner;
struct session;
struct stream;

/* Streams that owe a synchronising call. One that finds no place owes none: what the
 * driver does in such a call can wait for the next one. */
#define DEBTS_MAX 64u

struct debts {
	/* Streams in which words were written since the driver was last asked to wait for
	 * them. The count is atomic for those who only look; the lock is held while the
	 * calls are made: after debts_forget() the stream may be destroyed. */
	uint32_t n_owing;
	pthread_mutex_t lock;
	struct stream *owing[DEBTS_MAX];
	/* Calls that lanes are running. Atomic. */
	uint32_t n_running;
};

void debts_init(struct session *session);

/* Notes that a word is written in a stream: whoever waits by it owes the driver a call
 * that waits. Any thread. */
void debt_owe(struct session *session, struct stream *stream);

/* Dispatcher: makes the calls that are owed for streams that have nothing left to do. */
void debts_pay(struct session *session, struct runner *runner);

/* A stream, or all of a context, is about to end, and then owes nothing. Any thread. */
void debts_forget(struct session *session, const struct stream *stream);
void debts_forget_context(struct session *session, const struct context *context);
