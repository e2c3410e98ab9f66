/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of a guest of a later release
 */

#include <string.h>

#include "fixture.h"
#include "test.h"
#include "vgpu/g-calls.h"
#include "vgpu/reason.h"
#include "worker/run/dispatch.h"

/* CUDA_ERROR_NOT_SUPPORTED as field 1 of a reply. */
static const uint8_t not_supported[] = { 1 << 3, 0xa1, 0x06 };

static struct fixture fixture;

static const struct vgpu_reply_slot *slot_of(uint32_t lane)
{
	return (const struct vgpu_reply_slot *)(fixture.session.area + VGPU_SLOTS_OFF) +
	       lane;
}

static void dispatch(uint32_t call, uint32_t lane, uint32_t sequence)
{
	struct vgpu_frame frame = {
		.size = sizeof(frame),
		.call = (uint16_t)call,
		.lane = lane,
		.flags = VGPU_FRAME_REPLY,
		.sequence = sequence,
	};

	check_eq(dispatch_frame(&fixture.session, &frame, &fixture.why), 0);
}

static void must_refuse(uint32_t call, uint32_t lane, uint32_t sequence)
{
	const struct vgpu_reply_slot *slot = slot_of(lane);

	check_eq(CUDA_ERROR_NOT_SUPPORTED, 801);
	dispatch(call, lane, sequence);
	check_eq(slot->sequence, sequence);
	check_eq(slot->reason, VGPU_REPLY_REASON_NONE);
	check_eq(slot->size, sizeof(not_supported));
	check(!memcmp(slot->body, not_supported, sizeof(not_supported)));
}

TEST(a_call_that_this_host_does_not_know_is_not_supported)
{
	static const uint32_t calls[] = { _VGPU_CALL_N, UINT16_MAX,
		VGPU_CALL_cuDriverGetVersion, VGPU_CALL_cuGraphAddHostNode };
	uint32_t sequence = 0;

	fixture_init(&fixture);
	fixture_enter(&fixture, 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		must_refuse(calls[i], 0, ++sequence);
		must_refuse(calls[i], VGPU_SLOTS_MAX - 1, ++sequence);
	}
	/* The session goes on. */
	dispatch(VGPU_CALL_vgpuHello, 0, ++sequence);
	check_eq(slot_of(0)->sequence, sequence);
	check(slot_of(0)->size);
	check(memcmp(slot_of(0)->body, not_supported, sizeof(not_supported)) != 0);
	fixture_deinit(&fixture);
}
