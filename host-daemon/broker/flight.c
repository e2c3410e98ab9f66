/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight recorder: the broker's part
 *
 * Reports are what a guest can cause at will. Their number per VM is limited, and so are
 * their lines in the log, which count as lines of the VM. The file is written on a
 * thread; the reading here is a copy of some 130 KiB.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "broker/flight.h"
#include "broker/session-line.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "control/flight-text.h"
#include "vgpu/log.h"
#include "vgpu/ring-layout.h"
#include "vgpud/clock.h"
#include "vgpud/flight-file.h"

/* The last calls that the log has. */
#define LINES_MAX 8u

/* Not mapped: the worker shares this memory, and may be compromised. */
static struct flight_report *report_new(const struct worker *worker, const char *kind)
{
	const struct channel *channel = worker->channel;
	struct flight_report *report = calloc(1, sizeof(*report));

	if (!report || pread(worker->stats, &report->flight, sizeof(report->flight),
			       WORKER_FLIGHT_OFF) != (ssize_t)sizeof(report->flight)) {
		free(report);
		return NULL;
	}
	snprintf(report->vm, sizeof(report->vm), "%s", channel->vm->config->name);
	snprintf(report->comm, sizeof(report->comm), "%.15s", channel->record->comm);
	snprintf(report->kind, sizeof(report->kind), "%s", kind);
	report->channel = channel->index;
	report->guest_pid = channel->record->pid;
	report->worker = worker->pid;
	report->worker_id = worker->id;
	report->date = time(NULL);
	flight_time_now(&report->time);
	return report;
}

static void log_calls(struct account *account, const struct flight_report *report)
{
	const struct flight_call *order[FLIGHT_CALLS];
	const size_t n = flight_order(
		report->is_of_fault ? report->flight.at_fault : report->flight.calls,
		order);
	char line[FLIGHT_LINE_MAX];

	if (!n || !account_take_log_line(account))
		return;
	vgpu_log_warning("vm=%s channel=%u pid=%u: %s; the last calls of %s, worker %d:",
		report->vm, report->channel, report->guest_pid, report->reason,
		report->comm, (int)report->worker);
	for (size_t i = n > LINES_MAX ? n - LINES_MAX : 0; i < n; i++) {
		if (!account_take_log_line(account))
			return;
		flight_format(&report->flight, order[i], &report->time, line);
		vgpu_log_warning("vm=%s channel=%u pid=%u:   %s", report->vm,
			report->channel, report->guest_pid, line);
	}
}

/* Takes the report. */
static void finish(const struct worker *worker, struct flight_report *report)
{
	const char *folder = worker->broker->config->flight_folder;

	log_calls(worker->channel->vm->account, report);
	if (folder)
		flight_file_start(folder, report);
	else
		free(report);
}

static struct flight_report *begin(const struct worker *worker, const char *kind)
{
	struct account *account = worker->channel->vm->account;

	return budget_take(&account->flights, clock_now()) ? report_new(worker, kind)
							   : NULL;
}

void flight_report_fault(const struct worker *worker, int32_t result)
{
	struct flight_report *report = begin(worker, "fault");
	char text[32];

	if (!report)
		return;
	report->is_of_fault = true;
	snprintf(report->reason, sizeof(report->reason), "a context broke with %s",
		flight_result(result, text));
	finish(worker, report);
}

/* Whether calls of the guest may explain the end. */
static bool is_explained(uint32_t reason)
{
	switch (reason) {
	case VGPU_REASON_PROTOCOL:
	case VGPU_REASON_WORKER_DIED:
	case VGPU_REASON_HOST:
	case VGPU_REASON_HOST_MEMORY:
		return true;
	default:
		return false;
	}
}

void flight_report_end(const struct worker *worker, uint32_t reason)
{
	const uint32_t signal = worker->channel->record->signal;
	struct flight_report *report;

	if (!is_explained(reason))
		return;
	report = begin(worker, "end");
	if (!report)
		return;
	if (signal)
		snprintf(report->reason, sizeof(report->reason),
			"it ended by %s, signal %u", session_line_reason(reason), signal);
	else
		snprintf(report->reason, sizeof(report->reason), "it ended by %s",
			session_line_reason(reason));
	finish(worker, report);
}

void flight_last_error(const struct worker *worker, struct flight_error *error)
{
	struct flight_time now;
	struct {
		uint64_t ns;
		uint32_t call;
		int32_t result;
	} said;

	static_assert(offsetof(struct flight, error_result) -
				      offsetof(struct flight, error_ns) ==
			      sizeof(said) - sizeof(said.result),
		"they are adjacent");
	*error = (struct flight_error){ 0 };
	flight_time_now(&now);
	if (pread(worker->stats, &said, sizeof(said),
		    WORKER_FLIGHT_OFF + offsetof(struct flight, error_ns)) !=
			(ssize_t)sizeof(said) ||
		!said.ns || said.ns > now.ns)
		return;
	error->result = said.result;
	error->call = said.call;
	error->age_ms = (now.ns - said.ns) / 1000000;
}
