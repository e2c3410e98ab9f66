/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker program and a vgpud that speaks another version of the control protocol
 */

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/control.h"
#include "test.h"
#include "vgpu/ring-layout.h"

static struct worker {
	pid_t pid;
	int control; /* vgpud's end */
	int log;
} worker;

/* As control.h has it: its socket, its counters, and a pipe for what it writes. */
static void start_worker(void)
{
	char *argv[] = { WORKER, "--control", "3", "--stats", "4", "--sandbox", "no",
		"--driver", "null", "--null-driver", NULL_DRIVER, NULL };
	int pair[2], pipes[2], stats = memfd_create("stats", MFD_CLOEXEC);

	check(stats >= 0 && !ftruncate(stats, WORKER_STATS_SIZE));
	check_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	check_eq(pipe2(pipes, O_CLOEXEC), 0);
	worker = (struct worker){ fork(), pair[0], pipes[0] };
	check(worker.pid >= 0);
	if (!worker.pid) {
		/* Out of the way of those that it is to have. */
		int control = fcntl(pair[1], F_DUPFD_CLOEXEC, 20);
		int counters = fcntl(stats, F_DUPFD_CLOEXEC, 20);

		dup2(pipes[1], STDERR_FILENO);
		dup2(control, 3);
		dup2(counters, 4);
		execv(argv[0], argv);
		_exit(99);
	}
	close(pair[1]);
	close(pipes[1]);
	close(stats);
}

static void hear(struct control_message *message)
{
	int fds[CONTROL_FDS_MAX];

	check_eq(control_receive(worker.control, message, fds), 0);
	check_eq(message->n_fds, 0);
}

static unsigned int count_lines(const char *what)
{
	static char text[1 << 16];
	unsigned int count = 0;
	size_t size = 0;
	ssize_t n;

	while ((n = read(worker.log, text + size, sizeof(text) - 1 - size)) > 0)
		size += n;
	text[size] = '\0';
	for (const char *at = text; (at = strstr(at, what)); at++)
		count++;
	return count;
}

TEST(a_worker_sends_its_version_and_refuses_a_vgpud_of_another)
{
	struct control_message message, assign = { .type = CONTROL_ASSIGN };
	int status;

	start_worker();
	hear(&message);
	check_eq(message.type, CONTROL_READY);
	check_eq(message.ready.reason, VGPU_REASON_NONE);
	check_eq(message.greeting.version, CONTROL_VERSION);
	assign.greeting.version = CONTROL_VERSION + 1;
	check_eq(control_send(worker.control, &assign, NULL), 0);
	hear(&message);
	check_eq(message.type, CONTROL_OPENED);
	check_eq(message.opened.reason, VGPU_REASON_HOST);
	check_eq(count_lines("of the control protocol"), 1);
	check_eq(waitpid(worker.pid, &status, 0), worker.pid);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	close(worker.control);
	close(worker.log);
}
