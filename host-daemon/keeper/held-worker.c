/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held worker: a worker process and vgpud's ends of its sockets and pipes
 *
 * Workers are children of the keeper, not of the broker that requested them: so they
 * outlive a broker, and only the process that reaps a pid ever signals it. They die with
 * the keeper, unless the service manager keeps their descriptors for the next one: that
 * one has their pidfds.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/control.h"
#include "keeper/child.h"
#include "keeper/held-worker.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpud/closer.h"
#include "vgpud/link.h"

#define WORKER_ARGS_MAX 46
/* How long a killed worker of another process is waited for. */
#define EXIT_MS 5000

/* Command line under construction; numbers are written into `text`. */
struct args {
	const char *argv[WORKER_ARGS_MAX + 1];
	unsigned int n;
	char memory[24], threads[16], timeout[16], devices[16], uid[16];
};

static void add_option(struct args *args, const char *name, const char *value)
{
	if (!value)
		return;
	args->argv[args->n++] = name;
	args->argv[args->n++] = value;
}

static void make_args(struct args *args, const struct config *config, const char *list,
	uid_t uid, bool outlives)
{
	*args = (struct args){ .argv = { "vgpu-worker" }, .n = 1 };
	add_option(args, "--control", "3");
	add_option(args, "--stats", "4");
	add_option(args, "--log-level", vgpu_log_level_name(vgpu_log_get_level()));
	add_option(args, "--sandbox", config->sandbox ? "yes" : "no");
	add_option(
		args, "--allow-unprivileged", config->allow_unprivileged ? "yes" : "no");
	if (outlives)
		add_option(args, "--outlive", "yes");
	if (uid) {
		snprintf(args->uid, sizeof(args->uid), "%u", (unsigned int)uid);
		add_option(args, "--uid", args->uid);
	}
	add_option(args, "--meter", config->meter ? "yes" : "no");
	add_option(args, "--driver", config->driver);
	add_option(args, "--devices", list);
	add_option(args, "--softgpu", config->softgpu);
	add_option(args, "--null-driver", config->null_driver);
	add_option(args, "--softgpu-name", config->softgpu_name);
	add_option(args, "--softgpu-cc", config->softgpu_cc);
	if (config->softgpu_memory) {
		snprintf(args->memory, sizeof(args->memory), "%llu",
			(unsigned long long)config->softgpu_memory);
		add_option(args, "--softgpu-memory", args->memory);
	}
	if (config->softgpu_threads) {
		snprintf(args->threads, sizeof(args->threads), "%u",
			config->softgpu_threads);
		add_option(args, "--softgpu-threads", args->threads);
	}
	if (config->softgpu_kernel_timeout) {
		snprintf(args->timeout, sizeof(args->timeout), "%u000",
			config->softgpu_kernel_timeout);
		add_option(args, "--softgpu-timeout", args->timeout);
	}
	if (config->softgpu_devices) {
		snprintf(args->devices, sizeof(args->devices), "%u",
			config->softgpu_devices);
		add_option(args, "--softgpu-devices", args->devices);
	}
	add_option(args, "--softgpu-schedule", config->softgpu_schedule);
	add_option(args, "--softgpu-check", config->softgpu_check);
}

static int make_stats(int *fdp)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;

	fd = memfd_create("vgpu-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, WORKER_FILE_SIZE) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return vgpu_error_origin(-errno);
	*fdp = fd;
	fd = -1;
	return 0;
}

int held_worker_new(struct held_worker **workerp, const struct config *config,
	const char *list, uint64_t id, uid_t uid, int network, bool outlives)
{
	_vgpu_cleanup_(vgpu_closep) int ours = -1, theirs = -1, stats = -1, log = -1;
	_vgpu_cleanup_(vgpu_closep) int output = -1;
	_vgpu_cleanup_(vgpu_freep) struct held_worker *worker =
		calloc(1, sizeof(*worker));
	struct child child = {
		.path = config->worker,
		.n_fds = 2,
		.output = -1,
		.network = network,
		.own_session = true,
		.outlives = outlives,
	};
	struct args args;
	int pair[2], r;

	if (!worker)
		return vgpu_error_origin(-ENOMEM);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return vgpu_error_origin(-errno);
	ours = pair[0];
	theirs = pair[1];
	/* A worker that does not read must not block the broker. */
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
		return vgpu_error_origin(-errno);
	/* A worker that logs faster than the broker reads must not block. */
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return vgpu_error_origin(-errno);
	log = pair[0];
	output = pair[1];
	r = make_stats(&stats);
	if (r)
		return vgpu_error_trace(r);
	make_args(&args, config, list, uid, outlives);
	child.argv = (char *const *)args.argv;
	child.output = output;
	child.fds = (int[]){ theirs, stats };
	r = child_spawn(&worker->pid, &child);
	if (r)
		return vgpu_error_trace(r);
	worker->id = id;
	worker->uid = uid;
	worker->control = ours;
	worker->stats = stats;
	worker->log = log;
	worker->pidfd = -1;
	*workerp = worker;
	worker = NULL;
	ours = stats = log = -1;
	return 0;
}

struct held_worker *held_workers_find(const struct held_workers *workers, uint64_t id)
{
	struct held_worker *worker;

	TAILQ_FOREACH(worker, workers, entry)
		if (worker->id == id)
			return worker;
	return NULL;
}

static bool is_taken(const struct held_workers *workers, uid_t uid)
{
	const struct held_worker *worker;

	TAILQ_FOREACH(worker, workers, entry)
		if (worker->uid == uid)
			return true;
	return false;
}

uid_t held_workers_pick_uid(const struct held_workers *workers,
	const struct config *config, uid_t other, unsigned int *lastp)
{
	const struct config_range *range = &config->worker_uids;
	const unsigned int n = range->last - range->first + 1;
	uid_t uid = 0;

	if (!config->sandbox || geteuid() != 0)
		return 0;
	for (unsigned int i = 0; i < n; i++) {
		*lastp = *lastp % n + 1;
		uid = range->first + *lastp - 1;
		if (uid != other && !is_taken(workers, uid))
			break;
	}
	return uid;
}

/* Until the process has exited; the kernel ends it soon. */
static void wait_for(int pidfd)
{
	struct pollfd poller = { .fd = pidfd, .events = POLLIN };

	while (poll(&poller, 1, EXIT_MS) < 0 && errno == EINTR)
		;
}

struct held_worker *held_worker_free(struct held_worker *worker)
{
	if (!worker)
		return NULL;
	held_worker_kill(worker);
	if (worker->pidfd >= 0)
		wait_for(worker->pidfd);
	else if (!worker->exited)
		while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR)
			;
	vgpu_close(worker->pidfd);
	closer_close(worker->control);
	closer_close(worker->stats);
	vgpu_close(worker->log);
	free(worker);
	return NULL;
}

void held_worker_kill(const struct held_worker *worker)
{
	if (worker->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, worker->pidfd, SIGKILL, NULL, 0);
	else if (!worker->exited)
		kill(worker->pid, SIGKILL);
}

static bool has_ended(int pidfd)
{
	struct pollfd poller = { .fd = pidfd, .events = POLLIN };

	return poll(&poller, 1, 0) != 0;
}

/*
 * A group is joined by a number. That of a child is its own until this process has reaped
 * it. That of a worker which another process has started is its own as long as the pidfd
 * does not report its end: it has only the moment between the two calls in which it would
 * have to end, to be reaped, and all other numbers to be used, for another process to
 * have it.
 */
void held_worker_join(const struct held_worker *worker, int procs)
{
	if (worker->exited || (worker->pidfd >= 0 && has_ended(worker->pidfd)))
		return;
	/* One that has exited, or whose group is gone, has ended. */
	if (dprintf(procs, "%d", (int)worker->pid) < 0 && errno != ESRCH &&
		errno != ENODEV)
		vgpu_log_warning("worker=%d: no control group limits it: %s",
			(int)worker->pid, strerror(errno));
}

int held_workers_watch(const struct held_workers *workers, int *fdp)
{
	const struct held_worker *worker;
	struct epoll_event event = { .events = EPOLLIN };

	*fdp = epoll_create1(EPOLL_CLOEXEC);
	if (*fdp < 0)
		return vgpu_error_origin(-errno);
	TAILQ_FOREACH(worker, workers, entry) {
		event.data.u64 = worker->id;
		if (worker->pidfd >= 0 &&
			epoll_ctl(*fdp, EPOLL_CTL_ADD, worker->pidfd, &event) < 0)
			return vgpu_error_origin(-errno);
	}
	return 0;
}

struct held_worker *held_workers_next_exit(const struct held_workers *workers, int fd)
{
	struct held_worker *worker;
	struct epoll_event event;

	if (epoll_wait(fd, &event, 1, 0) != 1)
		return NULL;
	worker = held_workers_find(workers, event.data.u64);
	if (!worker || worker->pidfd < 0)
		return NULL;
	/* Others may have it as well, so closing does not remove it. */
	epoll_ctl(fd, EPOLL_CTL_DEL, worker->pidfd, NULL);
	worker->pidfd = vgpu_close(worker->pidfd);
	worker->exited = true;
	worker->status = LINK_STATUS_UNKNOWN;
	return worker;
}

int held_worker_tell(const struct held_worker *worker, uint64_t request, int link)
{
	const struct link_message message = {
		.type = LINK_WORKER,
		.id = worker->id,
		.worker = { .pid = (uint32_t)worker->pid, .request = (uint32_t)request },
	};
	const int fds[] = { worker->control, worker->stats, worker->log };

	return link_send(link, &message, fds, 3);
}

int held_worker_tell_exited(const struct held_worker *worker, int link)
{
	const struct link_message message = {
		.type = LINK_EXITED,
		.id = worker->id,
		.exited = { .status = worker->status },
	};

	return link_send(link, &message, NULL, 0);
}
