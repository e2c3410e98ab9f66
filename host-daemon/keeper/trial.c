/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trial: whether another program can be the keeper's successor
 */

#include <signal.h>
#include <sys/wait.h>

#include "keeper/child.h"
#include "keeper/handover.h"
#include "keeper/trial.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpud/clock.h"

/* A program that is none of ours may run for ever. */
#define TRIAL_MS 10000
/* After the kill: its exit is reported by a signal. */
#define TRIAL_AGAIN_MS 1000

int trial_begin(struct trial *trial, const char *program, int state, int sources)
{
	char *argv[] = { "vgpud", HANDOVER_TRIAL, NULL };
	const struct child child = {
		.path = program,
		.argv = argv,
		.fds = (int[]){ state, sources },
		.n_fds = 2,
		.output = -1,
		.network = -1,
	};
	const int r = child_spawn(&trial->pid, &child);

	if (r) {
		trial->pid = 0;
		return vgpu_error_trace(r);
	}
	trial->program = program;
	trial->end = clock_now() + TRIAL_MS;
	return 0;
}

void trial_watch(struct trial *trial, int64_t now)
{
	if (!trial->pid || now < trial->end)
		return;
	kill(trial->pid, SIGKILL);
	trial->end = now + TRIAL_AGAIN_MS;
}

bool trial_handle_exit(struct trial *trial, pid_t pid, int status, bool *canp)
{
	const bool has_exited = WIFEXITED(status);

	if (!trial->pid || trial->pid != pid)
		return false;
	trial->pid = 0;
	*canp = has_exited && WEXITSTATUS(status) == HANDOVER_EXIT_CAN;
	if (!*canp)
		vgpu_log_error("%s cannot take over (%s %d): the previous one is used "
			       "again",
			trial->program, has_exited ? "status" : "signal",
			has_exited ? WEXITSTATUS(status) : WTERMSIG(status));
	return true;
}
