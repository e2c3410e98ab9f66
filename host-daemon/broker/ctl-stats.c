/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ctl stats: the verb that tells how long calls took
 *
 * Each request adds up the histograms of all sessions again, so nothing is kept between
 * them. A worker that is compromised can fill its files, so a request reads some calls of
 * all sessions, and more only while that costs little: the client asks again for the
 * rest. An honest machine with some ten sessions takes one request.
 */

#include <stdlib.h>
#include <string.h>

#include "broker/ctl-stats.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "control/call-times.h"
#include "control/control.h"
#include "control/ctl-message.h"
#include "control/quota.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/g-calls.h"

/* Of a reply, without its calls. */
#define REPLY_ROOM 1024u
/* Calls that are read at once, and steps (call-times.h) after which no more are: 1 ms. */
#define WINDOW 32u
#define STEPS_MAX 2048u

static void fail(VgpuCtl__Reply *reply, VgpuCtl__Status status, const char *reason)
{
	ctl_stats_free(reply);
	reply->result_case = VGPU_CTL__REPLY__RESULT__NOT_SET;
	reply->status = status;
	reply->reason = (char *)reason;
}

static bool is_wanted(const struct worker *worker, const struct account *account,
	const VgpuCtl__Stats *request)
{
	return worker->channel && worker->channel->vm->account == account &&
	       (!request->pid || worker->channel->record->pid == request->pid);
}

static uint32_t count_sessions(const struct broker *broker, const struct account *account,
	const VgpuCtl__Stats *request)
{
	const struct worker *worker;
	uint32_t n = 0;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry)
		n += is_wanted(worker, account, request);
	return n;
}

/* Adds up WINDOW calls of what is asked for. Return: 0 or -errno. */
static int collect(const struct broker *broker, const struct account *account,
	const VgpuCtl__Stats *request, struct histogram *calls, uint32_t first,
	uint64_t *n_stepsp)
{
	const struct worker *worker;
	int r = 0;

	if (!request->pid)
		r = vm_times_add(calls, account->quota_fd, QUOTA_TIMES_OFF, first, WINDOW,
			n_stepsp);
	TAILQ_FOREACH(worker, &broker->pool.workers, entry)
		if (!r && is_wanted(worker, account, request))
			r = call_times_add(calls, worker->stats, WORKER_TIMES_OFF, first,
				WINDOW, n_stepsp);
	return r ? vgpu_error_trace(r) : 0;
}

static uint32_t count_buckets(const struct histogram *histogram)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		n += histogram->counts[i] != 0;
	return n;
}

static void call_free(VgpuCtl__CallTimes *call)
{
	free(call->bounds);
	free(call->counts);
	free(call);
}

/* Return: the message, or NULL without memory. */
static VgpuCtl__CallTimes *call_new(uint32_t number, const struct histogram *histogram)
{
	const uint32_t n_most = count_buckets(histogram);
	VgpuCtl__CallTimes *call = calloc(1, sizeof(*call));
	uint32_t n = 0;

	if (!call)
		return NULL;
	vgpu_ctl__call_times__init(call);
	call->number = number;
	call->name = (char *)vgpu_call_name(number);
	call->total_ns = histogram->total_ns;
	call->max_ns = histogram->max_ns;
	call->bounds = calloc(n_most, sizeof(*call->bounds));
	call->counts = calloc(n_most, sizeof(*call->counts));
	if (!call->bounds || !call->counts) {
		call_free(call);
		return NULL;
	}
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!histogram->counts[i])
			continue;
		call->bounds[n] = histogram_highest(i);
		call->counts[n++] = histogram->counts[i];
	}
	call->n_bounds = call->n_counts = n;
	return call;
}

/* Sets what the next request begins behind. */
static void stop(VgpuCtl__Times *times, uint32_t last)
{
	times->more = true;
	times->next = last;
}

/* Adds the calls of a window, until the reply is full. Return: false without memory. */
static bool fill_calls(const struct histogram *calls, uint32_t first, size_t *usedp,
	VgpuCtl__Times *times)
{
	for (uint32_t i = first; i < first + WINDOW && i < CALL_TIMES_MAX; i++) {
		VgpuCtl__CallTimes *call;

		if (!histogram_count(&calls[i]))
			continue;
		call = call_new(i, &calls[i]);
		if (!call)
			return false;
		*usedp += vgpu_ctl__call_times__get_packed_size(call) + 8;
		if (times->n_calls == CTL_CALLS_MAX || *usedp > CTL_REPLY_MAX) {
			call_free(call);
			stop(times, i - 1);
			return true;
		}
		times->calls[times->n_calls++] = call;
	}
	return true;
}

/* Numbers above those of calls are not looked at: no honest worker has any there. Return:
 * false without memory, or if a file cannot be read. */
static bool fill(const struct broker *broker, const struct account *account,
	const VgpuCtl__Stats *request, struct histogram *calls, VgpuCtl__Times *times)
{
	uint64_t n_steps = 0;
	size_t used = REPLY_ROOM;

	for (uint32_t first = request->after + 1; first < _VGPU_CALL_N && !times->more;
		first += WINDOW) {
		if (n_steps > STEPS_MAX) {
			stop(times, first - 1);
			break;
		}
		if (collect(broker, account, request, calls, first, &n_steps) ||
			!fill_calls(calls, first, &used, times))
			return false;
	}
	return true;
}

static const struct account *find_account(const struct broker *broker, const char *name)
{
	const struct config_vm *vm;

	TAILQ_FOREACH(vm, &broker->config->vms, entry)
		if (!strcmp(vm->name, name))
			return &broker->accounts[vm->index];
	return NULL;
}

/* Return: false without memory. */
static bool make_times(VgpuCtl__Reply *reply)
{
	VgpuCtl__Times *times = calloc(1, sizeof(*times));

	if (!times)
		return false;
	vgpu_ctl__times__init(times);
	reply->stats = times;
	reply->result_case = VGPU_CTL__REPLY__RESULT_STATS;
	times->calls = calloc(CTL_CALLS_MAX, sizeof(*times->calls));
	return times->calls;
}

void ctl_stats_reply(
	struct broker *broker, const VgpuCtl__Stats *request, VgpuCtl__Reply *reply)
{
	const struct account *account = find_account(broker, request->vm);
	_vgpu_cleanup_(vgpu_freep) struct histogram *calls = NULL;

	if (!account) {
		fail(reply, VGPU_CTL__STATUS__UNKNOWN,
			"there is no such virtual machine");
		return;
	}
	calls = calloc(CALL_TIMES_MAX, sizeof(*calls));
	if (calls && make_times(reply)) {
		reply->stats->n_sessions = count_sessions(broker, account, request);
		if (fill(broker, account, request, calls, reply->stats))
			return;
	}
	fail(reply, VGPU_CTL__STATUS__FAILED,
		"vgpud cannot read the times of calls, or has no memory");
}

void ctl_stats_free(VgpuCtl__Reply *reply)
{
	if (reply->result_case != VGPU_CTL__REPLY__RESULT_STATS)
		return;
	for (size_t i = 0; i < reply->stats->n_calls; i++)
		call_free(reply->stats->calls[i]);
	free(reply->stats->calls);
	free(reply->stats);
}
