/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket for vgpuctl: who may do what, and clients that keep no rule
 */

#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/ctl-message.h"
#include "control/packet.h"
#include "ctl-client.h"
#include "guest.h"
#include "pair.h"
#include "test.h"

/* Nobody on this host, and groups that need no name. */
#define OTHER_UID 65534
#define ADMINS 64201
#define MONITORS 64202
/* As broker/ctl-server.h has it. */
#define CLIENTS_MAX 32

static struct pair pair;

static void start(void)
{
	static char lines[256];

	snprintf(ctl_path, sizeof(ctl_path), "%s/ctl", test_tmpdir());
	snprintf(lines, sizeof(lines),
		"ctl-socket = %s\nctl-admins = %d\nctl-monitors = %d\n", ctl_path, ADMINS,
		MONITORS);
	pair_start(&pair,
		&(struct pair_options){ .worker = FAKE_WORKER, .vgpud_lines = lines });
}

/* The limit of device memory of [vm test]. */
static uint64_t limit_of_test(int fd)
{
	VgpuCtl__Reply *reply = ctl_ask_show(fd, "test");
	uint64_t limit;

	check(reply && reply->result_case == VGPU_CTL__REPLY__RESULT_SHOW);
	limit = reply->show->vm->device_memory_limit;
	ctl_reply_freep(&reply);
	return limit;
}

static const char *text_of(const char *vm)
{
	static char text[512];

	snprintf(text, sizeof(text), "[vm %s]\ntransport = socket\nsocket = %s/%s\n", vm,
		pair.dir, vm);
	return text;
}

/*
 * Service
 */

TEST(sessions_are_shown_as_they_are)
{
	struct guest guest;
	VgpuCtl__Reply *reply;
	int fd;

	start();
	fd = ctl_open();
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "a\033pp");
	reply = ctl_ask_show(fd, "test");
	check_str(reply->show->vm->name, "test");
	check_str(reply->show->vm->transport, "socket");
	check_eq(reply->show->vm->connections, 1);
	check_eq(reply->show->vm->greeting, VGPU_CTL__GREETING__GREETED);
	check_eq(reply->show->vm->sessions, 1);
	check_eq(reply->show->n_sessions, 1);
	check_eq(reply->show->sessions[0]->worker, guest_entry(&guest, 0)->worker_pid);
	check_str(reply->show->sessions[0]->name, "a?pp");
	check_str(reply->show->sessions[0]->phase, "open");
	check_str(reply->show->sessions[0]->guest_protocol, "3.0");
	check_str(reply->show->sessions[0]->host_protocol, "3.1");
	/* The fake worker's. */
	check_eq(reply->show->sessions[0]->counters->launches, 42);
	check_eq(reply->show->sessions[0]->counters->copies, 0);
	check(!reply->show->more);
	ctl_reply_freep(&reply);
	check_eq(ctl_status_of(ctl_ask_show(fd, "none")), VGPU_CTL__STATUS__UNKNOWN);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	close(fd);
	pair_stop(&pair);
}

TEST(a_change_is_in_force_when_it_is_answered_and_sessions_continue)
{
	struct guest guest;
	uint32_t worker;
	int fd;

	start();
	fd = ctl_open();
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	worker = guest_entry(&guest, 0)->worker_pid;
	check_eq(limit_of_test(fd), 0);
	check_eq(ctl_status_of(ctl_ask_set(fd, "test", "device-memory", "64M")),
		VGPU_CTL__STATUS__OK);
	check_eq(limit_of_test(fd), 64 << 20);
	check_eq(ctl_status_of(ctl_ask_set(fd, "", "log-level", "debug")),
		VGPU_CTL__STATUS__OK);
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(guest_entry(&guest, 0)->worker_pid, worker);
	check_eq(pair_count_log(&pair, "session ended"), 0);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	close(fd);
	pair_stop(&pair);
}

TEST(a_mistake_is_refused_with_its_line_and_changes_nothing)
{
	VgpuCtl__Reply *reply;
	char place[192];
	int fd;

	start();
	fd = ctl_open();
	snprintf(place, sizeof(place), "%s:", pair.config);
	reply = ctl_ask_set(fd, "test", "device-memory", "much");
	check_eq(reply->status, VGPU_CTL__STATUS__INVALID);
	check(!strncmp(reply->reason, place, strlen(place)));
	check(strstr(reply->reason, ": \"much\" is not a size like 4G"));
	ctl_reply_freep(&reply);
	check_eq(ctl_status_of(ctl_ask_set(fd, "test", "socket", "/s")),
		VGPU_CTL__STATUS__INVALID);
	check_eq(ctl_status_of(ctl_ask_set(fd, "test", "nonsense", "1")),
		VGPU_CTL__STATUS__INVALID);
	check_eq(ctl_status_of(ctl_ask_set(fd, "test", "handles", "77 ; x")),
		VGPU_CTL__STATUS__INVALID);
	check_eq(ctl_status_of(ctl_ask_set(fd, "none", "handles", "77")),
		VGPU_CTL__STATUS__UNKNOWN);
	check_eq(ctl_status_of(ctl_ask_set(fd, "", "worker", "/bin/sh")),
		VGPU_CTL__STATUS__INVALID);
	check_eq(ctl_status_of(ctl_ask_add(fd, "a", "[vm b]\nsocket = /b\n")),
		VGPU_CTL__STATUS__INVALID);
	check_eq(ctl_status_of(ctl_ask_add(fd, "a", "")), VGPU_CTL__STATUS__INVALID);
	check_eq(ctl_status_of(ctl_ask_add(fd, "../a", "[vm ../a]\nsocket = /b\n")),
		VGPU_CTL__STATUS__INVALID);
	check_eq(ctl_status_of(ctl_ask_add(fd, "a", "[vm a]\nsocket = /none/of/these\n")),
		VGPU_CTL__STATUS__FAILED);
	check_eq(limit_of_test(fd), 0);
	check_eq(pair_count_log(&pair, "is in force"), 0);
	close(fd);
	pair_stop(&pair);
}

TEST(a_vm_comes_and_goes)
{
	struct guest guest;
	char path[160];
	int fd;

	start();
	fd = ctl_open();
	snprintf(path, sizeof(path), "%s/new", pair.dir);
	check(guest_try_connect(path) < 0);
	for (int i = 0; i < 3; i++) {
		check_eq(ctl_status_of(ctl_ask_add(fd, "new", text_of("new"))),
			VGPU_CTL__STATUS__OK);
		guest_connect(&guest, path);
		guest_open(&guest, 0, "app");
		guest_close(&guest, 0);
		guest_disconnect(&guest);
		check_eq(ctl_status_of(ctl_ask_remove(fd, "new")), VGPU_CTL__STATUS__OK);
		check(guest_try_connect(path) < 0);
	}
	check_eq(ctl_status_of(ctl_ask_remove(fd, "new")), VGPU_CTL__STATUS__UNKNOWN);
	/* It is in the main file. */
	check_eq(ctl_status_of(ctl_ask_remove(fd, "test")), VGPU_CTL__STATUS__INVALID);
	close(fd);
	pair_stop(&pair);
}

TEST(a_vm_that_is_there_already_is_not_a_change)
{
	VgpuCtl__Reply *reply;
	int fd;

	start();
	fd = ctl_open();
	for (unsigned int i = 0; i < 2; i++) {
		reply = ctl_ask_add(fd, "new", text_of("new"));
		check_eq(reply->result_case, VGPU_CTL__REPLY__RESULT_CHANGED);
		check_eq(reply->changed->changed, !i);
		ctl_reply_freep(&reply);
	}
	close(fd);
	pair_stop(&pair);
}

TEST(a_list_of_many_vms_comes_in_parts)
{
	static char sections[65536];
	VgpuCtl__List list = VGPU_CTL__LIST__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	VgpuCtl__Reply *reply;
	char after[64] = "", lines[256];
	unsigned int n = 0, n_parts = 0;
	size_t used = 0;
	bool more;
	int fd;

	snprintf(ctl_path, sizeof(ctl_path), "%s/ctl", test_tmpdir());
	snprintf(lines, sizeof(lines), "ctl-socket = %s\n", ctl_path);
	for (int i = 0; i < 150; i++)
		used += (size_t)snprintf(sections + used, sizeof(sections) - used,
			"[vm v%03d]\ntransport = socket\nsocket = %s/v%d\n", i,
			test_tmpdir(), i);
	pair_start(&pair, &(struct pair_options){ .worker = FAKE_WORKER,
				  .vgpud_lines = lines,
				  .sections = sections });
	fd = ctl_open();
	request.verb_case = VGPU_CTL__REQUEST__VERB_LIST;
	request.list = &list;
	do {
		list.after = after;
		reply = ctl_ask(fd, &request);
		check_eq(reply->result_case, VGPU_CTL__REPLY__RESULT_LIST);
		for (size_t i = 0; i < reply->list->n_vms; i++) {
			check(strcmp(reply->list->vms[i]->name, after) > 0);
			snprintf(after, sizeof(after), "%s", reply->list->vms[i]->name);
		}
		n += reply->list->n_vms;
		n_parts++;
		more = reply->list->more;
		ctl_reply_freep(&reply);
	} while (more);
	check_eq(n, 151);
	check_eq(n_parts, 3);
	close(fd);
	pair_stop(&pair);
}

TEST(clients_find_the_next_broker)
{
	int fd;

	start();
	fd = ctl_open();
	check_eq(kill(pair_find_broker(&pair), SIGKILL), 0);
	check_eq(ctl_receive(fd), 0);
	ctl_check_served();
	close(fd);
	pair_stop(&pair);
}

/* Writes a configuration with that ctl-socket and has it read, the n-th time. */
static void reload(const char *path, unsigned int n)
{
	FILE *file = fopen(pair.config, "we");

	check(file != NULL);
	fprintf(file,
		"[vgpud]\ndriver = soft\nworker = %s\nctl-socket = %s\n"
		"[vm test]\ntransport = socket\nsocket = %s\n",
		FAKE_WORKER, path, pair.socket);
	check_eq(fclose(file), 0);
	check_eq(kill(pair.pid, SIGHUP), 0);
	pair_wait_log(&pair, "SIGHUP: ", n);
}

TEST(a_reload_moves_the_socket_or_leaves_it_where_it_is)
{
	char old[sizeof(ctl_path)], lock[sizeof(ctl_path) + 8];

	start();
	memcpy(old, ctl_path, sizeof(old));
	reload(old, 1);
	ctl_check_served();
	snprintf(ctl_path, sizeof(ctl_path), "%.90s/other", test_tmpdir());
	reload(ctl_path, 2);
	ctl_check_served();
	check(access(old, F_OK) < 0);
	snprintf(lock, sizeof(lock), "%s.lock", old);
	check(access(lock, F_OK) < 0);
	/* The whole configuration is refused, and the socket stays. */
	reload("/none/of/these", 3);
	check_eq(pair_count_log(&pair, "ctl-socket: cannot listen on /none/of/these"), 1);
	ctl_check_served();
	reload("no", 4);
	check(access(ctl_path, F_OK) < 0);
	pair_stop(&pair);
}

/*
 * Rights
 */

/* Runs a test as another user, with that group besides; skips without root. */
static void run_as(gid_t group, void (*run)(void))
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		test_skip("only root can become another user");
	start();
	check_eq(chmod(pair.dir, 0711), 0);
	pid = fork();
	check(pid >= 0);
	if (!pid) {
		if (setgroups(1, &group) || setgid(OTHER_UID) || setuid(OTHER_UID))
			_exit(99);
		run();
		_exit(0);
	}
	check_eq(waitpid(pid, &status, 0), pid);
	check_eq(status, 0);
	pair_stop(&pair);
}

static void be_stranger(void)
{
	const int fd = ctl_connect();

	check_eq(ctl_meet(fd), VGPU_CTL__ACCESS__NONE);
	check_eq(ctl_receive(fd), 0);
}

static void be_monitor(void)
{
	const int fd = ctl_connect();

	check_eq(ctl_meet(fd), VGPU_CTL__ACCESS__MONITOR);
	check_eq(ctl_status_of(ctl_say_hello(fd, CTL_VERSION)), VGPU_CTL__STATUS__OK);
	check_eq(ctl_status_of(ctl_ask_list(fd)), VGPU_CTL__STATUS__OK);
	check_eq(ctl_status_of(ctl_ask_show(fd, "test")), VGPU_CTL__STATUS__OK);
	check_eq(ctl_status_of(ctl_ask_set(fd, "test", "handles", "77")),
		VGPU_CTL__STATUS__DENIED);
	check_eq(ctl_status_of(ctl_ask_add(fd, "new", text_of("new"))),
		VGPU_CTL__STATUS__DENIED);
	check_eq(ctl_status_of(ctl_ask_remove(fd, "test")), VGPU_CTL__STATUS__DENIED);
	check_eq(limit_of_test(fd), 0);
}

static void be_admin(void)
{
	const int fd = ctl_connect();

	check_eq(ctl_meet(fd), VGPU_CTL__ACCESS__ADMIN);
	check_eq(ctl_status_of(ctl_say_hello(fd, CTL_VERSION)), VGPU_CTL__STATUS__OK);
	check_eq(ctl_status_of(ctl_ask_set(fd, "test", "handles", "77")),
		VGPU_CTL__STATUS__OK);
	check_eq(ctl_status_of(ctl_ask_add(fd, "new", text_of("new"))),
		VGPU_CTL__STATUS__OK);
	/* vgpud is root, and would do it. */
	check_eq(ctl_status_of(ctl_ask_add(fd, "n", "[vm n]\nsocket = /run/n\n")),
		VGPU_CTL__STATUS__DENIED);
	check_eq(ctl_status_of(ctl_ask_add(
			 fd, "n", "[vm n]\ntransport = plain\nmemory = /dev/shm/n\n")),
		VGPU_CTL__STATUS__DENIED);
	check_eq(ctl_status_of(ctl_ask_remove(fd, "new")), VGPU_CTL__STATUS__OK);
}

TEST(a_stranger_is_told_why_it_is_refused)
{
	run_as(OTHER_UID, be_stranger);
}

TEST(a_monitor_looks_and_changes_nothing)
{
	run_as(MONITORS, be_monitor);
}

TEST(an_administrator_changes_what_does_not_need_root)
{
	run_as(ADMINS, be_admin);
}

/*
 * Clients that keep no rule
 */

/* Sends bytes as the first request. Return: the reply, NULL: the connection has ended. */
static VgpuCtl__Reply *send_bytes(int fd, const void *bytes, size_t size)
{
	check_eq(packet_send(fd, bytes, size, NULL, 0), 0);
	return ctl_hear(fd);
}

TEST(what_is_no_request_ends_the_connection)
{
	static const uint8_t zeroes[CTL_REQUEST_MAX + 1];
	static const struct {
		const void *bytes;
		size_t size;
	} wrong[] = { { "\xff\xff\xff", 3 }, { zeroes, sizeof(zeroes) },
		{ "\x1a\x00", 2 } /* a list before the hello */ };
	int fd;

	start();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		fd = ctl_connect();
		check_eq(ctl_meet(fd), VGPU_CTL__ACCESS__ADMIN);
		check_eq(ctl_status_of(send_bytes(fd, wrong[i].bytes, wrong[i].size)),
			VGPU_CTL__STATUS__INVALID);
		check_eq(ctl_receive(fd), 0);
		close(fd);
	}
	ctl_check_served();
	pair_stop(&pair);
}

TEST(another_version_is_refused)
{
	int fd;

	start();
	fd = ctl_connect();
	ctl_meet(fd);
	check_eq(ctl_status_of(ctl_say_hello(fd, CTL_VERSION + 1)),
		VGPU_CTL__STATUS__INVALID);
	check_eq(ctl_receive(fd), 0);
	close(fd);
	pair_stop(&pair);
}

TEST(a_request_of_a_later_release_is_refused_and_the_next_one_served)
{
	int fd;

	start();
	fd = ctl_open();
	check_eq(ctl_status_of(send_bytes(fd, "\x08\x05\x82\x01\x00", 5)),
		VGPU_CTL__STATUS__UNKNOWN);
	check_eq(ctl_status_of(ctl_ask_list(fd)), VGPU_CTL__STATUS__OK);
	close(fd);
	pair_stop(&pair);
}

TEST(descriptors_of_a_client_are_not_taken)
{
	int fd, pipes[2];
	char byte;

	start();
	fd = ctl_connect();
	ctl_meet(fd);
	check_eq(pipe(pipes), 0);
	check_eq(packet_send(fd, "\x08\x01", 2, pipes + 1, 1), 0);
	close(pipes[1]);
	check_eq(ctl_status_of(ctl_hear(fd)), VGPU_CTL__STATUS__INVALID);
	check_eq(ctl_receive(fd), 0);
	/* Nobody has the other end. */
	check_eq(read(pipes[0], &byte, 1), 0);
	close(pipes[0]);
	close(fd);
	pair_stop(&pair);
}

TEST(connections_have_a_limit_and_those_beyond_are_told)
{
	int fds[CLIENTS_MAX], fd;

	start();
	for (int i = 0; i < CLIENTS_MAX; i++)
		fds[i] = ctl_open();
	fd = ctl_connect();
	check_eq(ctl_meet(fd), VGPU_CTL__ACCESS__NONE);
	check_eq(ctl_receive(fd), 0);
	close(fd);
	check_eq(ctl_status_of(ctl_ask_list(fds[CLIENTS_MAX - 1])), VGPU_CTL__STATUS__OK);
	for (int i = 0; i < CLIENTS_MAX; i++)
		close(fds[i]);
	ctl_check_served();
	pair_stop(&pair);
}

TEST(a_client_that_says_nothing_is_disconnected)
{
	int fd;

	start();
	fd = ctl_connect();
	check_eq(ctl_meet(fd), VGPU_CTL__ACCESS__ADMIN);
	ctl_check_served();
	check_eq(ctl_receive(fd), 0);
	close(fd);
	pair_stop(&pair);
}

/* It asks as long as its socket takes requests. The broker must neither wait for it nor
 * keep anything for it. */
TEST(a_client_that_does_not_read_delays_nobody)
{
	struct guest guest;
	int fd;

	start();
	fd = ctl_open();
	while (send(fd, "\x1a\x00", 2, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		continue;
	ctl_check_served();
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	check_eq(pair_count_log(&pair, "the broker"), 0);
	close(fd);
	pair_stop(&pair);
}

TEST(connections_that_end_at_once_cost_nothing)
{
	start();
	for (int i = 0; i < 500; i++)
		close(ctl_connect());
	ctl_check_served();
	check_eq(pair_count_log(&pair, "ctl: cannot accept"), 0);
	pair_stop(&pair);
}

TEST(a_client_that_leaves_before_the_answer_to_its_change_harms_nobody)
{
	VgpuCtl__Setting setting = VGPU_CTL__SETTING__INIT, *settings[] = { &setting };
	VgpuCtl__Set set = VGPU_CTL__SET__INIT;
	VgpuCtl__Request request = VGPU_CTL__REQUEST__INIT;
	int fd;

	start();
	setting.key = (char *)"device-memory";
	setting.value = (char *)"64M";
	set.vm = (char *)"test";
	set.n_settings = 1;
	set.settings = settings;
	request.verb_case = VGPU_CTL__REQUEST__VERB_SET;
	request.set = &set;
	fd = ctl_open();
	check_eq(ctl_send(fd, &request.base, CTL_REQUEST_MAX), 0);
	close(fd);
	pair_wait_log(&pair, "a change by vgpuctl is in force", 1);
	fd = ctl_open();
	check_eq(limit_of_test(fd), 64 << 20);
	close(fd);
	pair_stop(&pair);
}
