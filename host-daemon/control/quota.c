/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quota: the device memory that all guest processes of one VM use
 */

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/quota.h"
#include "vgpu/checked.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/wake.h"

/* Of one copy, and what another worker can make one wait. */
#define QUOTA_COPY_WAIT_NS 60000000000u

static_assert(_QUOTA_LIMIT_N <= QUOTA_LIMITS_MAX, "they have room");
static_assert(sizeof(struct quota_page) == 65536, "whole pages");

int quota_make(int *fdp)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;

	fd = memfd_create("vgpu-quota", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, QUOTA_FILE_SIZE) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return vgpu_error_origin(-errno);
	*fdp = fd;
	fd = -1;
	return 0;
}

int quota_map(struct quota_page **pagep, int fd)
{
	void *page = mmap(NULL, sizeof(struct quota_page), PROT_READ | PROT_WRITE,
		MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return vgpu_error_origin(-errno);
	*pagep = page;
	return 0;
}

struct quota_page *quota_unmap(struct quota_page *page)
{
	if (page)
		munmap(page, sizeof(*page));
	return NULL;
}

/* Limits in their order: 0 is none. */
static bool is_lower(uint64_t limit, uint64_t other)
{
	return limit && (!other || limit < other);
}

void quota_set_limit(struct quota_page *page, uint64_t limit)
{
	const uint64_t before = __atomic_load_n(&page->counted, __ATOMIC_RELAXED);

	/* Partner: quota_limit(). seq_cst: a worker that adds up the slots after it has
	 * seen this limit misses no memory that was charged by the previous one. */
	__atomic_store_n(&page->limit, limit, __ATOMIC_SEQ_CST);
	if (limit == before)
		return;
	/* After the limit, which whoever sees the number sees, too. Before it is noted,
	 * so that the next broker counts it if this one dies. */
	if (is_lower(limit, before)) {
		__atomic_fetch_add(&page->n_lowered, 1, __ATOMIC_SEQ_CST);
		vgpu_wake_shared_word(&page->n_lowered, INT_MAX);
	}
	__atomic_store_n(&page->counted, limit, __ATOMIC_RELEASE);
}

uint64_t quota_limit(const struct quota_page *page)
{
	return __atomic_load_n(&page->limit, __ATOMIC_SEQ_CST);
}

void quota_set_limits(struct quota_page *page, const struct quota_limits *limits)
{
	/* Odd: a broker has died while it wrote; 0: none has written yet. */
	const uint64_t n = __atomic_load_n(&page->n_changes, __ATOMIC_RELAXED);
	bool is_other = !n || n & 1;

	for (size_t i = 0; i < _QUOTA_LIMIT_N; i++)
		is_other |= __atomic_load_n(&page->limits[i], __ATOMIC_RELAXED) !=
			    limits->values[i];
	if (!is_other)
		return;
	/* Partner: quota_limits_changed(). A worker that reads between these two numbers
	 * reads again after the second one, whichever broker writes it. */
	__atomic_store_n(&page->n_changes, n | 1, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < _QUOTA_LIMIT_N; i++)
		__atomic_store_n(&page->limits[i], limits->values[i], __ATOMIC_RELAXED);
	__atomic_store_n(&page->n_changes, (n | 1) + 1, __ATOMIC_RELEASE);
}

uint64_t quota_read_limits(const struct quota_page *page, struct quota_limits *limits)
{
	const uint64_t n = __atomic_load_n(&page->n_changes, __ATOMIC_ACQUIRE);

	for (size_t i = 0; i < _QUOTA_LIMIT_N; i++)
		limits->values[i] = __atomic_load_n(&page->limits[i], __ATOMIC_RELAXED);
	return n;
}

uint64_t quota_charge_copy(
	struct quota_page *page, uint64_t now, uint64_t size, uint64_t bandwidth)
{
	/* In parts: the product of both may be too large. */
	const uint64_t seconds = size / bandwidth;
	const uint64_t rest =
		(uint64_t)((double)(size % bandwidth) * 1e9 / (double)bandwidth);
	const uint64_t most = QUOTA_COPY_WAIT_NS;
	uint64_t until = __atomic_load_n(&page->copied_until, __ATOMIC_RELAXED), from;
	uint64_t cost =
		seconds < most / 1000000000u ? seconds * 1000000000u + rest : most;

	do {
		/* Another worker of the VM may write anything here. */
		from = until < now - QUOTA_COPY_BURST_NS || until > now + most
			       ? now - QUOTA_COPY_BURST_NS
			       : until;
	} while (!__atomic_compare_exchange_n(&page->copied_until, &until, from + cost,
		false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return from > now ? from - now : 0;
}

uint32_t quota_n_lowered(const struct quota_page *page)
{
	/* Partner: the addition in quota_set_limit(). */
	return __atomic_load_n(&page->n_lowered, __ATOMIC_SEQ_CST);
}

void quota_nap(struct quota_page *page, uint32_t n_lowered, uint32_t ms)
{
	vgpu_nap_shared_word(&page->n_lowered, n_lowered, ms);
}

void quota_set_shared(struct quota_page *page, uint64_t size)
{
	__atomic_store_n(&page->shared, size, __ATOMIC_SEQ_CST);
}

void quota_clear(struct quota_page *page, uint32_t slot)
{
	assert(slot && slot <= QUOTA_SLOTS);
	__atomic_store_n(&page->used[slot - 1], 0, __ATOMIC_SEQ_CST);
	quota_set_ending(page, slot, false);
}

void quota_set_ending(struct quota_page *page, uint32_t slot, bool is_ending)
{
	uint64_t *word = &page->ending[(slot - 1) / 64];
	const uint64_t bit = UINT64_C(1) << (slot - 1) % 64;

	assert(slot && slot <= QUOTA_SLOTS);
	if (is_ending) {
		__atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
		return;
	}
	if (!(__atomic_load_n(word, __ATOMIC_SEQ_CST) & bit))
		return;
	/* Partner: quota_n_ended(), which a worker reads before it adds up the slots. It
	 * is counted first: who does not find the bit any more finds another number. */
	__atomic_fetch_add(&page->n_ended, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_and(word, ~bit, __ATOMIC_SEQ_CST);
	vgpu_wake_shared_word(&page->n_ended, INT_MAX);
}

uint64_t quota_of_ending(const struct quota_page *page, uint32_t slot)
{
	uint64_t sum = 0, word;

	for (uint32_t i = 0; i < QUOTA_SLOT_WORDS; i++) {
		word = __atomic_load_n(&page->ending[i], __ATOMIC_SEQ_CST);
		for (; word; word &= word - 1) {
			const uint32_t k = 64 * i + (uint32_t)__builtin_ctzll(word);

			/* Another worker may write any bits. */
			if (k < QUOTA_SLOTS && k + 1 != slot &&
				!vgpu_add_u64(sum,
					__atomic_load_n(&page->used[k], __ATOMIC_SEQ_CST),
					&sum))
				return UINT64_MAX;
		}
	}
	return sum;
}

uint32_t quota_n_ended(const struct quota_page *page)
{
	/* Partner: the addition in quota_set_ending(). */
	return __atomic_load_n(&page->n_ended, __ATOMIC_SEQ_CST);
}

void quota_nap_ended(struct quota_page *page, uint32_t n_ended, uint32_t ms)
{
	vgpu_nap_shared_word(&page->n_ended, n_ended, ms);
}

bool quota_is_clear(const struct quota_page *page, uint32_t slot)
{
	const uint64_t bits =
		__atomic_load_n(&page->ending[(slot - 1) / 64], __ATOMIC_RELAXED);

	return !__atomic_load_n(&page->used[slot - 1], __ATOMIC_RELAXED) &&
	       !(bits >> (slot - 1) % 64 & 1);
}

void quota_open(struct quota_page *page, uint32_t slot)
{
	quota_clear(page, slot);
	/* Partner: quota_of_others(). */
	if (__atomic_load_n(&page->n_slots, __ATOMIC_RELAXED) < slot)
		__atomic_store_n(&page->n_slots, slot, __ATOMIC_SEQ_CST);
}

void quota_set(struct quota_page *page, uint32_t slot, uint64_t used)
{
	assert(slot && slot <= QUOTA_SLOTS);
	/* Partner: quota_of_others() of another worker. seq_cst orders this store before
	 * the loads in quota_of_others() of this worker. */
	__atomic_store_n(&page->used[slot - 1], used, __ATOMIC_SEQ_CST);
}

uint64_t quota_of_others(const struct quota_page *page, uint32_t slot)
{
	uint64_t n = __atomic_load_n(&page->n_slots, __ATOMIC_SEQ_CST);
	uint64_t sum = __atomic_load_n(&page->shared, __ATOMIC_SEQ_CST);

	for (uint64_t i = 0; i < n && i < QUOTA_SLOTS; i++)
		if (i + 1 != slot &&
			!vgpu_add_u64(sum,
				__atomic_load_n(&page->used[i], __ATOMIC_SEQ_CST), &sum))
			return UINT64_MAX;
	return sum;
}
