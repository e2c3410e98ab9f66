/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Probe: code that may hang or crash, and other programs, in a child process
 *
 * What the child writes is cut to PROBE_SIZE. Both texts are empty rather than NULL.
 */

#include <stdbool.h>
#include <stddef.h>

#define PROBE_SIZE (64u << 10)

struct probe {
	char *output; /* what it wrote to `out`, or to its standard output */
	char *errors; /* what it wrote to its standard error */
	int status;   /* as of waitpid() */
	bool is_late; /* it was killed after the time limit */
};

/*
 * Runs a function in a child of this process, which exits with 0 after its return.
 *
 * Return: 0 or -errno.
 */
int probe_call(struct probe *probe, void (*function)(int out, const void *data),
	const void *data, unsigned int seconds);

/* Runs a program of the PATH or, unless it is there, of /sbin. Return: whether it exited
 * with 0. */
bool probe_run(struct probe *probe, const char *const *arguments, unsigned int seconds);

void probe_deinit(struct probe *probe);

/*
 * Finds the next line "KEY VALUE" of the output, from *atp on; NULL: from its start.
 *
 * Return: the value, which ends before '\n', with *atp behind it; NULL: there is none.
 */
const char *probe_next(const struct probe *probe, const char *key, const char **atp);

/* The value of the last line of that key, cut to the size; empty where there is none.
 * Return: whether there is one. */
bool probe_get(const struct probe *probe, const char *key, char *value, size_t size);
