/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Times: how long the calls of a virtual machine took, as vgpud tells
 */

#include <stddef.h>
#include <stdint.h>

#include "ctl/client.h"

/* What times_sort() sorts by, the largest first; names in their own order. */
enum times_key {
	TIMES_TOTAL,
	TIMES_COUNT,
	TIMES_P50,
	TIMES_P90,
	TIMES_P99,
	TIMES_MAX,
	TIMES_NAME,
	_TIMES_KEY_N,
};

struct times {
	VgpuCtl__CallTimes **calls; /* of the replies */
	size_t n_calls;
	uint32_t n_sessions;	  /* that run, of those asked for */
	VgpuCtl__Reply **replies; /* owned */
	size_t n_replies;
};

/* Return: TIMES_… or _TIMES_KEY_N for a word that is none. */
enum times_key times_find_key(const char *word);

/*
 * Asks vgpud.
 *
 * @pid:	of the guest process, 0: all
 *
 * Return: CTL_OK or the status of a failure, which is printed; then it is empty.
 */
enum ctl_status times_take(
	struct times *times, struct client *client, const char *vm, uint32_t pid);
void times_deinit(struct times *times);

/* Adds the calls of a reply, and owns it in any case. Return: CTL_OK, or CTL_FAILED
 * without memory. */
enum ctl_status times_add(struct times *times, VgpuCtl__Reply *reply);

void times_sort(struct times *times, enum times_key key);

/* How many of these calls there were, those that took at most so long, and how long at
 * least so many in a thousand took at most. */
uint64_t times_count(const VgpuCtl__CallTimes *call);
uint64_t times_count_up_to(const VgpuCtl__CallTimes *call, uint64_t ns);
uint64_t times_percentile(const VgpuCtl__CallTimes *call, uint32_t per_mille);
