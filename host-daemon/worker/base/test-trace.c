/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's part of traces
 */

#include <sys/mman.h>
#include <unistd.h>

#include "fixture.h"
#include "test.h"
#include "worker/base/trace.h"

static struct session session;
static struct worker_wishes wishes;
static struct trace trace;

static void begin(uint64_t until)
{
	memset(&trace, 0, sizeof(trace));
	wishes.trace_until = until;
	session.trace = &trace;
	session.wishes = &wishes;
}

TEST(events_are_numbered_and_overwrite_the_oldest)
{
	const struct vgpu_frame frame = { .size = 16, .call = 7, .lane = 3 };

	begin(UINT64_MAX);
	check(trace_is_on(&session));
	for (uint32_t i = 0; i < TRACE_EVENTS + 2; i++)
		trace_add(&session, TRACE_RAN, &frame, 50 + i, 1);
	check_eq(trace.n_events, TRACE_EVENTS + 2);
	check_eq(trace.events[1].number, TRACE_EVENTS + 2);
	check_eq(trace.events[2].number, 3);
	check_eq(trace.events[2].call_number, 52);
	check_eq(trace.events[2].call, 7);
	check_eq(trace.events[2].lane, 3);
	check_eq(trace.events[2].value, 1);
	check(trace.events[2].ns && trace.events[1].ns >= trace.events[2].ns);
}

TEST(a_trace_ends_by_itself)
{
	const struct vgpu_frame frame = { .size = 16 };

	begin(1);
	trace_add(&session, TRACE_TAKE, &frame, 1, 0);
	trace_add_work(&session, 1, 2, "late", 0);
	check_eq(trace.n_events, 0);
	/* From then on it costs nothing. */
	check_eq(wishes.trace_until, 0);
	begin(0);
	check(!trace_is_on(&session));
}

TEST(names_of_kernels_are_kept_once_and_not_without_end)
{
	char name[16];

	begin(UINT64_MAX);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "k%d", i % 300);
		trace_add_work(&session, 1, 5, name, i % 2);
	}
	check_eq(trace.n_names, TRACE_NAMES);
	check_eq(trace.events[0].value, 5 << 16);
	check_eq(trace.events[300].value, 5 << 16);
	check_eq(trace.events[299].value, 5 << 16 | TRACE_NAMES);
	check_str(trace.names[7], "k7");
}

TEST(a_file_of_an_earlier_vgpud_is_never_traced)
{
	const int fd = memfd_create("stats", MFD_CLOEXEC);
	const uint64_t until = 5;

	check(fd >= 0 && !ftruncate(fd, WORKER_TRACE_OFF));
	check_eq(trace_map(&session.trace, &session.wishes, fd), 0);
	check(!session.trace && !trace_is_on(&session));
	check(!ftruncate(fd, WORKER_FILE_SIZE));
	check_eq(trace_map(&session.trace, &session.wishes, fd), 0);
	check(!trace_is_on(&session));
	check_eq(pwrite(fd, &until, sizeof(until), WORKER_WISHES_OFF),
		(ssize_t)sizeof(until));
	check(trace_is_on(&session));
	munmap(session.trace, sizeof(*session.trace));
	munmap((uint8_t *)session.wishes - WORKER_WISHES_OFF, 4096);
	close(fd);
}
