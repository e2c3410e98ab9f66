/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child: starts a process with exactly the given descriptors
 */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "keeper/child.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpud/signals.h"

/* The original priority of this process; constant after child_raise_priority(). */
static int given_nice;

/* Moves the descriptors to their numbers, through unused numbers. */
static bool place_fds(const struct child *child)
{
	const int above = CHILD_FIRST_FD + CHILD_FDS_MAX;
	int copies[CHILD_FDS_MAX], null;

	if (child->output >= 0 && dup2(child->output, STDERR_FILENO) < 0)
		return false;
	for (size_t i = 0; i < child->n_fds; i++) {
		copies[i] = fcntl(child->fds[i], F_DUPFD_CLOEXEC, above);
		if (copies[i] < 0)
			return false;
	}
	for (size_t i = 0; i < child->n_fds; i++)
		if (dup2(copies[i], CHILD_FIRST_FD + i) < 0)
			return false;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
		dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return false;
	return close_range(CHILD_FIRST_FD + child->n_fds, ~0u, 0) == 0;
}

static void __attribute__((__noreturn__)) run(const struct child *child, pid_t parent)
{
	sigset_t none;

	/* The parent may have died before PR_SET_PDEATHSIG took effect. */
	if (!child->outlives &&
		(prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
		_exit(CHILD_EXIT_NOT_EXECUTED);
	/* Programs other than vgpud itself run at vgpud's original priority. */
	if (child->own_session) {
		setsid();
		setpriority(PRIO_PROCESS, 0, given_nice);
		signals_restore();
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (child->network >= 0 && setns(child->network, CLONE_NEWNET) < 0)
		_exit(CHILD_EXIT_NOT_EXECUTED);
	if (place_fds(child))
		execv(child->path, child->argv);
	vgpu_log_error("cannot execute %s: %s", child->path, strerror(errno));
	_exit(CHILD_EXIT_NOT_EXECUTED);
}

int child_raise_priority(int nice)
{
	given_nice = getpriority(PRIO_PROCESS, 0);
	if (given_nice <= nice)
		return 0;
	return setpriority(PRIO_PROCESS, 0, nice) < 0 ? vgpu_error_origin(-errno) : 0;
}

void child_restore_priority(void)
{
	setpriority(PRIO_PROCESS, 0, given_nice);
}

int child_spawn(pid_t *pidp, const struct child *child)
{
	pid_t parent = getpid(), pid;

	assert(child->n_fds <= CHILD_FDS_MAX);
	pid = fork();
	if (pid < 0)
		return vgpu_error_origin(-errno);
	if (!pid)
		run(child, parent);
	*pidp = pid;
	return 0;
}
