/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that the service manager gives
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/child.h"
#include "keeper/listen-fds.h"
#include "test.h"

/* Sets the variables for this process, or for process @pid. */
static void announce(const char *n, const char *names, int pid)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", pid);
	setenv("LISTEN_PID", number, 1);
	setenv("LISTEN_FDS", n, 1);
	if (names)
		setenv("LISTEN_FDNAMES", names, 1);
	else
		unsetenv("LISTEN_FDNAMES");
}

/* Runs it in a process whose descriptors from 3 to 5 are open, and no others. */
static void run_given(void (*run_fn)(void))
{
	const int pid = fork();
	int status;

	if (!pid) {
		for (int i = 0; i < 3; i++)
			check_eq(dup2(STDERR_FILENO, CHILD_FIRST_FD + i),
				CHILD_FIRST_FD + i);
		check_eq(close_range(CHILD_FIRST_FD + 3, ~0u, 0), 0);
		run_fn();
		_exit(0);
	}
	check_eq(waitpid(pid, &status, 0), pid);
	check(WIFEXITED(status));
	check_eq(WEXITSTATUS(status), 0);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void take_by_name(void)
{
	struct listen_fds fds;

	announce("3", "vgpud-1:control:vgpud-2", getpid());
	check_eq(listen_fds_init(&fds), 0);
	check_eq(fds.n, 3);
	check(!getenv("LISTEN_PID") && !getenv("LISTEN_FDS") &&
		!getenv("LISTEN_FDNAMES"));
	check_eq(fcntl(4, F_GETFD), FD_CLOEXEC);
	check_eq(listen_fds_take(&fds, "control"), 4);
	check_eq(listen_fds_take(&fds, "control"), -1);
	check_eq(listen_fds_take(&fds, "vgpud"), -1);
	check_eq(listen_fds_take(&fds, "vgpud-2"), 5);
	listen_fds_deinit(&fds);
	check(!is_open(3) && is_open(4) && is_open(5));
}

TEST(descriptors_are_taken_by_name_and_the_others_are_closed)
{
	run_given(take_by_name);
}

static void take_first(void)
{
	struct listen_fds fds;

	announce("2", "control:control", getpid());
	check_eq(listen_fds_init(&fds), 0);
	check_eq(listen_fds_take(&fds, "control"), 3);
	check_eq(listen_fds_take(&fds, "control"), 4);
	check_eq(fds.n, 2);
	listen_fds_deinit(&fds);
	check(is_open(5));
}

TEST(of_two_with_one_name_the_first_is_taken)
{
	run_given(take_first);
}

static void take_nameless(void)
{
	struct listen_fds fds;

	announce("3", NULL, getpid());
	check_eq(listen_fds_init(&fds), 0);
	check_eq(fds.n, 3);
	check_eq(listen_fds_take(&fds, "unknown"), 3);
	listen_fds_deinit(&fds);
	close(3);
	for (int i = 0; i < 3; i++)
		check_eq(dup2(STDERR_FILENO, CHILD_FIRST_FD + i), CHILD_FIRST_FD + i);
	/* Fewer names than descriptors, one of them empty, and more. */
	announce("3", "control:", getpid());
	check_eq(listen_fds_init(&fds), 0);
	check_eq(listen_fds_take(&fds, "unknown"), 4);
	check_eq(listen_fds_take(&fds, "unknown"), 5);
	listen_fds_deinit(&fds);
	check(!is_open(3));
	announce("1", "x:control", getpid());
	check_eq(dup2(STDERR_FILENO, 3), 3);
	check_eq(listen_fds_init(&fds), 0);
	check_eq(listen_fds_take(&fds, "control"), -1);
	listen_fds_deinit(&fds);
}

TEST(names_may_be_missing)
{
	run_given(take_nameless);
}

static void find_nothing(void)
{
	static const char *const numbers[] = { "0", "-1", "99999999999999999999", "x",
		"" };
	struct listen_fds fds;

	for (unsigned int i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		announce(numbers[i], "control", getpid());
		check_eq(listen_fds_init(&fds), 0);
		check_eq(fds.n, 0);
		check_eq(listen_fds_take(&fds, "control"), -1);
		listen_fds_deinit(&fds);
		check(!getenv("LISTEN_FDS"));
	}
	announce("3", "control:a:b", getpid() + 1);
	check_eq(listen_fds_init(&fds), 0);
	check_eq(fds.n, 0);
	check(!getenv("LISTEN_PID"));
	listen_fds_deinit(&fds);
	check(is_open(3) && is_open(4) && is_open(5));
	/* Some are announced that are not there. */
	announce("8", "a:b:c:d:control", getpid());
	check_eq(listen_fds_init(&fds), 0);
	check_eq(fds.n, 3);
	check_eq(listen_fds_take(&fds, "control"), -1);
	listen_fds_deinit(&fds);
}

TEST(what_is_not_for_this_process_or_not_there_is_left_alone)
{
	run_given(find_nothing);
}
