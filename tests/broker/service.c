/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpud as a service with two sessions, for tests of its restart
 */

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "manager.h"
#include "service.h"
#include "test.h"

struct pair pair;
struct guest guest, qemu;
uint32_t worker, in_qemu;
char sections[512];
struct pair_options options;
const char *service_lines;

const char *service_path(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", test_tmpdir(), name);
	return path;
}

void service_start_with(const char *argument, void (*before_fn)(void))
{
	snprintf(sections, sizeof(sections),
		"[vm qemu]\nsize = 256M\nmax-processes = 3\nsocket = %s\n",
		service_path("qemu"));
	options = (struct pair_options){
		.worker = FAKE_WORKER,
		.vgpud_lines = service_lines,
		.sections = sections,
		.argument = argument,
		.before_fn = before_fn,
	};
	manager_begin();
	pair_start(&pair, &options);
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	worker = guest_entry(&guest, 0)->worker_pid;
	guest_connect_qemu(&qemu, service_path("qemu"));
	guest_open(&qemu, 0, "app");
	in_qemu = guest_entry(&qemu, 0)->worker_pid;
}

void service_start(void)
{
	service_start_with("--fd-store=200", manager_give);
}

void service_reap(void)
{
	pid_t pid;

	do
		pid = waitpid(-1, NULL, WNOHANG);
	while (pid > 0);
}

bool service_is_alive(uint32_t pid)
{
	service_reap();
	return !kill((pid_t)pid, 0);
}

void service_kill(void)
{
	check_eq(kill(pair.pid, SIGKILL), 0);
	pair_wait_exit(&pair);
	manager_settle();
}

void service_continue(void)
{
	static unsigned int n;

	n = pair_count_log(&pair, "continues what an earlier one has left");
	pair_spawn(&pair, &options);
	pair_wait_log(&pair, "continues what an earlier one has left", n + 1);
}

void service_end(void)
{
	int status;

	guest_wait_for(waitpid(-1, &status, WNOHANG) < 0);
	manager_end();
}

void service_check(void)
{
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(guest_entry(&qemu, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(guest_entry(&guest, 0)->worker_pid, worker);
	check_eq(guest_entry(&qemu, 0)->worker_pid, in_qemu);
	check(service_is_alive(worker) && service_is_alive(in_qemu));
}

void service_serve_another(const char *path)
{
	struct guest other;

	guest_connect(&other, path);
	guest_open(&other, 0, "app");
	guest_close(&other, 0);
	guest_disconnect(&other);
}

void service_stop(void)
{
	service_check();
	service_serve_another(pair.socket);
	guest_close(&guest, 0);
	guest_close(&qemu, 0);
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	guest_wait_for(!service_is_alive(worker) && !service_is_alive(in_qemu));
	pair_stop(&pair);
	manager_settle();
	check_eq(manager_count(), 0);
	service_end();
}

void service_step_aside(void)
{
	check_eq(kill(pair.pid, SIGUSR1), 0);
	/* What a service manager sends when it does not know more. */
	check_eq(kill(pair.pid, SIGTERM), 0);
	check_eq(pair_wait_exit(&pair), 0);
	manager_settle();
}
