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

/* Waits for the piece in progress, and for the thread to exit. */
void wiper_thread_end(struct wiper *wiper);

/* Passes a piece to the thread; wiper->done becomes readable when it is empty. */
void wiper_thread_ask(struct wiper *wiper, int fd, uint64_t offset, uint64_t size);

/* Reads an eventfd. Return: false on failure. */
bool wiper_thread_wait(int fd);
