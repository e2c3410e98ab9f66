/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Closer: closes descriptors on a thread
 *
 * Closing the last descriptor of a memory frees it, which takes long, and vgpud cannot
 * know whether guests and workers have others. One thread per process.
 */

/* Return: 0 or -errno. Until then, closer_close() closes at once. */
int closer_start(void);

/* Takes ownership of a descriptor, or -1, and closes it. Return: -1. */
int closer_close(int fd);
