/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace merge: puts the calls of a guest's own trace on a timeline
 *
 * The file is read twice: for the clock, and for the calls. It comes from a guest, so a
 * line that is none of the guest library's is passed over.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/output.h"
#include "ctl/trace-merge.h"
#include "vgpu/cleanup.h"

/* Threads of programs, beside those of timeline.c. */
#define THREAD_PROGRAM 2000000000u
/* A process that is not on the timeline, by its pid. */
#define PROCESS_OTHER (1ull << 32)
/* Of a file whose threads are labelled. */
#define THREADS_MAX 1024u
/* Fewer calls that agree may do so by chance. */
#define PAIRS_MIN 3u

struct threads {
	struct {
		uint32_t pid;
		uint32_t tid;
	} list[THREADS_MAX];
	size_t n;
};

typedef void (*call_fn)(void *data, const struct guest_call *call);

enum ctl_status trace_merge_add(struct trace_merge *merge, uint32_t pid, uint64_t number)
{
	void *processes = reallocarray(
		merge->processes, merge->n_processes + 1, sizeof(*merge->processes));

	if (!processes)
		return ctl_fail(CTL_FAILED, "there is no memory");
	merge->processes = processes;
	merge->processes[merge->n_processes].pid = pid;
	merge->processes[merge->n_processes++].number = number;
	return CTL_OK;
}

static enum ctl_status for_each(const char *path, call_fn fn, void *data)
{
	FILE *file = fopen(path, "re");
	struct guest_call call;
	/* More than a line of the guest library has. */
	char line[2048];

	if (!file)
		return ctl_fail(CTL_FAILED, "%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), file))
		if (guest_trace_parse(line, &call))
			fn(data, &call);
	fclose(file);
	return CTL_OK;
}

static void collect(void *data, const struct guest_call *call)
{
	guest_waits_add(data, call->name, call->begin_ns, call->end_ns);
}

/* Host minus guest, if the guest's clock were the host's. */
static int64_t guess_offset(void)
{
	struct timespec monotonic, real;

	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_REALTIME, &real);
	return (monotonic.tv_sec - real.tv_sec) * 1000000000 + monotonic.tv_nsec -
	       real.tv_nsec;
}

struct writer {
	const struct trace_merge *merge;
	struct timeline *timeline;
	struct threads threads;
};

static uint64_t process_of(const struct writer *writer, uint32_t pid)
{
	/* The last one: pids are used again. */
	for (size_t i = writer->merge->n_processes; i-- > 0;)
		if (writer->merge->processes[i].pid == pid)
			return writer->merge->processes[i].number;
	return PROCESS_OTHER + pid;
}

static void label(struct writer *writer, const struct guest_call *call, uint64_t process)
{
	struct threads *threads = &writer->threads;
	char text[64];

	for (size_t i = 0; i < threads->n; i++)
		if (threads->list[i].pid == call->pid &&
			threads->list[i].tid == call->tid)
			return;
	if (threads->n == THREADS_MAX)
		return;
	threads->list[threads->n].pid = call->pid;
	threads->list[threads->n++].tid = call->tid;
	snprintf(text, sizeof(text), "program, thread %u of process %u", call->tid,
		call->pid);
	timeline_label(writer->timeline, process, THREAD_PROGRAM + call->tid, text);
}

static void write_call(void *data, const struct guest_call *call)
{
	struct writer *writer = data;
	const int64_t offset = writer->timeline->guest_offset_ns;
	const uint64_t process = process_of(writer, call->pid);
	const uint64_t n_before = writer->timeline->n_slices;

	if ((int64_t)call->begin_ns + offset < 0)
		return;
	timeline_add_guest(writer->timeline, process, THREAD_PROGRAM + call->tid,
		call->name, (uint64_t)((int64_t)call->begin_ns + offset),
		(uint64_t)((int64_t)call->end_ns + offset));
	if (writer->timeline->n_slices != n_before)
		label(writer, call, process);
}

enum ctl_status trace_merge(struct trace_merge *merge, struct timeline *timeline)
{
	_vgpu_cleanup_(vgpu_freep) struct guest_waits *waits = calloc(1, sizeof(*waits));
	_vgpu_cleanup_(vgpu_freep) struct writer *writer = calloc(1, sizeof(*writer));
	enum ctl_status status;

	if (!waits || !writer)
		return ctl_fail(CTL_FAILED, "there is no memory");
	status = for_each(merge->path, collect, waits);
	if (status)
		return status;
	timeline->n_pairs = guest_trace_match(&timeline->waits, waits, guess_offset(),
		&timeline->guest_offset_ns, &timeline->guest_error_ns);
	if (timeline->n_pairs < PAIRS_MIN)
		return ctl_fail(CTL_FAILED,
			"%s has too few calls that waited for the host in this time: the "
			"guest's clock is not known",
			merge->path);
	writer->merge = merge;
	writer->timeline = timeline;
	return for_each(merge->path, write_call, writer);
}
