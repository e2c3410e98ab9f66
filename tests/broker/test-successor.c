/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another program takes over from vgpud (SIGUSR2), while guests are served
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest.h"
#include "pair.h"
#include "test.h"

static struct pair pair;
static struct guest guest, qemu, plain;
static uint32_t worker; /* of the guest */
static unsigned int n_successors;
static char program[160]; /* a copy of vgpud */
static char memory[160];  /* file of transport plain */

/* Another file of the same name, as a package manager leaves it. */
static void install(const char *from)
{
	char command[512];

	snprintf(command, sizeof(command), "cp %s %s.new && mv %s.new %s", from, program,
		program, program);
	check_eq(system(command), 0);
}

static const char *path_of(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", pair.dir, name);
	return path;
}

/* A vgpud with one session of a process, and one in a VM. */
static void start(void)
{
	char sections[512];

	snprintf(program, sizeof(program), "%s/vgpud", test_tmpdir());
	snprintf(memory, sizeof(memory), "%s/memory", test_tmpdir());
	install(VGPUD);
	check_eq(setenv("VGPU_TEST_VGPUD", program, 1), 0);
	snprintf(sections, sizeof(sections),
		"[vm qemu]\nsize = 256M\nmax-processes = 3\nsocket = %s/qemu\n"
		"[vm plain]\ntransport = plain\nmemory = %s\n",
		test_tmpdir(), memory);
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .sections = sections,
			  });
	n_successors = 0;
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	worker = guest_entry(&guest, 0)->worker_pid;
	guest_connect_qemu(&qemu, path_of("qemu"));
	guest_open(&qemu, 0, "app");
}

static void check_sessions(void)
{
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(guest_entry(&qemu, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(kill(worker, 0), 0);
	check_eq(pair_count_log(&pair, "session ended"), 0);
}

static void stop(void)
{
	check_sessions();
	guest_close(&guest, 0);
	guest_close(&qemu, 0);
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	pair_stop(&pair);
}

/* Whether a process runs the file that is there now. */
static bool runs_program(pid_t pid)
{
	struct stat file, running;
	char link[64];

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	check_eq(stat(program, &file), 0);
	return !stat(link, &running) && running.st_dev == file.st_dev &&
	       running.st_ino == file.st_ino;
}

static void ask(void)
{
	check_eq(kill(pair.pid, SIGUSR2), 0);
}

static void replace(void)
{
	install(VGPUD);
	check(!runs_program(pair.pid));
	ask();
	pair_wait_log(&pair, "vgpud is replaced by", ++n_successors);
	guest_wait_for(runs_program(pair.pid));
	check(runs_program(pair_find_broker(&pair)));
}

static void serve_another(const char *path)
{
	struct guest other;

	guest_connect(&other, path);
	guest_open(&other, 0, "app");
	guest_close(&other, 0);
	guest_disconnect(&other);
}

TEST(keeper_and_broker_are_replaced_and_sessions_continue)
{
	uint64_t beat;

	start();
	for (int i = 0; i < 7; i++) {
		replace();
		check_sessions();
	}
	serve_another(pair.socket);
	pair_wait_log(&pair, "session ended", 1);
	beat = qemu.header->heartbeat;
	guest_wait_for(
		__atomic_load_n(&qemu.header->heartbeat, __ATOMIC_RELAXED) > beat + 3);
	/* More sessions in the VM, and no more than the configuration allows. */
	guest_open(&qemu, 1, "app");
	guest_open(&qemu, 2, "app");
	check_eq(guest_open_refused(&qemu, 3, "app"), VGPU_REASON_PROCESSES);
	guest_close(&qemu, 1);
	guest_close(&qemu, 2);
	check_eq(pair_count_log(&pair, "gives up"), 0);
	check_eq(pair_count_log(&pair, "another vgpud serves"), 0);
	guest_close(&guest, 0);
	guest_close(&qemu, 0);
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	pair_stop(&pair);
}

TEST(a_successor_reaps_the_workers_of_the_keeper_before)
{
	struct pair_session session;

	start();
	replace();
	check_eq(kill(worker, SIGKILL), 0);
	pair_read_session(&pair, 0, &session);
	check_eq(session.worker, worker);
	guest_wait_for(kill(worker, 0) < 0);
	guest_disconnect(&guest);
	guest_close(&qemu, 0);
	guest_disconnect(&qemu);
	pair_stop(&pair);
}

TEST(a_machine_that_goes_and_one_that_comes_are_noticed_by_the_successor)
{
	start();
	replace();
	guest_disconnect(&qemu);
	pair_wait_log(&pair, "the VM disconnected", 1);
	guest_connect_qemu(&qemu, path_of("qemu"));
	guest_open(&qemu, 0, "app");
	guest_close(&qemu, 0);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	pair_stop(&pair);
}

TEST(a_file_of_a_plain_vm_stays_open)
{
	int fd;

	start();
	fd = open(memory, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check_eq(ftruncate(fd, 256 << 20), 0);
	close(fd);
	pair_wait_log(&pair, "connected (transport plain", 1);
	guest_connect_plain(&plain, memory);
	guest_open(&plain, 3, "app");
	replace();
	check_eq(guest_entry(&plain, 3)->state, VGPU_CHANNEL_OPEN);
	guest_close(&plain, 3);
	check_eq(pair_count_log(&pair, "connected (transport plain"), 1);
	check_eq(unlink(memory), 0);
	pair_wait_log(&pair, "the VM disconnected", 1);
	guest_disconnect(&plain);
	guest_close(&guest, 0);
	guest_close(&qemu, 0);
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	pair_stop(&pair);
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
	replace();
	check_eq(found("image-find", 1), 1);
	replace();
	check_eq(found("image-find", 2), 1);
	guest_close(&guest, 0);
	guest_close(&qemu, 0);
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	pair_stop(&pair);
}

/* Return: how many descriptors vgpud has. */
static unsigned int count_fds(void)
{
	char command[128];
	unsigned int n = 0;
	FILE *pipe;

	snprintf(command, sizeof(command), "ls /proc/%d/fd | wc -l", (int)pair.pid);
	pipe = popen(command, "r");
	check(pipe && fscanf(pipe, "%u", &n) == 1);
	check_eq(pclose(pipe), 0);
	return n;
}

TEST(nothing_leaks_from_one_to_the_next)
{
	unsigned int n;

	pair_needs_descriptors();
	start();
	replace();
	guest_wait_for(pair_count_log(&pair, "vgpud is replaced by") == 1);
	n = count_fds();
	for (int i = 0; i < 5; i++)
		replace();
	guest_wait_for(count_fds() <= n);
	stop();
}

TEST(a_reload_and_a_reason_to_end_are_heard_after_the_change)
{
	start();
	replace();
	check_eq(kill(pair.pid, SIGHUP), 0);
	pair_wait_log(&pair, "is in force", 1);
	serve_another(pair.socket);
	/* Here as well the sessions end with vgpud, and nothing is left. */
	check_eq(kill(worker, 0), 0);
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	pair_stop(&pair);
}

static void check_kept(const char *text)
{
	pair_wait_log(&pair, text, 1);
	serve_another(pair.socket);
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(guest_entry(&qemu, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(kill(worker, 0), 0);
	guest_close(&guest, 0);
	guest_close(&qemu, 0);
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	pair_stop(&pair);
}

static void refuse(const char *from, const char *text)
{
	start();
	install(from);
	ask();
	check_kept(text);
	check_eq(pair_count_log(&pair, "is replaced by"), 0);
}

TEST(a_program_that_fails_is_refused)
{
	refuse("/bin/false", "cannot take over (status 1): the previous one is used");
}

TEST(a_program_that_succeeds_at_anything_is_refused)
{
	refuse("/bin/true", "cannot take over (status 0): the previous one is used");
}

TEST(a_file_that_is_no_program_is_refused)
{
	refuse("/etc/hostname",
		"cannot take over (status 127): the previous one is used");
}

/* It passes its trial, and its broker ends at once: the one before is executed again,
 * from a file that is not there any more. */
TEST(a_program_whose_broker_does_not_run_is_given_up)
{
	struct stat before, after;
	char link[64], command[256];

	check_eq(setenv("LD_PRELOAD", BROKEN, 1), 0);
	/* Of a build with sanitizers: it comes before their library. */
	check_eq(setenv("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0", 1), 0);
	start();
	unsetenv("LD_PRELOAD");
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pair.pid);
	check_eq(stat(link, &before), 0);
	install(VGPUD);
	snprintf(command, sizeof(command), "touch %s.broken", program);
	check_eq(system(command), 0);
	ask();
	pair_wait_log(&pair, "does not run: the previous one is used again", 1);
	check_eq(pair_count_log(&pair, "vgpud is replaced by"), 1);
	guest_wait_for(!stat(link, &after) && after.st_ino == before.st_ino &&
		       after.st_dev == before.st_dev);
	check_kept("does not run: the previous one is used again");
}
