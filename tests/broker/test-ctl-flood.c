/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users who flood the socket for vgpuctl: VMs and other users are served
 */

#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/packet.h"
#include "ctl-client.h"
#include "guest.h"
#include "pair.h"
#include "test.h"

/* Numbers that need no names. */
#define USER 64300
#define ADMINS 64201
#define MONITORS 64202
#define NO_GROUP 64203
/* As broker/ctl-server.h has them. */
#define USER_MAX 8
#define USERS_MAX 24
#define N_FLOODERS 4

static struct pair pair;

static void start(void)
{
	static char lines[256];

	if (geteuid() != 0)
		test_skip("only root can become another user");
	snprintf(ctl_path, sizeof(ctl_path), "%s/ctl", test_tmpdir());
	snprintf(lines, sizeof(lines),
		"ctl-socket = %s\nctl-admins = %d\nctl-monitors = %d\n", ctl_path, ADMINS,
		MONITORS);
	pair_start(&pair,
		&(struct pair_options){ .worker = FAKE_WORKER, .vgpud_lines = lines });
	check_eq(chmod(pair.dir, 0711), 0);
}

/* A process of another user, which lives until end_user() at most. */
struct user {
	pid_t pid;
	int ready; /* readable when run() has returned */
};

static struct user start_user(uid_t uid, gid_t group, void (*run)(void))
{
	struct user user;
	int pipes[2];

	check_eq(pipe(pipes), 0);
	user.pid = fork();
	check(user.pid >= 0);
	if (!user.pid) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || setgroups(1, &group) ||
			setgid(uid) || setuid(uid))
			_exit(99);
		run();
		check_eq(write(pipes[1], "", 1), 1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	user.ready = pipes[0];
	return user;
}

static void wait_for_user(const struct user *user)
{
	char byte;

	check_eq(read(user->ready, &byte, 1), 1);
}

static void end_user(const struct user *user)
{
	int status;

	check_eq(kill(user->pid, SIGKILL), 0);
	check_eq(waitpid(user->pid, &status, 0), user->pid);
	check(WIFSIGNALED(status));
	close(user->ready);
}

static void use_vm(void)
{
	struct guest guest;

	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	guest_close(&guest, 0);
	guest_disconnect(&guest);
}

/*
 * Connections
 */

/* Takes all that one user may have, and keeps them. */
static void take_all(void)
{
	int fd;

	for (unsigned int i = 0; i < USER_MAX; i++)
		ctl_open();
	fd = ctl_connect();
	check_eq(ctl_meet(fd), VGPU_CTL__ACCESS__NONE);
	check_eq(ctl_receive(fd), 0);
	close(fd);
}

static void be_refused(void)
{
	const int fd = ctl_connect();

	check_eq(ctl_meet(fd), VGPU_CTL__ACCESS__NONE);
	check_eq(ctl_receive(fd), 0);
}

TEST(a_user_with_many_connections_locks_nobody_else_out)
{
	struct user users[USERS_MAX / USER_MAX], late;
	const unsigned int n = sizeof(users) / sizeof(*users);
	int fd;

	start();
	for (unsigned int i = 0; i < n; i++) {
		users[i] = start_user(USER + i, ADMINS, take_all);
		wait_for_user(&users[i]);
	}
	/* All users have what they may have together. */
	late = start_user(USER + n, ADMINS, be_refused);
	wait_for_user(&late);
	end_user(&late);
	ctl_check_served();
	fd = ctl_open();
	check_eq(ctl_status_of(ctl_ask_set(fd, "test", "handles", "77")),
		VGPU_CTL__STATUS__OK);
	close(fd);
	use_vm();
	for (unsigned int i = 0; i < n; i++)
		end_user(&users[i]);
	late = start_user(USER, ADMINS, take_all);
	wait_for_user(&late);
	end_user(&late);
	pair_stop(&pair);
}

/*
 * Floods
 */

static void connect_forever(void)
{
	for (;;)
		close(ctl_connect());
}

/* Keeps what it has, and reads nothing. */
static void hold_forever(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", ctl_path);
	for (;;) {
		const int fd =
			socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
			send(fd, "\x1a\x00", 2, MSG_NOSIGNAL) < 0)
			usleep(1000);
		/* Without descriptors it goes on with the first ones again. */
		for (int i = 100; fd < 0 && i < 1000; i++)
			close(i);
	}
}

/* Asks for lists, as often as vgpud takes requests, and reads no answer. */
static void ask_forever(void)
{
	const int fd = ctl_connect();

	check_eq(ctl_meet(fd), VGPU_CTL__ACCESS__MONITOR);
	check_eq(ctl_status_of(ctl_say_hello(fd, CTL_VERSION)), VGPU_CTL__STATUS__OK);
	for (;;)
		if (send(fd, "\x1a\x00", 2, MSG_NOSIGNAL) < 0)
			pause();
}

static void check_flood(gid_t group, void (*run)(void))
{
	struct user users[N_FLOODERS];

	start();
	for (unsigned int i = 0; i < N_FLOODERS; i++)
		users[i] = start_user(USER + i, group, run);
	for (unsigned int i = 0; i < 20; i++) {
		ctl_check_served();
		use_vm();
	}
	for (unsigned int i = 0; i < N_FLOODERS; i++)
		end_user(&users[i]);
	check_eq(pair_count_log(&pair, "the broker"), 0);
	/* A flood of the log is as bad: ten lines at once, and one in ten seconds. */
	check(pair_count_log(&pair, "it is refused") < 20);
	ctl_check_served();
	pair_stop(&pair);
}

TEST(strangers_who_connect_all_the_time_delay_nobody_for_long)
{
	check_flood(NO_GROUP, connect_forever);
}

TEST(strangers_who_keep_connections_lock_nobody_out)
{
	check_flood(NO_GROUP, hold_forever);
}

TEST(monitors_who_keep_connections_lock_nobody_out)
{
	check_flood(MONITORS, hold_forever);
}

TEST(monitors_who_ask_all_the_time_delay_nobody_for_long)
{
	check_flood(MONITORS, ask_forever);
}

/* Each change replaces the broker, and so ends the connections of all others. */
static void change_forever(void)
{
	const int fd = ctl_open();

	for (unsigned int i = 0;; i++)
		ctl_status_of(
			ctl_ask_set(fd, "test", "handles", i % 2 ? "1000" : "2000"));
}

/* The broker that is asked first may be the one that the last change replaces. */
static void check_served_soon(void)
{
	VgpuCtl__Reply *reply = NULL;

	for (unsigned int i = 0; i < 10 && !reply; i++) {
		const int fd = ctl_open();

		reply = ctl_ask_list(fd);
		close(fd);
	}
	check_eq(ctl_status_of(reply), VGPU_CTL__STATUS__OK);
}

/* A change costs the spare workers, too, and with sanitizers the start of one takes as
 * long as a broker lives here. */
TEST_SECONDS(an_administrator_who_changes_all_the_time_stops_no_vm, 300)
{
	struct user user;
	struct guest guest;

	start();
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	user = start_user(USER, ADMINS, change_forever);
	pair_wait_log(&pair, "a change by vgpuctl is in force", 10);
	for (unsigned int i = 0; i < 10; i++)
		use_vm();
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	end_user(&user);
	check_served_soon();
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

/*
 * Pieces
 */

TEST(a_request_in_pieces_is_none)
{
	static const uint8_t hello[] = { 0x08, 0x01, 0x12, 0x02, 0x08, 0x01 };
	int fd;

	start();
	for (size_t size = 0; size < sizeof(hello); size++) {
		fd = ctl_connect();
		check_eq(ctl_meet(fd), VGPU_CTL__ACCESS__ADMIN);
		check_eq(send(fd, hello, size, MSG_NOSIGNAL), (ssize_t)size);
		/* Whether it is answered or not, it is not waited for. */
		if (ctl_receive(fd))
			check_eq(ctl_receive(fd), 0);
		close(fd);
	}
	/* It ends while it sends, and while it is sent to. */
	fd = ctl_connect();
	check_eq(shutdown(fd, SHUT_RD), 0);
	send(fd, hello, sizeof(hello), MSG_NOSIGNAL);
	close(fd);
	fd = ctl_connect();
	check_eq(shutdown(fd, SHUT_WR), 0);
	check_eq(ctl_meet(fd), VGPU_CTL__ACCESS__ADMIN);
	check_eq(ctl_receive(fd), 0);
	close(fd);
	ctl_check_served();
	check_eq(pair_count_log(&pair, "the broker"), 0);
	pair_stop(&pair);
}
