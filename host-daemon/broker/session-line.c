/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session line: the log line that sums up a session when it ends
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker/session-line.h"
#include "vgpu/ring-layout.h"

void session_line_read_stats(int fd, struct worker_stats *stats)
{
	/* Not mapped: the worker shares this memory, and may be compromised. */
	if (pread(fd, stats, sizeof(*stats), 0) != (ssize_t)sizeof(*stats))
		memset(stats, 0, sizeof(*stats));
}

int session_line_format(const struct session_line *session, char *line, size_t size)
{
	const struct worker_stats *s = &session->stats;

	return snprintf(line, size,
		"session ended vm=%s channel=%u pid=%u launches=%" PRIu64
		" copies_h2d=%" PRIu64 " copies_d2h=%" PRIu64 " copies_d2d=%" PRIu64
		" memsets=%" PRIu64 " bytes_h2d=%" PRIu64 " bytes_d2h=%" PRIu64
		" calls=%" PRIu64 " refused_async=%" PRIu64 " slow_calls=%" PRIu64
		" images_sent=%" PRIu64 " images_found=%" PRIu64 " image_bytes=%" PRIu64
		" worker=%d reason=%s",
		session->vm, session->channel, session->guest_pid, s->launches,
		s->copies_h2d, s->copies_d2h, s->copies_d2d, s->memsets, s->bytes_h2d,
		s->bytes_d2h, s->calls, s->refused_async, s->slow_calls, s->images_sent,
		s->images_found, s->image_bytes, (int)session->worker, session->reason);
}

const char *session_line_reason(uint32_t reason)
{
	static const char *const names[_VGPU_REASON_N] = {
		[VGPU_REASON_NONE] = "closed",
		[VGPU_REASON_VERSION] = "version",
		[VGPU_REASON_WINDOW] = "window",
		[VGPU_REASON_NO_DEVICE] = "no-device",
		[VGPU_REASON_LIMIT] = "limit",
		[VGPU_REASON_HOST] = "host",
		[VGPU_REASON_PROTOCOL] = "protocol",
		[VGPU_REASON_WORKER_DIED] = "worker-died",
		[VGPU_REASON_SHUTDOWN] = "shutdown",
		[VGPU_REASON_PROCESSES] = "max-processes",
		[VGPU_REASON_WORKERS] = "max-workers",
		[VGPU_REASON_HOST_MEMORY] = "host-memory",
		[VGPU_REASON_NO_DRIVER] = "no-driver",
	};

	return reason < _VGPU_REASON_N ? names[reason] : "unknown";
}
