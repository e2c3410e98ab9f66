/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Worker control: messages of workers on their control sockets, and their exit
 */

struct loop_source;
struct worker;

/* Handles messages on a worker's control socket. */
int worker_control_receive(struct loop_source *source);

/* Handles the exit of a reaped worker: logs the session, releases the channel, frees the
 * worker. */
void worker_control_handle_exit(struct worker *worker, int status);
