/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket for vgpuctl belongs to a socket unit of the service manager
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl-client.h"
#include "manager.h"
#include "service.h"
#include "test.h"

static char lines[160];
static struct stat of_unit; /* the socket's file */

/* Return: the socket of a unit, which listens at that name in the folder of the test. */
static int listen_at(const char *name, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", service_path(name));
	check_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	check_eq(listen(fd, 16), 0);
	check_eq(stat(address.sun_path, &of_unit), 0);
	return fd;
}

static void configure(const char *name)
{
	snprintf(ctl_path, sizeof(ctl_path), "%s", service_path(name));
	snprintf(lines, sizeof(lines), "ctl-socket = %s\n", ctl_path);
	service_lines = lines;
}

static int offer(const char *name)
{
	const int fd = listen_at(name, SOCK_SEQPACKET);

	configure(name);
	manager_offer("control", fd);
	return fd;
}

/* Whether the file is the one that the unit has made. */
static bool is_of_unit(const char *name)
{
	struct stat st;

	return !stat(service_path(name), &st) && st.st_ino == of_unit.st_ino;
}

static bool exists(const char *name)
{
	return !access(service_path(name), F_OK);
}

/* Asks on a connection that was made before. */
static void ask(int client)
{
	check(ctl_meet(client) == VGPU_CTL__ACCESS__ADMIN);
	check_eq(ctl_status_of(ctl_say_hello(client, CTL_VERSION)), VGPU_CTL__STATUS__OK);
	check_eq(ctl_status_of(ctl_ask_list(client)), VGPU_CTL__STATUS__OK);
	close(client);
}

static void stop(int fd)
{
	service_stop();
	manager_withdraw();
	close(fd);
}

TEST(a_client_that_comes_first_is_served_as_soon_as_vgpud_runs)
{
	const int fd = offer("ctl"), client = ctl_connect();

	service_start();
	ask(client);
	ctl_check_served();
	check(is_of_unit("ctl") && exists("ctl.lock"));
	stop(fd);
	check(is_of_unit("ctl") && !exists("ctl.lock"));
}

TEST(the_socket_remains_over_restarts_and_clients_wait_for_the_next_vgpud)
{
	const int fd = offer("ctl");
	int client;

	service_start();
	service_kill();
	client = ctl_connect();
	service_continue();
	ask(client);
	service_step_aside();
	client = ctl_connect();
	service_continue();
	ask(client);
	service_check();
	stop(fd);
	check(is_of_unit("ctl"));
	check_eq(pair_count_log(&pair, "ctl-socket"), 0);
}

TEST(the_socket_remains_over_reloads_and_other_programs)
{
	const int fd = offer("ctl");

	service_start();
	for (unsigned int i = 1; i <= 2; i++) {
		check_eq(kill(pair.pid, SIGHUP), 0);
		pair_wait_log(&pair, "is in force", i);
		ctl_check_served();
		check_eq(kill(pair.pid, SIGUSR2), 0);
		manager_wait_ready(1 + 2 * i);
		ctl_check_served();
		check(is_of_unit("ctl"));
	}
	service_check();
	stop(fd);
	check(is_of_unit("ctl"));
	check_eq(pair_count_log(&pair, "ctl-socket"), 0);
}

/* The unit has been started since the vgpud before. */
TEST(a_unit_may_take_the_place_of_the_socket_of_a_killed_vgpud)
{
	int fd;

	configure("ctl");
	service_start();
	ctl_check_served();
	service_kill();
	check_eq(unlink(ctl_path), 0);
	fd = offer("ctl");
	service_continue();
	ctl_check_served();
	check(is_of_unit("ctl"));
	stop(fd);
	check(is_of_unit("ctl") && !exists("ctl.lock"));
}

TEST(without_the_unit_vgpud_makes_a_socket_again)
{
	const int fd = offer("ctl");

	service_start();
	ctl_check_served();
	service_kill();
	manager_withdraw();
	service_continue();
	/* The test still has the other socket, in which a client would wait. */
	manager_wait_ready(2);
	ctl_check_served();
	check(!is_of_unit("ctl"));
	stop(fd);
	check(!exists("ctl"));
}

TEST(another_path_in_the_configuration_is_the_one_that_is_served)
{
	const int fd = offer("unit");

	configure("ctl");
	service_start();
	check_eq(pair_count_log(&pair, "/ctl: the socket "), 1);
	check_eq(pair_count_log(&pair, "/unit of the service manager is not served"), 1);
	ctl_check_served();
	/* And back. */
	configure("unit");
	options.vgpud_lines = service_lines;
	service_step_aside();
	service_continue();
	manager_wait_ready(2);
	ctl_check_served();
	check(is_of_unit("unit") && !exists("ctl"));
	stop(fd);
	check(is_of_unit("unit"));
}

/* Starts vgpud with that descriptor, which it has to refuse, and to serve its own. */
static void refuse(const char *name, int fd, const char *why)
{
	configure("ctl");
	manager_offer(name, fd);
	service_start();
	if (pair_count_log(&pair, why) != 1) {
		pair_print_log(&pair);
		test_fail(__FILE__, __LINE__, "not refused: %s", why);
	}
	ctl_check_served();
	check(!is_of_unit("ctl"));
	stop(fd);
	check(!exists("ctl"));
}

TEST(a_socket_of_another_type_is_refused)
{
	refuse("control", listen_at("ctl", SOCK_STREAM),
		"\"control\" of the service manager is not of ListenSequentialPacket=");
}

TEST(a_connection_is_refused)
{
	int fds[2];

	check_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	refuse("control", fds[0], "\"control\" of the service manager does not listen");
	close(fds[1]);
}

TEST(a_socket_without_a_path_is_refused)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	/* The kernel picks an abstract name. */
	check_eq(bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
	check_eq(listen(fd, 1), 0);
	refuse("control", fd, "\"control\" of the service manager has no path");
}

TEST(a_descriptor_that_is_no_socket_is_refused)
{
	refuse("control", open("/dev/null", O_RDWR | O_CLOEXEC),
		"\"control\" of the service manager is no UNIX socket");
}

TEST(a_socket_of_another_name_is_refused)
{
	refuse("vgpud.socket", listen_at("ctl", SOCK_SEQPACKET),
		"the socket \"vgpud.socket\", which is not vgpud's");
}

TEST(a_second_socket_is_refused)
{
	const int second = listen_at("second", SOCK_SEQPACKET), fd = offer("ctl");

	manager_offer("control", second);
	service_start();
	check_eq(pair_count_log(&pair, "the socket \"control\", which is not"), 1);
	ctl_check_served();
	check(is_of_unit("ctl"));
	stop(fd);
	close(second);
}
