/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: generated dispatch and the handlers
 *
 * The input is a sequence of frames as on the ring, each padded. A session on the fake
 * driver runs them one after the other until one violates the protocol. For any input,
 * only the driver's own objects reach the driver (it aborts otherwise), and each call
 * that requests a reply gets one (the fixture aborts otherwise).
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "worker/base/call.h"
#include "worker/memory/notice.h"
#include "worker/run/dispatch.h"
#include "worker/stream/callbacks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define IMAGE_SIZE 16u

static struct fixture fixture;

static void promise(bool kept)
{
	if (!kept)
		abort();
}

/* A call that this host does not know, which the dispatcher itself answers or refuses.
 * Return: false for a violation. */
static bool run_unknown(const struct vgpu_frame *frame)
{
	const struct vgpu_reply_slot *slots =
		(const struct vgpu_reply_slot *)(fixture.session.area + VGPU_SLOTS_OFF);
	const bool is_answered = frame->call && frame->flags & VGPU_FRAME_REPLY &&
				 frame->lane < VGPU_SLOTS_MAX;
	const int r = dispatch_frame(&fixture.session, frame, &fixture.why);

	promise(is_answered ? !r : r == CALL_E_VIOLATION);
	promise(!is_answered || slots[frame->lane].sequence == frame->sequence);
	return is_answered;
}

/* Returns: how many bytes the frame took, 0 at the end of the row. */
static size_t run_frame(const uint8_t *data, size_t size)
{
	struct vgpu_frame frame;
	size_t padded;

	if (size < sizeof(frame))
		return 0;
	memcpy(&frame, data, sizeof(frame));
	/* Other frames never come from the ring. */
	if (frame.size < sizeof(frame) || frame.size > size ||
		frame.size > VGPU_FRAME_MAX)
		return 0;
	if (!dispatch_knows(&frame)) {
		if (!run_unknown(&frame))
			return 0;
	} else if (fixture_call_bytes(&fixture, frame.lane % 4, frame.call,
			   frame.flags & VGPU_FRAME_REPLY, data + sizeof(frame),
			   frame.size - sizeof(frame))) {
		return 0;
	}
	padded = vgpu_frame_padded(frame.size);
	return padded < size ? padded : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t offset = 0, taken;

	fixture_init(&fixture);
	fixture_enter(&fixture, 0);
	/* For seeds: an image that is not empty, where the arena begins. */
	memset((void *)(uintptr_t)fixture.arena, 'x', IMAGE_SIZE);
	/* A request for callbacks or notices blocks until one is due: another thread
	 * already waits for them. */
	fixture.session.callbacks->is_asked = true;
	fixture.session.notices->is_asked = true;
	do {
		taken = run_frame(data + offset, size - offset);
		offset += taken;
	} while (taken);
	fixture_deinit(&fixture);
	return 0;
}
