/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One VM does not hold up another
 *
 * Each test has a VM that does its worst, and a neighbour: a guest of another VM that
 * asks the broker for something small again and again, and a process that connects. The
 * neighbour's longest pause is measured alone first, and then with the other VM: what
 * the second may be longer is bounded. On a busy machine both are long, and either may
 * meet an accident that the other did not: what vgpud does to the neighbour shows in each
 * of some tries.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"
#include "pair.h"
#include "test.h"

/* The part of a pause that another VM may cause. */
#define PAUSE_S 0.1
/* A pause alone is an accident of the machine that may be met again, and a worse one. */
#define ALONE_FACTOR 2
/* 1.5 GiB: takes the kernel a sixth of a second, or several of that. */
#define LARGE_EXTENTS 768u

static struct pair pair;
static struct guest neighbour;
static char attacker_path[160];

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

/* The neighbour is [vm test]; the lines are those of the attacker's section, whose name
 * tells the fake worker to expect QEMU's resources. */
static void start_with(const char *vgpud_lines, const char *attacker_lines)
{
	static char sections[1024];

	snprintf(attacker_path, sizeof(attacker_path), "%s/attacker", test_tmpdir());
	snprintf(sections, sizeof(sections), "[vm %s]\nsocket = %s\n%s",
		strstr(attacker_lines, "ivshmem") ? "qemu" : "attacker", attacker_path,
		attacker_lines);
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = vgpud_lines,
				  .vm_lines = "size = 64M\n",
				  .sections = sections,
			  });
	guest_connect(&neighbour, pair.socket);
}

static void start(const char *attacker_lines)
{
	start_with("", attacker_lines);
}

static void stop(void)
{
	guest_disconnect(&neighbour);
	pair_stop(&pair);
}

static bool is_state(struct guest *guest, unsigned int channel, uint32_t state)
{
	return __atomic_load_n(&guest_entry(guest, channel)->state, __ATOMIC_ACQUIRE) ==
	       state;
}

/* One request to the broker and one to the keeper. Returns: how long the longer took. */
static double visit(void)
{
	double begin = now(), middle, end;
	struct guest visitor;

	guest_entry(&neighbour, 0)->claim = 1;
	guest_ask(&neighbour, 0, VGPU_CHANNEL_CLOSING);
	while (!is_state(&neighbour, 0, VGPU_CHANNEL_FREE))
		usleep(200);
	middle = now();
	guest_connect(&visitor, pair.socket);
	end = now();
	guest_disconnect(&visitor);
	return middle - begin > end - middle ? middle - begin : end - middle;
}

/* Measures for that long, and on until the condition holds, if there is one. */
static double longest_pause(double seconds, bool (*is_over)(void))
{
	double begin = now(), longest = 0, pause;

	while (now() < begin + seconds || (is_over && !is_over())) {
		pause = visit();
		if (pause > longest)
			longest = pause;
		if (now() > begin + 30)
			test_fail(__FILE__, __LINE__, "it is not over after 30 s");
		/* Connections are taken at a limited rate. */
		usleep(12000);
	}
	return longest;
}

#define TRIES 4

/* Returns: whether that was short enough; if not, there is another try. */
static bool judge(double alone, double together)
{
	static unsigned int n_tries;

	printf("  longest pause of the neighbour: %.0f ms alone, %.0f ms with the other "
	       "VM\n",
		alone * 1e3, together * 1e3);
	if (together <= PAUSE_S + ALONE_FACTOR * alone)
		return true;
	if (++n_tries == TRIES)
		test_fail(__FILE__, __LINE__,
			"the neighbour paused for %.0f ms, alone for %.0f ms",
			together * 1e3, alone * 1e3);
	return false;
}

/*
 * Memory
 */

static struct guest attacker;

/* Opens with so much arena and writes to all of it. */
static void open_large(unsigned int channel, unsigned int n_extents)
{
	const uint64_t n_grants = guest_count_grants(&attacker, channel);
	char comm[16];

	snprintf(comm, sizeof(comm), "grow-%u", n_extents);
	guest_open(&attacker, channel, comm);
	guest_wait_for(guest_count_grants(&attacker, channel) > n_grants);
}

static void fill_arena(void)
{
	for (uint32_t i = 0; i < attacker.header->n_extents; i++)
		if (i < LARGE_EXTENTS)
			memset(guest_extent(&attacker, i), 0x5a, VGPU_EXTENT_SIZE);
}

static bool is_arena_empty(void)
{
	for (uint32_t i = 0; i < LARGE_EXTENTS; i++)
		if (guest_extent(&attacker, i)[VGPU_EXTENT_SIZE / 2])
			return false;
	return true;
}

static bool is_attacker_free(void)
{
	return is_state(&attacker, 0, VGPU_CHANNEL_FREE);
}

TEST_SECONDS(memory_that_a_process_gives_back_holds_up_no_other_vm, 120)
{
	double alone, together;

	start("transport = socket\nsize = 4G\n");
	guest_connect(&attacker, attacker_path);
	do {
		open_large(0, LARGE_EXTENTS);
		fill_arena();
		alone = longest_pause(0.7, NULL);
		guest_ask(&attacker, 0, VGPU_CHANNEL_CLOSING);
		together = longest_pause(0.3, is_attacker_free);
		check(is_arena_empty());
	} while (!judge(alone, together));
	guest_disconnect(&attacker);
	stop();
}

static uint64_t count_bytes(int fd)
{
	struct stat st;

	check_eq(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

TEST_SECONDS(memory_of_a_vm_that_goes_holds_up_no_other_vm, 120)
{
	double alone, together;
	int kept;

	start("transport = ivshmem\nsize = 2G\n");
	do {
		guest_connect_qemu(&attacker, attacker_path);
		/* A process that has the memory may fill it without asking. */
		memset(attacker.map, 0x5a, (size_t)LARGE_EXTENTS * VGPU_EXTENT_SIZE);
		alone = longest_pause(0.7, NULL);
		guest_disconnect(&attacker);
		together = longest_pause(1.5, NULL);
	} while (!judge(alone, together));
	/* The next QEMU is served. */
	guest_connect_qemu(&attacker, attacker_path);
	guest_open(&attacker, 0, "app");
	guest_close(&attacker, 0);
	/* Holding the memory does not preserve its contents. */
	memset(attacker.map, 0x5a, attacker.size / 4);
	kept = dup(attacker.shm);
	guest_disconnect(&attacker);
	guest_wait_for(count_bytes(kept) <= 16 << 20);
	close(kept);
	stop();
}

TEST(a_broker_that_dies_while_memory_is_emptied_leaves_that_to_the_next)
{
	start("transport = socket\nsize = 4G\n");
	guest_connect(&attacker, attacker_path);
	open_large(0, LARGE_EXTENTS);
	fill_arena();
	guest_ask(&attacker, 0, VGPU_CHANNEL_CLOSING);
	for (unsigned int n = 1; n <= 4; n++) {
		usleep(60000);
		check_eq(kill(pair_find_broker(&pair), SIGKILL), 0);
		pair_wait_log(&pair, "the broker was ended by signal 9", n);
	}
	guest_wait(&attacker, 0, VGPU_CHANNEL_FREE);
	check(is_arena_empty());
	/* All of it is available again. */
	open_large(0, attacker.header->n_extents - 32);
	guest_close(&attacker, 0);
	guest_disconnect(&attacker);
	stop();
}

TEST(arena_that_is_being_emptied_is_waited_for)
{
	struct pair_session session;

	start("transport = ivshmem\nsize = 1G\nmax-processes = 28\n");
	guest_connect_qemu(&attacker, attacker_path);
	open_large(0, 400);
	for (uint32_t i = 0; i < 400; i++)
		memset(guest_extent(&attacker, i), 0x5a, VGPU_EXTENT_SIZE);
	guest_claim(&attacker, 1, "grow-350");
	guest_ask(&attacker, 0, VGPU_CHANNEL_CLOSING);
	/* Its worker is gone, and its memory not yet empty. */
	pair_read_session(&pair, 0, &session);
	guest_ask(&attacker, 1, VGPU_CHANNEL_OPENING);
	guest_wait(&attacker, 1, VGPU_CHANNEL_OPEN);
	guest_wait_for(guest_count_grants(&attacker, 1) == 1);
	guest_close(&attacker, 1);
	pair_read_session(&pair, 1, &session);
	check_eq(session.memsets, 350);
	guest_disconnect(&attacker);
	stop();
}

/* Opens with all of the arena but so many extents. Its worker has to be killed. */
static void open_all_but(unsigned int n_left)
{
	const unsigned int n_first = 32;
	char comm[16];

	snprintf(comm, sizeof(comm), "stay-%u",
		attacker.header->n_extents - n_first - n_left);
	guest_open(&attacker, 0, comm);
	guest_wait_for(guest_count_grants(&attacker, 0) == 1);
}

TEST(arena_of_a_session_that_ends_is_waited_for)
{
	struct pair_session session;

	start("transport = ivshmem\nsize = 1G\nmax-processes = 28\n");
	guest_connect_qemu(&attacker, attacker_path);
	for (unsigned int n_left = 0; n_left <= 32; n_left += 32) {
		open_all_but(n_left);
		guest_claim(&attacker, 1, "grow-64");
		guest_ask(&attacker, 0, VGPU_CHANNEL_CLOSING);
		guest_ask(&attacker, 1, VGPU_CHANNEL_OPENING);
		pair_read_session(&pair, n_left / 16, &session);
		check_eq(session.memsets, attacker.header->n_extents - 32 - n_left);
		guest_wait(&attacker, 1, VGPU_CHANNEL_OPEN);
		guest_wait_for(guest_count_grants(&attacker, 1) == 1);
		guest_close(&attacker, 1);
		pair_read_session(&pair, n_left / 16 + 1, &session);
		check_eq(session.memsets, 64);
	}
	check_eq(pair_count_log(&pair, "consecutive extents"), 0);
	guest_disconnect(&attacker);
	stop();
}

/* A file system that cannot punch holes, for this process and its children. */
static void mount_ramfs(const char *path)
{
	if (unshare(CLONE_NEWNS) < 0 ||
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mkdir(path, 0700) < 0 || mount("none", path, "ramfs", 0, NULL) < 0)
		test_skip("a ramfs cannot be mounted: %s", strerror(errno));
}

TEST(memory_without_hole_punching_is_overwritten)
{
	char folder[128], path[160], lines[256];
	int fd;

	snprintf(folder, sizeof(folder), "%s/ramfs", test_tmpdir());
	snprintf(path, sizeof(path), "%s/memory", folder);
	snprintf(lines, sizeof(lines), "memory = %s\n", path);
	mount_ramfs(folder);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	check(fd >= 0);
	check_eq(ftruncate(fd, 64 << 20), 0);
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .transport = "plain",
				  .vm_lines = lines,
			  });
	pair_wait_log(&pair, "connected (transport plain", 1);
	guest_connect_plain(&attacker, path);
	guest_open(&attacker, 0, "app");
	memset(guest_extent(&attacker, 3), 0x5a, VGPU_EXTENT_SIZE);
	memset(guest_area(&attacker, 0) + VGPU_SLOTS_OFF, 0x5a, 4096);
	guest_close(&attacker, 0);
	for (uint32_t i = 0; i < VGPU_EXTENT_SIZE; i++)
		check_eq(guest_extent(&attacker, 3)[i], 0);
	check_eq(guest_area(&attacker, 0)[VGPU_SLOTS_OFF + 17], 0);
	check_eq(pair_count_log(&pair, "cannot be emptied"), 0);
	guest_disconnect(&attacker);
	close(fd);
	pair_stop(&pair);
	check_eq(umount2(folder, MNT_DETACH), 0);
}

/*
 * A broker that hangs
 */

TEST(a_broker_that_hangs_is_replaced_and_sessions_go_on)
{
	struct guest other;
	uint32_t worker;

	start("transport = socket\nsize = 64M\n");
	guest_open(&neighbour, 0, "app");
	worker = guest_entry(&neighbour, 0)->worker_pid;
	check_eq(kill(pair_find_broker(&pair), SIGSTOP), 0);
	pair_wait_log(&pair, "the broker hangs", 1);
	pair_wait_log(&pair, "the broker was ended by signal 9", 1);
	guest_connect(&other, pair.socket);
	guest_open(&other, 0, "app");
	guest_close(&other, 0);
	guest_disconnect(&other);
	check(is_state(&neighbour, 0, VGPU_CHANNEL_OPEN));
	check_eq(guest_entry(&neighbour, 0)->worker_pid, worker);
	check_eq(kill(worker, 0), 0);
	guest_close(&neighbour, 0);
	stop();
}

/*
 * Descriptors
 */

static void limit_descriptors(unsigned int n)
{
	const struct rlimit limit = { n, n };

	check_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

#define CROWD_MAX 200

static int crowd[CROWD_MAX];

/* Connects until one is not greeted. Returns: how many were. */
static unsigned int connect_crowd(void)
{
	char byte;

	for (unsigned int i = 0; i < CROWD_MAX; i++) {
		crowd[i] = guest_try_connect(attacker_path);
		check(crowd[i] >= 0);
		/* The descriptors sent with it are closed with it. */
		if (recv(crowd[i], &byte, 1, MSG_PEEK) <= 0) {
			close(crowd[i]);
			return i;
		}
	}
	return CROWD_MAX;
}

TEST(one_vm_does_not_take_the_descriptors_of_another)
{
	double alone, together;
	unsigned int n;

	limit_descriptors(256);
	start("transport = socket\nsize = 64M\nmax-processes = 500\n");
	alone = longest_pause(0.7, NULL);
	n = connect_crowd();
	check(n > 0);
	check(n < CROWD_MAX);
	check(pair_count_log(&pair, "its share of vgpud's descriptors is used up") > 0);
	do
		together = longest_pause(0.7, NULL);
	while (!judge(alone, together));
	/* Another broker is started, with a worker, and the neighbour is served. */
	guest_open(&neighbour, 0, "app");
	check_eq(kill(pair_find_broker(&pair), SIGKILL), 0);
	pair_wait_log(&pair, "the broker was ended by signal 9", 1);
	check(is_state(&neighbour, 0, VGPU_CHANNEL_OPEN));
	guest_close(&neighbour, 0);
	guest_open(&neighbour, 0, "app");
	guest_close(&neighbour, 0);
	check_eq(pair_count_log(&pair, "Too many open files"), 0);
	while (n--)
		close(crowd[n]);
	stop();
}

/* How many descriptors vgpud may have from here on. */
static void limit_keeper(unsigned int n)
{
	struct rlimit limit;

	check_eq(prlimit(pair.pid, RLIMIT_NOFILE, NULL, &limit), 0);
	limit.rlim_cur = n;
	check_eq(prlimit(pair.pid, RLIMIT_NOFILE, &limit, NULL), 0);
}

/* Fewer than it has, and as many as it polls. */
#define FEW_DESCRIPTORS 8

TEST(a_broker_for_which_there_are_no_descriptors_is_started_later)
{
	start("transport = socket\nsize = 64M\n");
	guest_open(&neighbour, 0, "app");
	limit_keeper(FEW_DESCRIPTORS);
	check_eq(kill(pair_find_broker(&pair), SIGKILL), 0);
	pair_wait_log(&pair, "the host has no room for a broker now", 6);
	check_eq(pair_count_log(&pair, "gives up"), 0);
	check(is_state(&neighbour, 0, VGPU_CHANNEL_OPEN));
	limit_keeper(1000);
	guest_close(&neighbour, 0);
	guest_open(&neighbour, 0, "app");
	guest_close(&neighbour, 0);
	stop();
}

TEST(a_worker_for_which_there_are_no_descriptors_is_waited_for)
{
	start_with("warm-workers = 0\n", "transport = socket\nsize = 64M\n");
	/* Also the worker that finds the devices has ended. */
	guest_open(&neighbour, 0, "app");
	guest_close(&neighbour, 0);
	while (pair_count_children(&pair) != 1)
		usleep(1000);
	limit_keeper(FEW_DESCRIPTORS);
	guest_claim(&neighbour, 0, "app");
	guest_ask(&neighbour, 0, VGPU_CHANNEL_OPENING);
	pair_wait_log(&pair, "a worker cannot be started now", 3);
	check(is_state(&neighbour, 0, VGPU_CHANNEL_OPENING));
	limit_keeper(1000);
	guest_wait(&neighbour, 0, VGPU_CHANNEL_OPEN);
	guest_close(&neighbour, 0);
	stop();
}

TEST(connections_during_a_shortage_of_descriptors_do_not_fill_the_log)
{
	double begin = now();
	unsigned int n;
	int fd;

	start("transport = socket\nsize = 64M\nlog-lines = 5\n");
	n = pair_count_log(&pair, "error: vm=attacker");
	/* One more than a connection has is not there. */
	for (unsigned int limit = 10; limit < 40; limit++) {
		limit_keeper(limit);
		for (int i = 0; i < 3; i++) {
			fd = guest_try_connect(attacker_path);
			if (fd >= 0)
				close(fd);
			usleep(2000);
		}
	}
	limit_keeper(1000);
	/* The initial burst, and five in each second since then; the number of suppressed
	 * lines is logged. */
	check(pair_count_log(&pair, "error: vm=attacker") - n <=
		5 + 5 * (now() - begin) + 2);
	guest_connect(&attacker, attacker_path);
	guest_disconnect(&attacker);
	stop();
}

/*
 * The log
 */

TEST(a_log_that_nobody_reads_stops_nothing)
{
	char path[160], bytes[4096];
	bool told = false;
	int reader;

	snprintf(path, sizeof(path), "%s/vgpud.log", test_tmpdir());
	check_eq(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	check(reader >= 0);
	pair_spawn(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = "log-level = debug\n",
				  .vm_lines = "process-rate = 1000\nlog-lines = 10000\n",
			  });
	guest_wait_for(!access(pair.socket, F_OK));
	usleep(100000);
	guest_connect(&neighbour, pair.socket);
	/* A pipe has room for about 500 lines, several of which each of these makes. */
	for (int i = 0; i < 250; i++) {
		guest_open(&neighbour, 0, "app");
		guest_close(&neighbour, 0);
	}
	while (read(reader, bytes, sizeof(bytes)) > 0)
		;
	for (int i = 0; i < 1000 && !told; i++) {
		ssize_t n;

		guest_open(&neighbour, 0, "app");
		guest_close(&neighbour, 0);
		n = read(reader, bytes, sizeof(bytes) - 1);
		bytes[n > 0 ? n : 0] = '\0';
		told = strstr(bytes, "lines could not be written here");
	}
	check(told);
	guest_disconnect(&neighbour);
	check_eq(kill(pair.pid, SIGTERM), 0);
	check_eq(pair_wait_exit(&pair), 0);
	close(reader);
}

/*
 * Workers
 */

#define MANY_GUESTS 40

/* Begins processes, one after the other, until it is killed. */
static void __attribute__((__noreturn__)) begin_processes(void)
{
	struct guest guest;

	guest_connect(&guest, attacker_path);
	for (;;) {
		guest_open(&guest, 0, "app");
		guest_close(&guest, 0);
	}
}

static double time_of_open(void)
{
	double begin = now(), time;

	guest_open(&neighbour, 0, "app");
	time = now() - begin;
	guest_close(&neighbour, 0);
	return time;
}

/* With pauses in which a worker gets ready. */
static double longest_open(void)
{
	double longest = 0, time;

	for (int i = 0; i < 3; i++) {
		usleep(1500000);
		time = time_of_open();
		if (time > longest)
			longest = time;
	}
	return longest;
}

TEST_SECONDS(processes_of_one_vm_do_not_delay_those_of_another, 120)
{
	pid_t guests[MANY_GUESTS];
	double alone, together;

	/* A worker takes 300 ms to get ready. */
	start_with("softgpu-name = slow\n",
		"transport = socket\nsize = 64M\nmax-processes = 100\n"
		"process-rate = 1000\n");
	alone = longest_open();
	for (int i = 0; i < MANY_GUESTS; i++) {
		guests[i] = fork();
		check(guests[i] >= 0);
		if (!guests[i])
			begin_processes();
	}
	do
		together = longest_open();
	while (!judge(alone, together));
	for (int i = 0; i < MANY_GUESTS; i++) {
		kill(guests[i], SIGKILL);
		check_eq(waitpid(guests[i], NULL, 0), guests[i]);
	}
	stop();
}
