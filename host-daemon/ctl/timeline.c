/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timeline: events of workers as a file in the JSON format of Chrome's traces
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/timeline.h"
#include "vgpu/g-calls.h"
#include "vgpu/names.h"

/* Numbers of the threads of a session. */
#define THREAD_DISPATCHER 1u
#define THREAD_LANES 1000u
#define THREAD_STREAMS 1000000u
/* A worker that numbers its streams higher lies. */
#define STREAM_MAX 1000000000u
/* Lanes of a session: VGPU_SLOTS_MAX is less. */
#define LANE_MAX 100000u

static void begin_event(struct timeline *timeline)
{
	fputs(timeline->has_any ? ",\n" : "\n", timeline->file);
	timeline->has_any = true;
}

static void write_text(FILE *file, const char *text, size_t size)
{
	fputc('"', file);
	for (size_t i = 0; i < size && text[i]; i++)
		fputc(text[i] < ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\'
				? '?'
				: text[i],
			file);
	fputc('"', file);
}

/* Microseconds with three digits; JSON's numbers have no exponent then. */
static void write_time(FILE *file, const char *key, uint64_t ns)
{
	fprintf(file, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000,
		(unsigned int)(ns % 1000));
}

void timeline_begin(struct timeline *timeline, FILE *file)
{
	*timeline = (struct timeline){ .file = file };
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", file);
}

void timeline_end(struct timeline *timeline, const char *vm)
{
	FILE *file = timeline->file;

	fputs("\n],\"otherData\":{\"program\":\"vgpuctl\",\"clock\":\"CLOCK_MONOTONIC of "
	      "the "
	      "host\",\"vm\":",
		file);
	write_text(file, vm, strlen(vm));
	fprintf(file, ",\"lost\":%" PRIu64 ",\"wrong\":%" PRIu64, timeline->n_lost,
		timeline->n_wrong);
	if (timeline->n_pairs)
		fprintf(file,
			",\"guest_clock\":{\"offset_ns\":%" PRId64
			",\"error_ns\":%" PRId64 ",\"pairs\":%zu}",
			timeline->guest_offset_ns, timeline->guest_error_ns,
			timeline->n_pairs);
	fputs("}}\n", file);
}

void timeline_label(
	struct timeline *timeline, uint64_t process, uint64_t thread, const char *label)
{
	FILE *file = timeline->file;

	begin_event(timeline);
	fprintf(file,
		"{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64
		",\"args\":{\"name\":",
		thread ? "thread_name" : "process_name", process, thread);
	write_text(file, label, strlen(label));
	fputs("}}", file);
}

struct timeline_session *timeline_session_new(
	struct timeline *timeline, uint64_t number, const char *label)
{
	struct timeline_session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	session->timeline = timeline;
	session->number = number;
	timeline_label(timeline, number, 0, label);
	timeline_label(timeline, number, THREAD_DISPATCHER, "dispatcher");
	return session;
}

void timeline_set_names(
	struct timeline_session *session, const uint8_t *bytes, size_t size)
{
	size_t n = size / TRACE_NAME_SIZE;

	n = n < TRACE_NAMES ? n : TRACE_NAMES;
	memcpy(session->names, bytes, n * TRACE_NAME_SIZE);
}

static uint64_t stream_of(const struct trace_event *event)
{
	return event->value >> 16;
}

/* Return: the thread of an event, 0: it makes no sense. */
static uint64_t thread_of(const struct trace_event *event)
{
	switch (event->kind) {
	case TRACE_TAKE:
	case TRACE_TAKEN:
		return THREAD_DISPATCHER;
	case TRACE_RUN:
	case TRACE_RAN:
		return event->lane < LANE_MAX ? THREAD_LANES + event->lane : 0;
	case TRACE_WORK:
	case TRACE_COMPLETE:
		return stream_of(event) < STREAM_MAX ? THREAD_STREAMS + stream_of(event)
						     : 0;
	default:
		return 0;
	}
}

static void begin_slice(struct timeline *timeline, uint64_t process, uint64_t thread,
	uint64_t begin_ns, uint64_t end_ns, const char *category)
{
	begin_event(timeline);
	fprintf(timeline->file,
		"{\"ph\":\"X\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64 ",\"cat\":\"%s\"",
		process, thread, category);
	write_time(timeline->file, "ts", begin_ns);
	write_time(timeline->file, "dur", end_ns - begin_ns);
	fputs(",\"name\":", timeline->file);
	timeline->n_slices++;
}

static void write_slice(struct timeline_session *session, uint64_t thread,
	const struct trace_event *begin, uint64_t end_ns, bool is_finished)
{
	struct timeline *timeline = session->timeline;
	FILE *file = timeline->file;
	const uint64_t name = begin->value & 0xffff;

	begin_slice(timeline, session->number, thread, begin->ns, end_ns,
		begin->kind == TRACE_WORK  ? "device"
		: begin->kind == TRACE_RUN ? "lane"
					   : "dispatcher");
	if (begin->kind != TRACE_WORK)
		write_text(file, vgpu_call_name(begin->call), 64);
	else if (name < TRACE_NAMES && session->names[name][0])
		write_text(file, session->names[name], TRACE_NAME_SIZE);
	else
		fputs("\"work\"", file);
	fprintf(file, ",\"args\":{\"call\":%" PRIu64, begin->call_number);
	if (begin->kind != TRACE_WORK)
		fprintf(file, ",\"lane\":%u", begin->lane);
	if (!is_finished)
		fputs(",\"unfinished\":true", file);
	fputs("}}", file);
}

static void write_flow_end(struct timeline_session *session, const char *phase,
	uint64_t id, const char *name, uint64_t thread, uint64_t ns)
{
	FILE *file = session->timeline->file;

	begin_event(session->timeline);
	fprintf(file,
		"{\"ph\":\"%s\",\"cat\":\"flow\",\"name\":\"%s\",\"id\":\"0x%" PRIx64
		"\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64,
		phase, name, id, session->number, thread);
	write_time(file, "ts", ns);
	fputs("}", file);
}

/* An arrow from where a call began to where something of it begins now. */
static void write_flow(struct timeline_session *session, const struct trace_event *event,
	uint64_t thread, const char *name)
{
	const size_t place = event->call_number % TIMELINE_CALLS;
	struct timeline *timeline = session->timeline;
	const uint64_t id = ++timeline->n_flows;

	if (!event->call_number || session->calls[place].number != event->call_number ||
		session->calls[place].ns > event->ns) {
		timeline->n_flows--;
		return;
	}
	write_flow_end(session, "s", id, name, session->calls[place].thread,
		session->calls[place].ns);
	write_flow_end(session, "f\",\"bp\":\"e", id, name, thread, event->ns);
}

static void label_thread(struct timeline_session *session, uint64_t thread)
{
	char label[64];

	if (thread >= THREAD_STREAMS)
		snprintf(label, sizeof(label), "device, stream %" PRIu64,
			thread - THREAD_STREAMS);
	else
		snprintf(label, sizeof(label), "lane %" PRIu64, thread - THREAD_LANES);
	timeline_label(session->timeline, session->number, thread, label);
}

static size_t find_open(struct timeline_session *session, uint64_t thread)
{
	size_t i = 0;

	while (i < session->n_open && session->open[i].thread != thread)
		i++;
	return i;
}

/* A slice whose end was lost lasts until the next one begins: arrows begin at it. */
static void end_unseen(struct timeline_session *session, size_t i, uint64_t end_ns)
{
	const struct trace_event *begin = &session->open[i].begin;

	session->timeline->n_wrong++;
	if (begin->ns <= end_ns)
		write_slice(session, session->open[i].thread, begin, end_ns, false);
}

/* Return: false if there is no room. */
static bool open_slice(struct timeline_session *session, uint64_t thread,
	const struct trace_event *event)
{
	const size_t i = find_open(session, thread);

	if (i == TIMELINE_OPEN_MAX)
		return false;
	if (i == session->n_open) {
		session->n_open++;
		session->open[i].thread = thread;
		if (thread != THREAD_DISPATCHER)
			label_thread(session, thread);
	} else if (session->open[i].begin.kind) {
		end_unseen(session, i, event->ns);
	}
	session->open[i].begin = *event;
	return true;
}

/* The place of a thread stays: the kind of its slice is 0 between two. */
static bool close_slice(struct timeline_session *session, uint64_t thread,
	const struct trace_event *event)
{
	const size_t i = find_open(session, thread);
	struct trace_event *begin;

	if (i == session->n_open)
		return false;
	begin = &session->open[i].begin;
	if (begin->kind + 1 != event->kind || begin->ns > event->ns ||
		begin->call_number != event->call_number)
		return false;
	write_slice(session, thread, begin, event->ns, true);
	if (event->kind == TRACE_RAN)
		guest_waits_add(&session->timeline->waits, vgpu_call_name(begin->call),
			begin->ns, event->ns);
	begin->kind = _TRACE_NONE;
	return true;
}

static bool take(struct timeline_session *session, const struct trace_event *event)
{
	const uint64_t thread = thread_of(event);
	const size_t place = event->call_number % TIMELINE_CALLS;

	/* JSON's readers have numbers of 63 bits. */
	if (!thread || event->ns > INT64_MAX || event->call_number > INT64_MAX)
		return false;
	switch (event->kind) {
	case TRACE_RUN:
		write_flow(session, event, thread, "post");
		break;
	case TRACE_WORK:
		write_flow(session, event, thread, "launch");
		break;
	}
	if (event->ns > session->last_ns)
		session->last_ns = event->ns;
	if (!session->timeline->first_ns || event->ns < session->timeline->first_ns)
		session->timeline->first_ns = event->ns;
	if (event->ns > session->timeline->last_ns)
		session->timeline->last_ns = event->ns;
	if (event->kind == TRACE_TAKE || event->kind == TRACE_RUN) {
		session->calls[place].number = event->call_number;
		session->calls[place].thread = thread;
		session->calls[place].ns = event->ns;
	}
	if (event->kind == TRACE_TAKE || event->kind == TRACE_RUN ||
		event->kind == TRACE_WORK)
		return open_slice(session, thread, event);
	return close_slice(session, thread, event);
}

/* A worker can make it any number at once, and many of them together too much for a
 * number of JSON's readers. */
static void lose(struct timeline *timeline, uint64_t n)
{
	timeline->n_lost =
		n < INT64_MAX - timeline->n_lost ? timeline->n_lost + n : INT64_MAX;
}

size_t timeline_complete(uint64_t first, const struct trace_event *events, size_t n)
{
	size_t i;

	/* One that has been overwritten has a greater number. */
	for (i = 0; i < n; i++)
		if (events[i].number < first + i)
			break;
	return i;
}

void timeline_add(struct timeline_session *session, uint64_t first,
	const struct trace_event *events, size_t n)
{
	struct timeline *timeline = session->timeline;

	if (first > session->last + 1)
		lose(timeline, first - session->last - 1);
	for (size_t i = 0; i < n; i++) {
		/* Overwritten while it was read, or the worker was killed meanwhile. */
		if (events[i].number != first + i)
			lose(timeline, 1);
		else if (!take(session, &events[i]))
			timeline->n_wrong++;
	}
	session->last = first + n - 1;
}

void timeline_session_free(struct timeline_session *session)
{
	if (!session)
		return;
	for (size_t i = 0; i < session->n_open; i++) {
		const struct trace_event *begin = &session->open[i].begin;

		if (begin->kind)
			write_slice(session, session->open[i].thread, begin,
				session->last_ns > begin->ns ? session->last_ns
							     : begin->ns,
				false);
	}
	free(session);
}

void timeline_add_guest(struct timeline *timeline, uint64_t process, uint64_t thread,
	const char *name, uint64_t begin_ns, uint64_t end_ns)
{
	if (begin_ns > end_ns || begin_ns < timeline->first_ns ||
		end_ns > timeline->last_ns)
		return;
	begin_slice(timeline, process, thread, begin_ns, end_ns, "program");
	write_text(timeline->file, name, strlen(name));
	fputs("}", timeline->file);
}
