/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe: code that may hang or crash, and other programs, in a child process
 *
 * The child has ended, or closed its output, when the pipe ends. Its standard error is a
 * file without a name, so that only one pipe has to be read.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vgpu/cleanup.h"

#include "doctor/probe.h"

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Reads until the end, or until the time is over; more than fits is thrown away. */
static bool read_until(int fd, char *text, int64_t end_ms)
{
	char spill[512];
	size_t n = 0;

	for (;;) {
		struct pollfd poller = { .fd = fd, .events = POLLIN };
		const int64_t left = end_ms - now_ms();
		const size_t room = PROBE_SIZE - 1 - n;
		ssize_t got;

		if (left <= 0)
			return false;
		if (poll(&poller, 1, (int)left) <= 0)
			continue;
		got = read(fd, room ? text + n : spill, room ? room : sizeof(spill));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return true;
		n += room ? (size_t)got : 0;
	}
}

static void read_errors(int fd, char *text)
{
	const ssize_t n = pread(fd, text, PROBE_SIZE - 1, 0);

	text[n > 0 ? n : 0] = '\0';
}

/* A child that closed its output early gets the rest of the time. */
static void await(struct probe *probe, pid_t child, int64_t end_ms)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	pid_t ended;

	while ((ended = waitpid(child, &probe->status, WNOHANG)) == 0 &&
		!probe->is_late && now_ms() < end_ms)
		nanosleep(&pause, NULL);
	if (ended)
		return;
	probe->is_late = true;
	kill(child, SIGKILL);
	while (waitpid(child, &probe->status, 0) < 0 && errno == EINTR)
		;
}

static __attribute__((__noreturn__)) void run_child(int out, int errors, int unused,
	void (*function)(int out, const void *data), const void *data)
{
	close(unused);
	dup2(errors, STDERR_FILENO);
	signal(SIGPIPE, SIG_DFL);
	function(out, data);
	exit(0);
}

int probe_call(struct probe *probe, void (*function)(int out, const void *data),
	const void *data, unsigned int seconds)
{
	const int64_t end_ms = now_ms() + (int64_t)seconds * 1000;
	_vgpu_cleanup_(vgpu_closep) int errors = memfd_create("errors", MFD_CLOEXEC);
	_vgpu_cleanup_(vgpu_closep) int in = -1;
	pid_t child;
	int fds[2];

	*probe = (struct probe){
		.output = calloc(1, PROBE_SIZE),
		.errors = calloc(1, PROBE_SIZE),
	};
	if (!probe->output || !probe->errors)
		return -ENOMEM;
	if (errors < 0 || pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	in = fds[0];
	/* Else the child writes once more what is waiting here. */
	fflush(NULL);
	child = fork();
	if (child == 0)
		run_child(fds[1], errors, in, function, data);
	close(fds[1]);
	if (child < 0)
		return -errno;
	probe->is_late = !read_until(in, probe->output, end_ms);
	await(probe, child, end_ms);
	read_errors(errors, probe->errors);
	return 0;
}

static void execute(int out, const void *data)
{
	char *const *arguments = data;
	char path[256];

	dup2(out, STDOUT_FILENO);
	setenv("LC_ALL", "C", 1);
	/* What is wrong with the libraries of programs is no matter of these. */
	unsetenv("LD_PRELOAD");
	unsetenv("LD_LIBRARY_PATH");
	execvp(arguments[0], arguments);
	snprintf(path, sizeof(path), "/sbin/%s", arguments[0]);
	execv(path, arguments);
	_exit(127);
}

bool probe_run(struct probe *probe, const char *const *arguments, unsigned int seconds)
{
	return !probe_call(probe, execute, arguments, seconds) && !probe->is_late &&
	       WIFEXITED(probe->status) && !WEXITSTATUS(probe->status);
}

void probe_deinit(struct probe *probe)
{
	free(probe->output);
	free(probe->errors);
	*probe = (struct probe){ 0 };
}

const char *probe_next(const struct probe *probe, const char *key, const char **atp)
{
	const size_t n = strlen(key);
	const char *line = *atp ? *atp : probe->output;

	for (; line && *line; line = strchr(line, '\n'), line += line != NULL) {
		if (strncmp(line, key, n) || line[n] != ' ')
			continue;
		*atp = strchrnul(line, '\n');
		*atp += **atp == '\n';
		return line + n + 1;
	}
	return NULL;
}

bool probe_get(const struct probe *probe, const char *key, char *value, size_t size)
{
	const char *at = NULL, *found, *last = NULL;

	while ((found = probe_next(probe, key, &at)))
		last = found;
	if (last)
		snprintf(value, size, "%.*s", (int)strcspn(last, "\n"), last);
	else
		*value = '\0';
	return last;
}
