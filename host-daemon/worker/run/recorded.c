/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded: the session whose calls are written into a recording
 */

#include <string.h>
#include <unistd.h>

#include "vgpu/g-calls.h"
#include "vgpu/log.h"
#include "worker/base/session.h"
#include "worker/memory/arena.h"
#include "worker/memory/device-memory.h"
#include "worker/run/lane-thread.h"
#include "worker/run/recorded.h"

/* Longer than nearly all calls that do not wait for the device; one that waits for the
 * guest, against expectation, delays others for so long. */
#define WAIT_MS 500u
/* Looking at so much takes some 20 ms. */
#define SCAN_MAX (64ull << 20)

/* Into zeroed memory, cut to its size. */
static void copy_text(char *to, size_t size, const char *from)
{
	if (from)
		memcpy(to, from, strnlen(from, size - 1));
}

static void describe_softgpu(
	struct recording_header *header, const struct softgpu_config *softgpu)
{
	header->is_softgpu = 1;
	header->cc = softgpu->cc;
	header->memory = softgpu->memory;
	header->n_softgpus = softgpu->n_devices;
	header->n_threads = softgpu->n_threads;
	header->timeout_ms = softgpu->timeout_ms;
	header->schedule = softgpu->schedule;
	copy_text(header->name, sizeof(header->name), softgpu->name);
	copy_text(header->check, sizeof(header->check), softgpu->check);
}

void recorded_start(struct session *session, int fd, const struct recorded_origin *origin)
{
	const struct quota_page *quota = session->memory->page;
	struct quota_limits limits;
	struct recording_header header = {
		.magic = RECORDING_MAGIC,
		.version = RECORDING_VERSION,
		.control_version = CONTROL_VERSION,
		.driver_version = session->driver_version,
		.n_devices = (uint32_t)session->n_devices,
		.assign = *origin->assign,
	};

	static_assert(sizeof(limits.values) <= sizeof(header.limits), "they have room");
	/* That of the last WINDOW, if there was one. */
	header.assign.window_base = session->window.base;
	header.assign.window_size = session->window.size;
	copy_text(header.release, sizeof(header.release), origin->release);
	copy_text(header.driver, sizeof(header.driver), origin->driver);
	if (origin->device) {
		copy_text(header.device, sizeof(header.device), origin->device->name);
		header.device_memory = origin->device->total_memory;
	}
	if (quota) {
		quota_read_limits(quota, &limits);
		memcpy(header.limits, limits.values, sizeof(limits.values));
		header.quota = quota_limit(quota);
		header.quota_others = quota_of_others(quota, header.assign.quota_slot);
	}
	if (origin->softgpu)
		describe_softgpu(&header, origin->softgpu);
	if (recorder_start(session, fd, &header))
		vgpu_log_warning("the session is not recorded: there is no memory");
	else
		vgpu_log_info("the session is recorded");
}

void recorded_fault(void *data, int result, const char *text)
{
	struct session *session = data;

	if (session_is_recorded(session))
		recorder_fault(session, result, text);
}

/*
 * Launches
 */

static bool is_launch(const char *name)
{
	return !strncmp(name, "cuLaunch", 8) || !strcmp(name, "cuGraphLaunch");
}

/* Whether an address of the host in it is one that the device uses. Copies from the host
 * and to it are no such calls: their memory is recorded with them. */
static bool takes_pointers(const char *name)
{
	static const char *const names[] = { "cuGraph", "cuMemcpyAtoD", "cuMemcpyDtoA",
		"cuMemcpyDtoD", "cuMemcpyPeer", "cuMemset" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return is_launch(name);
}

/* Whether what it does may read host memory at an address of the device. */
static bool may_read(const char *name)
{
	return is_launch(name) || !strncmp(name, "cuMemcpy", 8) ||
	       !strncmp(name, "cuMemset", 8);
}

/* Whether a frame has an address of the arena among its bytes, as kernel parameters have
 * pointers. */
static bool has_pointer(const struct session *session, const struct vgpu_frame *frame)
{
	const uint64_t first = session->arena->base;
	const uint64_t size = session->arena->n_extents * (uint64_t)VGPU_EXTENT_SIZE;
	const uint32_t n = frame->size - (uint32_t)sizeof(*frame);
	uint64_t word;

	for (uint32_t i = 0; i + sizeof(word) <= n; i++) {
		memcpy(&word, frame->body + i, sizeof(word));
		if (word - first < size)
			return true;
	}
	return false;
}

/* Looks at the parts of an extent that have memory, so that others need none. Return:
 * bytes looked at. */
static uint64_t scan_extent(struct session *session, uint64_t offset)
{
	const uint64_t end = offset + VGPU_EXTENT_SIZE;
	uint64_t n = 0;

	while (offset < end) {
		const off_t data = lseek(session->arena->memfd, (off_t)offset, SEEK_DATA);
		uint64_t hole = end;

		if (data < 0 || (uint64_t)data >= end)
			break;
		offset = (uint64_t)data;
		hole = (uint64_t)lseek(session->arena->memfd, data, SEEK_HOLE);
		if (hole > end || hole <= offset)
			hole = end;
		recorder_scan(session, offset, hole - offset);
		n += hole - offset;
		offset = hole;
	}
	return n;
}

/* Writes what has changed in all of the session's arena. */
static void scan(struct session *session)
{
	const struct arena *arena = session->arena;
	uint64_t n = 0;

	for (uint32_t i = 0; i < arena->n_extents; i++) {
		if (!arena_has_extent(session, i))
			continue;
		if (n >= SCAN_MAX) {
			recorder_note(session, RECORDING_NOTE_UNCOVERED);
			return;
		}
		n += scan_extent(
			session, session->extents_off + (uint64_t)i * VGPU_EXTENT_SIZE);
	}
}

/*
 * Order
 */

/* Calls that wait for the device or the guest, for any time, and change nothing. */
static bool only_waits(const struct vgpu_frame *frame)
{
	switch (frame->call) {
	case VGPU_CALL_cuCtxSynchronize:
	case VGPU_CALL_cuCtxSynchronize_v2:
	case VGPU_CALL_cuStreamSynchronize:
	case VGPU_CALL_cuEventSynchronize:
	case VGPU_CALL_vgpuCallbackNext:
	case VGPU_CALL_vgpuNoticeNext:
		return true;
	default:
		return false;
	}
}

void recorded_wait(
	struct session *session, struct lane *lane, const struct vgpu_frame *frame)
{
	if (only_waits(frame) || !recorder_is_on(session->recorder))
		return;
	if (lane_wait(lane, WAIT_MS))
		recorder_note(session, RECORDING_NOTE_OVERLAP);
}

void recorded_take(struct session *session, const struct vgpu_frame *frame)
{
	struct recorder *recorder = session->recorder;
	const char *name = vgpu_call_name(frame->call);

	if (!recorder_is_on(recorder))
		return;
	recorder_take(session, session->runner.number, frame);
	if (takes_pointers(name) && has_pointer(session, frame))
		recorder_follow_pointers(recorder);
	/* A function of the guest has run, and may have filled memory for copies that
	 * wait for it. */
	if (frame->call == VGPU_CALL_vgpuCallbackDone ||
		((may_read(name) || only_waits(frame)) &&
			recorder_follows_pointers(recorder)))
		scan(session);
}
