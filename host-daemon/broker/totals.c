/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Totals: what all sessions of a [vm NAME] did since vgpud has it
 *
 * Neither file is mapped: others can write both. A quota file of an earlier build has no
 * room for totals, which are then those of the sessions that run.
 */

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "arbiter/arbiter.h"
#include "broker/session-line.h"
#include "broker/state.h"
#include "broker/totals.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "control/quota.h"
#include "vgpu/error.h"
#include "vgpu/log.h"

#define N_COUNTERS (sizeof(struct worker_stats) / sizeof(uint64_t))

static_assert(
	sizeof(struct totals) <= QUOTA_TIMES_OFF - QUOTA_TOTALS_OFF, "they have room");
static_assert(_VGPU_REASON_N <= TOTALS_REASONS_MAX, "each reason has a place");

/* Return: false if there is no place for totals; they are zero then. */
static bool read_totals(const struct account *account, struct totals *totals)
{
	const bool has_room = pread(account->quota_fd, totals, sizeof(*totals),
				      QUOTA_TOTALS_OFF) == (ssize_t)sizeof(*totals);

	if (!has_room || totals->version != TOTALS_VERSION)
		*totals = (struct totals){ .version = TOTALS_VERSION };
	return has_room;
}

static void write_totals(const struct account *account, const struct totals *totals)
{
	if (pwrite(account->quota_fd, totals, sizeof(*totals), QUOTA_TOTALS_OFF) !=
		(ssize_t)sizeof(*totals))
		vgpu_error_origin(-EIO);
}

static void add(uint64_t *sump, uint64_t n)
{
	*sump = *sump + n < n ? UINT64_MAX : *sump + n;
}

/* Counters are numbers of 64 bits, in the order of struct worker_stats. */
static void add_stats(struct worker_stats *sums, const struct worker_stats *stats)
{
	uint64_t a[N_COUNTERS], b[N_COUNTERS];

	memcpy(a, sums, sizeof(a));
	memcpy(b, stats, sizeof(b));
	for (size_t i = 0; i < N_COUNTERS; i++)
		add(&a[i], b[i]);
	memcpy(sums, a, sizeof(a));
	sums->device_memory = 0;
}

static void add_worker(struct totals *totals, const struct worker *worker)
{
	struct worker_stats stats;
	struct arbiter_use use = {};

	session_line_read_stats(worker->stats, &stats);
	add_stats(&totals->stats, &stats);
	add(&totals->faults, worker->use.n_faults);
	if (worker->share)
		arbiter_read_worker(worker->share, &use);
	add(&totals->device_ns, use.used_ns);
	add(&totals->held_ns, use.held_ns);
}

void totals_note_open(const struct account *account)
{
	struct totals totals;

	if (!read_totals(account, &totals))
		return;
	add(&totals.sessions, 1);
	write_totals(account, &totals);
}

void totals_note_refusal(const struct account *account, uint32_t reason)
{
	struct totals totals;

	if (!read_totals(account, &totals) || reason >= TOTALS_REASONS_MAX)
		return;
	add(&totals.refused[reason], 1);
	write_totals(account, &totals);
}

void totals_note_end(
	const struct account *account, const struct worker *worker, uint32_t reason)
{
	struct totals totals;
	int r;

	if (!read_totals(account, &totals) || reason >= TOTALS_REASONS_MAX)
		return;
	add(&totals.ended[reason], 1);
	add_worker(&totals, worker);
	write_totals(account, &totals);
	r = vm_times_take(
		account->quota_fd, QUOTA_TIMES_OFF, worker->stats, WORKER_TIMES_OFF);
	if (r)
		vgpu_log_debug("vm=%s: the call times of a session are lost: %s",
			account->config->name, strerror(-r));
}

bool totals_take_oom_kill(const struct account *account, uint64_t n_kills)
{
	struct totals totals;

	if (!read_totals(account, &totals))
		return false;
	/* Of a group that is gone, or nonsense of a worker. */
	if (totals.oom_kills_counted > n_kills)
		totals.oom_kills_counted = 0;
	if (totals.oom_kills_counted == n_kills)
		return false;
	totals.oom_kills_counted++;
	add(&totals.oom_kills, 1);
	write_totals(account, &totals);
	return true;
}

void totals_forget_group(const struct account *account)
{
	struct totals totals;

	if (!read_totals(account, &totals) || !totals.oom_kills_counted)
		return;
	totals.oom_kills_counted = 0;
	write_totals(account, &totals);
}

struct totals totals_of(const struct broker *broker, const struct account *account)
{
	const struct worker *worker;
	struct totals totals;

	read_totals(account, &totals);
	TAILQ_FOREACH(worker, &broker->pool.workers, entry)
		if (worker->channel && worker->channel->vm->account == account)
			add_worker(&totals, worker);
	return totals;
}
