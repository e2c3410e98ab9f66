/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The dispatcher: the thread that takes a session's frames off the ring
 */

struct session;

/*
 * Learns how many processors the machine has, which is read from a file: to be called
 * before the sandbox is entered. How many this process may use says nothing: the
 * guest's are others.
 */
void dispatcher_prepare(void);

/* Takes frames until the session ends. Runs on a thread of its own; never returns. */
void *dispatcher_main(void *session);

/* Wakes the dispatcher if it sleeps, for the calls that are about to come: its guest
 * takes as long to wake up, if they begin together. Any thread. */
void dispatcher_wake(struct session *session);
