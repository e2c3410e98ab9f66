/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of vgpud: start, limits, restart of the broker, end
 */

#include <dirent.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"
#include "pair.h"
#include "test.h"

static struct pair pair;
static struct guest guest;

/* Returns: the pid of vgpud's broker, as soon as there is one. */
static pid_t find_broker(void)
{
	char path[64], name[32];
	unsigned int pid;
	FILE *children, *comm;

	for (;; usleep(1000)) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pair.pid,
			(int)pair.pid);
		children = fopen(path, "re");
		check(children != NULL);
		while (fscanf(children, "%u", &pid) == 1) {
			snprintf(path, sizeof(path), "/proc/%u/comm", pid);
			comm = fopen(path, "re");
			name[0] = '\0';
			if (comm) {
				if (!fgets(name, sizeof(name), comm))
					name[0] = '\0';
				fclose(comm);
			}
			if (!strcmp(name, "vgpud-broker\n")) {
				fclose(children);
				return pid;
			}
		}
		fclose(children);
	}
}

/* Kills the broker, for the n-th time. */
static void kill_broker(unsigned int n)
{
	check_eq(kill(find_broker(), SIGKILL), 0);
	pair_wait_log(&pair, "the broker was ended by signal 9", n);
}

TEST(vgpud_starts_warms_a_worker_and_leaves_nothing)
{
	pair_start(&pair, &(struct pair_options){ .worker = FAKE_WORKER });
	/* The broker and one warm worker. */
	guest_wait_for(pair_count_children(&pair) == 2);
	pair_stop(&pair);
}

TEST(no_worker_is_kept_warm_if_none_is_wanted)
{
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = "warm-workers = 0\n",
			  });
	guest_connect(&guest, pair.socket);
	/* The first one finds the devices. */
	while (pair_count_children(&pair) != 1)
		usleep(1000);
	guest_open(&guest, 0, "app");
	check_eq(pair_count_children(&pair), 2);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(sigterm_ends_open_sessions_and_tells_their_guests)
{
	struct pair_session session;

	pair_start(&pair, &(struct pair_options){ .worker = FAKE_WORKER });
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	pair_stop(&pair);
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_DEAD);
	check_eq(guest_entry(&guest, 0)->reason, VGPU_REASON_SHUTDOWN);
	pair_read_session(&pair, 0, &session);
	check_str(session.reason, "shutdown");
	guest_disconnect(&guest);
}

TEST(sigterm_ends_workers_that_do_not_listen)
{
	pair_start(&pair, &(struct pair_options){ .worker = FAKE_WORKER });
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "deaf");
	pair_stop(&pair);
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_DEAD);
	guest_disconnect(&guest);
}

TEST(guests_are_notified_of_the_end_although_the_broker_dies_of_it)
{
	struct pair_session session;

	pair_start(&pair, &(struct pair_options){ .worker = FAKE_WORKER });
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "deaf");
	check_eq(kill(pair.pid, SIGTERM), 0);
	/* The worker does not listen, so there is a second to do it in. */
	pair_wait_log(&pair, "no new sessions", 1);
	kill_broker(1);
	check_eq(pair_wait_exit(&pair), 0);
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_DEAD);
	check_eq(guest_entry(&guest, 0)->reason, VGPU_REASON_SHUTDOWN);
	pair_read_session(&pair, 0, &session);
	check_str(session.reason, "shutdown");
	guest_disconnect(&guest);
}

TEST(no_process_survives_a_killed_vgpud)
{
	struct pair_options options = { .worker = FAKE_WORKER };
	uint32_t worker;

	pair_start(&pair, &options);
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "deaf");
	worker = guest_entry(&guest, 0)->worker_pid;
	check_eq(kill(pair.pid, SIGKILL), 0);
	check_eq(waitpid(pair.pid, NULL, 0), pair.pid);
	/* All three others become children of this process, and end. */
	while (waitpid(-1, NULL, 0) > 0)
		;
	check(kill(worker, 0) < 0);
	guest_disconnect(&guest);

	/* The socket file still exists, but without an owner: the next vgpud takes it
	 * over. */
	check_eq(access(pair.socket, F_OK), 0);
	check_eq(unlink(pair.log), 0);
	pair_start(&pair, &options);
	guest_connect(&guest, pair.socket);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(a_second_vgpud_on_the_same_socket_is_refused_with_a_sentence)
{
	struct pair second;

	pair_start(&pair, &(struct pair_options){ .worker = FAKE_WORKER });
	pair_spawn(&second, &(struct pair_options){ .worker = FAKE_WORKER });
	check_eq(WEXITSTATUS(pair_wait_exit(&second)), 1);
	check_eq(pair_count_log(&pair, "another vgpud serves"), 1);
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(a_broker_that_is_killed_is_replaced_and_sessions_go_on)
{
	struct vgpu_channel_entry *entry;
	struct pair_session session;
	struct guest other;
	uint32_t worker;

	pair_start(&pair, &(struct pair_options){ .worker = FAKE_WORKER });
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	entry = guest_entry(&guest, 0);
	worker = entry->worker_pid;

	kill_broker(1);

	/* Connections are greeted and served, old ones too. */
	guest_connect(&other, pair.socket);
	guest_open(&other, 0, "app");
	check_eq(entry->state, VGPU_CHANNEL_OPEN);
	check_eq(kill(worker, 0), 0);
	check_str((char *)guest_extent(&guest, entry->first_extent), "worker");
	guest_close(&guest, 0);
	pair_read_session(&pair, 0, &session);
	check_eq(session.worker, worker);
	check_eq(session.launches, 42);
	check_str(session.reason, "closed");
	check_eq(guest_extent(&guest, 0)[0], 0);
	guest_open(&guest, 0, "app");
	guest_disconnect(&other);
	pair_read_session(&pair, 1, &session);
	guest_disconnect(&guest);
	pair_read_session(&pair, 2, &session);
	pair_stop(&pair);
}

TEST(a_guest_whose_opening_met_a_dying_broker_is_served_by_the_next)
{
	pair_start(&pair, &(struct pair_options){ .worker = FAKE_WORKER });
	guest_connect(&guest, pair.socket);
	guest_claim(&guest, 0, "mute");
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	usleep(50000);
	strcpy((char *)guest_entry(&guest, 0)->comm, "app");
	kill_broker(1);
	guest_wait(&guest, 0, VGPU_CHANNEL_OPEN);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

/* A guest that connects and disconnects until it is stopped. */
static void __attribute__((__noreturn__)) come_and_go(int seed)
{
	struct vgpu_channel_entry *entry;
	uint32_t state;

	srandom(seed);
	guest_connect(&guest, pair.socket);
	entry = guest_entry(&guest, 0);
	for (;;) {
		guest_claim(&guest, 0, random() % 4 ? "app" : "window");
		guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
		guest_wait_for((state = __atomic_load_n(&entry->state,
					__ATOMIC_ACQUIRE)) != VGPU_CHANNEL_OPENING);
		check(state == VGPU_CHANNEL_OPEN || state == VGPU_CHANNEL_REFUSED);
		usleep(random() % 3000);
		guest_close(&guest, 0);
	}
}

TEST(a_broker_may_be_killed_at_any_moment)
{
	pid_t guests[3];
	int status;

	pair_start(&pair, &(struct pair_options){ .worker = FAKE_WORKER });
	for (int i = 0; i < 3; i++) {
		guests[i] = fork();
		if (!guests[i])
			come_and_go(i);
	}
	for (unsigned int n = 1; n <= 5; n++) {
		usleep(30000 + n * 7777);
		kill_broker(n);
	}
	usleep(100000);
	for (int i = 0; i < 3; i++) {
		/* Still alive, so every wait of its was answered. */
		check_eq(waitpid(guests[i], &status, WNOHANG), 0);
		kill(guests[i], SIGKILL);
		check_eq(waitpid(guests[i], NULL, 0), guests[i]);
	}
	/* Broker and warm worker are all that is left. */
	guest_wait_for(pair_count_children(&pair) == 2);
	check_eq(pair_count_log(&pair, "gives up"), 0);
	check_eq(pair_count_log(&pair, "the broker ends"), 0);
	pair_stop(&pair);
}

TEST(a_broker_that_dies_again_and_again_ends_vgpud)
{
	pair_start(&pair, &(struct pair_options){ .worker = FAKE_WORKER });
	for (unsigned int n = 1; n <= 6; n++)
		kill_broker(n);
	check_eq(WEXITSTATUS(pair_wait_exit(&pair)), 1);
	check(access(pair.socket, F_OK) < 0);
}

static unsigned int count_fds(pid_t pid)
{
	unsigned int n = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	check(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

TEST(descriptors_of_vgpud_come_back_when_guests_are_gone)
{
	unsigned int n_keeper, n_broker;
	pid_t broker;

	pair_needs_descriptors();
	/* No worker is kept warm: one that gets ready late would look like a leak. */
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = "warm-workers = 0\n",
			  });
	guest_wait_for(pair_count_children(&pair) == 1);
	broker = find_broker();
	n_keeper = count_fds(pair.pid);
	n_broker = count_fds(broker);
	for (int i = 0; i < 10; i++) {
		guest_connect(&guest, pair.socket);
		guest_open(&guest, 0, "app");
		if (i % 2)
			kill(guest_entry(&guest, 0)->worker_pid, SIGKILL);
		guest_disconnect(&guest);
	}
	pair_wait_log(&pair, "session ended", 10);
	guest_wait_for(count_fds(pair.pid) == n_keeper);
	guest_wait_for(count_fds(broker) == n_broker);
	pair_stop(&pair);
}

TEST(limits_of_processes_are_kept)
{
	struct guest more[2];

	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vm_lines = "max-processes = 2\n",
			  });
	guest_connect(&guest, pair.socket);
	guest_connect(&more[0], pair.socket);
	guest_connect(&more[1], pair.socket);
	guest_open(&guest, 0, "app");
	guest_open(&more[0], 0, "app");
	check_eq(guest_open_refused(&more[1], 0, "app"), VGPU_REASON_PROCESSES);
	check_eq(guest_entry(&more[1], 0)->detail, 2);
	check_eq(pair_count_log(&pair, "refused: max-processes"), 1);
	guest_close(&guest, 0);
	guest_ask(&more[1], 0, VGPU_CHANNEL_OPENING);
	guest_wait(&more[1], 0, VGPU_CHANNEL_OPEN);
	guest_disconnect(&guest);
	guest_disconnect(&more[0]);
	guest_disconnect(&more[1]);
	pair_stop(&pair);
}

TEST(limits_of_workers_are_kept)
{
	struct guest other;

	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = "max-workers = 1\nwarm-workers = 3\n",
			  });
	guest_connect(&guest, pair.socket);
	guest_connect(&other, pair.socket);
	guest_open(&guest, 0, "app");
	check_eq(guest_open_refused(&other, 0, "app"), VGPU_REASON_WORKERS);
	check_eq(guest_entry(&other, 0)->detail, 1);
	check_eq(pair_count_log(&pair, "refused: max-workers"), 1);
	check_eq(pair_count_children(&pair), 2);
	guest_close(&guest, 0);
	guest_ask(&other, 0, VGPU_CHANNEL_OPENING);
	guest_wait(&other, 0, VGPU_CHANNEL_OPEN);
	guest_disconnect(&guest);
	guest_disconnect(&other);
	pair_stop(&pair);
}

TEST(no_vm_takes_the_last_worker_from_one_that_has_none)
{
	char sections[256], path[128];
	struct guest first[3], other, third;

	snprintf(path, sizeof(path), "%s/other", test_tmpdir());
	snprintf(sections, sizeof(sections),
		"[vm other]\ntransport = socket\nsize = 256M\nsocket = %s\n", path);
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = "max-workers = 4\n",
				  .sections = sections,
			  });
	for (int i = 0; i < 3; i++) {
		guest_connect(&first[i], pair.socket);
		guest_open(&first[i], 0, "app");
	}
	guest_connect(&guest, pair.socket);
	check_eq(guest_open_refused(&guest, 0, "app"), VGPU_REASON_WORKERS);
	guest_connect(&other, path);
	guest_open(&other, 0, "app");
	/* Now each has one. */
	guest_connect(&third, path);
	check_eq(guest_open_refused(&third, 0, "app"), VGPU_REASON_WORKERS);
	guest_close(&first[0], 0);
	guest_ask(&third, 0, VGPU_CHANNEL_OPENING);
	guest_wait(&third, 0, VGPU_CHANNEL_OPEN);
	for (int i = 0; i < 3; i++)
		guest_disconnect(&first[i]);
	guest_disconnect(&guest);
	guest_disconnect(&other);
	guest_disconnect(&third);
	pair_stop(&pair);
}

TEST(a_host_without_a_device_refuses_with_that_reason)
{
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = "softgpu-name = no-device\n",
			  });
	guest_connect(&guest, pair.socket);
	check_eq(guest_open_refused(&guest, 0, "app"), VGPU_REASON_NO_DEVICE);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(workers_that_do_not_start_are_not_started_in_a_loop)
{
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = "softgpu-name = exits\n",
			  });
	guest_connect(&guest, pair.socket);
	check_eq(guest_open_refused(&guest, 0, "app"), VGPU_REASON_HOST);
	usleep(100000);
	check(pair_count_log(&pair, "exited with 6") < 6);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

/* Some are tried, in the end at long intervals: one may be the right one by then. */
TEST(workers_of_another_version_are_refused_and_that_is_said_once)
{
	static const char line[] = "speaks version 0 of the control protocol, this "
				   "broker version ";

	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = "softgpu-name = older\n"
						 "log-level = debug\n",
			  });
	for (int i = 0; i < 2; i++) {
		guest_connect(&guest, pair.socket);
		check_eq(guest_open_refused(&guest, 0, "app"), VGPU_REASON_HOST);
		guest_disconnect(&guest);
	}
	check_eq(pair_count_log(&pair, line), 1);
	check_eq(pair_count_log(&pair, "it sent an invalid message"), 0);
	pair_stop(&pair);
}

TEST(a_missing_worker_program_is_named)
{
	pair_spawn(&pair, &(struct pair_options){ .worker = "/nonexistent/worker" });
	check_eq(WEXITSTATUS(pair_wait_exit(&pair)), 1);
	check_eq(pair_count_log(&pair, "/nonexistent/worker cannot be executed"), 1);
}

TEST(a_wrong_configuration_is_exit_status_2_with_file_and_line)
{
	char text[256];

	pair_spawn(&pair, &(struct pair_options){ .vm_lines = "size = 48M\n" });
	check_eq(WEXITSTATUS(pair_wait_exit(&pair)), 2);
	snprintf(text, sizeof(text), "%s:6: size is a power of two", pair.config);
	check_eq(pair_count_log(&pair, text), 1);
}

/* Has io_uring_setup fail in this process and its children. */
static void forbid_io_uring(int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	check_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	check_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void expect_no_io_uring(int error, const char *name)
{
	char text[64];

	forbid_io_uring(error);
	pair_spawn(&pair, &(struct pair_options){ .worker = FAKE_WORKER });
	check_eq(WEXITSTATUS(pair_wait_exit(&pair)), 1);
	snprintf(text, sizeof(text), "io_uring_setup: %s", name);
	check_eq(pair_count_log(&pair, text), 1);
	check_eq(pair_count_log(&pair, "vgpud ready"), 0);
	check(access(pair.socket, F_OK) < 0);
}

TEST(io_uring_that_is_forbidden_is_named_as_the_cause)
{
	expect_no_io_uring(EPERM, "Operation not permitted");
}

TEST(io_uring_that_is_missing_is_named_as_the_cause)
{
	expect_no_io_uring(ENOSYS, "Function not implemented");
}

static int run_vgpud(const char *arguments)
{
	char command[1024];

	snprintf(command, sizeof(command), "%s %s >%s/out 2>&1", VGPUD, arguments,
		test_tmpdir());
	return WEXITSTATUS(system(command));
}

TEST(too_few_descriptors_are_named_as_the_cause)
{
	char path[128], command[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/vgpud.conf", test_tmpdir());
	file = fopen(path, "w");
	fprintf(file,
		"[vgpud]\ndriver = null\n[vm a]\nsocket = %s/a\n[vm b]\nsocket = %s/b\n",
		test_tmpdir(), test_tmpdir());
	fclose(file);
	for (int n = 8; n <= 18; n++) {
		/* Wherever they run out. A vgpud that starts all the same is ended. */
		snprintf(command, sizeof(command),
			"(ulimit -n %d; exec timeout 20 %s --config %s) 2>&1 | "
			"grep -qi 'error: .*too many open files'",
			n, VGPUD, path);
		check_eq(system(command), 0);
	}
}

TEST(options_are_answered_and_mistakes_refused)
{
	char arguments[256];

	check_eq(run_vgpud("--help"), 0);
	check_eq(run_vgpud("--version"), 0);
	check_eq(run_vgpud("--nonsense"), 2);
	check_eq(run_vgpud("argument"), 2);
	check_eq(run_vgpud("--config /nonexistent"), 2);
	pair_start(&pair, &(struct pair_options){ .worker = FAKE_WORKER });
	snprintf(arguments, sizeof(arguments), "--check --config %s", pair.config);
	check_eq(run_vgpud(arguments), 0);
	pair_stop(&pair);
}

static void expect_of_check(
	const char *vgpud_lines, const char *vm_lines, const char *said)
{
	char path[128], command[768], arguments[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/vgpud.conf", test_tmpdir());
	file = fopen(path, "w");
	fprintf(file, "[vgpud]\n%s[vm a]\n%s", vgpud_lines, vm_lines);
	fclose(file);
	snprintf(command, sizeof(command),
		"%s --check --config %s 2>&1 | grep -qF '%s:%s'", VGPUD, path, path,
		said);
	check_eq(system(command), 0);
	snprintf(arguments, sizeof(arguments), "--check --config %s", path);
	check_eq(run_vgpud(arguments), 2);
}

TEST(check_prints_what_the_host_lacks_for_a_configuration)
{
	expect_of_check("worker = /nonexistent/w\n", "socket = /tmp/s\n",
		"1: worker = /nonexistent/w: No such file or directory");
	expect_of_check("worker = /etc/passwd\n", "socket = /tmp/s\n",
		"1: worker = /etc/passwd: Permission denied");
	expect_of_check("driver = soft\nsoftgpu = /nonexistent/g\n", "socket = /tmp/s\n",
		"1: softgpu = /nonexistent/g: No such file");
	expect_of_check("driver = null\nnull-driver = /tmp\n", "socket = /tmp/s\n",
		"1: null-driver = /tmp is a folder");
	expect_of_check("driver = /nonexistent/c\n", "socket = /tmp/s\n",
		"1: driver = /nonexistent/c: No such file");
	expect_of_check("log-file = /nonexistent/l\n", "socket = /tmp/s\n",
		"1: log-file = /nonexistent/l: No such file");
	expect_of_check("log-file = /tmp\n", "socket = /tmp/s\n",
		"1: log-file = /tmp: Is a directory");
	expect_of_check("", "socket = /nonexistent/s\n",
		"2: [vm a]: socket = /nonexistent/s cannot be made: No such file");
	expect_of_check("", "socket = /tmp/nonexistent/more/s\n",
		"2: [vm a]: socket = /tmp/nonexistent/more/s cannot be made: No such");
	expect_of_check("", "socket = /etc/passwd\n",
		"2: [vm a]: socket = /etc/passwd exists and is not a socket");
	expect_of_check("", "transport = plain\nmemory = /nonexistent/m\n",
		"2: [vm a]: memory = /nonexistent/m: there is no folder /nonexistent");
	/* All of it at once. */
	expect_of_check("worker = /nonexistent/w\nlog-file = /nonexistent/l\n",
		"socket = /nonexistent/s\n", "1: log-file = /nonexistent/l");
	expect_of_check("worker = /nonexistent/w\nlog-file = /nonexistent/l\n",
		"socket = /nonexistent/s\n", "4: [vm a]: socket = /nonexistent/s");
}

TEST(a_folder_that_vgpud_would_make_is_no_mistake)
{
	char arguments[256], path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/vgpud.conf", test_tmpdir());
	file = fopen(path, "w");
	fprintf(file, "[vm a]\nsocket = %s/run/one.sock\n", test_tmpdir());
	fclose(file);
	snprintf(arguments, sizeof(arguments), "--check --config %s", path);
	check_eq(run_vgpud(arguments), 0);
	/* It only looked. */
	snprintf(path, sizeof(path), "%s/run", test_tmpdir());
	check(access(path, F_OK) < 0);
}
