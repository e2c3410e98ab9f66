/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ctl trace: passes the events of a worker on to vgpuctl
 *
 * The broker keeps nothing of a trace: the request says where to go on, and the worker
 * has the time of its end. What the worker has written is copied as it is.
 */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/ctl-trace.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "control/flight-text.h"
#include "control/trace.h"

/* A trace that nobody asks for any more ends after this. */
#define TRACE_NS 3000000000u
/* Of one reply, which has names besides. */
#define EVENTS_MAX 1000u

static_assert(
	EVENTS_MAX * sizeof(struct trace_event) + TRACE_NAMES * TRACE_NAME_SIZE + 1024 <=
		CTL_REPLY_MAX,
	"they fit");

static void refuse(VgpuCtl__Reply *reply, VgpuCtl__Status status, const char *reason)
{
	reply->status = status;
	reply->reason = (char *)reason;
}

static struct worker *find(struct broker *broker, const VgpuCtl__Trace *trace)
{
	struct worker *worker = worker_find(broker, trace->session);

	return worker && worker->channel &&
			       !strcmp(worker->channel->vm->config->name, trace->vm)
		       ? worker
		       : NULL;
}

/* Return: false if the file is that of an earlier build. */
static bool wish(const struct worker *worker, bool ends)
{
	struct worker_wishes wishes = { 0 };
	struct flight_time now;
	uint64_t word;

	if (pread(worker->stats, &word, sizeof(word),
		    WORKER_TRACE_OFF + offsetof(struct trace, n_events)) !=
		(ssize_t)sizeof(word))
		return false;
	flight_time_now(&now);
	if (!ends)
		wishes.trace_until = now.ns + TRACE_NS;
	return pwrite(worker->stats, &wishes, sizeof(wishes), WORKER_WISHES_OFF) ==
	       (ssize_t)sizeof(wishes);
}

static bool read_part(const struct worker *worker, void *to, size_t size, uint64_t offset)
{
	return pread(worker->stats, to, size, (off_t)(WORKER_TRACE_OFF + offset)) ==
	       (ssize_t)size;
}

/* Reads events from `first` on, at most up to the end of the ring. */
static bool fill_events(const struct worker *worker, VgpuCtl__Events *events)
{
	const uint64_t place = (events->first - 1) % TRACE_EVENTS;
	uint64_t n = events->last + 1 - events->first;

	if (n > EVENTS_MAX)
		n = EVENTS_MAX;
	if (n > TRACE_EVENTS - place)
		n = TRACE_EVENTS - place;
	events->events.len = n * sizeof(struct trace_event);
	events->events.data = n ? malloc(events->events.len) : NULL;
	return !n || (events->events.data &&
			     read_part(worker, events->events.data, events->events.len,
				     offsetof(struct trace, events) +
					     place * sizeof(struct trace_event)));
}

static bool fill_names(const struct worker *worker, VgpuCtl__Events *events)
{
	events->names.len = TRACE_NAMES * TRACE_NAME_SIZE;
	events->names.data = malloc(events->names.len);
	return events->names.data &&
	       read_part(worker, events->names.data, events->names.len,
		       offsetof(struct trace, names));
}

static bool fill(
	const struct worker *worker, const VgpuCtl__Trace *trace, VgpuCtl__Events *events)
{
	uint64_t last;

	if (!read_part(worker, &last, sizeof(last), offsetof(struct trace, n_events)))
		return false;
	/* No worker gives out so many; the sums below do not overflow. */
	if (last > UINT64_MAX / 2)
		last = 0;
	events->last = last;
	events->first = trace->after < last ? trace->after + 1 : last + 1;
	if (last - (events->first - 1) > TRACE_EVENTS)
		events->first = last - TRACE_EVENTS + 1;
	return fill_events(worker, events) &&
	       (!trace->wants_names || fill_names(worker, events));
}

void ctl_trace_reply(
	struct broker *broker, const VgpuCtl__Trace *trace, VgpuCtl__Reply *reply)
{
	const struct worker *worker = find(broker, trace);
	VgpuCtl__Events *events;

	if (!worker) {
		refuse(reply, VGPU_CTL__STATUS__UNKNOWN, "there is no such session");
		return;
	}
	if (!wish(worker, trace->ends)) {
		refuse(reply, VGPU_CTL__STATUS__FAILED,
			"the worker was started by an earlier vgpud, which could not "
			"trace");
		return;
	}
	events = calloc(1, sizeof(*events));
	if (events) {
		vgpu_ctl__events__init(events);
		reply->result_case = VGPU_CTL__REPLY__RESULT_EVENTS;
		reply->events = events;
	}
	if (events && fill(worker, trace, events))
		return;
	ctl_trace_free(reply);
	refuse(reply, VGPU_CTL__STATUS__FAILED, "vgpud has no memory for the reply");
}

void ctl_trace_free(VgpuCtl__Reply *reply)
{
	if (reply->result_case != VGPU_CTL__REPLY__RESULT_EVENTS)
		return;
	free(reply->events->events.data);
	free(reply->events->names.data);
	free(reply->events);
	reply->result_case = VGPU_CTL__REPLY__RESULT__NOT_SET;
}
