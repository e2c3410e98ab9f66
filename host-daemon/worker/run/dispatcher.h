/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The dispatcher: the thread that takes a session's frames off the ring
 */

struct session;

/*
 * Reads the number of processors from a file, so call it before the sandbox is entered.
 * The affinity of this process does not matter: the guest may use other processors.
 */
void dispatcher_prepare(void);

/* Takes frames until the session ends. The main function of its thread; never returns. */
void *dispatcher_main(void *session);

/* Wakes the dispatcher if it sleeps, because calls are expected: it wakes up while the
 * guest thread does. Any thread. */
void dispatcher_wake(struct session *session);
