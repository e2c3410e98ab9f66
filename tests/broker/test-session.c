/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions over the socket transport: how they begin and every way they end
 */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"
#include "pair.h"
#include "test.h"
#include "vgpu/version.h"

static const struct pair_options options = {
	.worker = FAKE_WORKER,
	.vm_lines = "size = 256M\nhandles = 77\n",
};

static struct pair pair;
static struct guest guest;

static void start(void)
{
	pair_start(&pair, &options);
	guest_connect(&guest, pair.socket);
}

static void stop(void)
{
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(a_session_opens_closes_and_is_accounted)
{
	struct vgpu_channel_entry *entry;
	struct pair_session session;

	start();
	guest_open(&guest, 0, "app");
	entry = guest_entry(&guest, 0);
	check_eq(entry->host_protocol_version, VGPU_PROTOCOL_VERSION);
	check_eq(entry->host_api_version, 13000);
	check_eq(entry->reason, VGPU_REASON_NONE);
	check_eq(entry->area_off, guest.header->area_off);
	check_eq(entry->n_extents, 32);
	check_eq(kill(entry->worker_pid, 0), 0);
	check_str((char *)guest_area(&guest, 0) + VGPU_WORDS_OFF, "worker");
	check_str((char *)guest_extent(&guest, entry->first_extent), "worker");
	guest_close(&guest, 0);
	pair_read_session(&pair, 0, &session);
	check_str(session.vm, "test");
	check_eq(session.channel, 0);
	check_eq(session.pid, getpid());
	check_eq(session.launches, 42);
	check_eq(session.bytes_h2d, 77);
	check_str(session.reason, "closed");
	stop();
}

TEST(data_of_a_session_is_erased_when_its_channel_is_free)
{
	start();
	guest_open(&guest, 0, "app");
	guest_area(&guest, 0)[VGPU_SLOTS_OFF] = 1;
	guest_extent(&guest, guest_entry(&guest, 0)->first_extent + 31)[99] = 1;
	guest_close(&guest, 0);
	check_eq(guest_area(&guest, 0)[VGPU_WORDS_OFF], 0);
	check_eq(guest_area(&guest, 0)[VGPU_SLOTS_OFF], 0);
	check_eq(guest_extent(&guest, 0)[0], 0);
	check_eq(guest_extent(&guest, 31)[99], 0);
	check_eq(guest_entry(&guest, 0)->pid, 0);
	check_eq(guest_entry(&guest, 0)->n_extents, 0);
	stop();
}

TEST(a_worker_is_never_used_twice)
{
	uint32_t last = 0, pid;

	start();
	for (int i = 0; i < 5; i++) {
		guest_open(&guest, 0, "app");
		pid = guest_entry(&guest, 0)->worker_pid;
		check(pid != last);
		last = pid;
		guest_close(&guest, 0);
	}
	check_eq(pair_count_log(&pair, "session ended vm=test"), 5);
	stop();
}

TEST(a_guest_that_is_gone_takes_worker_and_memory_with_it)
{
	struct pair_session session;
	uint32_t worker;

	start();
	guest_open(&guest, 0, "app");
	worker = guest_entry(&guest, 0)->worker_pid;
	guest_disconnect(&guest);
	pair_read_session(&pair, 0, &session);
	check_str(session.reason, "closed");
	check_eq(session.worker, worker);
	guest_wait_for(kill(worker, 0) < 0);
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	guest_close(&guest, 0);
	stop();
}

TEST(a_worker_that_does_not_stop_is_killed)
{
	struct pair_session session;

	start();
	guest_open(&guest, 0, "deaf");
	guest_close(&guest, 0);
	pair_read_session(&pair, 0, &session);
	check_str(session.reason, "closed");
	check_eq(session.launches, 42);
	check_eq(pair_count_log(&pair, "is killed"), 1);

	guest_open(&guest, 0, "deaf");
	guest_disconnect(&guest);
	pair_read_session(&pair, 1, &session);
	check_str(session.reason, "closed");
	guest_connect(&guest, pair.socket);
	stop();
}

static void expect_dead(const char *comm, uint32_t reason, const char *word)
{
	struct pair_session session;

	start();
	guest_claim(&guest, 0, comm);
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	guest_wait(&guest, 0, VGPU_CHANNEL_DEAD);
	check_eq(guest_entry(&guest, 0)->reason, reason);
	if (reason == VGPU_REASON_WORKER_DIED)
		check_eq(guest_entry(&guest, 0)->detail, SIGSEGV);
	pair_read_session(&pair, 0, &session);
	check_str(session.reason, word);
	check_eq(session.launches, 42);
	guest_close(&guest, 0);
	guest_open(&guest, 0, "app");
	stop();
}

TEST(a_worker_that_crashes_leaves_a_dead_channel)
{
	expect_dead("crash", VGPU_REASON_WORKER_DIED, "worker-died");
}

TEST(a_worker_that_sends_invalid_messages_is_killed)
{
	expect_dead("nonsense", VGPU_REASON_HOST, "host");
}

TEST(a_worker_that_hands_over_descriptors_is_killed)
{
	expect_dead("descriptors", VGPU_REASON_HOST, "host");
}

TEST(a_worker_that_never_stops_asking_harms_nobody_else)
{
	struct pair_session session;
	struct guest other;

	start();
	guest_claim(&guest, 0, "flood");
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	/* Open, or dead already: it does not take its grants, and is killed for it. */
	guest_wait_for(guest_entry(&guest, 0)->state == VGPU_CHANNEL_OPEN ||
		       guest_entry(&guest, 0)->state == VGPU_CHANNEL_DEAD);
	guest_connect(&other, pair.socket);
	for (int i = 0; i < 5; i++) {
		guest_open(&other, 0, "app");
		guest_close(&other, 0);
	}
	guest_wait(&guest, 0, VGPU_CHANNEL_DEAD);
	guest_close(&guest, 0);
	pair_read_session(&pair, 5, &session);
	guest_disconnect(&other);
	stop();
}

TEST(a_worker_that_ends_its_guest_logs_the_reason)
{
	expect_dead("protocol", VGPU_REASON_PROTOCOL, "protocol");
}

TEST(a_worker_that_is_killed_is_accounted)
{
	struct pair_session session;

	start();
	guest_open(&guest, 0, "app");
	check_eq(kill(guest_entry(&guest, 0)->worker_pid, SIGKILL), 0);
	guest_wait(&guest, 0, VGPU_CHANNEL_DEAD);
	pair_read_session(&pair, 0, &session);
	check_str(session.reason, "worker-died");
	check_eq(session.launches, 42);
	/* Its guest still maps the extents: they stay until it closes. */
	check_str((char *)guest_extent(&guest, 0), "worker");
	guest_close(&guest, 0);
	check_eq(guest_extent(&guest, 0)[0], 0);
	stop();
}

TEST(a_worker_that_dies_before_it_serves_refuses)
{
	start();
	check_eq(guest_open_refused(&guest, 0, "crash-early"), VGPU_REASON_HOST);
	guest_close(&guest, 0);
	check_eq(guest_open_refused(&guest, 0, "refuse"), VGPU_REASON_NO_DEVICE);
	guest_close(&guest, 0);
	guest_open(&guest, 0, "app");
	stop();
}

TEST(another_window_is_tried_with_the_same_worker)
{
	struct vgpu_channel_entry *entry;
	uint32_t worker;

	start();
	entry = guest_entry(&guest, 0);
	check_eq(guest_open_refused(&guest, 0, "window"), VGPU_REASON_WINDOW);
	worker = entry->worker_pid;
	entry->window_base = 0x600000000000ull;
	entry->window_size = 0x5000000000ull;
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	guest_wait(&guest, 0, VGPU_CHANNEL_REFUSED);
	check_eq(entry->reason, VGPU_REASON_WINDOW);
	entry->window_base = GUEST_WINDOW_2;
	entry->window_size = GUEST_WINDOW_2_SIZE;
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	guest_wait(&guest, 0, VGPU_CHANNEL_OPEN);
	check_eq(entry->worker_pid, worker);
	guest_close(&guest, 0);
	/* And one that gives up. */
	check_eq(guest_open_refused(&guest, 0, "window"), VGPU_REASON_WINDOW);
	guest_close(&guest, 0);
	stop();
}

TEST(a_hello_is_checked)
{
	struct vgpu_channel_entry *entry;

	start();
	entry = guest_entry(&guest, 0);
	guest_claim(&guest, 0, "app");
	entry->protocol_version = VGPU_PROTOCOL_VERSION + 1;
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	guest_wait(&guest, 0, VGPU_CHANNEL_REFUSED);
	check_eq(entry->reason, VGPU_REASON_VERSION);
	check_eq(entry->host_protocol_version, VGPU_PROTOCOL_VERSION);

	entry->protocol_version = VGPU_PROTOCOL_VERSION;
	entry->window_size = 1 << 20;
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	guest_wait(&guest, 0, VGPU_CHANNEL_REFUSED);
	check_eq(entry->reason, VGPU_REASON_WINDOW);

	entry->window_size = UINT64_MAX & ~(VGPU_EXTENT_SIZE - 1ull);
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	guest_wait(&guest, 0, VGPU_CHANNEL_REFUSED);
	check_eq(entry->reason, VGPU_REASON_WINDOW);

	memset(guest.header->boot_id, 1, 16);
	entry->window_size = GUEST_WINDOW_1_SIZE;
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	/* Its hello names another boot than the header, so its entry is cleared. */
	guest_wait(&guest, 0, VGPU_CHANNEL_FREE);
	stop();
}

TEST(a_guest_of_another_minor_version_is_served_with_what_both_have)
{
	static const uint32_t minors[] = { 0, VGPU_PROTOCOL_MINOR,
		VGPU_PROTOCOL_MINOR + 1, UINT32_MAX };
	struct vgpu_channel_entry *entry;

	start();
	entry = guest_entry(&guest, 0);
	for (size_t i = 0; i < sizeof(minors) / sizeof(minors[0]); i++) {
		guest_claim(&guest, 0, "app");
		entry->protocol_minor = minors[i];
		entry->features = i % 2 ? UINT64_MAX : 1ull << 63;
		guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
		guest_wait(&guest, 0, VGPU_CHANNEL_OPEN);
		check_eq(entry->host_protocol_version, VGPU_PROTOCOL_VERSION);
		check_eq(entry->host_protocol_minor, VGPU_PROTOCOL_MINOR);
		check_eq(entry->host_features, i % 2 ? VGPU_FEATURE_UNKNOWN_CALLS : 0);
		guest_close(&guest, 0);
	}
	check_eq(pair_count_log(&pair, "guest_protocol=3.0 host_protocol=3.1"), 1);
	check_eq(pair_count_log(&pair, "guest_protocol=3.2 host_protocol=3.1"), 1);
	stop();
}

/* A worker that an earlier program started, before vgpud was replaced. */
TEST(an_older_worker_lowers_the_version)
{
	struct vgpu_channel_entry *entry;

	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = "softgpu-name = older-minor\n",
			  });
	guest_connect(&guest, pair.socket);
	entry = guest_entry(&guest, 0);
	guest_claim(&guest, 0, "app");
	entry->protocol_minor = VGPU_PROTOCOL_MINOR;
	entry->features = UINT64_MAX;
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	guest_wait(&guest, 0, VGPU_CHANNEL_OPEN);
	check_eq(guest.header->protocol_minor, VGPU_PROTOCOL_MINOR);
	check_eq(entry->host_protocol_minor, 0);
	check_eq(entry->host_features, 0);
	guest_close(&guest, 0);
	stop();
}

TEST(more_arena_is_granted_until_there_is_none)
{
	struct pair_session session;

	start();
	guest_open(&guest, 0, "want");
	guest_wait_for(guest_count_grants(&guest, 0));
	guest_close(&guest, 0);
	pair_read_session(&pair, 0, &session);
	check_eq(session.calls, 32);
	check_eq(session.memsets, 8);
	guest_open(&guest, 0, "want-all");
	guest_wait_for(guest_count_grants(&guest, 0));
	guest_close(&guest, 0);
	pair_read_session(&pair, 1, &session);
	check_eq(session.calls, 1000);
	check_eq(session.memsets, 0);
	stop();
}

/* As a broker sees it that follows one which was killed before it took it out. */
TEST(a_message_that_is_seen_twice_does_the_same_as_once)
{
	struct pair_session session;

	start();
	guest_open(&guest, 0, "want-again");
	guest_wait_for(guest_count_grants(&guest, 0) == 2);
	guest_close(&guest, 0);
	pair_read_session(&pair, 0, &session);
	check_eq(session.calls, 32);
	check_eq(session.memsets, 8);
	check_str(session.reason, "closed");
	check_eq(pair_count_log(&pair, "session opened"), 1);
	/* The first request of a later session is not mistaken for that one. */
	guest_open(&guest, 0, "want");
	guest_wait_for(guest_count_grants(&guest, 0) == 1);
	guest_close(&guest, 0);
	pair_read_session(&pair, 1, &session);
	check_eq(session.memsets, 8);
	stop();
}

TEST(a_guest_that_writes_what_only_the_host_writes_is_ended)
{
	static const uint32_t states[] = { VGPU_CHANNEL_FREE, VGPU_CHANNEL_CLAIMED,
		VGPU_CHANNEL_OPENING, VGPU_CHANNEL_REFUSED, VGPU_CHANNEL_DEAD, 99,
		UINT32_MAX };
	struct pair_session session;

	start();
	for (unsigned int i = 0; i < sizeof(states) / sizeof(*states); i++) {
		guest_open(&guest, 0, "app");
		guest_ask(&guest, 0, states[i]);
		pair_read_session(&pair, i, &session);
		check_str(session.reason, "protocol");
		guest_wait(&guest, 0, VGPU_CHANNEL_DEAD);
		guest_close(&guest, 0);
	}
	stop();
}

TEST(a_guest_that_closes_while_it_opens_gets_nothing)
{
	start();
	for (int i = 0; i < 10; i++) {
		guest_claim(&guest, 0, "app");
		guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
		usleep(i * 200);
		guest_close(&guest, 0);
	}
	guest_claim(&guest, 0, "mute");
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	usleep(20000);
	guest_close(&guest, 0);
	guest_open(&guest, 0, "app");
	stop();
}

TEST(a_doorbell_that_rings_for_nothing_does_not_keep_others_away)
{
	struct guest other;
	pid_t pid;

	start();
	guest_open(&guest, 0, "app");
	pid = fork();
	if (!pid)
		for (;;)
			guest_ring(&guest);
	guest_connect(&other, pair.socket);
	guest_open(&other, 0, "app");
	guest_close(&other, 0);
	guest_close(&guest, 0);
	kill(pid, SIGKILL);
	check_eq(waitpid(pid, NULL, 0), pid);
	guest_disconnect(&other);
	stop();
}

TEST(states_that_change_all_the_time_harm_nobody_else)
{
	struct vgpu_channel_entry *entry;
	struct guest other;
	pid_t pid;

	start();
	entry = guest_entry(&guest, 0);
	pid = fork();
	if (!pid) {
		srandom(1);
		for (;;) {
			entry->protocol_version = VGPU_PROTOCOL_VERSION;
			entry->window_base = GUEST_WINDOW_1;
			entry->window_size = GUEST_WINDOW_1_SIZE;
			guest_ask(&guest, 0, random() % 9);
			usleep(random() % 2000);
		}
	}
	guest_connect(&other, pair.socket);
	for (int i = 0; i < 20; i++) {
		guest_open(&other, 0, "app");
		guest_close(&other, 0);
	}
	kill(pid, SIGKILL);
	check_eq(waitpid(pid, NULL, 0), pid);
	guest_disconnect(&other);
	stop();
	check_eq(pair_count_log(&pair, "the broker was ended"), 0);
}
