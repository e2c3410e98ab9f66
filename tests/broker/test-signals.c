/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect of signals on vgpud's processes, and vgpud's exit status
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"
#include "pair.h"
#include "test.h"

static struct pair pair;
static struct guest guest;
static uint32_t worker;

static void start(void)
{
	pair_start(&pair, &(struct pair_options){ .worker = FAKE_WORKER });
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	worker = guest_entry(&guest, 0)->worker_pid;
}

static void stop(void)
{
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

/* The number after a line's name in /proc/PID/status, which is hexadecimal. */
static unsigned long long read_status(pid_t pid, const char *name)
{
	unsigned long long number = ~0ull;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	check(file != NULL);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			number = strtoull(line + strlen(name), NULL, 16);
	fclose(file);
	return number;
}

TEST(signals_that_mean_nothing_have_no_effect)
{
	static const int some[] = { SIGUSR1, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR,
		SIGSTKFLT, SIGXCPU, SIGXFSZ, SIGTTIN, SIGTTOU, SIGTSTP, SIGPIPE };
	pid_t broker;

	start();
	broker = pair_find_broker(&pair);
	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
		check_eq(kill(pair.pid, some[i]), 0);
		check_eq(kill(broker, some[i]), 0);
	}
	for (int signo = SIGRTMIN; signo <= SIGRTMAX; signo++) {
		check_eq(kill(pair.pid, signo), 0);
		check_eq(kill(broker, signo), 0);
	}
	/* A signal is acted on before its receiver does anything else: both answer. */
	check_eq(kill(pair.pid, SIGHUP), 0);
	pair_wait_log(&pair, "is in force", 1);
	check_eq(pair_count_log(&pair, "the broker was ended"), 0);
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(guest_entry(&guest, 0)->worker_pid, worker);
	stop();
}

TEST(signals_that_a_broker_ignores_do_not_end_it)
{
	static const int some[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR2 };
	pid_t broker;

	start();
	broker = pair_find_broker(&pair);
	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++)
		check_eq(kill(broker, some[i]), 0);
	guest_close(&guest, 0);
	pair_wait_log(&pair, "session ended", 1);
	check_eq(pair_find_broker(&pair), broker);
	check_eq(pair_count_log(&pair, "the broker was ended"), 0);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(a_worker_starts_with_the_signals_that_a_program_expects)
{
	start();
	/* SIGPIPE alone: the worker's log may be closed before it is. */
	check_eq(read_status(worker, "SigIgn:"), 1ull << (SIGPIPE - 1));
	stop();
}

TEST(sigquit_ends_all_at_once_and_the_next_vgpud_takes_over)
{
	struct pair_options options = { .worker = FAKE_WORKER };
	int status;

	start();
	check_eq(kill(pair.pid, SIGQUIT), 0);
	status = pair_wait_exit(&pair);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGQUIT);
	guest_disconnect(&guest);
	/* Its children are now children of this process, and end because it did. */
	while (wait(NULL) > 0)
		;
	check_eq(unlink(pair.log), 0);
	pair_start(&pair, &options);
	pair_stop(&pair);
}

static int listen_for_notices(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", test_tmpdir());
	check_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	check_eq(setenv("NOTIFY_SOCKET", address.sun_path, 1), 0);
	return fd;
}

static void expect_notice(int fd, const char *text)
{
	char got[256] = "";

	check(recv(fd, got, sizeof(got) - 1, 0) > 0);
	got[strcspn(got, "\n")] = '\0';
	check_str(got, text);
}

TEST(the_service_manager_is_notified_of_each_step_by_vgpud_only)
{
	char command[128];
	int fd = listen_for_notices();

	/* Nothing depends on lines of the log. */
	check_eq(setenv("VGPU_LOG", "none", 1), 0);
	start();
	expect_notice(fd, "READY=1");
	snprintf(command, sizeof(command), "grep -qa ^NOTIFY_SOCKET= /proc/%u/environ",
		worker);
	check(system(command) != 0);
	check_eq(kill(pair.pid, SIGHUP), 0);
	expect_notice(fd, "RELOADING=1");
	expect_notice(fd, "READY=1");
	check_eq(kill(pair.pid, SIGUSR2), 0);
	expect_notice(fd, "READY=1");
	stop();
	expect_notice(fd, "STOPPING=1");
	close(fd);
}
