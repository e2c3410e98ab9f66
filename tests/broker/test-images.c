/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that the processes of a VM share, and what hostile workers make of it
 *
 * The fake worker gives and asks for images as the name of its guest process says, and
 * counts those that it found: see handle_images() in fake-worker.c.
 */

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"
#include "pair.h"
#include "test.h"

static struct pair pair;
static unsigned int n_sessions;

static void start(const char *vm_lines)
{
	static char sections[512];

	n_sessions = 0;
	snprintf(sections, sizeof(sections),
		"[vm qemu]\nsize = 64M\nmax-processes = 1\nsocket = %s/qemu\n"
		"[vm other]\ntransport = socket\nsize = 64M\nsocket = %s/other\n",
		test_tmpdir(), test_tmpdir());
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vm_lines = vm_lines,
				  .sections = sections,
			  });
}

static const char *path_of(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", pair.dir, name);
	return path;
}

/* A process that does that with images and exits. Return: its session. */
static struct pair_session run_at(const char *path, const char *comm)
{
	struct pair_session session;
	struct guest guest;

	guest_connect(&guest, path);
	guest_open(&guest, 0, comm);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	pair_read_session(&pair, n_sessions++, &session);
	return session;
}

static uint64_t found(const char *comm)
{
	return run_at(pair.socket, comm).images_found;
}

/* The same within a machine that stays. */
static uint64_t found_by(struct guest *qemu, const char *comm)
{
	struct pair_session session;

	guest_open(qemu, 0, comm);
	guest_close(qemu, 0);
	pair_read_session(&pair, n_sessions++, &session);
	return session.images_found;
}

/* Of images: only root can see them, and others go without. */
#define wait_for_count(_condition)                                                       \
	do {                                                                             \
		if (!geteuid())                                                          \
			guest_wait_for(_condition);                                      \
	} while (0)

/* Return: how many images vgpud and its broker hold, by /proc. */
static unsigned int count_images(pid_t pid)
{
	char path[600], target[64];
	struct dirent *entry;
	unsigned int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	check(dir != NULL);
	while ((entry = readdir(dir))) {
		ssize_t size;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, entry->d_name);
		size = readlink(path, target, sizeof(target) - 1);
		if (size < 0)
			continue;
		target[size] = '\0';
		n += !strncmp(target, "/memfd:vgpu-image", 17);
	}
	closedir(dir);
	return n;
}

static pid_t find_broker(void)
{
	char path[64], comm[32];
	int broker = 0, pid;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pair.pid,
		(int)pair.pid);
	file = fopen(path, "r");
	check(file != NULL);
	while (!broker && fscanf(file, "%d", &pid) == 1) {
		FILE *other;

		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		other = fopen(path, "r");
		if (!other)
			continue;
		if (fgets(comm, sizeof(comm), other) && !strcmp(comm, "vgpud-broker\n"))
			broker = pid;
		fclose(other);
	}
	fclose(file);
	return broker;
}

static void await_new_broker(pid_t old)
{
	pid_t broker;

	do
		broker = find_broker();
	while (!broker || broker == old);
}

TEST(an_image_of_one_process_is_found_by_the_next)
{
	start("");
	check_eq(found("image-find"), 0);
	check_eq(found("image-keep"), 1);
	check_eq(found("image-find"), 1);
	/* It was given twice, and is there once. */
	wait_for_count(count_images(pair.pid) == 1);
	wait_for_count(count_images(find_broker()) == 1);
	pair_stop(&pair);
}

TEST(an_invalid_image_is_replaced_by_the_image_of_another_process)
{
	start("");
	check_eq(found("image-poison"), 0);
	check_eq(found("image-keep"), 1);
	check_eq(found("image-find"), 1);
	wait_for_count(count_images(pair.pid) == 1);
	wait_for_count(count_images(find_broker()) == 1);
	pair_stop(&pair);
}

TEST(nothing_of_one_vm_is_found_by_another)
{
	struct guest qemu;

	start("");
	check_eq(found("image-keep"), 1);
	check_eq(run_at(path_of("other"), "image-find").images_found, 0);
	guest_connect_qemu(&qemu, path_of("qemu"));
	check_eq(found_by(&qemu, "image-find"), 0);
	check_eq(found_by(&qemu, "image-keep"), 1);
	guest_disconnect(&qemu);
	check_eq(run_at(path_of("other"), "image-find").images_found, 0);
	pair_stop(&pair);
}

TEST(a_machine_takes_its_images_along)
{
	struct guest qemu;

	start("");
	guest_connect_qemu(&qemu, path_of("qemu"));
	check_eq(found_by(&qemu, "image-keep"), 1);
	check_eq(found_by(&qemu, "image-find"), 1);
	guest_disconnect(&qemu);
	pair_wait_log(&pair, "vm=qemu id=1: the VM disconnected", 1);
	guest_connect_qemu(&qemu, path_of("qemu"));
	check_eq(found_by(&qemu, "image-find"), 0);
	wait_for_count(count_images(pair.pid) == 0);
	wait_for_count(count_images(find_broker()) == 0);
	guest_disconnect(&qemu);
	pair_stop(&pair);
}

TEST(the_next_broker_has_what_the_last_one_kept)
{
	struct guest qemu;
	pid_t broker;

	start("");
	guest_connect_qemu(&qemu, path_of("qemu"));
	check_eq(found_by(&qemu, "image-keep"), 1);
	check_eq(found("image-keep"), 1);
	broker = find_broker();
	check_eq(kill(broker, SIGKILL), 0);
	await_new_broker(broker);
	check_eq(found_by(&qemu, "image-find"), 1);
	check_eq(found("image-find"), 1);
	check_eq(run_at(path_of("other"), "image-find").images_found, 0);
	broker = find_broker();
	check_eq(kill(pair.pid, SIGHUP), 0);
	pair_wait_log(&pair, "is in force", 1);
	await_new_broker(broker);
	check_eq(found("image-find"), 1);
	check_eq(found_by(&qemu, "image-find"), 1);
	wait_for_count(count_images(pair.pid) == 2);
	guest_disconnect(&qemu);
	pair_stop(&pair);
}

TEST(a_section_of_another_name_begins_without_images)
{
	char text[4096] = "", *name;
	FILE *file;

	start("");
	check_eq(found("image-keep"), 1);
	file = fopen(pair.config, "r+");
	check(file && fread(text, 1, sizeof(text) - 1, file) > 0);
	name = strstr(text, "[vm test]");
	check(name != NULL);
	memcpy(name, "[vm tset]", 9);
	rewind(file);
	check(fputs(text, file) >= 0 && !fclose(file));
	check_eq(kill(pair.pid, SIGHUP), 0);
	pair_wait_log(&pair, "is in force", 1);
	check_eq(found("image-find"), 0);
	wait_for_count(count_images(pair.pid) == 0);
	pair_stop(&pair);
}

TEST(a_worker_that_dies_leaves_what_it_gave)
{
	struct guest guest;

	start("");
	guest_connect(&guest, pair.socket);
	guest_claim(&guest, 0, "image-die");
	guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
	pair_wait_log(&pair, "session ended", ++n_sessions);
	guest_disconnect(&guest);
	check_eq(found("image-find"), 1);
	pair_stop(&pair);
}

TEST(a_file_that_is_given_back_is_empty_and_another_may_be_had)
{
	start("image-store = 16K\n");
	check_eq(found("image-drop"), 600);
	pair_stop(&pair);
}

/* 16 KiB are two of 5000 bytes: pages count. */
TEST(a_worker_that_keeps_returned_images_gets_no_more_than_the_store_limit)
{
	start("image-store = 16K\n");
	check_eq(found("image-hoard"), 2);
	/* It ended, and its images were released. */
	check_eq(found("image-hoard"), 2);
	pair_stop(&pair);
}

/* Two fit. The first two have to go for others, and count on, for this worker may map
 * them: then there is no room for a fifth to push out the third. */
TEST(a_dropped_image_counts_until_its_possible_users_have_ended)
{
	start("image-store = 16K\n");
	check_eq(found("image-evict"), 1);
	check_eq(found("image-keep"), 1);
	check_eq(found("image-evict"), 1);
	pair_stop(&pair);
}

TEST(a_file_that_vgpud_did_not_make_is_not_kept)
{
	start("");
	check_eq(found("image-own"), 0);
	pair_stop(&pair);
}

TEST(images_are_bounded_in_number)
{
	struct pair_session session;

	start("");
	session = run_at(pair.socket, "image-many");
	check(session.images_found > 0 && session.images_found <= 512);
	wait_for_count(count_images(pair.pid) == session.images_found);
	wait_for_count(count_images(find_broker()) == session.images_found);
	pair_stop(&pair);
}

TEST(images_are_limited_in_size_and_the_least_recently_used_is_dropped)
{
	struct pair_session session;

	/* Two pages each. */
	start("image-store = 24K\n");
	session = run_at(pair.socket, "image-use");
	check_eq(session.launches, 0);
	check_eq(session.images_found, 3);
	wait_for_count(count_images(pair.pid) == 3);
	pair_stop(&pair);
}

TEST(an_image_larger_than_the_store_is_not_kept)
{
	start("image-store = 4K\n");
	check_eq(found("image-keep"), 0);
	wait_for_count(count_images(pair.pid) == 0);
	pair_stop(&pair);
}

TEST(a_worker_that_gives_what_is_no_image_ends)
{
	static const char *const wrongs[] = { "none", "unsealed", "future", "longer",
		"huge", "pipe", "file" };
	char comm[16];

	start("");
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(*wrongs); i++) {
		struct guest guest;

		snprintf(comm, sizeof(comm), "image-%s", wrongs[i]);
		guest_connect(&guest, pair.socket);
		guest_claim(&guest, 0, comm);
		guest_ask(&guest, 0, VGPU_CHANNEL_OPENING);
		pair_wait_log(&pair, "it sent an invalid message", (unsigned int)i + 1);
		guest_disconnect(&guest);
		pair_wait_log(&pair, "session ended", ++n_sessions);
	}
	wait_for_count(count_images(pair.pid) == 0);
	check_eq(found("image-find"), 0);
	pair_stop(&pair);
}

TEST(a_worker_that_gives_images_without_end_takes_no_more_than_its_store)
{
	struct guest guest;

	start("image-store = 1M\n");
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "image-flood");
	check_eq(run_at(path_of("other"), "image-keep").images_found, 1);
	usleep(200000);
	/* One that comes while it is looked may be counted in another's place, too. */
	wait_for_count(count_images(pair.pid) <= 129);
	wait_for_count(count_images(find_broker()) <= 129);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	pair_stop(&pair);
}
