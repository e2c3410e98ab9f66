/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Program: the worker process of a replay, started as vgpud starts it
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/control.h"
#include "replay/program.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

#define ARGUMENTS_MAX 40u
/* What the worker finds its descriptors at. */
#define CONTROL_FD 3
#define STATS_FD 4
/* Out of the way of these. */
#define HIGH_FD 20

struct arguments {
	char *list[ARGUMENTS_MAX + 1];
	unsigned int n;
	char numbers[8][24];
	unsigned int n_numbers;
};

static void add(struct arguments *arguments, const char *name, const char *value)
{
	if (arguments->n + 2 > ARGUMENTS_MAX)
		abort();
	arguments->list[arguments->n++] = (char *)name;
	arguments->list[arguments->n++] = (char *)value;
}

/* 0 is the default of softgpu. */
static void add_number(struct arguments *arguments, const char *name, uint64_t value)
{
	char *text = arguments->numbers[arguments->n_numbers];

	if (!value)
		return;
	arguments->n_numbers++;
	snprintf(text, sizeof(arguments->numbers[0]), "%llu", (unsigned long long)value);
	add(arguments, name, text);
}

static void describe_softgpu(struct arguments *arguments,
	const struct recording_header *header, const struct replay_options *options)
{
	static char cc[24];

	if (header->cc) {
		snprintf(cc, sizeof(cc), "%u.%u", header->cc / 10 % 100, header->cc % 10);
		add(arguments, "--softgpu-cc", cc);
	}
	if (*header->name)
		add(arguments, "--softgpu-name", header->name);
	if (*header->check)
		add(arguments, "--softgpu-check", header->check);
	add_number(arguments, "--softgpu-memory", header->memory);
	add_number(arguments, "--softgpu-devices", header->n_softgpus);
	add_number(arguments, "--softgpu-timeout", header->timeout_ms);
	if (options->softgpu_threads)
		add(arguments, "--softgpu-threads", options->softgpu_threads);
	else
		add_number(arguments, "--softgpu-threads", header->n_threads);
	if (header->schedule == SOFTGPU_CONFIG_FAIR)
		add(arguments, "--softgpu-schedule", "fair");
}

static const char *choose_driver(
	const struct recording_header *header, const struct replay_options *options)
{
	if (options->driver)
		return options->driver;
	return header->is_softgpu ? "soft" : "auto";
}

/* In the child. */
static void execute(const char *path, char **arguments, int control, int stats)
{
	const int high_control = fcntl(control, F_DUPFD_CLOEXEC, HIGH_FD);
	const int high_stats = fcntl(stats, F_DUPFD_CLOEXEC, HIGH_FD);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(high_control, CONTROL_FD) < 0 || dup2(high_stats, STATS_FD) < 0)
		_exit(127);
	/* What it writes is no part of the report. */
	dup2(STDERR_FILENO, STDOUT_FILENO);
	execv(path, arguments);
	fprintf(stderr, "vgpu-replay: %s: %s\n", path, strerror(errno));
	_exit(127);
}

int program_start(struct program *program, const struct config *paths,
	const struct recording_header *header, const struct replay_options *options)
{
	_vgpu_cleanup_(vgpu_closep) int theirs = -1;
	struct arguments arguments = {};
	int pair[2];

	*program = PROGRAM_NULL;
	arguments.list[arguments.n++] = (char *)"vgpu-worker";
	add(&arguments, "--control", "3");
	add(&arguments, "--stats", "4");
	add(&arguments, "--log-level", options->is_verbose ? "info" : "warning");
	add(&arguments, "--driver", choose_driver(header, options));
	add(&arguments, "--softgpu", paths->softgpu);
	add(&arguments, "--null-driver", paths->null_driver);
	if (options->is_unprivileged)
		add(&arguments, "--allow-unprivileged", "yes");
	describe_softgpu(&arguments, header, options);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return vgpu_error_origin(-errno);
	program->control = pair[0];
	theirs = pair[1];
	program->stats = memfd_create("vgpu-replay", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* It is mapped here, too. */
	if (program->stats < 0 || ftruncate(program->stats, WORKER_FILE_SIZE) < 0 ||
		fcntl(program->stats, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return vgpu_error_origin(-errno);
	program->pid = fork();
	if (program->pid < 0)
		return vgpu_error_origin(-errno);
	if (!program->pid)
		execute(paths->worker, arguments.list, theirs, program->stats);
	return 0;
}

int program_end(struct program *program)
{
	int status = 0;

	program->control = vgpu_close(program->control);
	program->stats = vgpu_close(program->stats);
	if (program->pid <= 0)
		return 0;
	while (waitpid(program->pid, &status, 0) < 0 && errno == EINTR)
		;
	program->pid = 0;
	return status;
}
