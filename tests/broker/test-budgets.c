/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load that the guests of one VM may cause on the host, each limit reached
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
