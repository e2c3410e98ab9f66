/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: timelines of workers that lie, with a trace of a guest that lies
 *
 * The input is a list of steps: a session begins or ends, has events, or names for them.
 * Events are plausible up to a few bytes. The rest of the input is the guest's file. What
 * is written must be JSON with times that make sense, with as many slices and flows as
 * were counted, and each flow has two ends.
 */

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ctl/output.h"
#include "ctl/timeline.h"
#include "ctl/trace-merge.h"
#include "reader.h"

#define SESSIONS_MAX 4u
#define STEPS_MAX 24u
#define EVENTS_MAX 16u
#define HOST_S 1000
#define GUEST_S 1700000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

static struct reader input;
static struct timeline timeline;
static struct timeline_session *sessions[SESSIONS_MAX];
static struct trace_merge merge;
static uint64_t now; /* ns */
static int guest_fd = -1;
static char guest_path[32];

#define need(_condition)                                                                 \
	do {                                                                             \
		if (!(_condition))                                                       \
			abort();                                                         \
	} while (0)

/*
 * Fakes
 */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	*time = (struct timespec){ .tv_sec = clock == CLOCK_REALTIME ? GUEST_S : HOST_S };
	return 0;
}

enum ctl_status ctl_fail(enum ctl_status status, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return status;
}

/*
 * Events
 */

static void read_event(struct trace_event *event, uint64_t number)
{
	const uint8_t lies = reader_u8(&input);
	const uint8_t call = reader_u8(&input);

	now += reader_u8(&input) * 100u;
	*event = (struct trace_event){
		.number = number,
		.ns = now,
		.call_number = call % 16,
		.call = call,
		.kind = lies % (_TRACE_KIND_N + 1),
		.lane = call / 16 % 4,
		.value = (uint64_t)(call % 3) << 16 | call / 16,
	};
	/* Half of them are wrong somewhere. */
	if (lies & 0x80) {
		const size_t at = reader_below(&input, sizeof(*event));
		uint8_t bytes[8];
		const size_t n = sizeof(*event) - at;

		reader_bytes(&input, bytes, sizeof(bytes));
		memcpy((uint8_t *)event + at, bytes,
			n < sizeof(bytes) ? n : sizeof(bytes));
	}
}

static void add_events(struct timeline_session *session)
{
	struct trace_event events[EVENTS_MAX];
	const size_t n = reader_below(&input, EVENTS_MAX) + 1;
	const uint8_t gap = reader_u8(&input);
	uint64_t first = session->last + 1;

	/* The broker takes no number for the last one that is above this. */
	if (gap > 250)
		first = UINT64_MAX / 2 - reader_u16(&input);
	else if (gap > 200)
		first += gap;
	if (first <= session->last)
		return;
	for (size_t i = 0; i < n; i++)
		read_event(&events[i], first + i);
	timeline_add(session, first, events, n);
}

static void set_names(struct timeline_session *session)
{
	uint8_t names[4 * TRACE_NAME_SIZE];
	const size_t n = reader_u8(&input);

	reader_bytes(&input, names, n);
	timeline_set_names(session, names, n);
}

static void take_step(void)
{
	const uint8_t i = reader_below(&input, SESSIONS_MAX);
	char label[32];

	if (!sessions[i]) {
		snprintf(label, sizeof(label), "\"%c\\", reader_u8(&input));
		sessions[i] = timeline_session_new(&timeline, i + 1u, label);
		need(sessions[i]);
		need(!trace_merge_add(&merge, reader_below(&input, 4), i + 1u));
		return;
	}
	switch (reader_below(&input, 8)) {
	case 0:
		timeline_session_free(sessions[i]);
		sessions[i] = NULL;
		break;
	case 1:
		set_names(sessions[i]);
		break;
	default:
		add_events(sessions[i]);
	}
}

static void merge_guest(void)
{
	if (guest_fd < 0) {
		guest_fd = memfd_create("guest", MFD_CLOEXEC);
		need(guest_fd >= 0);
		snprintf(guest_path, sizeof(guest_path), "/proc/self/fd/%d", guest_fd);
	}
	need(!ftruncate(guest_fd, 0));
	need(pwrite(guest_fd, input.bytes, input.size, 0) == (ssize_t)input.size);
	merge.path = guest_path;
	trace_merge(&merge, &timeline);
}

/*
 * The file
 */

static void check_text(const char *text)
{
	need(text);
	for (; *text; text++)
		need(*text >= ' ' && *text <= '~');
}

static void check_file(const char *text, size_t size)
{
	json_t *root = json_loadb(text, size, 0, NULL);
	uint64_t n_slices = 0, n_begins = 0, n_ends = 0;
	json_t *event;
	size_t i;

	need(root);
	json_array_foreach(json_object_get(root, "traceEvents"), i, event)
	{
		const char *phase = json_string_value(json_object_get(event, "ph"));

		need(phase);
		check_text(json_string_value(json_object_get(event, "name")));
		n_slices += *phase == 'X';
		n_begins += *phase == 's';
		n_ends += *phase == 'f';
		if (*phase == 'M')
			continue;
		need(json_number_value(json_object_get(event, "ts")) >= 0);
		need(json_number_value(json_object_get(event, "dur")) >= 0);
	}
	need(n_slices == timeline.n_slices);
	need(n_begins == timeline.n_flows && n_ends == timeline.n_flows);
	need(json_is_object(json_object_get(root, "otherData")));
	json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = NULL;
	size_t text_size;
	FILE *file = open_memstream(&text, &text_size);

	need(file);
	input = (struct reader){ .bytes = data, .size = size };
	now = HOST_S * 1000000000ull;
	timeline_begin(&timeline, file);
	for (unsigned int i = reader_below(&input, STEPS_MAX); i; i--)
		take_step();
	for (unsigned int i = 0; i < SESSIONS_MAX; i++) {
		timeline_session_free(sessions[i]);
		sessions[i] = NULL;
	}
	merge_guest();
	timeline_end(&timeline, "vm");
	need(!fclose(file));
	check_file(text, text_size);
	free(text);
	free(merge.processes);
	merge = (struct trace_merge){};
	return 0;
}
