/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Worker control: what workers say on their control sockets, and their end
 */

struct loop_source;
struct worker;

/* Handles what has arrived on a worker's control socket. */
int worker_control_receive(struct loop_source *source);

/* It was reaped: tells the session's end, lets the channel go on, frees it. */
void worker_control_handle_exit(struct worker *worker, int status);
