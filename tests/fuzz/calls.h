/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Programs of random calls: eight threads of one process work on each other's objects
 *
 * A program is a sequence of calls, four bytes each: the thread that makes it, the call,
 * and two bytes that choose objects and arguments. Each thread makes its calls in order;
 * the interleaving of different threads is left to chance. Objects are in slots that all
 * threads share, so any of them is used, waited for, and destroyed by all, also after its
 * end: results of calls are ignored. The sanitizers find memory errors and races, and a
 * watchdog finds hangs: all words in memory and captures that a call may wait for end
 * soon after the start.
 */

#include <stddef.h>
#include <stdint.h>

#define CALLS_LANES 8u
#define CALLS_CALL_SIZE 4u

/* Starts the driver and the threads; once. */
void calls_start(void);

/* Runs a program to its end and destroys all that it has made. */
void calls_run(const uint8_t *program, size_t size);
