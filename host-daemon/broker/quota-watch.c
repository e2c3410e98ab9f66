/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quota watch: the device memory of workers, as the host sees it
 */

#include <sys/stat.h>

#include "broker/channel.h"
#include "broker/host-memory.h"
#include "broker/quota-watch.h"
#include "broker/state.h"
#include "broker/use.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "control/quota.h"
#include "vgpu/checked.h"
#include "vgpu/log.h"
#include "vgpud/clock.h"

#define QUOTA_WATCH_MS 500
/* A worker's memory may be counted a moment before what it says of it. */
#define QUOTA_WATCH_TIMES 2

uint64_t quota_watch_ceiling(uint64_t before, uint64_t limit, uint64_t claimed)
{
	uint64_t ceiling = claimed < before ? claimed : before;

	if (!limit)
		return UINT64_MAX;
	return ceiling > limit ? ceiling : limit;
}

uint64_t quota_watch_in_file(uint64_t in_use, uint64_t file_size)
{
	/* What is around the memory may all be in use. */
	const uint64_t other =
		file_size > WORKER_MEMORY_SIZE ? file_size - WORKER_MEMORY_SIZE : 0;

	return in_use > other ? in_use - other : 0;
}

/* What is seen of a worker, which has one of the two. Return: the bytes that it may have
 * beyond its VM's limit. */
static uint64_t look_at(const struct broker *broker, struct worker *worker)
{
	const uint64_t on_card = use_memory_seen(broker, worker);
	struct stat st;

	worker->memory_seen = on_card;
	if (!on_card && !fstat(worker->stats, &st))
		worker->memory_seen = quota_watch_in_file(
			(uint64_t)st.st_blocks * S_BLKSIZE, (uint64_t)st.st_size);
	return on_card ? QUOTA_WATCH_DRIVER_SLACK : QUOTA_WATCH_SLACK;
}

static uint64_t claimed_by(const struct worker *worker)
{
	const struct quota_page *page = worker->channel->vm->account->quota;
	const uint32_t slot = worker->channel->record->quota_slot;

	return slot && page ? __atomic_load_n(&page->used[slot - 1], __ATOMIC_RELAXED)
			    : 0;
}

static bool is_of(const struct worker *worker, const struct account *account)
{
	return worker->channel && worker->channel->vm->account == account &&
	       !worker->is_condemned && !worker->hung_up;
}

static uint64_t excess_of(const struct worker *worker)
{
	const uint64_t claimed = claimed_by(worker);

	return worker->memory_seen > claimed ? worker->memory_seen - claimed : 0;
}

static void end_liar(
	struct broker *broker, struct account *account, uint64_t seen, uint64_t ceiling)
{
	struct worker *worker, *liar = NULL;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry)
		if (is_of(worker, account) &&
			(!liar || excess_of(worker) > excess_of(liar)))
			liar = worker;
	if (!liar)
		return;
	if (account_take_log_line(account))
		vgpu_log_warning(
			"vm=%s: its workers have %llu MiB of device memory, and may have "
			"%llu MiB: worker %d, which has %llu MiB and says %llu MiB, is "
			"ended",
			account->config->name, (unsigned long long)seen >> 20,
			(unsigned long long)ceiling >> 20, (int)liar->pid,
			(unsigned long long)liar->memory_seen >> 20,
			(unsigned long long)claimed_by(liar) >> 20);
	host_memory_condemn(liar, VGPU_REASON_HOST);
}

static void add(uint64_t *sump, uint64_t size)
{
	if (!vgpu_add_u64(*sump, size, sump))
		*sump = UINT64_MAX;
}

static void check(struct broker *broker, struct account *account)
{
	const uint64_t limit = account->config->device_memory;
	uint64_t seen = 0, most, ceiling;
	struct worker *worker;

	if (!account->quota)
		return;
	/* The broker of a lower limit begins with what its workers say. */
	if (!account->memory_ceiling)
		account->memory_ceiling = UINT64_MAX;
	ceiling = quota_watch_ceiling(
		account->memory_ceiling, limit, quota_of_others(account->quota, 0));
	account->memory_ceiling = most = ceiling;
	TAILQ_FOREACH(worker, &broker->pool.workers, entry) {
		if (!is_of(worker, account))
			continue;
		add(&most, look_at(broker, worker));
		add(&seen, worker->memory_seen);
	}
	account->n_over_quota = seen > most ? account->n_over_quota + 1 : 0;
	if (account->n_over_quota < QUOTA_WATCH_TIMES)
		return;
	account->n_over_quota = 0;
	end_liar(broker, account, seen, ceiling);
}

bool quota_watch_check(struct broker *broker)
{
	if (clock_now() < broker->quotas_checked + QUOTA_WATCH_MS)
		return false;
	broker->quotas_checked = clock_now();
	for (unsigned int i = 0; i < broker->config->n_vms; i++)
		check(broker, &broker->accounts[i]);
	return true;
}
