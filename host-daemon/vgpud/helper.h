/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Helper: threads for long system calls
 */

#include <pthread.h>

/* Starts a thread with all signals blocked. Return: 0 or -errno. */
int helper_start(pthread_t *threadp, void *(*fn)(void *data), void *data);

/* Gives the calling thread the priority of guests, whatever that of its process. */
void helper_lower_priority(void);
