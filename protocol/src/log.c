/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log
 *
 * A line is formatted on the stack and written by a single write(2), so that lines of
 * several threads and processes do not mix. errno is preserved. Lines that cannot be
 * written are dropped and counted, and the count precedes the next line that can. A
 * daemon disables blocking writes: a reader that does not read its log must not stop it.
 */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vgpu/log.h"

#define LOG_LINE_MAX 2048 /* longer lines are cut: a log is read by people */

/* How a line is written without blocking, if that was requested. */
enum log_kind {
	LOG_PLAIN,  /* it was not asked for, or a write never waits there */
	LOG_SOCKET, /* MSG_DONTWAIT for each write */
	LOG_POLLED, /* only if there is room */
};

static_assert(LOG_LINE_MAX <= PIPE_BUF, "a pipe has room for all of a line or for none");

static const char *const level_names[_VGPU_LOG_N] = {
	[VGPU_LOG_NONE] = "none",
	[VGPU_LOG_ERROR] = "error",
	[VGPU_LOG_WARNING] = "warning",
	[VGPU_LOG_INFO] = "info",
	[VGPU_LOG_DEBUG] = "debug",
};

static const char *log_ident = "vgpu";
static enum vgpu_log_level log_level = VGPU_LOG_NONE;
static int log_fd = STDERR_FILENO;
static int own_fd = -1; /* to the same pipe, and never waits; -1: none */
static enum log_kind log_kind;
static vgpu_log_sink_fn log_sink; /* NULL: lines are written to the descriptor */
static uint32_t log_n_lost;	  /* lines dropped and not reported yet; atomic */
static bool log_is_cut;		  /* a line ended in its middle; atomic */

int vgpu_log_level_from_string(const char *name)
{
	for (int i = 0; i < _VGPU_LOG_N; i++)
		if (!strcmp(name, level_names[i]))
			return i;
	return -1;
}

const char *vgpu_log_level_name(enum vgpu_log_level level)
{
	return level_names[level];
}

void vgpu_log_init(const char *ident, enum vgpu_log_level level)
{
	const char *name = getenv("VGPU_LOG");
	int wanted = name ? vgpu_log_level_from_string(name) : -1;

	log_ident = ident;
	log_level = wanted >= 0 ? (enum vgpu_log_level)wanted : level;
}

int vgpu_log_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);

	if (fd < 0)
		return -errno;
	if (log_fd != STDERR_FILENO)
		close(log_fd);
	log_fd = fd;
	return 0;
}

void vgpu_log_use(int fd)
{
	log_fd = fd;
}

void vgpu_log_send_to(vgpu_log_sink_fn sink)
{
	log_sink = sink;
}

bool vgpu_log_enabled(enum vgpu_log_level level)
{
	return level <= log_level;
}

enum vgpu_log_level vgpu_log_get_level(void)
{
	return log_level;
}

/*
 * O_NONBLOCK belongs to the open file, which other writers share. So a pipe is opened
 * again, which gives a description of our own. If that is not allowed, poll() for room
 * precedes the write; another writer may take the room in between.
 *
 * Return: that descriptor, or -1.
 */
static int open_again(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

void vgpu_log_never_wait(void)
{
	struct stat st;

	if (own_fd >= 0)
		close(own_fd);
	own_fd = -1;
	log_kind = LOG_PLAIN;
	if (fstat(log_fd, &st) < 0 || S_ISREG(st.st_mode))
		return;
	if (S_ISFIFO(st.st_mode))
		own_fd = open_again(log_fd);
	if (own_fd < 0)
		log_kind = S_ISSOCK(st.st_mode) ? LOG_SOCKET : LOG_POLLED;
}

static ssize_t write_once(const char *line, size_t size)
{
	struct pollfd poller = { .fd = log_fd, .events = POLLOUT };

	if (log_kind == LOG_SOCKET)
		return send(log_fd, line, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (log_kind == LOG_POLLED &&
		(poll(&poller, 1, 0) <= 0 || !(poller.revents & POLLOUT))) {
		errno = EAGAIN;
		return -1;
	}
	return write(own_fd >= 0 ? own_fd : log_fd, line, size);
}

/* Writes a line whole. A full disk or a closed pipe loses lines, never the caller's
 * work. Returns: whether it was written. */
static bool write_line(const char *line, size_t size)
{
	ssize_t n;

	do
		n = write_once(line, size);
	while (n < 0 && errno == EINTR);
	if (n > 0 && (size_t)n < size)
		__atomic_store_n(&log_is_cut, true, __ATOMIC_RELAXED);
	return n == (ssize_t)size;
}

static size_t begin_line(char *line, size_t size, enum vgpu_log_level level)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return snprintf(line, size, "%lld.%06ld %s[%d] %s: ", (long long)now.tv_sec,
		now.tv_nsec / 1000, log_ident, (int)getpid(), level_names[level]);
}

/* Writes a message whose text begins at an offset, and which has no newline yet. Returns:
 * whether it was written. */
static bool write_message(enum vgpu_log_level level, char *line, size_t text, size_t n)
{
	if (log_sink) {
		line[n] = '\0';
		return log_sink(level, log_ident, line + text);
	}
	line[n++] = '\n';
	return write_line(line, n);
}

/* Once there is room again, logs the number of lost lines. */
static void tell_lost(void)
{
	uint32_t n_lost = __atomic_exchange_n(&log_n_lost, 0, __ATOMIC_RELAXED);
	char line[256];
	size_t n = 0, text;

	if (!n_lost)
		return;
	/* The end of the last line is still missing. */
	if (__atomic_exchange_n(&log_is_cut, false, __ATOMIC_RELAXED))
		line[n++] = '\n';
	n += begin_line(line + n, sizeof(line) - n, VGPU_LOG_WARNING);
	text = n;
	n += snprintf(
		line + n, sizeof(line) - n, "%u lines could not be written here", n_lost);
	if (!write_message(VGPU_LOG_WARNING, line, text, n))
		__atomic_fetch_add(&log_n_lost, n_lost, __ATOMIC_RELAXED);
}

void vgpu_log(enum vgpu_log_level level, const char *format, ...)
{
	char line[LOG_LINE_MAX];
	int saved_errno = errno, n, m, text;
	va_list ap;

	if (!vgpu_log_enabled(level))
		return;

	tell_lost();
	n = text = begin_line(line, sizeof(line), level);
	errno = saved_errno; /* for %m */
	va_start(ap, format);
	m = vsnprintf(line + n, sizeof(line) - n - 1, format, ap);
	va_end(ap);
	if (m < 0)
		m = 0;
	n = (size_t)(n + m) < sizeof(line) - 2 ? n + m : (int)sizeof(line) - 2;
	if (!write_message(level, line, text, n))
		__atomic_fetch_add(&log_n_lost, 1, __ATOMIC_RELAXED);
	errno = saved_errno;
}
