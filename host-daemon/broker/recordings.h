/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Recordings: those that wait for a process of a machine, one for each
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "control/control.h"

/* Of all machines. */
#define RECORDINGS_MAX 64u

struct recording_wish {
	TAILQ_ENTRY(recording_wish) entry;
	char vm[CONTROL_VM_NAME_MAX];
	uint32_t pid;	  /* 0: any */
	char command[16]; /* empty: any */
	int fd;		  /* the worker's end */
};

struct recordings {
	TAILQ_HEAD(, recording_wish) list;
	unsigned int n;
};

void recordings_init(struct recordings *recordings);
void recordings_deinit(struct recordings *recordings);

/* Forgets those whose client has gone. */
void recordings_sweep(struct recordings *recordings);

bool recordings_has(const struct recordings *recordings, const char *vm);

/* Adds a copy, which owns the descriptor. Return: 0 or -ENOMEM. */
int recordings_add(struct recordings *recordings, const struct recording_wish *wish);

/* Return: the descriptor for that process, the caller's, or -1. */
int recordings_take(
	struct recordings *recordings, const char *vm, uint32_t pid, const char *command);
