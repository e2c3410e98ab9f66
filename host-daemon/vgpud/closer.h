/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Closer: closes descriptors on a thread
 *
 * Closing the last descriptor of a memory frees it, and vgpud cannot know whether guests
 * and workers still have one. One thread for the whole process.
 */

/* Return: 0 or -errno. Until then, closer_close() closes at once. */
int closer_start(void);

/* Closes a descriptor, which is the closer's from here on; -1 is none. Returns: -1. */
int closer_close(int fd);
