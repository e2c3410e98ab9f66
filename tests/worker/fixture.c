/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session on the fake driver, and a guest in the same process
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixture.h"
#include "vgpu/g-calls.h"
#include "worker/base/lane.h"
#include "worker/memory/arena.h"
#include "worker/memory/device-memory.h"
#include "worker/run/call-run.h"
#include "worker/run/reservation.h"
#include "worker/run/session-life.h"

static void must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "fixture: %s\n", what);
	abort();
}

/* Small, so that it is freed quickly, and wherever the sanitizers leave room. */
static void reserve_window(struct fixture *fixture)
{
	struct reservation reservation = {};
	uint64_t size = FIXTURE_SHM_SIZE + VGPU_WINDOW_DEVICE_MIN;

	fixture->window = (struct vgpu_window){ 0x550000000000ull, size };
	must(!reservation_settle(&reservation, &fixture->window), "no window");
}

void fixture_init(struct fixture *fixture)
{
	struct control_assign assign = {
		.vm = "test",
		.channel = 3,
		.shm_size = FIXTURE_SHM_SIZE,
		.area_off = FIXTURE_AREA_OFF,
		.extents_off = FIXTURE_EXTENTS_OFF,
		.first_extent = FIXTURE_FIRST_EXTENT,
		.n_extents = FIXTURE_N_EXTENTS,
	};
	int memfd = memfd_create("fixture", MFD_CLOEXEC);

	memset(fixture, 0, sizeof(*fixture));
	must(memfd >= 0 && !ftruncate(memfd, FIXTURE_SHM_SIZE), "no memory");
	reserve_window(fixture);
	fake_driver_init(&fixture->driver, fixture->window.base + FIXTURE_SHM_SIZE);
	must(!session_prepare(&fixture->session, &fixture->driver) &&
			!session_init(&fixture->session, &fixture->stats, &fixture->use,
				&fixture->flight, -1, &assign, &fixture->window,
				&(struct session_fds){ memfd, -1, -1, -1 }),
		"no session");
	fixture->session.wishes = &fixture->wishes;
	fixture->arena = fixture->session.arena->base +
			 (uint64_t)FIXTURE_FIRST_EXTENT * VGPU_EXTENT_SIZE;
	fixture->context = vgpu_handle_make(VGPU_HANDLE_CONTEXT, 0, 1);
}

void fixture_deinit(struct fixture *fixture)
{
	session_deinit(&fixture->session);
	munmap((void *)(uintptr_t)fixture->window.base, fixture->window.size);
}

void fixture_limit_memory(struct fixture *fixture, uint64_t limit)
{
	int fd;

	must(!quota_make(&fd) && !device_memory_share(&fixture->session, fd, 1),
		"no page of quotas");
	quota_open(fixture->session.memory->page, 1);
	quota_set_limit(fixture->session.memory->page, limit);
}

static void take_reply(struct fixture *fixture, uint32_t lane)
{
	const struct vgpu_reply_slot *slot =
		(const struct vgpu_reply_slot *)(fixture->session.area + VGPU_SLOTS_OFF) +
		lane;

	must(slot->sequence == fixture->sequence, "no reply");
	must(slot->size <= VGPU_REPLY_MAX, "a reply larger than its slot");
	fixture->reply_size = slot->size;
	memcpy(fixture->reply, slot->body, slot->size);
	/* Field 1 is the result, and missing where it is 0. */
	fixture->result = 0;
	if (slot->size && slot->body[0] == 1 << 3)
		fixture->result = slot->body[1] < 0x80
					  ? slot->body[1]
					  : (slot->body[1] & 0x7f) | slot->body[2] << 7;
}

int fixture_call_bytes(struct fixture *fixture, uint32_t lane, uint32_t call,
	uint32_t flags, const void *body, uint32_t size)
{
	struct vgpu_frame *frame = malloc(sizeof(*frame) + size);
	struct lane *caller = lane_get(&fixture->session, lane);
	int r;

	must(frame && caller, "no memory");
	*frame = (struct vgpu_frame){
		.size = sizeof(*frame) + size,
		.call = call,
		.flags = flags,
		.lane = lane,
		.sequence = ++fixture->sequence,
	};
	if (size)
		memcpy(frame->body, body, size);
	r = call_run(&fixture->session, &fixture->session.runner, caller, caller->context,
		frame, &fixture->why);
	if (!r && flags & VGPU_FRAME_REPLY)
		take_reply(fixture, lane);
	free(frame);
	return r;
}

int fixture_call(struct fixture *fixture, uint32_t lane, uint32_t call, uint32_t flags,
	const ProtobufCMessage *request)
{
	static uint8_t body[VGPU_FRAME_MAX];
	size_t size = protobuf_c_message_get_packed_size(request);

	must(size <= sizeof(body) - sizeof(struct vgpu_frame), "too large a request");
	protobuf_c_message_pack(request, body);
	return fixture_call_bytes(fixture, lane, call, flags, body, size);
}

void fixture_enter(struct fixture *fixture, uint32_t lane)
{
	Vgpu__VgpuLaneContextRequest request = VGPU__VGPU_LANE_CONTEXT_REQUEST__INIT;

	request.context = fixture->context;
	must(!fixture_call(fixture, lane, VGPU_CALL_vgpuLaneContext, 0, &request.base),
		"no context");
}

void fixture_submit_event(struct vgpu_ring_producer *producer, uint32_t sequence)
{
	Vgpu__CuEventCreateRequest request = VGPU__CU_EVENT_CREATE_REQUEST__INIT;
	struct vgpu_frame *frame;
	size_t size;

	request.event = vgpu_handle_make(VGPU_HANDLE_EVENT, sequence, 1);
	size = sizeof(*frame) + vgpu__cu_event_create_request__get_packed_size(&request);
	frame = vgpu_ring_reserve(producer, size);
	must(frame, "the ring is full");
	*frame = (struct vgpu_frame){
		.size = size,
		.call = VGPU_CALL_cuEventCreate,
		.sequence = sequence,
	};
	vgpu__cu_event_create_request__pack(&request, frame->body);
	vgpu_ring_commit(producer, size);
}
