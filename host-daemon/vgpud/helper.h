/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Helper: a thread for what the kernel may take long to do
 */

#include <pthread.h>

/* Starts a thread with all signals blocked. Returns: 0 or -errno. */
int helper_start(pthread_t *threadp, void *(*fn)(void *data), void *data);

/* In the thread: what it does is no more urgent than what a guest does, whatever the
 * priority of its process. */
void helper_lower_priority(void);
