/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Succession: another program, or the next process, continues the keeper's work
 */

#include <stdbool.h>

struct endpoints;
struct held_vm;
struct keeper;

/* Tries the program on the disk. */
void succession_try(struct keeper *keeper);

/* Executes it; there is no broker. If this returns, it could not be executed. */
void succession_leave(struct keeper *keeper);

/* Executes the previous program, if there is one. */
void succession_return(struct keeper *keeper);

/* Stores what has changed for the next process. */
void succession_store(struct keeper *keeper);

/* The same for a VM that was greeted, as early as it can be: see store_vm(). */
void succession_store_vm(struct endpoints *endpoints, const struct held_vm *vm);

/* Leaves everything to that one; there is no broker. Returns false if it has to stay, and
 * does not return otherwise. */
bool succession_step_aside(struct keeper *keeper);
