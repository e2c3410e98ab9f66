/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session: the line about its end
 */

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "broker/session-line.h"
#include "test.h"
#include "vgpu/ring-layout.h"

TEST(the_line_has_every_counter_under_its_name)
{
	struct session_line session = {
		.vm = "a",
		.channel = 1,
		.guest_pid = 2,
		.worker = 3,
		.reason = "closed",
		.stats = {
			.launches = 4,
			.copies_h2d = 5,
			.copies_d2h = 6,
			.copies_d2d = 7,
			.memsets = 8,
			.bytes_h2d = 9,
			.bytes_d2h = UINT64_MAX,
			.calls = 11,
			.refused_async = 12,
			.slow_calls = 13,
			.images_sent = 14,
			.images_found = 15,
			.image_bytes = 16,
		},
	};
	char line[512];

	session_line_format(&session, line, sizeof(line));
	check_str(line,
		"session ended vm=a channel=1 pid=2 launches=4 copies_h2d=5 copies_d2h=6 "
		"copies_d2d=7 memsets=8 bytes_h2d=9 bytes_d2h=18446744073709551615 "
		"calls=11 refused_async=12 slow_calls=13 images_sent=14 "
		"images_found=15 image_bytes=16 worker=3 reason=closed");
}

TEST(every_reason_has_a_word_and_so_has_any_other_number)
{
	for (uint32_t i = 0; i < _VGPU_REASON_N; i++) {
		check(session_line_reason(i) != NULL);
		check(strcmp(session_line_reason(i), "unknown"));
	}
	check_str(session_line_reason(_VGPU_REASON_N), "unknown");
	check_str(session_line_reason(UINT32_MAX), "unknown");
}

TEST(counters_that_cannot_be_read_are_zero)
{
	struct worker_stats stats, zero = { 0 };
	int fd = memfd_create("test", MFD_CLOEXEC);

	memset(&stats, 1, sizeof(stats));
	session_line_read_stats(fd, &stats);
	check(!memcmp(&stats, &zero, sizeof(stats)));
	close(fd);
	memset(&stats, 1, sizeof(stats));
	session_line_read_stats(-1, &stats);
	check(!memcmp(&stats, &zero, sizeof(stats)));
}
