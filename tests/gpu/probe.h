/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Probe: what a real driver does where the design rests on it
 *
 * Opens libcuda.so.1 by name and prints one JSON object, a member a question. It is
 * a program of the plain Driver API and does not use anything of this project.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda.h>

/* The functions that may be missing from a driver are looked up, the rest is linked. */
struct probe {
	void *library;
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction empty;    /* an empty kernel */
	CUfunction wait_for; /* waits until *flag is not 0 */
	CUfunction say;	     /* prints a line with printf */
	volatile uint32_t *flag;
	CUdeviceptr device_flag;
	bool first;
};

extern const char probe_ptx[];

void *probe_symbol(struct probe *probe, const char *name);

/* Print one member; a failure is a member too: {"error": code}. */
void probe_number(struct probe *probe, const char *name, double value, const char *unit);
void probe_text(struct probe *probe, const char *name, const char *format, ...)
	__attribute__((__format__(__printf__, 3, 4)));
/* Returns: whether r is success; prints the error as the member otherwise. */
bool probe_ok(struct probe *probe, const char *name, CUresult r);

static inline double probe_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void probe_queue(struct probe *probe);	/* probe-queue.c */
void probe_words(struct probe *probe);	/* probe-words.c */
void probe_window(struct probe *probe); /* probe-memory.c */
void probe_alloc_cost(struct probe *probe);
void probe_registration(struct probe *probe);
void probe_checkpoint(struct probe *probe); /* probe-checkpoint.c */
int probe_checkpoint_subject(void);
