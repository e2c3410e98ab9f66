/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Process: signals, limits and priority of the keeper's process
 */

#include <stdbool.h>

/* Ignores the signals without a meaning, and blocks the others, which arrive at the
 * descriptor. Return: 0 or -errno. */
int process_catch_signals(int *fdp);

void process_raise_limits(void);
void process_raise_priority(void);

/* Makes a network namespace in which there is no network. Return: 0 or -errno. */
int process_make_network(int *networkp);

/* Waits a while for processes that workers have left. */
void process_reap_orphans(void);

void process_log_broker_exit(int status);

/* Whether the broker, or the kernel while starting it, reported a lack of resources. */
bool process_lacked_room(int status);

/* Whether a socket has a message. Does not wait for end-of-file: the kernel may close the
 * descriptors of a process later than it reports its exit. */
bool process_has_message(int link);
