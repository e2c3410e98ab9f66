/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into vgpud: has its broker, or its keeper, be killed at a chosen instruction
 *
 *	VGPU_DIE=POINT[,POINT...]	where
 *	VGPU_DIE_PROCESS=NAME		vgpud-broker, the default, or vgpud: the keeper
 *	VGPU_DIE_FOLDER=FOLDER		each point has a file in it, named by its place in
 *					the list from 0; who can remove it dies, so each
 *					death is died once, by whichever process comes
 *					by. Nothing counts before there is a file
 *					"armed"
 *
 * A point is KIND:NUMBER:WHEN[:NTH]. Of kinds there are
 *
 *	control-in, control-out		a message of that type from or to a worker:
 *					peeked, before (it is taken out, or sent), after
 *	link-in, link-out		the same with the keeper
 *	futex, punch			the n-th wake-up, the n-th piece that is emptied:
 *					before, after
 *	call				the n-th call of any function below; WHEN is the
 *					number of instructions after which the end comes
 *
 * With NTH it is the n-th time that it comes by. The process writes the number of calls
 * that it made into FOLDER/calls when it ends in good order.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "control/control.h"
#include "dying.h"
#include "vgpud/link.h"

#define POINTS_MAX 8

struct point {
	char text[48]; /* without NTH */
	unsigned long nth;
	unsigned long n_passed;
};

static struct point points[POINTS_MAX];
static unsigned int n_points;
static const char *folder;
static unsigned long n_calls, n_wakes, n_punches;

static void __attribute__((__constructor__)) read_points(void)
{
	const char *text = getenv("VGPU_DIE");
	char *copy, *state = NULL, *word, *end;
	struct point *point;

	folder = getenv("VGPU_DIE_FOLDER");
	copy = text && folder ? strdup(text) : NULL;
	for (word = copy ? strtok_r(copy, ",", &state) : NULL;
		word && n_points < POINTS_MAX; word = strtok_r(NULL, ",", &state)) {
		point = &points[n_points++];
		snprintf(point->text, sizeof(point->text), "%s", word);
		point->nth = 1;
		end = strchr(point->text, ':');
		end = end ? strchr(end + 1, ':') : NULL;
		end = end ? strchr(end + 1, ':') : NULL;
		if (!end)
			continue;
		*end = '\0';
		point->nth = strtoul(end + 1, NULL, 10);
	}
	free(copy);
}

static bool is_chosen(void)
{
	const char *chosen = getenv("VGPU_DIE_PROCESS");
	static bool is_armed;
	char name[16] = "", path[256];

	prctl(PR_GET_NAME, name);
	if (!n_points || strcmp(name, chosen ? chosen : "vgpud-broker") != 0)
		return false;
	snprintf(path, sizeof(path), "%s/armed", folder);
	is_armed = is_armed || !access(path, F_OK);
	return is_armed;
}

/* Whether this process is the one that dies of that point. */
static bool claim(unsigned int i)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%u", folder, i);
	return !unlink(path);
}

static void pass(const char *kind, unsigned long number, const char *when)
{
	char text[sizeof(points->text)];

	snprintf(text, sizeof(text), "%s:%lu:%s", kind, number, when);
	for (unsigned int i = 0; i < n_points; i++)
		if (!strcmp(points[i].text, text) &&
			++points[i].n_passed == points[i].nth && claim(i))
			raise(SIGKILL);
}

/* Any call: some of them are a point's n-th. */
static void pass_call(void)
{
	char text[sizeof(points->text)];
	int size;

	n_calls++;
	size = snprintf(text, sizeof(text), "call:%lu:", n_calls);
	for (unsigned int i = 0; i < n_points; i++) {
		if (strncmp(points[i].text, text, size) != 0 || !claim(i))
			continue;
		dying_after(strtoul(points[i].text + size, NULL, 10));
		return;
	}
}

static void __attribute__((__destructor__)) note_calls(void)
{
	char path[256];
	FILE *file;

	if (!folder || !is_chosen())
		return;
	snprintf(path, sizeof(path), "%s/calls", folder);
	file = fopen(path, "w");
	if (!file)
		return;
	fprintf(file, "%lu\n", n_calls);
	fclose(file);
}

#define REAL(_name) __typeof__(_name) *real = dlsym(RTLD_NEXT, #_name)

/* Whose message it is, by its size. */
static const char *kind_of(
	const struct msghdr *header, const char *control, const char *link)
{
	size_t size = header->msg_iov[0].iov_len;

	if (size == sizeof(struct control_message))
		return control;
	return size == sizeof(struct link_message) ? link : NULL;
}

static uint32_t type_of(const struct msghdr *header)
{
	return *(uint32_t *)header->msg_iov[0].iov_base;
}

/* The following functions have to be found before the C library's. */
#pragma GCC visibility push(default)

ssize_t recvmsg(int fd, struct msghdr *header, int flags)
{
	static uint32_t peeked;
	static int peeked_fd = -1;
	const char *kind = kind_of(header, "control-in", "link-in");
	ssize_t n;

	REAL(recvmsg);
	if (!kind || !is_chosen())
		return real(fd, header, flags);
	pass_call();
	if (!(flags & MSG_PEEK) && fd == peeked_fd)
		pass(kind, peeked, "before");
	n = real(fd, header, flags);
	if (n <= 0)
		return n;
	if (flags & MSG_PEEK) {
		peeked = type_of(header);
		peeked_fd = fd;
	}
	pass(kind, type_of(header), flags & MSG_PEEK ? "peeked" : "after");
	return n;
}

ssize_t sendmsg(int fd, const struct msghdr *header, int flags)
{
	const char *kind = kind_of(header, "control-out", "link-out");
	ssize_t n;

	REAL(sendmsg);
	if (!kind || !is_chosen())
		return real(fd, header, flags);
	pass_call();
	pass(kind, type_of(header), "before");
	n = real(fd, header, flags);
	pass(kind, type_of(header), "after");
	return n;
}

int fallocate64(int fd, int mode, off64_t offset, off64_t size)
{
	int r;

	REAL(fallocate64);
	if (!is_chosen())
		return real(fd, mode, offset, size);
	pass_call();
	pass("punch", ++n_punches, "before");
	r = real(fd, mode, offset, size);
	pass("punch", n_punches, "after");
	return r;
}

long syscall(long number, ...)
{
	const bool is_wake = number == SYS_futex && is_chosen();
	long values[6], r;
	va_list arguments;

	REAL(syscall);
	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		values[i] = va_arg(arguments, long);
	va_end(arguments);
	if (is_wake) {
		pass_call();
		pass("futex", ++n_wakes, "before");
	}
	r = real(
		number, values[0], values[1], values[2], values[3], values[4], values[5]);
	if (is_wake)
		pass("futex", n_wakes, "after");
	return r;
}

/*
 * Functions that only count
 */

int close(int fd)
{
	REAL(close);
	if (is_chosen())
		pass_call();
	return real(fd);
}

ssize_t pread64(int fd, void *bytes, size_t size, off64_t offset)
{
	REAL(pread64);
	if (is_chosen())
		pass_call();
	return real(fd, bytes, size, offset);
}

ssize_t preadv64v2(int fd, const struct iovec *iov, int n, off64_t offset, int flags)
{
	REAL(preadv64v2);
	if (is_chosen())
		pass_call();
	return real(fd, iov, n, offset, flags);
}

struct io_uring;

int io_uring_submit(struct io_uring *ring);
int io_uring_submit_and_wait(struct io_uring *ring, unsigned int n);

int io_uring_submit(struct io_uring *ring)
{
	REAL(io_uring_submit);
	if (is_chosen())
		pass_call();
	return real(ring);
}

int io_uring_submit_and_wait(struct io_uring *ring, unsigned int n)
{
	REAL(io_uring_submit_and_wait);
	if (is_chosen())
		pass_call();
	return real(ring, n);
}

#pragma GCC visibility pop
