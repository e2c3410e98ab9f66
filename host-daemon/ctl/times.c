/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times: how long the calls of a virtual machine took, as vgpud tells
 *
 * A compromised worker makes up counts of its machine: sums of them saturate.
 */

#include <stdlib.h>
#include <string.h>

#include "control/histogram.h"
#include "ctl/times.h"

static const char *const key_names[_TIMES_KEY_N] = {
	[TIMES_TOTAL] = "time",
	[TIMES_COUNT] = "count",
	[TIMES_P50] = "p50",
	[TIMES_P90] = "p90",
	[TIMES_P99] = "p99",
	[TIMES_MAX] = "max",
	[TIMES_NAME] = "name",
};

enum times_key times_find_key(const char *word)
{
	enum times_key key = 0;

	while (key < _TIMES_KEY_N && strcmp(word, key_names[key]) != 0)
		key++;
	return key;
}

/*
 * Taking them
 */

/* Return: false without memory. */
static bool append(void *arrayp, size_t *np, void *element)
{
	void ***place = arrayp, **array;

	array = realloc(*place, (*np + 1) * sizeof(*array));
	if (!array)
		return false;
	array[(*np)++] = element;
	*place = array;
	return true;
}

enum ctl_status times_add(struct times *times, VgpuCtl__Reply *reply)
{
	if (!append(&times->replies, &times->n_replies, reply)) {
		ctl_reply_freep(&reply);
		return ctl_fail(CTL_FAILED, "there is no memory");
	}
	times->n_sessions = reply->stats->n_sessions;
	for (size_t i = 0; i < reply->stats->n_calls; i++)
		if (!append(&times->calls, &times->n_calls, reply->stats->calls[i]))
			return ctl_fail(CTL_FAILED, "there is no memory");
	return CTL_OK;
}

static enum ctl_status ask(
	struct client *client, VgpuCtl__Stats *stats, VgpuCtl__Reply **replyp)
{
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	enum ctl_status status;

	request.verb_case = VGPU_CTL__REQUEST__VERB_STATS;
	request.stats = stats;
	status = client_ask(client, &request, replyp);
	if (status || (*replyp)->result_case == VGPU_CTL__REPLY__RESULT_STATS)
		return status;
	ctl_reply_freep(replyp);
	*replyp = NULL;
	return ctl_fail(CTL_FAILED, "vgpud's reply has no times of calls");
}

enum ctl_status times_take(
	struct times *times, struct client *client, const char *vm, uint32_t pid)
{
	VgpuCtl__Stats stats = VGPU_CTL__STATS__INIT;
	enum ctl_status status = CTL_OK;
	bool more = true;

	*times = (struct times){ 0 };
	if (!(client->hello->features & CTL_FEATURE_STATS))
		return ctl_fail(CTL_FAILED, "this vgpud, %s, has no times of calls",
			client->hello->release);
	stats.vm = (char *)vm;
	stats.pid = pid;
	while (!status && more) {
		VgpuCtl__Reply *reply;

		status = ask(client, &stats, &reply);
		if (status)
			break;
		/* Numbers grow, so that it ends. */
		more = reply->stats->more && reply->stats->next > stats.after;
		if (more)
			stats.after = reply->stats->next;
		status = times_add(times, reply);
	}
	if (status)
		times_deinit(times);
	return status;
}

void times_deinit(struct times *times)
{
	for (size_t i = 0; i < times->n_replies; i++)
		ctl_reply_freep(&times->replies[i]);
	free(times->replies);
	free(times->calls);
	*times = (struct times){ 0 };
}

/*
 * Reading them
 */

static struct histogram_list list_of(const VgpuCtl__CallTimes *call)
{
	return (struct histogram_list){
		.highest = call->bounds,
		.counts = call->counts,
		.n = call->n_bounds,
		.max_ns = call->max_ns,
	};
}

uint64_t times_count(const VgpuCtl__CallTimes *call)
{
	return times_count_up_to(call, UINT64_MAX);
}

uint64_t times_count_up_to(const VgpuCtl__CallTimes *call, uint64_t ns)
{
	const struct histogram_list list = list_of(call);

	return histogram_count_up_to(&list, ns);
}

uint64_t times_percentile(const VgpuCtl__CallTimes *call, uint32_t per_mille)
{
	const struct histogram_list list = list_of(call);

	return histogram_percentile(&list, per_mille);
}

/*
 * Order
 */

static uint64_t weight(const VgpuCtl__CallTimes *call, enum times_key key)
{
	switch (key) {
	case TIMES_TOTAL:
		return call->total_ns;
	case TIMES_COUNT:
		return times_count(call);
	case TIMES_P50:
		return times_percentile(call, 500);
	case TIMES_P90:
		return times_percentile(call, 900);
	case TIMES_P99:
		return times_percentile(call, 990);
	case TIMES_MAX:
		return call->max_ns;
	default:
		return 0;
	}
}

static int compare(const void *left, const void *right, void *keyp)
{
	const enum times_key key = *(const enum times_key *)keyp;
	VgpuCtl__CallTimes *const *a = left, *const *b = right;
	const uint64_t first = weight(*a, key), second = weight(*b, key);

	if (first != second)
		return first < second ? 1 : -1;
	return strcmp((*a)->name, (*b)->name);
}

void times_sort(struct times *times, enum times_key key)
{
	if (times->n_calls)
		qsort_r(times->calls, times->n_calls, sizeof(*times->calls), compare,
			&key);
}
