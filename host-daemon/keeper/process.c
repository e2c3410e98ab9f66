/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process: signals, limits and priority of the keeper's process
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/child.h"
#include "keeper/process.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpud/shortage.h"
#include "vgpud/signals.h"

/* Priority of keeper and broker, above their workers and guests. */
#define NICE (-10)
/* Time at the end for processes of workers that are gone. */
#define ORPHANS_MS 1000

int process_catch_signals(int *fdp)
{
	sigset_t set;

	signals_ignore();
	/* An ignored signal would not arrive. */
	signal(SIGUSR1, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return vgpu_error_origin(-errno);
	*fdp = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *fdp < 0 ? vgpu_error_origin(-errno) : 0;
}

/* A VM takes up to 67 descriptors in the keeper and as many in the broker. endpoints.c
 * divides the limit among VMs. */
void process_raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Guests wait for a greeting, and consider a broker without a heartbeat dead: so these
 * two processes have a higher priority than their workers. This needs root; without, they
 * do not. */
void process_raise_priority(void)
{
	if (child_raise_priority(NICE) < 0)
		vgpu_log_debug("vgpud has no higher priority than its workers");
}

/* What a worker started before it was killed, such as a sanitizer's tracer, ends with it
 * but is reaped here. */
void process_reap_orphans(void)
{
	for (int ms = 0; ms < ORPHANS_MS; ms++) {
		const pid_t pid = waitpid(-1, NULL, WNOHANG);

		if (pid < 0)
			return;
		if (!pid)
			usleep(1000);
	}
}

/* One namespace for all workers is enough: their filter refuses all sockets. */
int process_make_network(int *networkp)
{
	_vgpu_cleanup_(vgpu_closep) int ours = -1;

	ours = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (ours < 0 || unshare(CLONE_NEWNET) < 0)
		return vgpu_error_origin(-errno);
	*networkp = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (setns(ours, CLONE_NEWNET) < 0)
		return vgpu_error_origin(-errno);
	return *networkp < 0 ? vgpu_error_origin(-errno) : 0;
}

void process_log_broker_exit(int status)
{
	if (WIFSIGNALED(status))
		vgpu_log_error("the broker was ended by signal %d (%s), another is "
			       "started; running jobs continue",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		vgpu_log_error("the broker exited with %d, another is started; running "
			       "jobs continue",
			WEXITSTATUS(status));
}

bool process_lacked_room(int status)
{
	if (!WIFEXITED(status))
		return false;
	return WEXITSTATUS(status) == EXIT_SHORTAGE ||
	       WEXITSTATUS(status) == CHILD_EXIT_NOT_EXECUTED;
}

bool process_has_message(int link)
{
	struct pollfd poller = { .fd = link, .events = POLLIN };

	return poll(&poller, 1, 0) > 0 && poller.revents & POLLIN;
}
