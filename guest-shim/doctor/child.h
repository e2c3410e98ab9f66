/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Child: calls of a library of the loader, in a process of their own
 *
 * The child writes "step FUNCTION" before each call, so that its parent knows where it
 * hung or crashed, "failed FUNCTION: RESULT" after one that failed, and what it found.
 */

#include <stdbool.h>

#include "doctor/doctor.h"
#include "doctor/probe.h"

#define CHILD_FIELD_SIZE 512

/* Of the child: the descriptor of its output, and the loaded library. */
struct child {
	int out;
	void *library;
};

/* Loads the library and writes its path. Return: whether it did; else it wrote why. */
bool child_load(struct child *child, int out, const char *name);

/* The address of a function, or NULL, of which it wrote why. */
void *child_find(const struct child *child, const char *function);

/* Writes the step, and afterwards a result other than 0. Return: whether it was 0. */
void child_step(const struct child *child, const char *function);
bool child_check(
	const struct child *child, const char *function, int result, const char *name);

/*
 * Of the parent: runs a child, and adds a finding if it failed, hung or crashed.
 *
 * Return: whether all went well. The probe is to be freed in any case.
 */
bool child_run(struct doctor *doctor, struct probe *probe, const char *subject,
	void (*function)(int out, const void *data));
