/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver output: the standard output and error of a driver
 *
 * The pipes are read by their own thread or by one about to send a reply; the lock keeps
 * the pieces in order.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/error.h"
#include "vgpu/log.h"
#include "worker/output/driver-output.h"
#include "worker/output/print.h"

/* Part of each message of a failed assertion, as CUDA documents. */
#define ASSERTION_MARK "Assertion `"
/* A longer line is split. */
#define LINE_SIZE 4096u
/* Bytes of any other line that are logged. */
#define LOG_MAX 200u
/* Other lines that are logged per worker. */
#define LOG_LINES_MAX 200u

static struct {
	pthread_mutex_t lock;
	bool is_on;
	struct session *session; /* NULL before driver_output_serve() */
	int fds[2];
	/* An incomplete line of standard error. */
	char line[LINE_SIZE];
	size_t n_line;
	uint32_t n_logged;
} capture = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The kernel's code determines parts of an assertion's message, which can contain
 * newlines. */
static void log_line(void)
{
	size_t i, n = capture.n_line;

	if (capture.n_logged++ >= LOG_LINES_MAX)
		return;
	n -= capture.line[n - 1] == '\n';
	n = n < LOG_MAX ? n : LOG_MAX;
	for (i = 0; i < n; i++)
		if (capture.line[i] < ' ' || capture.line[i] > '~')
			capture.line[i] = ' ';
	vgpu_log_warning("output of the driver: %.*s", (int)n, capture.line);
}

static void end_line(void)
{
	if (capture.session && memmem(capture.line, capture.n_line, ASSERTION_MARK,
				       sizeof(ASSERTION_MARK) - 1))
		print_error_from_kernel(capture.session, capture.line, capture.n_line);
	else
		log_line();
	capture.n_line = 0;
}

static void take_error(const char *text, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++) {
		capture.line[capture.n_line++] = text[i];
		if (text[i] == '\n' || capture.n_line == LINE_SIZE)
			end_line();
	}
}

/* Reads until the pipe is empty. Return: false if it was empty before. */
static bool drain(unsigned int which)
{
	char text[8192];
	bool any = false;
	ssize_t n;

	while ((n = read(capture.fds[which], text, sizeof(text))) > 0) {
		if (which)
			take_error(text, n);
		else if (capture.session)
			print_from_kernel(capture.session, text, n);
		any = true;
	}
	return any;
}

static void drain_both(void)
{
	pthread_mutex_lock(&capture.lock);
	drain(0);
	drain(1);
	pthread_mutex_unlock(&capture.lock);
}

static void *read_for_ever(void *unused)
{
	struct pollfd fds[2] = {
		{ .fd = capture.fds[0], .events = POLLIN },
		{ .fd = capture.fds[1], .events = POLLIN },
	};

	for (;;) {
		poll(fds, 2, -1);
		drain_both();
	}
	return NULL;
}

/* Return: 0 or -errno; on failure the descriptor is unchanged. */
static int redirect(int fd, int *read_fdp)
{
	int fds[2], r = 0;

	if (pipe2(fds, O_CLOEXEC))
		return vgpu_error_origin(-errno);
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) || dup2(fds[1], fd) < 0)
		r = vgpu_error_origin(-errno);
	close(fds[1]);
	if (r)
		close(fds[0]);
	else
		*read_fdp = fds[0];
	return r;
}

int driver_output_start(void)
{
	int log_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3), r;
	pthread_t thread;

	if (log_fd < 0)
		return vgpu_error_origin(-errno);
	vgpu_log_use(log_fd);
	r = redirect(STDOUT_FILENO, &capture.fds[0]);
	if (!r)
		r = redirect(STDERR_FILENO, &capture.fds[1]);
	if (r)
		return vgpu_error_trace(r);
	r = -pthread_create(&thread, NULL, read_for_ever, NULL);
	if (r)
		return vgpu_error_origin(r);
	pthread_detach(thread);
	capture.is_on = true;
	return 0;
}

void driver_output_serve(struct session *session)
{
	pthread_mutex_lock(&capture.lock);
	capture.session = session;
	pthread_mutex_unlock(&capture.lock);
}

void driver_output_collect(void)
{
	if (!capture.is_on)
		return;
	/* A driver that writes through stdio leaves text in its buffer. */
	fflush(stdout);
	drain_both();
}
