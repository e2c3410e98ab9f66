/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Quota: the device memory that the guest processes of one VM hold together
 *
 * A page of counters with a slot for each worker of a [vm NAME]: the keeper creates it,
 * the broker assigns slots, and a worker writes its own total into its slot and adds up
 * all of them. A worker that allocates memory counts it first and reads the other slots
 * then, so of two that race for the last piece at least one sees the other. The broker
 * empties a slot after its worker was reaped, however the worker ended.
 *
 * The limit is in the page, too: the broker writes it, so a limit that a reload of the
 * configuration changes applies to running sessions at once.
 *
 * Workers map the whole page, and one that was taken over may write anything anywhere in
 * it. So the numbers serve one purpose only: to decide on device memory of that same VM.
 */

#include <stdint.h>

#define QUOTA_SLOTS 8190u

struct quota_page {
	uint64_t limit;		    /* bytes of all slots together, 0: no limit */
	uint64_t n_slots;	    /* that were given out so far: 1 to that number */
	uint64_t used[QUOTA_SLOTS]; /* bytes; of slot n at n - 1 */
};

/* Creates a memfd with a sealed size. Returns: 0 or -errno. */
int quota_make(int *fdp);

/* Return: 0 or -errno. */
int quota_map(struct quota_page **pagep, int fd);
struct quota_page *quota_unmap(struct quota_page *page);

/* For the broker: at its start, and again whenever a worker that could have written there
 * has ended. */
void quota_set_limit(struct quota_page *page, uint64_t limit);
uint64_t quota_limit(const struct quota_page *page);

/* For the broker: empties a slot, before it is assigned and after it was released. */
void quota_open(struct quota_page *page, uint32_t slot);
void quota_clear(struct quota_page *page, uint32_t slot);

/* For the one worker that has the slot. */
void quota_set(struct quota_page *page, uint32_t slot, uint64_t used);

/* The sum of all slots but that one; UINT64_MAX where it would be more. */
uint64_t quota_of_others(const struct quota_page *page, uint32_t slot);
