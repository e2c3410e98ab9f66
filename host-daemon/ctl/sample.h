/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sample: what all virtual machines and their processes use at one time, and from two
 * samples how fast they work
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/client.h"
#include "ctl/output.h"

/* What sample_sort() sorts by, the largest first; names in their own order. */
enum sample_key {
	SAMPLE_BUSY,
	SAMPLE_LAUNCHES,
	SAMPLE_COPIES, /* bytes */
	SAMPLE_MEMORY, /* of the device */
	SAMPLE_HOST,   /* memory of the host */
	SAMPLE_NAME,
	_SAMPLE_KEY_N,
};

/* Since the session began. */
struct sample_counts {
	uint64_t calls, launches, copies, bytes;
	uint64_t used_ns, held_ns; /* of the device's time */
};

/* A second. */
struct sample_rates {
	double calls, launches, copies, bytes;
	double used, held; /* seconds, sum of all units */
};

struct sample_use {
	char *name; /* of the machine, or of the process */
	int busy;   /* per cent, -1: unknown */
	int queued; /* per cent of the ring, of a machine the fullest; -1: unknown */
	bool has_pending; /* the next one is known */
	uint64_t pending; /* launches that have not begun */
	uint64_t device_memory, device_memory_evicted, host_memory; /* bytes */
	struct sample_rates rates;
};

struct sample_vm {
	struct sample_use use;
	uint32_t n_sessions;
	uint64_t device_memory_limit, host_memory_limit; /* bytes, 0: none */
};

struct sample_session {
	struct sample_use use;
	char *vm;
	uint64_t number;
	uint32_t pid;  /* in the guest */
	json_t *error; /* its last one, or null */
	char error_text[OUTPUT_ERROR_MAX];
	struct sample_counts counts;
};

struct sample {
	int64_t at_ms; /* of clock_now() */
	struct sample_vm *vms;
	size_t n_vms;
	struct sample_session *sessions;
	size_t n_sessions;
};

/* How full a ring is. Return: per cent, or -1 if it is unknown. */
int sample_queued(const VgpuCtl__Queue *queue);

/* Return: SAMPLE_… or _SAMPLE_KEY_N for a word that is none. */
enum sample_key sample_find_key(const char *word);
const char *sample_key_name(enum sample_key key);

/*
 * Asks vgpud.
 *
 * @vm:	only this machine, NULL: all
 *
 * Return: CTL_OK or the status of a failure, which is printed; then the sample is empty.
 */
enum ctl_status sample_take(struct sample *sample, struct client *client, const char *vm);
void sample_deinit(struct sample *sample);

/* Adds a part of a machine's reply. Return: CTL_OK, or CTL_FAILED without memory. */
enum ctl_status sample_add(struct sample *sample, const VgpuCtl__Details *details);

/* Sets the rates of sessions that are in both, and of machines the sums. Sessions that
 * are new have worked since the time of the earlier sample at most. */
void sample_compare(struct sample *sample, const struct sample *before);

void sample_sort(struct sample *sample, enum sample_key key);
