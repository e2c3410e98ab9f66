/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Capture: what a driver writes to standard output and error
 */

struct session;

/*
 * Makes the descriptors 1 and 2 pipes of ours and starts the thread that reads them;
 * the log goes where 2 went before. Once, outside of the sandbox.
 *
 * Return: 0 or -errno.
 */
int capture_start(void);

/* From here on what is written is the session's. Before, it is the log's or nobody's. */
void capture_serve(struct session *session);

/* Takes in what was written up to here; nothing where capture_start() was not called. */
void capture_collect(void);
