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

static_assert(sizeof(struct quota_page) == 65536, "whole pages");

int quota_make(int *fdp)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;

	fd = memfd_create("vgpu-quota", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, sizeof(struct quota_page)) < 0 ||
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
