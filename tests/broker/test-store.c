/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpud is killed, or started again, while guests are served: the service manager keeps
 * its descriptors
 */

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "manager.h"
#include "service.h"
#include "test.h"
#include "vgpud/link.h"

TEST(sessions_outlive_a_killed_keeper)
{
	service_start();
	for (unsigned int i = 0; i < 5; i++) {
		service_kill();
		check(service_is_alive(worker));
		service_continue();
		manager_wait_ready(2 + i);
		service_check();
	}
	service_serve_another(pair.socket);
	guest_open(&qemu, 1, "app");
	guest_open(&qemu, 2, "app");
	check_eq(guest_open_refused(&qemu, 3, "app"), VGPU_REASON_PROCESSES);
	guest_close(&qemu, 1);
	guest_close(&qemu, 2);
	check_eq(pair_count_log(&pair, "another vgpud serves"), 0);
	service_stop();
}

TEST_SECONDS(sessions_outlive_a_keeper_that_is_killed_at_any_moment, 110)
{
	service_start();
	service_kill();
	for (unsigned int i = 0; i < 60; i++) {
		/* From the first steps of the program on, until it is ready. */
		pair_spawn(&pair, &options);
		usleep(i * 700);
		check_eq(kill(pair.pid, SIGKILL), 0);
		pair_wait_exit(&pair);
		manager_settle();
		check(service_is_alive(worker) && service_is_alive(in_qemu));
	}
	service_continue();
	service_stop();
}

/* What comes and goes while the keeper dies. */
TEST_SECONDS(other_sessions_begin_and_end_meanwhile, 110)
{
	struct guest other;

	service_start();
	for (unsigned int i = 0; i < 12; i++) {
		guest_connect(&other, pair.socket);
		guest_claim(&other, 0, "app");
		guest_ask(&other, 0, VGPU_CHANNEL_OPENING);
		guest_ring(&other);
		usleep(i * 1500);
		service_kill();
		service_continue();
		guest_disconnect(&other);
		service_serve_another(pair.socket);
	}
	service_stop();
}

static void touch(const char *name)
{
	const int fd = open(service_path(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	check(fd >= 0);
	close(fd);
}

static char die_folder[96]; /* of the test, not of the process that becomes a keeper */

/* In that process, see dying.c. */
static void give_and_die_of_a_vm(void)
{
	char point[32];

	manager_give();
	snprintf(point, sizeof(point), "link-out:%u:before", LINK_VM);
	setenv("LD_PRELOAD", DYING, 1);
	setenv("VGPU_DIE", point, 1);
	setenv("VGPU_DIE_PROCESS", "vgpud", 1);
	setenv("VGPU_DIE_FOLDER", die_folder, 1);
	/* Of a build with sanitizers: it comes before their library. */
	setenv("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0", 1);
}

/* A keeper that is killed when it has greeted a VM, before the broker hears of that. */
static void start_dying(void)
{
	snprintf(die_folder, sizeof(die_folder), "%s", test_tmpdir());
	touch("0");
	service_start_with("--fd-store=200", give_and_die_of_a_vm);
	touch("armed");
}

static void continue_dead(void)
{
	const int status = pair_wait_exit(&pair);

	check(WIFSIGNALED(status));
	check_eq(WTERMSIG(status), SIGKILL);
	manager_settle();
	options.before_fn = manager_give;
	service_continue();
}

TEST(a_process_that_was_greeted_is_served_by_the_next_keeper)
{
	struct guest other;

	start_dying();
	guest_connect(&other, pair.socket);
	continue_dead();
	guest_open(&other, 0, "app");
	guest_close(&other, 0);
	guest_disconnect(&other);
	service_stop();
}

TEST(a_machine_that_was_greeted_is_served_by_the_next_keeper)
{
	start_dying();
	guest_disconnect(&qemu);
	guest_wait_for(!service_is_alive(in_qemu));
	guest_connect_qemu(&qemu, service_path("qemu"));
	continue_dead();
	guest_open(&qemu, 0, "app");
	in_qemu = guest_entry(&qemu, 0)->worker_pid;
	service_stop();
}

TEST(a_restart_continues_with_the_configuration_of_now)
{
	char more[768];

	service_start();
	service_step_aside();
	check_eq(pair_count_log(&pair, "vgpud has left everything to the next one"), 1);
	check(service_is_alive(worker) && service_is_alive(in_qemu));
	snprintf(more, sizeof(more), "%s[vm new]\ntransport = socket\nsocket = %s\n",
		sections, service_path("new"));
	options.sections = more;
	service_continue();
	manager_wait_ready(2);
	service_check();
	service_serve_another(service_path("new"));
	/* The other way round, and a configuration that cannot be used. */
	service_step_aside();
	options.sections = sections;
	service_continue();
	manager_wait_ready(3);
	check(access(service_path("new"), F_OK) < 0);
	service_step_aside();
	options.vm_lines = "size = 3\n";
	service_continue();
	pair_wait_log(&pair, "the configuration stays as it was", 1);
	service_stop();
}

TEST(a_section_that_is_removed_meanwhile_loses_its_vm)
{
	service_start();
	service_kill();
	options.sections = NULL;
	service_continue();
	pair_wait_log(&pair, "the VM loses its device", 1);
	guest_wait_for(!service_is_alive(in_qemu));
	check(service_is_alive(worker));
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	pair_stop(&pair);
	service_end();
}

TEST(workers_that_ended_meanwhile_or_later_are_noticed)
{
	struct pair_session session;

	service_start();
	service_kill();
	check_eq(kill((pid_t)worker, SIGKILL), 0);
	guest_wait_for(!service_is_alive(worker));
	service_continue();
	pair_read_session(&pair, 0, &session);
	check_eq(session.worker, worker);
	check_eq(guest_entry(&qemu, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(kill((pid_t)in_qemu, SIGKILL), 0);
	pair_read_session(&pair, 1, &session);
	check_eq(session.worker, in_qemu);
	check_eq(pair_count_log(&pair, "how is not known"), 2);
	guest_wait_for(!service_is_alive(in_qemu));
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	pair_stop(&pair);
	service_end();
}

TEST(a_vm_that_disconnected_meanwhile_can_come_again)
{
	service_start();
	service_kill();
	guest_disconnect(&qemu);
	service_continue();
	pair_wait_log(&pair, "the VM disconnected", 1);
	guest_wait_for(!service_is_alive(in_qemu));
	guest_connect_qemu(&qemu, service_path("qemu"));
	guest_open(&qemu, 0, "app");
	in_qemu = guest_entry(&qemu, 0)->worker_pid;
	service_stop();
}

TEST(a_stop_ends_sessions_and_empties_the_store)
{
	service_start();
	check(manager_count() > 0);
	pair_stop(&pair);
	manager_settle();
	check_eq(manager_count(), 0);
	guest_wait_for(!service_is_alive(worker) && !service_is_alive(in_qemu));
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	service_end();
}

/* A service manager that gives up closes what it keeps, and signals no worker. */
TEST(workers_end_when_nobody_keeps_their_sockets)
{
	service_start();
	service_kill();
	check(service_is_alive(worker) && service_is_alive(in_qemu));
	manager_drop();
	guest_wait_for(!service_is_alive(worker) && !service_is_alive(in_qemu));
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	service_end();
}

static void remove_socket(const char *path, bool with_lock)
{
	char lock[200];

	snprintf(lock, sizeof(lock), "%s.lock", path);
	check_eq(unlink(path), 0);
	if (with_lock)
		check_eq(unlink(lock), 0);
}

static void add_ctl_socket(void)
{
	static char line[200];

	snprintf(line, sizeof(line), "ctl-socket = %s\n", service_path("ctl"));
	options.vgpud_lines = line;
}

/* As by a tool that cleans /run, or a unit without RuntimeDirectoryPreserve=. */
TEST(sockets_that_were_removed_meanwhile_are_made_again)
{
	service_start();
	service_step_aside();
	add_ctl_socket();
	service_continue();
	for (unsigned int i = 0; i < 2; i++) {
		manager_wait_ready(2 + i);
		service_kill();
		remove_socket(pair.socket, i);
		remove_socket(service_path("qemu"), i);
		remove_socket(service_path("ctl"), i);
		service_continue();
		service_check();
		service_serve_another(pair.socket);
		pair_wait_log(&pair, "was gone and has been made again", 3 * (i + 1));
		check(access(service_path("ctl"), F_OK) == 0);
	}
	check_eq(pair_count_log(&pair, "was gone and has been made again"), 6);
	/* One QEMU after the other. */
	guest_disconnect(&qemu);
	guest_wait_for(!service_is_alive(in_qemu));
	guest_connect_qemu(&qemu, service_path("qemu"));
	guest_open(&qemu, 0, "app");
	in_qemu = guest_entry(&qemu, 0)->worker_pid;
	service_stop();
	check(access(service_path("ctl"), F_OK) < 0);
}

/* Others may come to a path when its lock is gone: it is left to them. */
TEST(a_socket_that_another_made_meanwhile_is_left_to_it)
{
	char lock[200];
	int fd;

	service_start();
	service_kill();
	remove_socket(service_path("qemu"), true);
	snprintf(lock, sizeof(lock), "%s.lock", service_path("qemu"));
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	service_continue();
	pair_wait_log(&pair, "another vgpud serves", 1);
	service_check();
	check(access(service_path("qemu"), F_OK) < 0);
	/* The next configuration is another attempt. */
	close(fd);
	check_eq(kill(pair.pid, SIGHUP), 0);
	pair_wait_log(&pair, "was gone and has been made again", 1);
	pair_wait_log(&pair, "SIGHUP: ", 1);
	service_stop();
}

static uint64_t found(const char *comm, unsigned int n)
{
	struct pair_session session;

	guest_open(&qemu, 1, comm);
	guest_close(&qemu, 1);
	pair_read_session(&pair, n, &session);
	return session.images_found;
}

TEST(images_of_a_machine_stay)
{
	service_start();
	check_eq(found("image-keep", 0), 1);
	service_kill();
	service_continue();
	check_eq(found("image-find", 1), 1);
	service_step_aside();
	service_continue();
	check_eq(found("image-find", 2), 1);
	service_stop();
}

/* Opens a session that asks for memory by the token of channel 1. Returns: what it finds
 * there, "" if it is refused. */
static const char *take_shared(const uint8_t token[CONTROL_TOKEN_SIZE])
{
	memcpy(guest_area(&qemu, 2) + GUEST_TOKEN_OFF, token, CONTROL_TOKEN_SIZE);
	guest_open(&qemu, 2, "takes");
	guest_wait_for(guest_count_grants(&qemu, 2) == 1);
	return (const char *)guest_area(&qemu, 2) + GUEST_SHARED_OFF;
}

static void kill_and_continue(void)
{
	service_kill();
	service_continue();
}

TEST(memory_that_processes_share_stays_shared)
{
	uint8_t token[CONTROL_TOKEN_SIZE];

	service_start();
	guest_open(&qemu, 1, "shares");
	guest_wait_for(guest_count_grants(&qemu, 1) == 1);
	memcpy(token, guest_area(&qemu, 1) + GUEST_TOKEN_OFF, sizeof(token));
	/* The keeper learns of the memory after the worker has its token: by the time
	 * that it has served somebody else it has stored it. */
	service_serve_another(pair.socket);
	for (unsigned int i = 0; i < 3; i++) {
		kill_and_continue();
		check_str(take_shared(token), "shared");
		/* Also while it has two holders. */
		kill_and_continue();
		guest_close(&qemu, 2);
	}
	guest_close(&qemu, 1);
	kill_and_continue();
	check_str(take_shared(token), "");
	guest_close(&qemu, 2);
	service_stop();
}

TEST(a_worker_that_ignores_its_end_is_killed_by_the_next_keeper)
{
	service_start();
	guest_open(&qemu, 1, "deaf");
	kill_and_continue();
	guest_close(&qemu, 1);
	guest_open(&qemu, 1, "deaf");
	guest_ask(&qemu, 1, VGPU_CHANNEL_CLOSING);
	/* In the time that it has to end by itself. */
	kill_and_continue();
	guest_wait(&qemu, 1, VGPU_CHANNEL_FREE);
	service_stop();
}

TEST(another_program_takes_over_and_is_killed)
{
	service_start();
	check_eq(kill(pair.pid, SIGUSR2), 0);
	pair_wait_log(&pair, "vgpud is replaced by", 1);
	manager_wait_ready(2);
	service_kill();
	service_continue();
	check_eq(kill(pair.pid, SIGUSR2), 0);
	pair_wait_log(&pair, "vgpud is replaced by", 2);
	service_serve_another(pair.socket);
	service_stop();
}

/* What there is once, two sections, two VMs with their workers, a warm worker. */
#define IDLE_STORED (1 + 2 + 4 + 1)
#define IDLE_WORKERS 3

/* Descriptors of vgpud. */
struct descriptors {
	unsigned int n; /* all but pidfds */
	unsigned int n_pidfds;
	unsigned int n_memories; /* of VMs */
	unsigned int n_stats;	 /* of workers */
};

static void count_descriptors(struct descriptors *count)
{
	char folder[64], path[384], target[128];
	struct dirent *entry;
	ssize_t n;
	DIR *dir;

	*count = (struct descriptors){ 0 };
	snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pair.pid);
	dir = opendir(folder);
	check(dir != NULL);
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = '\0';
		count->n_memories += !!strstr(target, "memfd:vgpu-shm");
		count->n_stats += !!strstr(target, "memfd:vgpu-stats");
		if (strstr(target, "[pidfd]"))
			count->n_pidfds++;
		else
			count->n++;
	}
	closedir(dir);
}

/* Return: how often vgpud's first thread has slept; 0: it does not now. */
static unsigned int count_sleeps(void)
{
	unsigned int n = 0;
	char path[64], line[128];
	bool sleeps = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pair.pid,
		(int)pair.pid);
	file = fopen(path, "re");
	check(file != NULL);
	while (fgets(line, sizeof(line), file)) {
		sleeps = sleeps || !strncmp(line, "State:\tS", 8);
		sscanf(line, "voluntary_ctxt_switches: %u", &n);
	}
	fclose(file);
	return sleeps ? n : 0;
}

/* Whether there are no more than the memories of what there is: those of a session that
 * has ended are the last that a thread of vgpud closes. */
static bool is_tidy(struct descriptors *count)
{
	count_descriptors(count);
	return count->n_memories == 2 && count->n_stats == IDLE_WORKERS;
}

/*
 * Whether nothing is under way: vgpud slept while it was looked at, so it was not about
 * to notify the service manager; nothing is left of a session that has ended; and vgpud
 * has a pidfd of each worker that is not its child. Warm workers, which come and go,
 * change the number of those. vgpud's other child is the broker.
 *
 * Counting takes a while, in which descriptors are closed: so only what is counted after
 * everything was tidy is right.
 */
static bool is_idle(struct descriptors *count)
{
	const unsigned int n = count_sleeps();

	return n && is_tidy(count) && is_tidy(count) &&
	       count->n_pidfds + pair_count_children(&pair) == IDLE_WORKERS + 1 &&
	       manager_count() == IDLE_STORED && count_sleeps() == n;
}

TEST(nothing_leaks_from_one_to_the_next)
{
	struct descriptors before, after;

	pair_needs_descriptors();
	service_start();
	service_kill();
	service_continue();
	manager_wait_ready(2);
	service_serve_another(pair.socket);
	guest_wait_for(is_idle(&before));
	for (unsigned int i = 0; i < 12; i++) {
		if (i % 2)
			service_step_aside();
		else
			service_kill();
		service_continue();
		manager_wait_ready(3 + i);
		service_serve_another(pair.socket);
	}
	guest_wait_for(is_idle(&after));
	check_eq(after.n, before.n);
	service_stop();
}

TEST(a_service_manager_that_is_slow_gets_everything_later)
{
	struct guest others[20];

	service_start();
	manager_pause(true);
	for (unsigned int i = 0; i < 20; i++) {
		guest_connect(&others[i], pair.socket);
		guest_open(&others[i], 0, "app");
	}
	manager_pause(false);
	/* What there is once, two sections, all VMs with their workers, a warm worker. */
	guest_wait_for(manager_count() >= 3 + 2 * 22 + 1);
	service_kill();
	service_continue();
	for (unsigned int i = 0; i < 20; i++) {
		check_eq(guest_entry(&others[i], 0)->state, VGPU_CHANNEL_OPEN);
		guest_close(&others[i], 0);
		guest_disconnect(&others[i]);
	}
	service_stop();
}

TEST(a_store_that_is_too_small_is_reported)
{
	service_start_with("--fd-store=3", manager_give);
	pair_wait_log(&pair, "keeps too few descriptors", 1);
	check(manager_count() <= 3);
	service_stop();
}
