/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Wiper thread: empties one piece after the other
 *
 * A separate file because fuzz targets, which must be deterministic, have no thread.
 */

#include "vgpud/wiper.h"

/* Return: 0 or -errno. */
int wiper_thread_start(struct wiper *wiper);

/* Waits for the piece under way, and for the thread's end. */
void wiper_thread_end(struct wiper *wiper);

/* Hands over a piece; wiper->done is readable once it is done. */
void wiper_thread_ask(struct wiper *wiper, int fd, uint64_t offset, uint64_t size);

/* Takes the count of an eventfd. Returns: whether there was one, or came one. */
bool wiper_thread_wait(int fd);
