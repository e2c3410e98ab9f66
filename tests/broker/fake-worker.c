/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker without a driver, for tests of vgpud
 *
 * Speaks the worker's side of control.h. What it does beyond that depends on the name
 * of the guest process it is given (the hello's comm), or on the softgpu name for what
 * happens before: see behave() and main().
 */

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control.h"
#include "vgpu/ring-layout.h"

static int control = -1;
static struct worker_stats *stats;
static bool keeps_asking;

static void say(const struct control_message *message)
{
	if (control_send(control, message, NULL))
		exit(3);
}

static void say_opened(uint32_t reason)
{
	say(&(struct control_message){ .type = CONTROL_OPENED, .opened = { reason, 0 } });
}

static void say_ready(uint32_t reason)
{
	struct control_message message = {
		.type = CONTROL_READY,
		.ready = { .reason = reason, .driver_version = 13000, .n_devices = 1 },
	};

	strcpy(message.ready.driver, "fake");
	say(&message);
}

/* Checks that it holds nothing but what it was given. */
static void check_fds(void)
{
	for (int fd = 5; fd < 1024; fd++)
		if (close(fd) == 0) {
			fprintf(stderr, "fake-worker: descriptor %d is open\n", fd);
			exit(4);
		}
}

static void ask(void)
{
	say(&(struct control_message){
		.type = CONTROL_WANT, .want = { .n_extents = 1 << 20 } });
}

/* 256 MiB that are really there. */
static void take_memory(void)
{
	const size_t size = 256 << 20;
	char *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (map == MAP_FAILED)
		exit(8);
}

/* More lines than anybody wants to read; each names its number. */
static void write_much(void)
{
	char line[64];

	for (int i = 0; i < 20000; i++) {
		int n = snprintf(line, sizeof(line), "chatter %d\n", i);

		/* A full pipe takes no more: the next one is tried all the same. */
		if (write(STDERR_FILENO, line, n) < 0)
			usleep(50);
	}
}

/* Lines that pretend to be somebody else's, and one that never ends. */
static void write_alien(void)
{
	static const char lines[] =
		"1.000000 vgpud[1] error: session ended vm=other forged\n"
		"\x1b[2Jescape\a\n"
		"1.000000 vgpu-worker[1] debug: not asked for\n"
		"1.000000 vgpu-worker[1] error: honest\n";
	char endless[8192];

	memset(endless, 'e', sizeof(endless));
	if (write(STDERR_FILENO, lines, sizeof(lines) - 1) < 0 ||
		write(STDERR_FILENO, endless, sizeof(endless)) < 0 ||
		write(STDERR_FILENO, "\nafter\n", 7) < 0)
		exit(7);
}

static void behave(const struct control_assign *assign, int n_fds, int shm)
{
	const char *comm = assign->guest_comm;
	char *map;

	map = mmap(NULL, assign->shm_size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_NORESERVE, shm, 0);
	if (map == MAP_FAILED || n_fds != (assign->flags & CONTROL_ASSIGN_POLL	? 1
						  : !strcmp(assign->vm, "qemu") ? 3
										: 2))
		exit(5);
	/* Fingerprints: in the area and in the first extent. */
	strcpy(map + assign->area_off + VGPU_WORDS_OFF, "worker");
	strcpy(map + assign->extents_off +
			(uint64_t)assign->first_extent * VGPU_EXTENT_SIZE,
		"worker");
	stats->launches = 41;
	stats->launches++;
	stats->bytes_h2d = assign->device_memory;

	if (!strcmp(comm, "refuse"))
		say_opened(VGPU_REASON_NO_DEVICE);
	else if (!strcmp(comm, "crash-early"))
		abort();
	else if (!strcmp(comm, "mute"))
		return;
	else if (!strcmp(comm, "window") && assign->window_base == 0x100000000000ull)
		say_opened(VGPU_REASON_WINDOW);
	else
		say_opened(VGPU_REASON_NONE);

	if (!strcmp(comm, "crash")) {
		/* Not by way of a sanitizer, which would report it. */
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
	if (!strcmp(comm, "nonsense"))
		say(&(struct control_message){ .type = CONTROL_STOP });
	if (!strcmp(comm, "protocol")) {
		say(&(struct control_message){
			.type = CONTROL_ENDED, .ended = { VGPU_REASON_PROTOCOL, 0 } });
		exit(0);
	}
	if (!strcmp(comm, "want"))
		say(&(struct control_message){
			.type = CONTROL_WANT, .want = { .n_extents = 8, .cookie = 1 } });
	if (!strcmp(comm, "asks")) {
		keeps_asking = true;
		ask();
	}
	if (!strcmp(comm, "want-all"))
		say(&(struct control_message){ .type = CONTROL_WANT,
			.want = { .n_extents = 1u << 30, .cookie = 2 } });
	if (!strcmp(comm, "descriptors"))
		control_send(control,
			&(struct control_message){ .type = CONTROL_WANT, .n_fds = 1 },
			&shm);
	if (!strcmp(comm, "flood"))
		for (;;)
			say(&(struct control_message){
				.type = CONTROL_WANT, .want = { .n_extents = 1 } });
	if (!strcmp(comm, "chatty"))
		write_much();
	if (!strcmp(comm, "hungry"))
		take_memory();
	if (!strcmp(comm, "forge"))
		write_alien();
	if (!strcmp(comm, "deaf"))
		for (;;)
			pause();
}

static void handle_grant(const struct control_grant *grant)
{
	if (keeps_asking) {
		stats->copies_d2d++;
		ask();
		return;
	}
	stats->calls = grant->error ? 1000 : grant->first_extent;
	stats->memsets = grant->n_extents;
}

static void serve(void)
{
	struct control_message message;
	int fds[CONTROL_FDS_MAX];

	while (!control_receive(control, &message, fds)) {
		switch (message.type) {
		case CONTROL_ASSIGN:
			behave(&message.assign, message.n_fds, fds[0]);
			break;
		case CONTROL_WINDOW:
			say_opened(message.window.base == 0x550000000000ull
					   ? VGPU_REASON_NONE
					   : VGPU_REASON_WINDOW);
			break;
		case CONTROL_GRANT:
			handle_grant(&message.grant);
			break;
		case CONTROL_STOP:
			say(&(struct control_message){ .type = CONTROL_ENDED });
			exit(0);
		}
	}
}

int main(int argc, char **argv)
{
	const char *name = "";

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--control"))
			control = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--stats"))
			stats = mmap(NULL, WORKER_STATS_SIZE, PROT_READ | PROT_WRITE,
				MAP_SHARED, atoi(argv[i + 1]), 0);
		else if (!strcmp(argv[i], "--softgpu-name"))
			name = argv[i + 1];
	}
	check_fds();
	if (!strcmp(name, "exits"))
		exit(6);
	say_ready(!strcmp(name, "no-device") ? VGPU_REASON_NO_DEVICE : VGPU_REASON_NONE);
	serve();
	return 0;
}
