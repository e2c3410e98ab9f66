/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpud is killed, or started again, while guests are served: the service manager keeps
 * its descriptors
 */

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"
#include "keeper/bundle.h"
#include "manager.h"
#include "test.h"
#include "vgpu-keeper.pb-c.h"
#include "vgpud/config-source.h"
#include "vgpud/link.h"

static struct pair pair;
static struct guest guest, qemu;
static uint32_t worker, in_qemu; /* their workers */
static char sections[512];
static struct pair_options options;

static const char *path_of(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", test_tmpdir(), name);
	return path;
}

/* A vgpud with one session of a process, and one in a VM. */
static void start_with(const char *argument, void (*before_fn)(void))
{
	snprintf(sections, sizeof(sections),
		"[vm qemu]\nsize = 256M\nmax-processes = 3\nsocket = %s\n",
		path_of("qemu"));
	options = (struct pair_options){
		.worker = FAKE_WORKER,
		.sections = sections,
		.argument = argument,
		.before_fn = before_fn,
	};
	manager_begin();
	pair_start(&pair, &options);
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	worker = guest_entry(&guest, 0)->worker_pid;
	guest_connect_qemu(&qemu, path_of("qemu"));
	guest_open(&qemu, 0, "app");
	in_qemu = guest_entry(&qemu, 0)->worker_pid;
}

static void start(void)
{
	start_with("--fd-store=200", manager_give);
}

/* Orphans come to the test; a service manager reaps them. */
static void reap(void)
{
	pid_t pid;

	do
		pid = waitpid(-1, NULL, WNOHANG);
	while (pid > 0);
}

static bool is_alive(uint32_t pid)
{
	reap();
	return !kill((pid_t)pid, 0);
}

/* SIGKILL, and everything that vgpud said before has been heard. */
static void kill_keeper(void)
{
	check_eq(kill(pair.pid, SIGKILL), 0);
	pair_wait_exit(&pair);
	manager_settle();
}

static void continue_it(void)
{
	static unsigned int n;

	n = pair_count_log(&pair, "continues what an earlier one has left");
	pair_spawn(&pair, &options);
	pair_wait_log(&pair, "continues what an earlier one has left", n + 1);
}

static void check_sessions(void)
{
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(guest_entry(&qemu, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(guest_entry(&guest, 0)->worker_pid, worker);
	check_eq(guest_entry(&qemu, 0)->worker_pid, in_qemu);
	check(is_alive(worker) && is_alive(in_qemu));
}

static void serve_another(const char *path)
{
	struct guest other;

	guest_connect(&other, path);
	guest_open(&other, 0, "app");
	guest_close(&other, 0);
	guest_disconnect(&other);
}

static void serve_another_qemu(void)
{
	struct guest other;

	guest_connect_qemu(&other, path_of("qemu"));
	guest_open(&other, 0, "app");
	guest_close(&other, 0);
	guest_disconnect(&other);
}

/* The sessions end as any others. */
static void stop(void)
{
	check_sessions();
	serve_another(pair.socket);
	guest_close(&guest, 0);
	guest_close(&qemu, 0);
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	guest_wait_for(!is_alive(worker) && !is_alive(in_qemu));
	pair_stop(&pair);
	manager_settle();
	check_eq(manager_count(), 0);
	reap();
	manager_end();
}

TEST(sessions_outlive_a_killed_keeper)
{
	start();
	for (unsigned int i = 0; i < 5; i++) {
		kill_keeper();
		check(is_alive(worker));
		continue_it();
		manager_wait_ready(2 + i);
		check_sessions();
	}
	serve_another(pair.socket);
	guest_open(&qemu, 1, "app");
	guest_open(&qemu, 2, "app");
	check_eq(guest_open_refused(&qemu, 3, "app"), VGPU_REASON_PROCESSES);
	guest_close(&qemu, 1);
	guest_close(&qemu, 2);
	check_eq(pair_count_log(&pair, "another vgpud serves"), 0);
	stop();
}

TEST_SECONDS(sessions_outlive_a_keeper_that_is_killed_at_any_moment, 110)
{
	start();
	kill_keeper();
	for (unsigned int i = 0; i < 60; i++) {
		/* From the first steps of the program on, until it is ready. */
		pair_spawn(&pair, &options);
		usleep(i * 700);
		check_eq(kill(pair.pid, SIGKILL), 0);
		pair_wait_exit(&pair);
		manager_settle();
		check(is_alive(worker) && is_alive(in_qemu));
	}
	continue_it();
	stop();
}

/* What comes and goes while the keeper dies. */
TEST_SECONDS(other_sessions_begin_and_end_meanwhile, 110)
{
	struct guest other;

	start();
	for (unsigned int i = 0; i < 12; i++) {
		guest_connect(&other, pair.socket);
		guest_claim(&other, 0, "app");
		guest_ask(&other, 0, VGPU_CHANNEL_OPENING);
		guest_ring(&other);
		usleep(i * 1500);
		kill_keeper();
		continue_it();
		guest_disconnect(&other);
		serve_another(pair.socket);
	}
	stop();
}

static void touch(const char *name)
{
	const int fd = open(path_of(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

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
	start_with("--fd-store=200", give_and_die_of_a_vm);
	touch("armed");
}

static void continue_dead(void)
{
	const int status = pair_wait_exit(&pair);

	check(WIFSIGNALED(status));
	check_eq(WTERMSIG(status), SIGKILL);
	manager_settle();
	options.before_fn = manager_give;
	continue_it();
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
	stop();
}

TEST(a_machine_that_was_greeted_is_served_by_the_next_keeper)
{
	start_dying();
	guest_disconnect(&qemu);
	guest_wait_for(!is_alive(in_qemu));
	guest_connect_qemu(&qemu, path_of("qemu"));
	continue_dead();
	guest_open(&qemu, 0, "app");
	in_qemu = guest_entry(&qemu, 0)->worker_pid;
	stop();
}

static void step_aside(void)
{
	check_eq(kill(pair.pid, SIGUSR1), 0);
	/* What a service manager sends when it does not know more. */
	check_eq(kill(pair.pid, SIGTERM), 0);
	check_eq(pair_wait_exit(&pair), 0);
	manager_settle();
}

TEST(a_restart_continues_with_the_configuration_of_now)
{
	char more[768];

	start();
	step_aside();
	check_eq(pair_count_log(&pair, "vgpud has left everything to the next one"), 1);
	check(is_alive(worker) && is_alive(in_qemu));
	snprintf(more, sizeof(more), "%s[vm new]\ntransport = socket\nsocket = %s\n",
		sections, path_of("new"));
	options.sections = more;
	continue_it();
	manager_wait_ready(2);
	check_sessions();
	serve_another(path_of("new"));
	/* The other way round, and a configuration that cannot be used. */
	step_aside();
	options.sections = sections;
	continue_it();
	manager_wait_ready(3);
	check(access(path_of("new"), F_OK) < 0);
	step_aside();
	options.vm_lines = "size = 3\n";
	continue_it();
	pair_wait_log(&pair, "the configuration stays as it was", 1);
	stop();
}

TEST(a_section_that_is_removed_meanwhile_loses_its_vm)
{
	start();
	kill_keeper();
	options.sections = NULL;
	continue_it();
	pair_wait_log(&pair, "the VM loses its device", 1);
	guest_wait_for(!is_alive(in_qemu));
	check(is_alive(worker));
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	pair_stop(&pair);
	reap();
	manager_end();
}

TEST(workers_that_ended_meanwhile_or_later_are_noticed)
{
	struct pair_session session;

	start();
	kill_keeper();
	check_eq(kill((pid_t)worker, SIGKILL), 0);
	guest_wait_for(!is_alive(worker));
	continue_it();
	pair_read_session(&pair, 0, &session);
	check_eq(session.worker, worker);
	check_eq(guest_entry(&qemu, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(kill((pid_t)in_qemu, SIGKILL), 0);
	pair_read_session(&pair, 1, &session);
	check_eq(session.worker, in_qemu);
	check_eq(pair_count_log(&pair, "how is not known"), 2);
	guest_wait_for(!is_alive(in_qemu));
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	pair_stop(&pair);
	reap();
	manager_end();
}

TEST(a_vm_that_disconnected_meanwhile_can_come_again)
{
	start();
	kill_keeper();
	guest_disconnect(&qemu);
	continue_it();
	pair_wait_log(&pair, "the VM disconnected", 1);
	guest_wait_for(!is_alive(in_qemu));
	guest_connect_qemu(&qemu, path_of("qemu"));
	guest_open(&qemu, 0, "app");
	in_qemu = guest_entry(&qemu, 0)->worker_pid;
	stop();
}

TEST(a_stop_ends_sessions_and_empties_the_store)
{
	start();
	check(manager_count() > 0);
	pair_stop(&pair);
	manager_settle();
	check_eq(manager_count(), 0);
	guest_wait_for(!is_alive(worker) && !is_alive(in_qemu));
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	reap();
	manager_end();
}

/* A service manager that gives up closes what it keeps, and signals no worker. */
TEST(workers_end_when_nobody_keeps_their_sockets)
{
	start();
	kill_keeper();
	check(is_alive(worker) && is_alive(in_qemu));
	manager_drop();
	guest_wait_for(!is_alive(worker) && !is_alive(in_qemu));
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	while (wait(NULL) > 0)
		;
	manager_end();
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

	snprintf(line, sizeof(line), "ctl-socket = %s\n", path_of("ctl"));
	options.vgpud_lines = line;
}

/* As by a tool that cleans /run, or a unit without RuntimeDirectoryPreserve=. */
TEST(sockets_that_were_removed_meanwhile_are_made_again)
{
	start();
	step_aside();
	add_ctl_socket();
	continue_it();
	for (unsigned int i = 0; i < 2; i++) {
		manager_wait_ready(2 + i);
		kill_keeper();
		remove_socket(pair.socket, i);
		remove_socket(path_of("qemu"), i);
		remove_socket(path_of("ctl"), i);
		continue_it();
		check_sessions();
		serve_another(pair.socket);
		pair_wait_log(&pair, "was gone and has been made again", 3 * (i + 1));
		check(access(path_of("ctl"), F_OK) == 0);
	}
	check_eq(pair_count_log(&pair, "was gone and has been made again"), 6);
	/* One QEMU after the other. */
	guest_disconnect(&qemu);
	guest_wait_for(!is_alive(in_qemu));
	guest_connect_qemu(&qemu, path_of("qemu"));
	guest_open(&qemu, 0, "app");
	in_qemu = guest_entry(&qemu, 0)->worker_pid;
	stop();
	check(access(path_of("ctl"), F_OK) < 0);
}

/* Others may come to a path when its lock is gone: it is left to them. */
TEST(a_socket_that_another_made_meanwhile_is_left_to_it)
{
	char lock[200];
	int fd;

	start();
	kill_keeper();
	remove_socket(path_of("qemu"), true);
	snprintf(lock, sizeof(lock), "%s.lock", path_of("qemu"));
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	continue_it();
	pair_wait_log(&pair, "another vgpud serves", 1);
	check_sessions();
	check(access(path_of("qemu"), F_OK) < 0);
	/* The next configuration is another attempt. */
	close(fd);
	check_eq(kill(pair.pid, SIGHUP), 0);
	pair_wait_log(&pair, "was gone and has been made again", 1);
	pair_wait_log(&pair, "SIGHUP: ", 1);
	stop();
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
	start();
	check_eq(found("image-keep", 0), 1);
	kill_keeper();
	continue_it();
	check_eq(found("image-find", 1), 1);
	step_aside();
	continue_it();
	check_eq(found("image-find", 2), 1);
	stop();
}

TEST(another_program_takes_over_and_is_killed)
{
	start();
	check_eq(kill(pair.pid, SIGUSR2), 0);
	pair_wait_log(&pair, "vgpud is replaced by", 1);
	manager_wait_ready(2);
	kill_keeper();
	continue_it();
	check_eq(kill(pair.pid, SIGUSR2), 0);
	pair_wait_log(&pair, "vgpud is replaced by", 2);
	serve_another(pair.socket);
	stop();
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
	start();
	kill_keeper();
	continue_it();
	manager_wait_ready(2);
	serve_another(pair.socket);
	guest_wait_for(is_idle(&before));
	for (unsigned int i = 0; i < 12; i++) {
		if (i % 2)
			step_aside();
		else
			kill_keeper();
		continue_it();
		manager_wait_ready(3 + i);
		serve_another(pair.socket);
	}
	guest_wait_for(is_idle(&after));
	check_eq(after.n, before.n);
	stop();
}

TEST(a_service_manager_that_is_slow_gets_everything_later)
{
	struct guest others[20];

	start();
	manager_pause(true);
	for (unsigned int i = 0; i < 20; i++) {
		guest_connect(&others[i], pair.socket);
		guest_open(&others[i], 0, "app");
	}
	manager_pause(false);
	/* What there is once, two sections, all VMs with their workers, a warm worker. */
	guest_wait_for(manager_count() >= 3 + 2 * 22 + 1);
	kill_keeper();
	continue_it();
	for (unsigned int i = 0; i < 20; i++) {
		check_eq(guest_entry(&others[i], 0)->state, VGPU_CHANNEL_OPEN);
		guest_close(&others[i], 0);
		guest_disconnect(&others[i]);
	}
	stop();
}

TEST(a_store_that_is_too_small_is_reported)
{
	start_with("--fd-store=3", manager_give);
	pair_wait_log(&pair, "keeps too few descriptors", 1);
	check(manager_count() <= 3);
	stop();
}

/*
 * What cannot be continued: everything is let go, and vgpud starts afresh
 */

static void start_afresh(const char *why)
{
	const unsigned int n = pair_count_log(&pair, "vgpud ready");
	char end;

	pair_spawn(&pair, &options);
	pair_wait_log(&pair, "vgpud ready", n + 1);
	check_eq(pair_count_log(&pair, why), 1);
	check_eq(pair_count_log(&pair, "continues what"), 0);
	guest_wait_for(!is_alive(worker) && !is_alive(in_qemu));
	/* The machine sees that its device is gone. */
	check_eq(recv(qemu.socket, &end, 1, 0), 0);
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	serve_another(pair.socket);
	serve_another_qemu();
	pair_stop(&pair);
	manager_settle();
	check_eq(manager_count(), 0);
	reap();
	manager_end();
}

/* Return: the place of the bundle with the base, and what it says. */
static unsigned int find_base(
	VgpuKeeper__State **statep, int *fds, size_t *n_fdsp, struct bundle_label *label)
{
	struct manager_fd *kept;
	unsigned int n;
	uint8_t bytes[4096];
	ssize_t size;

	kept = manager_kept(&n);
	for (unsigned int i = 0; i < n; i++) {
		check_eq(bundle_read_label(kept[i].fd, label), 0);
		check_eq(bundle_open(kept[i].fd, fds, n_fdsp), 0);
		size = pread(fds[0], bytes, sizeof(bytes), 0);
		check(size > 0);
		*statep = vgpu_keeper__state__unpack(NULL, size, bytes);
		check(*statep != NULL);
		if (*(*statep)->version)
			return i;
		vgpu_keeper__state__free_unpacked(*statep, NULL);
		for (size_t j = 0; j < *n_fdsp; j++)
			close(fds[j]);
	}
	test_fail(__FILE__, __LINE__, "there is no base");
}

/* Stores it again with another message. */
static void change_base(void (*change)(uint8_t *bytes, size_t *sizep))
{
	struct bundle_label label;
	VgpuKeeper__State *state;
	int fds[BUNDLE_FDS_MAX];
	uint8_t bytes[4096];
	struct manager_fd *kept;
	size_t n_fds, size;
	unsigned int n, i;

	i = find_base(&state, fds, &n_fds, &label);
	state->version[0] = '7';
	size = vgpu_keeper__state__pack(state, bytes);
	vgpu_keeper__state__free_unpacked(state, NULL);
	if (change)
		change(bytes, &size);
	close(fds[0]);
	fds[0] = memfd_create("changed", MFD_CLOEXEC);
	check_eq(write(fds[0], bytes, size), size);
	kept = manager_kept(&n);
	close(kept[i].fd);
	kept[i].fd = bundle_make(&label, fds, n_fds);
	check(kept[i].fd >= 0);
	for (size_t j = 0; j < n_fds; j++)
		close(fds[j]);
}

TEST(sessions_of_another_version_are_let_go)
{
	start();
	kill_keeper();
	change_base(NULL);
	start_afresh("those that an earlier vgpud has stored have version 7");
}

static void garble(uint8_t *bytes, size_t *sizep)
{
	memset(bytes, 0xff, *sizep);
}

TEST(a_message_that_is_none_is_not_used)
{
	start();
	kill_keeper();
	change_base(garble);
	start_afresh("what an earlier vgpud has stored cannot be read");
}

static void empty(uint8_t *bytes, size_t *sizep)
{
	(void)bytes;
	*sizep = 0;
}

TEST(a_state_without_its_base_is_not_used)
{
	start();
	kill_keeper();
	change_base(empty);
	start_afresh("is not complete");
}

TEST(numbers_of_descriptors_that_are_not_there_are_not_used)
{
	struct bundle_label label;
	VgpuKeeper__State *state;
	int fds[BUNDLE_FDS_MAX];
	struct manager_fd *kept;
	size_t n_fds;
	unsigned int n, i;

	start();
	kill_keeper();
	i = find_base(&state, fds, &n_fds, &label);
	kept = manager_kept(&n);
	close(kept[i].fd);
	/* The message is the same, the sources are not there. */
	kept[i].fd = bundle_make(&label, fds, 1);
	vgpu_keeper__state__free_unpacked(state, NULL);
	for (size_t j = 0; j < n_fds; j++)
		close(fds[j]);
	start_afresh("what an earlier vgpud has stored cannot be read");
}

/* Stores the base again, with a configuration that has a mistake for this program. */
static void spoil_sources(void)
{
	struct config_sources sources = CONFIG_SOURCES_NULL;
	struct bundle_label label;
	VgpuKeeper__State *state;
	int fds[BUNDLE_FDS_MAX], spoiled;
	struct manager_fd *kept;
	size_t n_fds;
	unsigned int n, i;
	char *failed = NULL;
	FILE *file;

	file = fopen(path_of("spoiled"), "w");
	check(file && fputs("[vgpud]\nof-another-release = yes\n", file) >= 0);
	check_eq(fclose(file), 0);
	check_eq(config_sources_read(&sources, path_of("spoiled"), &failed), 0);
	check_eq(config_sources_keep(&sources, &spoiled), 0);
	config_sources_deinit(&sources);
	i = find_base(&state, fds, &n_fds, &label);
	/* The first is the message itself. */
	check(state->sources >= 0 && (size_t)state->sources + 1 < n_fds);
	close(fds[state->sources + 1]);
	fds[state->sources + 1] = spoiled;
	vgpu_keeper__state__free_unpacked(state, NULL);
	kept = manager_kept(&n);
	close(kept[i].fd);
	kept[i].fd = bundle_make(&label, fds, n_fds);
	check(kept[i].fd >= 0);
	for (size_t j = 0; j < n_fds; j++)
		close(fds[j]);
}

TEST(a_stored_configuration_with_mistakes_is_replaced_by_the_file)
{
	start();
	kill_keeper();
	spoil_sources();
	continue_it();
	check_eq(pair_count_log(&pair, "of-another-release"), 1);
	check_eq(pair_count_log(&pair, "has stored cannot be used"), 1);
	check_eq(pair_count_log(&pair, "loses its device"), 0);
	manager_wait_ready(2);
	/* The next one finds the other configuration in the store. */
	kill_keeper();
	continue_it();
	check_eq(pair_count_log(&pair, "has stored cannot be used"), 1);
	serve_another(pair.socket);
	stop();
}

/* The VM of section "qemu", which is as it was for the other one, is not continued. */
static void lose_qemu(const char *section)
{
	char end;

	kill_keeper();
	spoil_sources();
	options.sections = section;
	continue_it();
	pair_wait_log(&pair, "vm=qemu id=2: the VM loses its device", 1);
	guest_wait_for(!is_alive(in_qemu));
	check_eq(recv(qemu.socket, &end, 1, 0), 0);
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	check(is_alive(worker));
	guest_disconnect(&qemu);
}

static void stop_after_loss(void)
{
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	guest_wait_for(!is_alive(worker));
	pair_stop(&pair);
	manager_settle();
	check_eq(manager_count(), 0);
	reap();
	manager_end();
}

TEST(then_a_vm_whose_section_has_another_socket_is_lost)
{
	char section[300];

	start();
	snprintf(section, sizeof(section),
		"[vm qemu]\nsize = 256M\nmax-processes = 3\nsocket = %s\n",
		path_of("elsewhere"));
	lose_qemu(section);
	guest_connect_qemu(&qemu, path_of("elsewhere"));
	guest_open(&qemu, 0, "app");
	guest_close(&qemu, 0);
	guest_disconnect(&qemu);
	check(access(path_of("qemu"), F_OK) < 0);
	stop_after_loss();
}

TEST(then_a_vm_whose_section_has_another_transport_is_lost)
{
	struct guest other;
	char section[300];

	start();
	snprintf(section, sizeof(section), "[vm qemu]\ntransport = socket\nsocket = %s\n",
		path_of("qemu"));
	lose_qemu(section);
	/* The greeting of the other transport; the fake worker takes no such "qemu". */
	guest_connect(&other, path_of("qemu"));
	guest_disconnect(&other);
	stop_after_loss();
}

TEST(then_a_vm_whose_section_is_gone_is_lost)
{
	start();
	lose_qemu(NULL);
	stop_after_loss();
}

/* vgpud cannot start, and has decided nothing. */
TEST(nothing_is_let_go_while_both_configurations_have_mistakes)
{
	int status;

	start();
	kill_keeper();
	spoil_sources();
	options.vm_lines = "size = 3\n";
	pair_spawn(&pair, &options);
	status = pair_wait_exit(&pair);
	check(WIFEXITED(status));
	check_eq(WEXITSTATUS(status), 2);
	manager_settle();
	check(is_alive(worker) && is_alive(in_qemu));
	options.vm_lines = NULL;
	continue_it();
	stop();
}

TEST(descriptors_of_others_are_closed_and_the_rest_is_used)
{
	int pair_of_fds[2];

	start();
	kill_keeper();
	check_eq(pipe2(pair_of_fds, O_CLOEXEC), 0);
	manager_add("stored", pair_of_fds[0]);
	manager_add("vgpud-1", open("/dev/null", O_RDWR | O_CLOEXEC));
	continue_it();
	pair_wait_log(&pair, "which is not vgpud's", 2);
	/* vgpud is heard before it serves, so nobody has the other end any more. */
	check_eq(poll(&(struct pollfd){ .fd = pair_of_fds[1] }, 1, 30000), 1);
	close(pair_of_fds[1]);
	stop();
}

TEST(a_vgpud_that_wants_no_store_lets_everything_go)
{
	start();
	kill_keeper();
	options.argument = NULL;
	start_afresh("all sessions and VMs of an earlier vgpud are let go");
}
