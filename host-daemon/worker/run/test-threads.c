/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest threads: as many call as max-threads permits
 */

#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "test.h"
#include "vgpu/reason.h"
#include "worker/base/lane.h"
#include "worker/base/reason.h"
#include "worker/memory/arena.h"
#include "worker/memory/device-memory.h"
#include "worker/run/dispatch.h"

static struct fixture fixture;
static uint32_t sequence;

static const struct vgpu_reply_slot *slot_of(uint32_t lane)
{
	return (const struct vgpu_reply_slot *)(fixture.session.area + VGPU_SLOTS_OFF) +
	       lane;
}

static void dispatch(uint32_t call, uint32_t lane, uint32_t flags)
{
	struct vgpu_frame frame = {
		.size = sizeof(frame),
		.call = (uint16_t)call,
		.lane = lane,
		.flags = (uint16_t)flags,
		.sequence = ++sequence,
	};

	check_eq(dispatch_frame(&fixture.session, &frame, &fixture.why), 0);
	if (flags & VGPU_FRAME_REPLY)
		check_eq(slot_of(lane)->sequence, sequence);
}

/* Return: whether a guest thread of that lane may call. */
static bool may_call(uint32_t lane)
{
	const struct vgpu_reply_slot *slot = slot_of(lane);

	dispatch(VGPU_CALL_vgpuHello, lane, VGPU_FRAME_REPLY);
	/* CUDA_ERROR_OUT_OF_MEMORY as field 1 of the reply. */
	return !(slot->size == 2 && slot->body[0] == 1 << 3 && slot->body[1] == 2);
}

static void leave(uint32_t lane)
{
	dispatch(VGPU_CALL_vgpuLaneExit, lane, 0);
}

static void begin(uint32_t limit)
{
	sequence = 0;
	fixture_init(&fixture);
	fixture_limit_memory(&fixture, 0);
	fixture.session.lanes_max = limit;
}

static void set_limit(uint64_t limit)
{
	quota_set_limits(fixture.session.memory->page,
		&(struct quota_limits){ .values = { [QUOTA_THREADS] = limit } });
	device_memory_follow_limits(&fixture.session);
}

TEST(a_thread_beyond_the_limit_is_refused_with_a_reason)
{
	char text[VGPU_REASON_TEXT_MAX + 1] = "";

	begin(2);
	check(may_call(0));
	check(may_call(7));
	check(!may_call(3));
	check_eq(slot_of(3)->reason, VGPU_REPLY_REASON_LIMIT);
	reason_get(fixture.session.lanes[3], text);
	check(strstr(text, "may have 2 threads"));
	check(strstr(text, "max-threads ="));
	/* The sentence is fetched by a call, which is not refused. */
	dispatch(VGPU_CALL_vgpuReasonFetch, 3, VGPU_FRAME_REPLY);
	check(slot_of(3)->size > strlen(text));
	/* Those that are there go on. */
	check(may_call(0));
	check(may_call(7));
	fixture_deinit(&fixture);
}

TEST(the_next_thread_has_the_place_of_one_that_ended)
{
	begin(1);
	check(may_call(0));
	leave(0);
	check(may_call(0));
	check(!may_call(1));
	fixture_deinit(&fixture);
}

TEST(work_without_a_reply_is_not_lost_beyond_the_limit)
{
	Vgpu__CuEventCreateRequest request = VGPU__CU_EVENT_CREATE_REQUEST__INIT;
	uint8_t bytes[sizeof(struct vgpu_frame) + 64]
		__attribute__((__aligned__(8))) = {};
	struct vgpu_frame *frame = (struct vgpu_frame *)bytes;
	Vgpu__VgpuLaneContextRequest enter = VGPU__VGPU_LANE_CONTEXT_REQUEST__INIT;

	begin(1);
	fixture_enter(&fixture, 0);
	check(may_call(0));
	check(!may_call(1));
	*frame = (struct vgpu_frame){ .call = VGPU_CALL_vgpuLaneContext, .lane = 1 };
	enter.context = fixture.context;
	frame->size = (uint32_t)(sizeof(*frame) + vgpu__vgpu_lane_context_request__pack(
							  &enter, frame->body));
	check_eq(dispatch_frame(&fixture.session, frame, &fixture.why), 0);
	*frame = (struct vgpu_frame){ .call = VGPU_CALL_cuEventCreate, .lane = 1 };
	request.event = vgpu_handle_make(VGPU_HANDLE_EVENT, 5, 1);
	frame->size = (uint32_t)(sizeof(*frame) + vgpu__cu_event_create_request__pack(
							  &request, frame->body));
	check_eq(dispatch_frame(&fixture.session, frame, &fixture.why), 0);
	check_eq(fixture.session.objects[VGPU_HANDLE_EVENT].n_live, 1);
	check_eq(fixture.stats.refused_async, 0);
	check(!fixture.session.lanes[1]->started);
	fixture_deinit(&fixture);
}

TEST(a_limit_changes_for_a_running_session)
{
	begin(VGPU_SLOTS_MAX);
	for (uint32_t i = 0; i < 3; i++)
		check(may_call(i));
	set_limit(1);
	check_eq(fixture.session.lanes_max, 1);
	/* More threads than a lower limit permits keep their places until they end. */
	for (uint32_t i = 0; i < 3; i++)
		check(may_call(i));
	check(!may_call(3));
	leave(2);
	check(!may_call(2));
	leave(1);
	check(!may_call(1));
	leave(0);
	check(may_call(0));
	set_limit(2);
	check(may_call(1));
	check(!may_call(2));
	set_limit(UINT64_MAX);
	check_eq(fixture.session.lanes_max, VGPU_SLOTS_MAX);
	check(may_call(VGPU_SLOTS_MAX - 1));
	fixture_deinit(&fixture);
}

/* Callbacks of the program would never run without the guest library's thread. */
TEST(two_threads_of_the_guest_library_do_not_count)
{
	struct session *session = &fixture.session;
	struct vgpu_frame frame = {
		.size = sizeof(frame),
		.call = VGPU_CALL_vgpuNoticeNext,
		.flags = VGPU_FRAME_REPLY,
	};

	begin(1);
	check(may_call(0));
	for (frame.lane = 1; frame.lane < 4; frame.lane++)
		check_eq(dispatch_frame(session, &frame, &fixture.why), 0);
	check_eq(session->n_lanes, 1);
	check_eq(session->n_library_lanes, 2);
	check(session->lanes[1]->is_admitted && session->lanes[2]->is_admitted);
	check(!session->lanes[3]->is_admitted);
	check(!may_call(3));
	/* A session whose lanes run cannot be taken down, as in a worker. */
	close(fixture.session.arena->memfd);
}
