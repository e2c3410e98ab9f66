/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another configuration, while guests are served
 */

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest.h"
#include "pair.h"
#include "test.h"

static struct pair pair;
static struct guest guest;
static uint32_t worker; /* of the guest */
static unsigned int n_reloads, n_failures;

/* A vgpud with one open session. */
static void start(const struct pair_options *options)
{
	n_reloads = n_failures = 0;
	pair_start(&pair, options);
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	worker = guest_entry(&guest, 0)->worker_pid;
}

static void start_default(void)
{
	start(&(struct pair_options){ .worker = FAKE_WORKER });
}

/* The session that was there first is there still, with the same worker. */
static void check_session(void)
{
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(kill(worker, 0), 0);
	check_eq(pair_count_log(&pair, "session ended"), 0);
}

static void stop(void)
{
	struct pair_session session;

	check_session();
	guest_close(&guest, 0);
	pair_read_session(&pair, 0, &session);
	check_eq(session.worker, worker);
	check_str(session.reason, "closed");
	guest_disconnect(&guest);
	pair_stop(&pair);
}

/* Writes a configuration: of [vgpud], of [vm test], and more sections. */
static void write_config(
	const char *vgpud_lines, const char *vm_lines, const char *sections)
{
	FILE *file = fopen(pair.config, "w");

	check(file != NULL);
	fprintf(file,
		"[vgpud]\ndriver = soft\nworker = %s\n%s"
		"[vm test]\ntransport = socket\nsocket = %s\n%s%s",
		FAKE_WORKER, vgpud_lines, pair.socket, vm_lines, sections);
	check_eq(fclose(file), 0);
}

static void reload(void)
{
	check_eq(kill(pair.pid, SIGHUP), 0);
	pair_wait_log(&pair, "is in force", ++n_reloads);
}

static void reload_in_vain(void)
{
	check_eq(kill(pair.pid, SIGHUP), 0);
	pair_wait_log(&pair, "the configuration stays as it was", ++n_failures);
}

static const char *other_socket(void)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/other", pair.dir);
	return path;
}

static const char *other_section(const char *lines)
{
	static char text[512];

	snprintf(text, sizeof(text), "[vm other]\ntransport = socket\nsocket = %s\n%s",
		other_socket(), lines);
	return text;
}

TEST(a_new_section_is_a_new_place_to_come_in)
{
	struct guest other;

	start_default();
	check(guest_try_connect(other_socket()) < 0);
	write_config("", "", other_section("size = 64M\n"));
	reload();
	guest_connect(&other, other_socket());
	check_eq(other.size, 64 << 20);
	guest_open(&other, 0, "app");
	guest_close(&other, 0);
	guest_disconnect(&other);
	pair_wait_log(&pair, "session ended vm=other", 1);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

/* The broker that ends the session is replaced before its worker has exited. */
TEST(sessions_of_a_vm_that_is_gone_are_counted_to_their_end)
{
	struct pair_session session;

	start_default();
	check_eq(kill(worker, SIGSTOP), 0);
	guest_disconnect(&guest);
	pair_wait_log(&pair, "the VM disconnected", 1);
	reload();
	kill(worker, SIGCONT); /* it may have been killed already */
	pair_read_session(&pair, 0, &session);
	check_eq(session.worker, worker);
	pair_stop(&pair);
}

TEST(a_section_that_has_gone_takes_its_guests_along_and_no_others)
{
	struct guest other;
	struct pollfd poller;
	uint32_t lost;

	start_default();
	write_config("", "", other_section(""));
	reload();
	guest_connect(&other, other_socket());
	guest_open(&other, 0, "app");
	lost = guest_entry(&other, 0)->worker_pid;

	write_config("", "", "");
	reload();
	poller = (struct pollfd){ .fd = other.socket, .events = POLLRDHUP };
	check_eq(poll(&poller, 1, -1), 1);
	guest_wait_for(kill(lost, 0) < 0);
	check(guest_try_connect(other_socket()) < 0);
	check(access(other_socket(), F_OK) < 0);
	check_eq(pair_count_log(&pair, "its section was removed from the configuration"),
		1);
	guest_disconnect(&other);
	stop();
}

/* The file of VM other in the folder beside the configuration. */
static void put_other(const char *text)
{
	char path[160];
	FILE *file;

	snprintf(path, sizeof(path), "%s/vm.d", pair.dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/vm.d/other.conf", pair.dir);
	if (!text) {
		check_eq(unlink(path), 0);
		return;
	}
	file = fopen(path, "we");
	check(file != NULL);
	fputs(text, file);
	check_eq(fclose(file), 0);
}

TEST(a_file_of_a_vm_comes_and_goes_while_others_run)
{
	struct guest other;
	struct pollfd poller;

	start_default();
	write_config("", "", "");
	put_other(other_section("size = 64M\n"));
	reload();
	guest_connect(&other, other_socket());
	check_eq(other.size, 64 << 20);
	guest_open(&other, 0, "app");

	put_other("[vm other]\nsize = 3\n");
	reload_in_vain();
	pair_wait_log(&pair, "vm.d/other.conf:2: ", 1);
	check_eq(guest_entry(&other, 0)->state, VGPU_CHANNEL_OPEN);

	put_other(NULL);
	reload();
	poller = (struct pollfd){ .fd = other.socket, .events = POLLRDHUP };
	check_eq(poll(&poller, 1, -1), 1);
	guest_disconnect(&other);
	check(guest_try_connect(other_socket()) < 0);
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(kill(worker, 0), 0);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

/* Writes a configuration without VMs, which come by files. */
TEST(the_first_vm_may_come_by_a_file)
{
	struct guest other;
	FILE *file;

	start_default();
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	put_other(other_section("size = 64M\n"));
	put_other(NULL);
	file = fopen(pair.config, "we");
	check(file != NULL);
	fprintf(file, "[vgpud]\ndriver = soft\nworker = %s\n", FAKE_WORKER);
	check_eq(fclose(file), 0);
	reload();
	check(guest_try_connect(pair.socket) < 0);

	put_other(other_section("size = 64M\n"));
	reload();
	guest_connect(&other, other_socket());
	guest_open(&other, 0, "app");
	guest_close(&other, 0);
	guest_disconnect(&other);
	pair_stop(&pair);
}

TEST(limits_of_now_are_those_of_new_sessions)
{
	struct guest other;

	start(&(struct pair_options){
		.worker = FAKE_WORKER, .vm_lines = "max-processes = 1\n" });
	guest_connect(&other, pair.socket);
	check_eq(guest_open_refused(&other, 0, "app"), VGPU_REASON_PROCESSES);
	write_config("", "max-processes = 2\n", "");
	reload();
	guest_ask(&other, 0, VGPU_CHANNEL_OPENING);
	guest_wait(&other, 0, VGPU_CHANNEL_OPEN);
	/* Fewer than there are: they stay, and no more come. */
	write_config("", "max-processes = 1\n", "");
	reload();
	check_eq(guest_entry(&other, 0)->state, VGPU_CHANNEL_OPEN);
	check_session();
	guest_close(&other, 0);
	check_eq(guest_open_refused(&other, 0, "app"), VGPU_REASON_PROCESSES);
	guest_disconnect(&other);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(a_mistake_is_named_and_changes_nothing)
{
	char text[256];

	start_default();
	write_config("", "size = 48M\n", "");
	reload_in_vain();
	snprintf(text, sizeof(text), "%s:7: size is a power of two", pair.config);
	check_eq(pair_count_log(&pair, text), 1);
	check_eq(unlink(pair.config), 0);
	reload_in_vain();
	check_eq(pair_count_log(&pair, "No such file"), 1);
	stop();
}

TEST(a_socket_that_cannot_be_had_changes_nothing)
{
	struct guest other;

	start_default();
	write_config(
		"", "max-processes = 1\n", "[vm a]\nsocket = /nonexistent/folder/a\n");
	reload_in_vain();
	check_eq(pair_count_log(&pair, "cannot listen on /nonexistent/folder/a"), 1);
	check_eq(access(pair.socket, F_OK), 0);
	/* The other changes of the file are not applied either. */
	guest_connect(&other, pair.socket);
	guest_open(&other, 0, "app");
	guest_close(&other, 0);
	guest_disconnect(&other);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

TEST(mode_and_log_file_follow_the_configuration)
{
	char lines[256], path[160];
	struct stat st;

	start_default();
	snprintf(path, sizeof(path), "%s/new.log", pair.dir);
	snprintf(lines, sizeof(lines), "log-file = %s\n", path);
	write_config(lines, "socket-mode = 0600\n", "");
	check_eq(kill(pair.pid, SIGHUP), 0);
	guest_wait_for(!stat(path, &st) && st.st_size > 0);
	check_eq(stat(pair.socket, &st), 0);
	check_eq(st.st_mode & 0777, 0600);
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

/*
 * Upgrade
 */

TEST(a_broker_of_another_version_is_reported)
{
	char command[512];

	start_default();
	snprintf(command, sizeof(command),
		"%s --broker x 4711 2>%s/out; grep -q 4711 %s/out", VGPUD, pair.dir,
		pair.dir);
	check_eq(system(command), 0);
	stop();
}
