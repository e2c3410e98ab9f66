/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Debts: synchronising calls that waits by words have saved, to be made up for
 *
 * A wait by a word never reaches the driver, which also trims memory pools in its
 * synchronising calls. So the dispatcher makes these calls before it sleeps.
 */

#include <pthread.h>
#include <stdint.h>

struct context;
struct runner;
struct session;
struct stream;

/* Streams with a debt. Further ones get none: the driver does its work in the next
 * synchronising call. */
#define DEBTS_MAX 64u

struct debts {
	/* Streams with writes of words since their last synchronising call. The count is
	 * atomic, for reads without the lock. The lock is held during the calls, so that
	 * a stream can be destroyed after debts_forget(). */
	uint32_t n_owing;
	pthread_mutex_t lock;
	struct stream *owing[DEBTS_MAX];
	/* Calls running on lanes. Atomic. */
	uint32_t n_running;
};

void debts_init(struct session *session);

/* Notes a debt of a stream in which a word is written. Any thread. */
void debt_owe(struct session *session, struct stream *stream);

/* Dispatcher: makes the calls for streams that are complete. */
void debts_pay(struct session *session, struct runner *runner);

/* Cancels the debts of a stream, or of all streams of a context, before destruction. Any
 * thread. */
void debts_forget(struct session *session, const struct stream *stream);
void debts_forget_context(struct session *session, const struct context *context);
