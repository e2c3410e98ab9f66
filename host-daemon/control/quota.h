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
 * configuration changes applies to running sessions at once. So is which slots belong to
 * sessions that end, whose memory is free soon: a worker that would have to refuse waits
 * for them (worker/memory/device-memory.c). A worker whose guest is to be told of a lower
 * limit sleeps on n_lowered (worker/memory/notice.h).
 *
 * Workers map the whole page, and a compromised one may write anything anywhere in it. So
 * the numbers are used only for decisions about device memory of the same VM, and for
 * notices to its processes.
 *
 * Behind the page the file has sums of the sessions that have ended, for which no worker
 * has a file any more; workers can write there, too. The file of an earlier build ends
 * with the page.
 */

#include <stdbool.h>
#include <stdint.h>

#include "control/call-times.h"

#define QUOTA_SLOTS 8050u
#define QUOTA_SLOT_WORDS ((QUOTA_SLOTS + 63) / 64)

/* Limits of each process of the VM that apply to running ones; 0: as at its start. */
enum quota_limit {
	QUOTA_IMAGE_MEMORY,   /* bytes of loaded code */
	QUOTA_HANDLES,	      /* objects */
	QUOTA_LAUNCH_TIMEOUT, /* milliseconds of a launch on softgpu, plus 1 */
	QUOTA_COPY_BANDWIDTH, /* bytes a second of all processes, 0: no limit */
	QUOTA_THREADS,	      /* guest threads that call */
	_QUOTA_LIMIT_N,
};
#define QUOTA_LIMITS_MAX 8u

struct quota_limits {
	uint64_t values[_QUOTA_LIMIT_N];
};

struct quota_page {
	uint64_t limit;	  /* bytes of all slots together, 0: no limit */
	uint64_t n_slots; /* the highest slot assigned so far */
	uint64_t shared;  /* bytes of no worker: those that shared them are gone */
	uint64_t used[QUOTA_SLOTS]; /* bytes; of slot n at n - 1 */
	/* From here on, where a worker of an earlier build has slots that are never
	 * assigned, and vgpud of one has left zeros. */
	uint64_t ending[QUOTA_SLOT_WORDS]; /* bits: of slot n at n - 1 */
	uint32_t n_ended; /* how often one has ended, or will not end soon */
	uint32_t reserved2;
	uint64_t limits[QUOTA_LIMITS_MAX]; /* by enum quota_limit */
	uint64_t n_changes;    /* of these, twice as many; odd while they are written */
	uint64_t copied_until; /* ns: the monotonic time that copies so far take */
	uint64_t counted;      /* the limit that n_lowered takes into account */
	uint32_t n_lowered;    /* how often the limit became lower */
	uint32_t reserved;
};

/* A page that vgpud has for sums. */
#define QUOTA_TOTALS_OFF sizeof(struct quota_page)
#define QUOTA_TIMES_OFF (QUOTA_TOTALS_OFF + 4096)
#define QUOTA_FILE_SIZE (QUOTA_TIMES_OFF + sizeof(struct vm_times))

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

/* For the broker, whenever it writes the limit. */
void quota_set_limits(struct quota_page *page, const struct quota_limits *limits);
/* For workers: whether limits changed since n_changes had that value, and which they are.
 */
static inline bool quota_limits_changed(const struct quota_page *page, uint64_t n_changes)
{
	return __atomic_load_n(&page->n_changes, __ATOMIC_ACQUIRE) != n_changes;
}
uint64_t quota_read_limits(const struct quota_page *page, struct quota_limits *limits);

/*
 * Charges a copy to the VM's bandwidth: a bucket of QUOTA_COPY_BURST_NS that all workers
 * share.
 *
 * @now:	ns of the monotonic clock
 *
 * Return: ns to wait before the copy.
 */
#define QUOTA_COPY_BURST_NS 50000000u
uint64_t quota_charge_copy(
	struct quota_page *page, uint64_t now, uint64_t size, uint64_t bandwidth);

/* For workers: sleeps until the limit was lowered since n_lowered had that value, for at
 * most that time. */
uint32_t quota_n_lowered(const struct quota_page *page);
void quota_nap(struct quota_page *page, uint32_t n_lowered, uint32_t ms);

/* For the broker, like the limit: memory whose first owner is gone, see share-table.h. */
void quota_set_shared(struct quota_page *page, uint64_t size);

/* For the broker: clears a slot, before it is assigned and after it was released. */
void quota_open(struct quota_page *page, uint32_t slot);
void quota_clear(struct quota_page *page, uint32_t slot);
bool quota_is_clear(const struct quota_page *page, uint32_t slot);

/* For the broker: notes whether the session of a slot ends, which workers wait for. */
void quota_set_ending(struct quota_page *page, uint32_t slot, bool is_ending);

/* For workers: the memory of slots that end, saturated at UINT64_MAX; and sleeps until
 * one has ended since n_ended had that value, for at most that time. */
uint64_t quota_of_ending(const struct quota_page *page, uint32_t slot);
uint32_t quota_n_ended(const struct quota_page *page);
void quota_nap_ended(struct quota_page *page, uint32_t n_ended, uint32_t ms);

/* For the worker of that slot. */
void quota_set(struct quota_page *page, uint32_t slot, uint64_t used);

/* The sum of all slots except that one, and of shared memory, saturated at UINT64_MAX. */
uint64_t quota_of_others(const struct quota_page *page, uint32_t slot);
