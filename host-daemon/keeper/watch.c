/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watch: whether the broker still answers
 *
 * A broker that does not answer a ping either hangs or is not scheduled. Another broker
 * would not be scheduled either, and the kernel shows the difference: a thread that waits
 * for a processor is runnable and uses no time. A broker that hangs sleeps or is stopped
 * while a message waits in its socket, or it runs for longer than any task of a broker
 * takes. A broker under a debugger, or one that waits for a disk, is not killed.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "keeper/watch.h"
#include "vgpu/cleanup.h"

#define WATCH_LOOK_MS 400
/* Samples in a row in which it sleeps or is stopped. */
#define WATCH_STILL_MAX 4
/* Processor time between ping and answer; until the first answer there is also what the
 * start of a broker takes, on a slow machine with many VMs. In a virtual machine it may
 * include what other machines take. */
#define WATCH_CPU_MS 2000
#define WATCH_START_CPU_MS 20000

void watch_begin(struct watch *watch, pid_t pid, int64_t now)
{
	*watch = (struct watch){ .pid = pid, .look_at = now + WATCH_LOOK_MS };
}

void watch_handle_answer(struct watch *watch, uint64_t ping)
{
	if (ping == watch->asked)
		watch->answered = ping;
}

int watch_timeout(const struct watch *watch, int64_t now)
{
	return watch->look_at > now ? (int)(watch->look_at - now) : 0;
}

/* Samples its main thread: the others make long system calls. */
static void look(pid_t pid, struct watch_sight *sight)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	unsigned long long user, system;
	char path[64], text[1024];
	const char *fields;
	ssize_t n;

	*sight = (struct watch_sight){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return;
	text[n] = '\0';
	/* After the name, which may contain anything. */
	fields = strrchr(text, ')');
	if (!fields ||
		sscanf(fields, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
			&sight->state, &user, &system) != 3) {
		sight->state = 0;
		return;
	}
	sight->cpu_ms = (user + system) * 1000 / (unsigned long)sysconf(_SC_CLK_TCK);
}

bool watch_judge(struct watch *watch, const struct watch_sight *sight)
{
	const uint64_t cpu_max_ms = watch->answered ? WATCH_CPU_MS : WATCH_START_CPU_MS;

	if (!watch->n_seen++)
		watch->cpu_ms = sight->cpu_ms;
	if (sight->state == 'S' || sight->state == 'T')
		watch->n_still++;
	else
		watch->n_still = 0;
	return watch->n_still >= WATCH_STILL_MAX ||
	       (sight->state == 'R' && sight->cpu_ms >= watch->cpu_ms + cpu_max_ms);
}

enum watch_verdict watch_look(struct watch *watch, int64_t now)
{
	struct watch_sight sight;

	if (now < watch->look_at)
		return WATCH_NOTHING;
	watch->look_at = now + WATCH_LOOK_MS;
	if (watch->answered == watch->asked) {
		watch->asked++;
		watch->n_seen = watch->n_still = 0;
		return WATCH_PING;
	}
	look(watch->pid, &sight);
	return watch_judge(watch, &sight) ? WATCH_HUNG : WATCH_NOTHING;
}
