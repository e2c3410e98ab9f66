/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Recorded: the session whose calls are written into a recording
 */

#include "driver/driver.h"
#include "vgpu/device-info.h"
#include "worker/base/lane.h"
#include "worker/base/recorder.h"

/* What a recording says of its origin. */
struct recorded_origin {
	const char *release;
	const char *driver;
	const struct control_assign *assign;
	const struct softgpu_config *softgpu;  /* NULL: another driver */
	const struct vgpu_device_info *device; /* NULL: there is none */
};

/* Begins to record a session that has just been initialised. Takes the socket. Without
 * memory the session is not recorded. */
void recorded_start(
	struct session *session, int fd, const struct recorded_origin *origin);

/* For struct softgpu_config; the data is the session, which may not be recorded. */
void recorded_fault(void *data, int result, const char *text);

/* For the dispatcher, before a call runs or goes to a lane. */
void recorded_take(struct session *session, const struct vgpu_frame *frame);

/* For the dispatcher, after it has given a call to a lane: waits until the lane has run
 * it, so that the next call cannot overtake it. */
void recorded_wait(
	struct session *session, struct lane *lane, const struct vgpu_frame *frame);
