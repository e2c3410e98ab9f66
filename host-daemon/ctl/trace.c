/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace: the verb that records what the processes of a machine do
 *
 * vgpud passes events of one session on with each request; sessions that begin meanwhile
 * are found by looking for them now and then, and those that end have been read up to
 * the last look. All of it ends by itself if this program does.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/client.h"
#include "ctl/output.h"
#include "ctl/seconds.h"
#include "ctl/timeline.h"
#include "ctl/trace-merge.h"
#include "vgpu/cleanup.h"
#include "vgpud/clock.h"

/* Between two looks for sessions, and between two rounds of requests. */
#define LOOK_MS 500
#define ROUND_US 50000
/* Rounds that an event may take to be complete: its thread may wait for a processor.
 * After these it is lost, as that of a thread that was killed is. */
#define ROUNDS_MAX 40u
/* Behind the name of the file until it is complete. */
#define PART ".part"

struct target {
	uint64_t number;
	struct timeline_session *session;
	uint64_t after;
	unsigned int n_rounds; /* in which the next event was not complete */
	bool is_seen;	       /* at the last look */
};

struct trace_run {
	struct client client;
	const char *vm;
	struct timeline timeline;
	struct target *targets;
	size_t n_targets;
	struct trace_merge merge;
	uint64_t n_sessions;
};

static struct target *find_target(struct trace_run *run, uint64_t number)
{
	for (size_t i = 0; i < run->n_targets; i++)
		if (run->targets[i].number == number)
			return &run->targets[i];
	return NULL;
}

static enum ctl_status add_target(struct trace_run *run, const VgpuCtl__Session *message)
{
	struct target *targets;
	struct timeline_session *session;
	char label[128];

	snprintf(label, sizeof(label), "%.64s, pid %u, worker %u", message->name,
		message->pid, message->worker);
	session = timeline_session_new(&run->timeline, message->number, label);
	targets = reallocarray(run->targets, run->n_targets + 1, sizeof(*targets));
	if (targets)
		run->targets = targets;
	if (!session || !targets) {
		timeline_session_free(session);
		return ctl_fail(CTL_FAILED, "there is no memory");
	}
	run->targets[run->n_targets++] = (struct target){
		.number = message->number,
		.session = session,
		.after = UINT64_MAX,
		.is_seen = true,
	};
	run->n_sessions++;
	return trace_merge_add(&run->merge, message->pid, message->number);
}

static void remove_target(struct trace_run *run, size_t i)
{
	timeline_session_free(run->targets[i].session);
	run->targets[i] = run->targets[--run->n_targets];
}

static enum ctl_status take_sessions(
	struct trace_run *run, const VgpuCtl__Details *details, uint64_t *afterp)
{
	enum ctl_status status = CTL_OK;

	for (size_t i = 0; !status && i < details->n_sessions; i++) {
		struct target *target = find_target(run, details->sessions[i]->number);

		if (target)
			target->is_seen = true;
		else
			status = add_target(run, details->sessions[i]);
		*afterp = details->sessions[i]->number;
	}
	return status;
}

/* Looks for sessions that have begun or ended. */
static enum ctl_status look(struct trace_run *run)
{
	enum ctl_status status = CTL_OK;
	VgpuCtl__Reply *reply;
	uint64_t after = 0;
	bool more = true;

	for (size_t i = 0; i < run->n_targets; i++)
		run->targets[i].is_seen = false;
	while (!status && more) {
		status = client_find_after(&run->client, run->vm, after, &reply);
		if (!status && !reply)
			return ctl_fail(CTL_NO_VM, "there is no such virtual machine");
		if (status)
			return status;
		status = take_sessions(run, reply->show, &after);
		more = reply->show->more && reply->show->n_sessions;
		ctl_reply_freep(&reply);
	}
	for (size_t i = run->n_targets; i-- > 0;)
		if (!run->targets[i].is_seen)
			remove_target(run, i);
	return status;
}

static enum ctl_status ask(struct trace_run *run, const struct target *target, bool ends,
	VgpuCtl__Reply **replyp)
{
	VgpuCtl__Trace trace = VGPU_CTL__TRACE__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	enum ctl_status status;

	trace.vm = (char *)run->vm;
	trace.session = target->number;
	trace.after = target->after;
	trace.wants_names = true;
	trace.ends = ends;
	request.verb_case = VGPU_CTL__REQUEST__VERB_TRACE;
	request.trace = &trace;
	status = client_ask_permitting(
		&run->client, &request, VGPU_CTL__STATUS__UNKNOWN, replyp);
	if (status || (*replyp)->status == VGPU_CTL__STATUS__UNKNOWN ||
		(*replyp)->result_case == VGPU_CTL__REPLY__RESULT_EVENTS)
		return status;
	ctl_reply_freep(replyp);
	*replyp = NULL;
	return ctl_fail(CTL_FAILED, "vgpud's reply has no events");
}

/* Return: whether there are more of them now. */
static bool take_events(struct target *target, const VgpuCtl__Events *events)
{
	_vgpu_cleanup_(vgpu_freep) struct trace_event *list = NULL;
	const size_t n_sent = events->events.len / sizeof(*list);
	size_t n;

	/* The first reply only says where the events begin that are of this trace. */
	if (target->after == UINT64_MAX) {
		target->after = target->session->last = events->last;
		return false;
	}
	timeline_set_names(target->session, events->names.data, events->names.len);
	list = malloc(n_sent * sizeof(*list) + 1);
	/* vgpud says which these are, and so no number makes this run for ever. */
	if (!list || !n_sent || events->first <= target->after)
		return false;
	memcpy(list, events->events.data, n_sent * sizeof(*list));
	n = timeline_complete(events->first, list, n_sent);
	if (n) {
		target->n_rounds = 0;
	} else {
		if (target->n_rounds++ < ROUNDS_MAX)
			return false;
		n = 1;
	}
	timeline_add(target->session, events->first, list, n);
	target->after = events->first + n - 1;
	return n == n_sent && target->after < events->last;
}

/* Takes what there is of one session; one that has ended is removed at the next look. */
static enum ctl_status drain(struct trace_run *run, struct target *target, bool ends)
{
	enum ctl_status status = CTL_OK;
	/* A worker that is faster than this is left behind, and loses events. */
	unsigned int n_most = 100;
	bool more = true;

	while (!status && more && n_most--) {
		VgpuCtl__Reply *reply;

		status = ask(run, target, ends, &reply);
		more = !status && reply->result_case == VGPU_CTL__REPLY__RESULT_EVENTS &&
		       take_events(target, reply->events);
		ctl_reply_freep(&reply);
	}
	return status;
}

static enum ctl_status drain_all(struct trace_run *run, bool ends)
{
	enum ctl_status status = CTL_OK;

	for (size_t i = 0; !status && i < run->n_targets; i++)
		status = drain(run, &run->targets[i], ends);
	return status;
}

static enum ctl_status record(struct trace_run *run, unsigned int seconds)
{
	const int64_t end = clock_now() + (int64_t)seconds * 1000;
	enum ctl_status status = CTL_OK;
	int64_t next_look = 0;

	while (!status && clock_now() < end) {
		if (clock_now() >= next_look) {
			status = look(run);
			next_look = clock_now() + LOOK_MS;
		}
		if (!status)
			status = drain_all(run, false);
		if (!status)
			usleep(ROUND_US);
	}
	return status ? status : drain_all(run, true);
}

/* Writes the file under another name first. */
static enum ctl_status write_file(
	struct trace_run *run, const char *path, unsigned int seconds)
{
	_vgpu_cleanup_(vgpu_freep) char *part = NULL;
	enum ctl_status status;
	FILE *file;
	bool is_bad;

	if (asprintf(&part, "%s" PART, path) < 0) {
		part = NULL;
		return ctl_fail(CTL_FAILED, "there is no memory");
	}
	file = fopen(part, "we");
	if (!file)
		return output_unwritten(part, -errno);
	timeline_begin(&run->timeline, file);
	status = record(run, seconds);
	while (run->n_targets)
		remove_target(run, run->n_targets - 1);
	if (!status && run->merge.path)
		status = trace_merge(&run->merge, &run->timeline);
	timeline_end(&run->timeline, run->vm);
	is_bad = ferror(file);
	if (fclose(file) || is_bad)
		status = status ? status : output_unwritten(part, -EIO);
	if (!status && rename(part, path) < 0)
		status = output_unwritten(path, -errno);
	if (status)
		unlink(part);
	return status;
}

static enum ctl_status report(const struct trace_run *run,
	const struct ctl_options *options, unsigned int seconds)
{
	const struct timeline *timeline = &run->timeline;

	if (options->is_json)
		return output_json(json_pack("{s:s,s:i,s:o,s:o,s:o,s:o,s:o,s:o}", "file",
			options->output, "seconds", (int)seconds, "processes",
			output_number(run->n_sessions), "slices",
			output_number(timeline->n_slices), "flows",
			output_number(timeline->n_flows), "lost",
			output_number(timeline->n_lost), "wrong",
			output_number(timeline->n_wrong), "guest_error_ns",
			timeline->n_pairs ? json_integer(timeline->guest_error_ns)
					  : json_null()));
	printf("%s: %" PRIu64 " slices of %" PRIu64
	       " processes; ui.perfetto.dev shows them\n",
		options->output, timeline->n_slices, run->n_sessions);
	if (timeline->n_pairs)
		printf("the guest's clock is known to %" PRId64 " us, by %zu calls\n",
			timeline->guest_error_ns / 1000, timeline->n_pairs);
	if (timeline->n_lost)
		printf("%" PRIu64
		       " events were lost: there were more than could be read\n",
			timeline->n_lost);
	if (timeline->n_wrong)
		printf("%" PRIu64 " events lack their other half, or make no sense\n",
			timeline->n_wrong);
	return output_end(CTL_OK);
}

enum ctl_status ctl_trace(const struct ctl_options *options, char **arguments)
{
	struct trace_run run = {
		.client = CLIENT_NULL,
		.vm = arguments[0],
		.merge.path = options->merge,
	};
	enum ctl_status status;
	unsigned int seconds;

	if (!options->output)
		return ctl_fail(CTL_USAGE, "trace needs --output FILE");
	if (seconds_parse(options->seconds ? options->seconds : CTL_TRACE, &seconds) ||
		!seconds)
		return ctl_fail(CTL_USAGE,
			"'%s' is not a number of seconds, which is from 1 to a day",
			options->seconds);
	status = client_open(&run.client, options->socket);
	if (!status)
		status = write_file(&run, options->output, seconds);
	client_close(&run.client);
	free(run.targets);
	free(run.merge.processes);
	return status ? output_end(status) : report(&run, options, seconds);
}
