/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Quota: what the guest processes of one VM hold of its device memory, together
 *
 * A page of counters, one slot for each worker of a [vm NAME]: the keeper makes it, the
 * broker gives out slots, and a worker writes what it holds into its own and adds up all
 * of them. A worker that asks for memory counts it first and looks at the others then, so
 * of two that ask for the last piece at the same time one at least sees the other. What
 * was counted goes with its worker, however that ends: the broker empties the slot.
 *
 * The limit is in the page, too: the broker writes it, and a limit that a reload of the
 * configuration changes counts for the sessions that run as for those that begin.
 *
 * Workers hold the whole page, and one that was taken over may write anything anywhere in
 * it. So the numbers are good for one thing, which is to decide on device memory of that
 * same VM.
 */

#include <stdint.h>

#define QUOTA_SLOTS 8190u

struct quota_page {
	uint64_t limit;		    /* bytes of all slots together, 0: no limit of ours */
	uint64_t n_slots;	    /* that were given out so far: 1 to that number */
	uint64_t used[QUOTA_SLOTS]; /* bytes; of slot n at n - 1 */
};

/* Makes a memfd whose size nobody can change. Returns: 0 or -errno. */
int quota_make(int *fdp);

/* Return: 0 or -errno. */
int quota_map(struct quota_page **pagep, int fd);
struct quota_page *quota_unmap(struct quota_page *page);

/* For the broker: at its start, and again whenever a worker that could have written there
 * has ended. */
void quota_set_limit(struct quota_page *page, uint64_t limit);
uint64_t quota_limit(const struct quota_page *page);

/* For the broker: empties a slot, before it is given out and after it was given back. */
void quota_open(struct quota_page *page, uint32_t slot);
void quota_clear(struct quota_page *page, uint32_t slot);

/* For the one worker that has the slot. */
void quota_set(struct quota_page *page, uint32_t slot, uint64_t used);

/* The sum of all slots but that one; UINT64_MAX where it would be more. */
uint64_t quota_of_others(const struct quota_page *page, uint32_t slot);
