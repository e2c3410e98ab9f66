/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker that dies at a chosen point (dying.c): what the next one makes of it
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "control/control.h"
#include "guest.h"
#include "pair.h"
#include "test.h"
#include "vgpud/link.h"

static struct pair pair;
static struct guest guest;

static const char *qemu_socket(void)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/qemu", test_tmpdir());
	return path;
}

static void touch(const char *name)
{
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", test_tmpdir(), name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	check(fd >= 0);
	close(fd);
}

/* Starts a vgpud whose broker dies once, at that point, after arm() was called. */
static void start(const char *kind, unsigned int number, const char *when)
{
	char point[64], sections[256];

	snprintf(point, sizeof(point), "%s:%u:%s", kind, number, when);
	check_eq(setenv("LD_PRELOAD", DYING, 1), 0);
	check_eq(setenv("VGPU_DIE", point, 1), 0);
	check_eq(setenv("VGPU_DIE_FOLDER", test_tmpdir(), 1), 0);
	/* Of a build with sanitizers: it comes before their library. */
	check_eq(setenv("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0", 1), 0);
	touch("0");
	snprintf(sections, sizeof(sections),
		"[vm qemu]\nsize = 256M\nmax-processes = 7\nsocket = %s\n",
		qemu_socket());
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = "log-level = debug\n",
				  .sections = sections,
			  });
	unsetenv("LD_PRELOAD");
}

static void arm(void)
{
	touch("armed");
}

/* The same with a guest of the socket transport connected, armed. */
static void start_armed(const char *kind, unsigned int number, const char *when)
{
	start(kind, number, when);
	arm();
	guest_connect(&guest, pair.socket);
}

static void stop(void)
{
	guest_disconnect(&guest);
	check_eq(pair_count_log(&pair, "the broker was ended by signal 9"), 1);
	check_eq(pair_count_log(&pair, "it sent an invalid message"), 0);
	pair_stop(&pair);
}

TEST(a_request_for_arena_that_was_not_answered_is_answered_as_it_was_meant)
{
	struct pair_session session;

	start_armed("control-out", CONTROL_GRANT, "before");
	guest_open(&guest, 0, "want");
	guest_wait_for(guest_count_grants(&guest, 0));
	guest_close(&guest, 0);
	pair_read_session(&pair, 0, &session);
	/* The slots that were free before the first broker died, not later ones. */
	check_eq(session.calls, 32);
	check_eq(session.memsets, 8);
	check_str(session.reason, "closed");
	stop();
}

TEST(a_request_for_arena_that_was_answered_is_not_granted_again)
{
	struct pair_session session;

	start_armed("control-in", CONTROL_WANT, "before");
	guest_open(&guest, 0, "want");
	guest_wait_for(guest_count_grants(&guest, 0) == 2);
	guest_close(&guest, 0);
	pair_read_session(&pair, 0, &session);
	check_eq(session.calls, 32);
	stop();
}

TEST(a_session_that_was_opened_stays_open)
{
	struct pair_session session;

	start_armed("control-in", CONTROL_OPENED, "before");
	guest_open(&guest, 0, "app");
	pair_wait_log(&pair, "the broker was ended by signal 9", 1);
	guest_close(&guest, 0);
	pair_read_session(&pair, 0, &session);
	check_str(session.reason, "closed");
	check_eq(pair_count_log(&pair, "session opened"), 1);
	stop();
}

TEST(last_words_are_remembered)
{
	struct pair_session session;

	start_armed("control-in", CONTROL_ENDED, "after");
	guest_claim(&guest, 0, "protocol");
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	guest_wait(&guest, 0, VGPU_CHANNEL_DEAD);
	check_eq(guest_entry(&guest, 0)->reason, VGPU_REASON_PROTOCOL);
	guest_close(&guest, 0);
	pair_read_session(&pair, 0, &session);
	check_str(session.reason, "protocol");
	stop();
}

static void keep_an_image(const char *when)
{
	struct pair_session session;

	start_armed("control-in", CONTROL_KEEP, when);
	guest_open(&guest, 0, "late-keep");
	guest_wait_for(guest_count_grants(&guest, 0));
	guest_close(&guest, 0);
	pair_read_session(&pair, 0, &session);
	check_eq(session.images_found, 1);
	/* Nor has the keeper lost it. */
	guest_open(&guest, 0, "image-find");
	guest_close(&guest, 0);
	pair_read_session(&pair, 1, &session);
	check_eq(session.images_found, 1);
	stop();
}

TEST(an_image_that_was_not_looked_at_is_kept)
{
	keep_an_image("peeked");
}

TEST(an_image_that_was_kept_is_kept_once)
{
	keep_an_image("before");
}

TEST(an_image_that_was_taken_out_is_kept)
{
	keep_an_image("after");
}

static bool is_armed(void)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/0", test_tmpdir());
	return !access(path, F_OK);
}

TEST(messages_of_a_broker_that_died_are_handled)
{
	struct pair_session session;
	uint64_t heartbeat;

	start("control-in", CONTROL_KEEP, "after:2");
	guest_connect(&guest, pair.socket);
	/* The broker has a worker, and knows of the guest. */
	pair_wait_log(&pair, " is warm", 1);
	heartbeat = __atomic_load_n(&guest.header->heartbeat, __ATOMIC_RELAXED);
	guest_wait_for(
		__atomic_load_n(&guest.header->heartbeat, __ATOMIC_RELAXED) != heartbeat);
	guest_claim(&guest, 0, "late-two");
	/* Its keeper does not notice until the broker is dead. */
	check_eq(kill(pair.pid, SIGSTOP), 0);
	arm();
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	guest_wait(&guest, 0, VGPU_CHANNEL_OPEN);
	guest_wait_for(!is_armed());
	usleep(20000);
	check_eq(kill(pair.pid, SIGCONT), 0);
	guest_close(&guest, 0);
	guest_open(&guest, 0, "image-find");
	guest_close(&guest, 0);
	pair_read_session(&pair, 1, &session);
	check_eq(session.images_found, 1);
	stop();
}

TEST(a_guest_that_sleeps_is_woken_by_the_next_broker)
{
	const struct timespec limit = { .tv_sec = 60 };
	uint32_t *state;
	long r;

	/* The first wake-up is of a process that has its session. */
	start("futex", 1, "before");
	guest_connect(&guest, pair.socket);
	arm();
	guest_claim(&guest, 0, "app");
	state = &guest_entry(&guest, 0)->state;
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	r = syscall(SYS_futex, state, FUTEX_WAIT, VGPU_CHANNEL_OPENING, &limit, NULL, 0);
	check(!r || errno == EAGAIN);
	guest_wait(&guest, 0, VGPU_CHANNEL_OPEN);
	guest_close(&guest, 0);
	stop();
}

TEST(a_reset_that_was_half_carried_out_is_carried_out)
{
	start("control-out", CONTROL_STOP, "before");
	guest_connect_qemu(&guest, qemu_socket());
	strcpy((char *)guest.header->boot_id, "boot of a test.");
	guest_open(&guest, 0, "app");
	guest_open(&guest, 1, "app");
	arm();
	strcpy((char *)guest.header->boot_id, "the next boot..");
	guest_ring(&guest);
	guest_wait(&guest, 0, VGPU_CHANNEL_FREE);
	guest_wait(&guest, 1, VGPU_CHANNEL_FREE);
	stop();
}
