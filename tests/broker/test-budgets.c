/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load that the guests of one VM may cause on the host, each limit reached
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"
#include "pair.h"
#include "test.h"

static struct pair pair;
static struct guest guest;

static void start(const char *vm_lines)
{
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vm_lines = vm_lines,
			  });
	guest_connect(&guest, pair.socket);
}

static void stop(void)
{
	guest_disconnect(&guest);
	pair_stop(&pair);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

TEST(a_worker_that_writes_without_end_does_not_fill_the_log)
{
	double begin = now();

	start("log-lines = 20\n");
	guest_open(&guest, 0, "chatty");
	pair_wait_log(&pair, "log lines about it were dropped", 1);
	guest_close(&guest, 0);
	/* The initial burst, and five in each second since then. */
	check(pair_count_log(&pair, "chatter") <= 20 + 5 * (now() - begin) + 1);
	check(pair_count_log(&pair, "chatter") >= 10);
	/* The next one is served, and may write again. */
	guest_open(&guest, 0, "app");
	guest_close(&guest, 0);
	stop();
}

TEST(output_of_a_worker_is_logged_with_its_number)
{
	char warning[80], error[80];

	snprintf(warning, sizeof(warning),
		" warning: vm=test channel=0 pid=%d worker=", (int)getpid());
	snprintf(error, sizeof(error),
		" error: vm=test channel=0 pid=%d worker=", (int)getpid());
	start("");
	guest_open(&guest, 0, "forge");
	pair_wait_log(&pair, "after", 1);
	check_eq(pair_count_log(&pair, warning), 4);
	check_eq(pair_count_log(&pair, error), 1);
	check_eq(pair_count_log(&pair, ": 1.000000 vgpud[1] error: session"), 1);
	check_eq(pair_count_log(&pair, ": ?[2Jescape?"), 1);
	check_eq(pair_count_log(&pair, "not asked for"), 0);
	check_eq(pair_count_log(&pair, ": honest"), 1);
	check_eq(pair_count_log(&pair, ": eeee"), 1);
	check_eq(pair_count_log(&pair, "eeee"), 1);
	stop();
}

TEST(processes_begin_at_a_limited_rate_and_all_of_them_begin)
{
	double begin = now();

	start("process-rate = 4\n");
	for (int i = 0; i < 24; i++) {
		guest_open(&guest, 0, "app");
		check(i < 20 + 4 * (now() - begin) + 1);
		guest_close(&guest, 0);
	}
	stop();
}

#define N_FORKS 20
#define N_EACH 50
#define FORK_RATE 100

/* Processes that begin one after the other; exits with 0 if all of them could. */
static void begin_many(const char *path)
{
	struct guest own;

	for (int i = 0; i < N_EACH; i++) {
		guest_connect(&own, path);
		guest_open(&own, 0, "app");
		guest_close(&own, 0);
		guest_disconnect(&own);
	}
	fflush(NULL);
	_exit(0);
}

TEST(a_thousand_processes_begin_at_the_rate_and_another_vm_is_served_meanwhile)
{
	char section[256], path[160];
	double begin = now();
	int status, n_served = 0;
	pid_t pids[N_FORKS];
	struct guest other;

	snprintf(path, sizeof(path), "%s/other", test_tmpdir());
	snprintf(section, sizeof(section),
		"[vm other]\ntransport = socket\nsocket = %s\n", path);
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vm_lines = "process-rate = 100\nlog-lines = 10000\n",
				  .sections = section,
			  });
	for (int i = 0; i < N_FORKS; i++) {
		pids[i] = fork();
		if (!pids[i])
			begin_many(pair.socket);
	}
	while (pair_count_log(&pair, "session opened vm=test") < N_FORKS * N_EACH / 2) {
		guest_connect(&other, path);
		guest_open(&other, 0, "app");
		guest_close(&other, 0);
		guest_disconnect(&other);
		n_served++;
	}
	check(n_served > 0);
	for (int i = 0; i < N_FORKS; i++) {
		check_eq(waitpid(pids[i], &status, 0), pids[i]);
		check_eq(status, 0);
	}
	pair_wait_log(&pair, "session opened vm=test", N_FORKS * N_EACH);
	/* Five times the rate at once, and the rest in its time. */
	check(5 * FORK_RATE + FORK_RATE * (now() - begin) + 1 >= N_FORKS * N_EACH);
	pair_stop(&pair);
}

TEST(hellos_that_are_taken_back_use_the_rate_up_too)
{
	double begin = now();
	int n = 0;

	/* Each starts a worker, even if the guest gives up in the end. */
	start("process-rate = 1\n");
	while (now() - begin < 0.5) {
		guest_claim(&guest, 0, "app");
		guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
		usleep(1000);
		guest_close(&guest, 0);
	}
	n = pair_count_log(&pair, "session opened");
	check(n <= 5 + (now() - begin) + 1);
	guest_open(&guest, 0, "app");
	guest_close(&guest, 0);
	stop();
}

TEST(connections_that_come_and_go_do_not_fill_the_log)
{
	struct guest other;
	double begin = now();

	start("log-lines = 10\n");
	for (int i = 0; i < 100; i++) {
		guest_connect(&other, pair.socket);
		guest_disconnect(&other);
	}
	check(pair_count_log(&pair, "the VM connected") +
			pair_count_log(&pair, "the VM disconnected") <=
		10 + 5 * (now() - begin) + 1);
	guest_open(&guest, 0, "app");
	guest_close(&guest, 0);
	stop();
}

static void check_memory_is_bounded(const char *comm)
{
	struct pair_session session;
	struct guest other;

	start("host-memory = 200M\n");
	guest_connect(&other, pair.socket);
	guest_open(&other, 0, "app");
	/* The guest may be dead before the session is seen open. */
	guest_claim(&guest, 0, comm);
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	guest_wait(&guest, 0, VGPU_CHANNEL_DEAD);
	check_eq(guest_entry(&guest, 0)->reason, VGPU_REASON_HOST_MEMORY);
	check_eq(guest_entry(&guest, 0)->detail, 200);
	pair_read_session(&pair, 0, &session);
	check_str(session.reason, "host-memory");
	check_eq(pair_count_log(&pair, "more than host-memory = 200 MiB"), 1);
	check_eq(guest_entry(&other, 0)->state, VGPU_CHANNEL_OPEN);
	guest_close(&other, 0);
	guest_disconnect(&other);
	stop();
}

TEST(a_vm_whose_workers_take_too_much_memory_loses_the_largest)
{
	check_memory_is_bounded("hungry");
}

TEST(memory_files_that_a_worker_maps_count_as_its_memory)
{
	check_memory_is_bounded("hoards");
}

static void start_liar(const char *vm_lines)
{
	start(vm_lines);
	guest_claim(&guest, 0, "lies");
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
}

TEST(a_worker_with_more_device_memory_than_its_vm_may_have_is_ended)
{
	struct pair_session session;
	struct guest other;

	start_liar("device-memory = 32M\n");
	guest_connect(&other, pair.socket);
	guest_open(&other, 0, "app");
	guest_wait(&guest, 0, VGPU_CHANNEL_DEAD);
	check_eq(guest_entry(&guest, 0)->reason, VGPU_REASON_HOST);
	pair_read_session(&pair, 0, &session);
	check_str(session.reason, "host");
	check_eq(pair_count_log(&pair, " MiB and says 0 MiB, is ended"), 1);
	/* The one that does not lie goes on. */
	check_eq(guest_entry(&other, 0)->state, VGPU_CHANNEL_OPEN);
	guest_close(&other, 0);
	guest_disconnect(&other);
	stop();
}

/* Another VM's worker is ended after as many looks. */
TEST(a_worker_within_the_limit_is_not_ended)
{
	char section[256], path[160];
	struct guest other;

	snprintf(path, sizeof(path), "%s/other", test_tmpdir());
	snprintf(section, sizeof(section),
		"[vm other]\ntransport = socket\nsocket = %s\ndevice-memory = 32M\n",
		path);
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vm_lines = "device-memory = 64M\n",
				  .sections = section,
			  });
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "lies");
	guest_connect(&other, path);
	guest_claim(&other, 0, "lies");
	guest_ask(&other, 0, VGPU_CHANNEL_OPENING);
	guest_wait(&other, 0, VGPU_CHANNEL_DEAD);
	check_eq(pair_count_log(&pair, "of device memory, and may have"), 1);
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	guest_disconnect(&other);
	guest_close(&guest, 0);
	stop();
}

/* They are empty, and no worker maps them. */
TEST(files_that_a_worker_was_given_count_as_its_memory_whole)
{
	check_memory_is_bounded("image-heavy");
}

/* So do images that were removed from the store, while a worker may still map them. */
TEST(images_that_are_gone_from_the_store_count_as_memory_of_the_vm)
{
	check_memory_is_bounded("image-gone");
}

TEST(a_worker_that_asks_without_end_is_answered_at_a_limited_rate)
{
	struct pair_session session;
	double begin = now();

	start("");
	guest_open(&guest, 0, "asks");
	/* More than at once, or the rate would not be seen. */
	guest_wait_for(guest_count_grants(&guest, 0) >= 1200);
	guest_close(&guest, 0);
	pair_read_session(&pair, 0, &session);
	check(session.copies_d2d >= 1200);
	check(session.copies_d2d <= 1024 + 500 * (now() - begin) + 20);
	stop();
}
