/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Quota: the device memory that all guest processes of one VM use
 *
 * A page of counters with a slot for each worker of a [vm NAME]: the keeper creates it,
 * the broker assigns slots, and a worker writes its own total into its slot and adds up
 * all of them. A worker that allocates memory charges it first and reads the other slots
 * then, so of two workers that race for the last piece at least one sees the other. The
 * broker clears a slot after its worker was reaped, however the worker ended.
 *
 * The limit is in the page, too: the broker writes it, so a limit that a reload of the
 * configuration changes applies to running sessions at once. A worker whose guest is to
 * be told of a lower limit sleeps on n_lowered (worker/memory/notice.h).
 *
 * Workers map the whole page, and a compromised one may write anything anywhere in it. So
 * the numbers are used only for decisions about device memory of the same VM, and for
 * notices to its processes.
 */

#include <stdint.h>

#define QUOTA_SLOTS 8187u

struct quota_page {
	uint64_t limit;	  /* bytes of all slots together, 0: no limit */
	uint64_t n_slots; /* the highest slot assigned so far */
	uint64_t shared;  /* bytes of no worker: those that shared them are gone */
	uint64_t used[QUOTA_SLOTS]; /* bytes; of slot n at n - 1 */
	/* Last, where a worker of an earlier build has slots that are never assigned. */
	uint64_t counted;   /* the limit that n_lowered takes into account */
	uint32_t n_lowered; /* how often the limit became lower */
	uint32_t reserved;
};

/* Creates a memfd with a sealed size. Return: 0 or -errno. */
int quota_make(int *fdp);

/* Return: 0 or -errno. */
int quota_map(struct quota_page **pagep, int fd);
struct quota_page *quota_unmap(struct quota_page *page);

/* For the broker: at its start, and whenever a worker that could have changed it has
 * exited. Wakes workers that sleep until it is lowered. One that dies meanwhile leaves it
 * to the next to count and wake, or to do it again. */
void quota_set_limit(struct quota_page *page, uint64_t limit);
uint64_t quota_limit(const struct quota_page *page);

/* For workers: sleeps until the limit was lowered since n_lowered had that value, for at
 * most that time. */
uint32_t quota_n_lowered(const struct quota_page *page);
void quota_nap(struct quota_page *page, uint32_t n_lowered, uint32_t ms);

/* For the broker, like the limit: memory whose first owner is gone, see share-table.h. */
void quota_set_shared(struct quota_page *page, uint64_t size);

/* For the broker: clears a slot, before it is assigned and after it was released. */
void quota_open(struct quota_page *page, uint32_t slot);
void quota_clear(struct quota_page *page, uint32_t slot);

/* For the worker of that slot. */
void quota_set(struct quota_page *page, uint32_t slot, uint64_t used);

/* The sum of all slots except that one, and of shared memory, saturated at UINT64_MAX. */
uint64_t quota_of_others(const struct quota_page *page, uint32_t slot);
