/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Programs of random calls: what eight threads of one process do to each other's objects
 *
 * A program is a row of calls, four bytes each: which thread makes it, which call, and
 * two bytes that choose objects and arguments. Each thread makes its calls in order; how
 * those of different threads fall together is left to chance. Objects are in slots
 * that all threads share, so any of them is used, waited for, and destroyed by all, also
 * after its end: what a call returns is not looked at. That nothing breaks is for the
 * sanitizers to say, and that nothing hangs: all that a call may wait for, words in
 * memory and captures that nobody ends, comes to an end soon after the start.
 */

#include <stddef.h>
#include <stdint.h>

#define CALLS_LANES 8u
#define CALLS_CALL_SIZE 4u

/* Starts the driver and the threads; once. */
void calls_start(void);

/* Runs a program to its end and destroys all that it has made. */
void calls_run(const uint8_t *program, size_t size);
