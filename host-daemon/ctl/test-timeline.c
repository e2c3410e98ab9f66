/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timelines, also of workers that lie
 */

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/timeline.h"
#include "test.h"
#include "vgpu/g-calls.h"

static struct timeline timeline;
static struct timeline_session *session;
static char *text;
static size_t size;

static void begin(void)
{
	FILE *file = open_memstream(&text, &size);

	check(file);
	timeline_begin(&timeline, file);
	session = timeline_session_new(&timeline, 5, "program \"x\"\n");
	check(session);
}

/* Returns: the events. */
static json_t *end(void)
{
	json_t *json;

	timeline_session_free(session);
	timeline_end(&timeline, "one");
	fclose(timeline.file);
	json = json_loads(text, 0, NULL);
	check(json);
	free(text);
	return json;
}

static size_t count(json_t *json, const char *phase)
{
	json_t *events = json_object_get(json, "traceEvents"), *event;
	size_t i, n = 0;

	json_array_foreach(events, i, event) n +=
		!strcmp(json_string_value(json_object_get(event, "ph")), phase);
	return n;
}

static struct trace_event make(uint64_t number, enum trace_kind kind, uint64_t ns)
{
	return (struct trace_event){
		.number = number,
		.kind = (uint8_t)kind,
		.ns = ns,
		.call_number = 9,
		.call = VGPU_CALL_cuLaunchKernel,
	};
}

TEST(a_launch_and_its_kernel_are_two_slices_and_an_arrow)
{
	const struct trace_event events[] = {
		make(1, TRACE_TAKE, 1000),
		make(2, TRACE_TAKEN, 2500),
		make(3, TRACE_WORK, 3000),
		make(4, TRACE_COMPLETE, 4001),
	};
	uint8_t names[2 * TRACE_NAME_SIZE] = "a\"b\\\x01";
	json_t *json;

	begin();
	timeline_set_names(session, names, sizeof(names));
	timeline_add(session, 1, events, 4);
	check_eq(timeline.n_slices, 2);
	check_eq(timeline.n_flows, 1);
	check_eq(timeline.n_wrong, 0);
	json = end();
	check_eq(count(json, "X"), 2);
	check_eq(count(json, "s"), 1);
	check_eq(count(json, "f"), 1);
	json_decref(json);
}

TEST(what_lacks_its_half_is_counted_or_ends_with_the_trace)
{
	const struct trace_event events[] = {
		make(1, TRACE_TAKEN, 1000),
		make(2, TRACE_RUN, 2000),
		make(3, TRACE_WORK, 3000),
		make(4, TRACE_TAKE, 4000),
	};
	json_t *json;

	begin();
	timeline_add(session, 1, events, 4);
	check_eq(timeline.n_slices, 0);
	check_eq(timeline.n_wrong, 1);
	json = end();
	check_eq(count(json, "X"), 3);
	json_decref(json);
}

TEST(a_slice_whose_end_was_lost_is_there_for_its_arrow)
{
	const struct trace_event events[] = {
		make(1, TRACE_TAKE, 1000),
		make(2, TRACE_WORK, 2000),
		make(3, TRACE_TAKE, 3000),
		make(4, TRACE_TAKEN, 4000),
	};
	json_t *json;

	begin();
	timeline_add(session, 1, events, 4);
	check_eq(timeline.n_slices, 2);
	check_eq(timeline.n_wrong, 1);
	json = end();
	check_eq(count(json, "X"), 3);
	check_eq(count(json, "s"), 1);
	json_decref(json);
}

TEST(lost_events_are_counted)
{
	struct trace_event events[2] = {
		make(11, TRACE_TAKE, 1),
		make(99, TRACE_TAKEN, 2),
	};
	json_t *json;

	begin();
	timeline_add(session, 11, events, 2);
	check_eq(timeline.n_lost, 11);
	json = end();
	check_eq(json_integer_value(
			 json_object_get(json_object_get(json, "otherData"), "lost")),
		11);
	json_decref(json);
}

TEST(an_event_that_is_not_written_yet_is_told_from_one_that_is_overwritten)
{
	struct trace_event events[] = {
		{ .number = 7 },
		/* That of the next round of the ring. */
		{ .number = 8 + TRACE_EVENTS },
		{ .number = 9 },
		{ .number = 10 + TRACE_EVENTS },
	};

	check_eq(timeline_complete(7, events, 4), 4);
	events[2].number = 0;
	check_eq(timeline_complete(7, events, 4), 2);
	events[2].number = 9;
	/* Those of the round before. */
	check_eq(timeline_complete(7 + TRACE_EVENTS, events, 4), 0);
	check_eq(timeline_complete(7, events, 0), 0);
}

TEST(lost_events_of_many_sessions_that_lie_are_a_number_that_can_be_read)
{
	struct trace_event event = make(INT64_MAX - 1, TRACE_TAKE, 1);
	struct timeline_session *other;
	json_t *json;

	begin();
	timeline_add(session, event.number, &event, 1);
	other = timeline_session_new(&timeline, 6, "another");
	check(other);
	timeline_add(other, event.number, &event, 1);
	timeline_session_free(other);
	check_eq(timeline.n_lost, INT64_MAX);
	json = end();
	json_decref(json);
}

TEST(any_bytes_are_a_file_that_can_be_read)
{
	struct trace_event events[64];
	uint32_t state = 7;
	json_t *json;

	begin();
	for (uint64_t first = 1; first < 6400; first += 64) {
		for (size_t i = 0; i < 64; i++) {
			uint8_t *bytes = (uint8_t *)&events[i];

			for (size_t k = 0; k < sizeof(events[i]); k++) {
				state = state * 1664525 + 1013904223;
				bytes[k] = state >> 24;
			}
			events[i].number = first + i;
			events[i].kind %= _TRACE_KIND_N + 1;
			if (i % 2) {
				events[i].lane %= 4;
				events[i].ns %= 1000000;
				events[i].call_number %= 8;
				events[i].value %= 1 << 18;
			}
		}
		timeline_add(session, first, events, 64);
	}
	json = end();
	check(count(json, "X") > 0);
	check_eq(count(json, "s"), count(json, "f"));
	json_decref(json);
}
