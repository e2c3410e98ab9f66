/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of the host is set, by years and all the time: heartbeats, timeouts and
 * limits are as ever; only the times of log lines jump
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl-client.h"
#include "guest.h"
#include "pair.h"
#include "test.h"
#include "vgpu/ring-layout.h"

static struct pair pair;
static char memory[160]; /* of transport plain */

static void start(void)
{
	char lines[256], sections[256];

	check_eq(setenv("LD_PRELOAD", JUMPING, 1), 0);
	/* Of a build with sanitizers: it comes before their library. */
	check_eq(setenv("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0", 1), 0);
	check_eq(setenv("VGPU_JUMPED", test_tmpdir(), 1), 0);
	snprintf(ctl_path, sizeof(ctl_path), "%s/ctl", test_tmpdir());
	snprintf(memory, sizeof(memory), "%s/memory", test_tmpdir());
	snprintf(lines, sizeof(lines), "ctl-socket = %s\n", ctl_path);
	snprintf(sections, sizeof(sections),
		"[vm plain]\ntransport = plain\nmemory = %s\nmax-processes = 3\n",
		memory);
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = lines,
				  .sections = sections,
			  });
	check_eq(unsetenv("LD_PRELOAD"), 0);
}

/* A process that has looked at the clock twice has seen it jump. */
static void check_jumped(pid_t pid)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/%d", test_tmpdir(), (int)pid);
	check(!access(path, F_OK));
}

static void wait_for_beats(const struct guest *guest, unsigned int n)
{
	uint64_t last = __atomic_load_n(&guest->header->heartbeat, __ATOMIC_RELAXED), now;

	for (; n; n--) {
		guest_wait_for((now = __atomic_load_n(&guest->header->heartbeat,
					__ATOMIC_RELAXED)) != last);
		check(now > last);
		last = now;
	}
}

TEST(sessions_come_and_go_and_the_heart_beats)
{
	struct guest guest, other;

	start();
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
	check_jumped(pair.pid);
	check_jumped(pair_find_broker(&pair));
	wait_for_beats(&guest, 8);
	for (unsigned int i = 0; i < 5; i++) {
		guest_connect(&other, pair.socket);
		guest_open(&other, 0, "app");
		guest_close(&other, 0);
		guest_disconnect(&other);
	}
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	/* No broker was taken for one that hangs. */
	check_eq(pair_count_log(&pair, "the broker"), 0);
	pair_stop(&pair);
}

TEST(timeouts_and_changes_are_as_ever)
{
	int silent, fd;

	start();
	silent = ctl_connect();
	check_eq(ctl_meet(silent), VGPU_CTL__ACCESS__ADMIN);
	for (unsigned int i = 0; i < 50; i++)
		ctl_check_served();
	fd = ctl_open();
	check_eq(ctl_status_of(ctl_ask_list(fd)), VGPU_CTL__STATUS__OK);
	/* A client that says nothing is disconnected, and who asks is not. */
	check_eq(ctl_receive(silent), 0);
	check_eq(ctl_status_of(ctl_ask_list(fd)), VGPU_CTL__STATUS__OK);
	check_eq(ctl_status_of(ctl_ask_set(fd, "test", "handles", "77")),
		VGPU_CTL__STATUS__OK);
	close(silent);
	close(fd);
	check_eq(kill(pair.pid, SIGHUP), 0);
	pair_wait_log(&pair, "is in force", 2);
	ctl_check_served();
	pair_stop(&pair);
}

/* QEMU's file outlives vgpud, and its guest has to see that this is another one. */
TEST(the_generation_of_a_file_grows)
{
	uint64_t last = 0;
	struct guest guest;
	int fd;

	for (unsigned int i = 0; i < 4; i++) {
		start();
		fd = open(memory, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		check_eq(ftruncate(fd, 256 << 20), 0);
		close(fd);
		pair_wait_log(&pair, "connected (transport plain", 1);
		guest_connect_plain(&guest, memory);
		check(guest.header->generation > last);
		last = guest.header->generation;
		guest_open(&guest, 0, "app");
		guest_close(&guest, 0);
		guest_disconnect(&guest);
		pair_stop(&pair);
		check_eq(unlink(pair.log), 0);
	}
}
