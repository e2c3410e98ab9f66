/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child: what a started program is given, and what it is not
 *
 * The program is /bin/sh, which writes its findings to the descriptor that is its output.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/child.h"
#include "test.h"
#include "vgpu/cleanup.h"

static char output[4096];
static int status;

/* Runs a script with these descriptors to its end. Its output and status are kept. */
static void run_script(const char *script, const int *fds, size_t n_fds, bool own_session)
{
	char *const argv[] = { "sh", "-c", (char *)script, NULL };
	size_t size = 0;
	int pipe_fds[2];
	ssize_t n;
	pid_t pid;

	check_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
	check_eq(child_spawn(&pid,
			 &(struct child){
				 .path = "/bin/sh",
				 .argv = argv,
				 .fds = fds,
				 .n_fds = n_fds,
				 .output = pipe_fds[1],
				 .network = -1,
				 .own_session = own_session,
			 }),
		0);
	close(pipe_fds[1]);
	while ((n = read(pipe_fds[0], output + size, sizeof(output) - 1 - size)) > 0)
		size += n;
	output[size] = '\0';
	close(pipe_fds[0]);
	check_eq(waitpid(pid, &status, 0), pid);
}

static int open_file(const char *name, const char *text)
{
	_vgpu_cleanup_(vgpu_freep) char *path = NULL;
	int fd;

	check(asprintf(&path, "%s/%s", test_tmpdir(), name) > 0);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check(fd >= 0);
	check_eq(write(fd, text, strlen(text)), strlen(text));
	check_eq(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

TEST(descriptors_are_given_in_their_order)
{
	int fds[3];

	/* The given numbers overlap those of the child, in another order. */
	fds[2] = open_file("c", "three");
	fds[1] = open_file("b", "two");
	fds[0] = open_file("a", "one");
	run_script("cat <&3; cat <&4; cat <&5", fds, 3, false);
	check_str(output, "onetwothree");
	check_eq(status, 0);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

TEST(no_other_descriptor_is_inherited)
{
	int inherited, given = open_file("given", "");

	/* Without close-on-exec. */
	inherited = fcntl(given, F_DUPFD, 100);
	check(inherited >= 100);
	/* Without a program and without a pipe, which have their own. */
	run_script("n=0; while [ $n -lt 256 ]; do "
		   "[ ! -e /proc/$$/fd/$n ] || echo $n; n=$((n + 1)); done",
		&given, 1, false);
	check_str(output, "0\n1\n2\n3\n");
	close(inherited);
	close(given);
}

TEST(standard_input_is_empty)
{
	run_script("cat; echo end", NULL, 0, false);
	check_str(output, "end\n");
}

TEST(both_outputs_are_the_given_one)
{
	run_script("echo out; echo error >&2", NULL, 0, false);
	check_str(output, "out\nerror\n");
}

TEST(no_signal_is_blocked)
{
	sigset_t all;

	sigfillset(&all);
	check_eq(sigprocmask(SIG_SETMASK, &all, NULL), 0);
	/* By the shell itself: one that starts a program blocks them all for a moment. */
	run_script("while read -r name value; do "
		   "[ $name != SigBlk: ] || echo $value; done </proc/$$/status",
		NULL, 0, false);
	check_str(output, "0000000000000000\n");
}

TEST(a_session_of_its_own_is_led_by_the_child)
{
	/* Field 6 of stat is the session. */
	run_script(
		"read -r line </proc/$$/stat; set -- $line; [ $6 = $$ ]", NULL, 0, true);
	check_eq(status, 0);
	run_script(
		"read -r line </proc/$$/stat; set -- $line; [ $6 = $$ ]", NULL, 0, false);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

TEST(a_program_that_does_not_exist_exits_with_127)
{
	char *const argv[] = { "none", NULL };
	const struct child child = {
		.path = "/nonexistent/none", .argv = argv, .output = -1, .network = -1
	};
	pid_t pid;

	check_eq(child_spawn(&pid, &child), 0);
	check_eq(waitpid(pid, &status, 0), pid);
	check(WIFEXITED(status));
	check_eq(WEXITSTATUS(status), CHILD_EXIT_NOT_EXECUTED);
}

TEST(a_child_dies_with_its_parent)
{
	char *const argv[] = { "sleep", "1000", NULL };
	struct pollfd end = { .events = POLLIN };
	int pipe_fds[2];
	pid_t parent;
	char byte;

	check_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
	/* The child of the child is reaped here once its parent has exited. */
	check_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	parent = fork();
	check(parent >= 0);
	if (!parent) {
		const struct child child = { .path = "/bin/sleep",
			.argv = argv,
			.output = pipe_fds[1],
			.network = -1 };
		pid_t pid;

		_exit(child_spawn(&pid, &child) ? 1 : 0);
	}
	close(pipe_fds[1]);
	check_eq(waitpid(parent, &status, 0), parent);
	check_eq(status, 0);
	/* The pipe ends when its last writer has exited. */
	end.fd = pipe_fds[0];
	check_eq(poll(&end, 1, -1), 1);
	check_eq(read(pipe_fds[0], &byte, 1), 0);
	close(pipe_fds[0]);
	check(wait(&status) > 0);
	/* One that saw no parent any more never ran. */
	check((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
		(WIFEXITED(status) && WEXITSTATUS(status) == CHILD_EXIT_NOT_EXECUTED));
}

TEST(only_programs_of_their_own_session_get_the_original_priority_back)
{
	int given = getpriority(PRIO_PROCESS, 0);
	char expected[64];

	if (geteuid() != 0)
		test_skip("needs root to raise the priority");
	errno = 0;
	if (child_raise_priority(given - 3))
		test_skip("the priority cannot be raised here");
	run_script(
		"read -r line </proc/$$/stat; set -- $line; echo ${19}", NULL, 0, true);
	snprintf(expected, sizeof(expected), "%d\n", given);
	check_str(output, expected);
	run_script(
		"read -r line </proc/$$/stat; set -- $line; echo ${19}", NULL, 0, false);
	snprintf(expected, sizeof(expected), "%d\n", given - 3);
	check_str(output, expected);
}
