/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpud towards a QEMU, or what connects in its place, that means harm
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest.h"
#include "pair.h"
#include "test.h"

#define N_CONNECTIONS 1500

static struct pair pair;
static struct guest guest;

static const char *qemu_socket(void)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/qemu", pair.dir);
	return path;
}

/* A vgpud with a section for QEMU, and an honest session at the other. No worker is kept
 * warm: one that comes late would be counted as a leak. */
static void start(void)
{
	char sections[256];

	snprintf(sections, sizeof(sections),
		"[vm qemu]\nsize = 64M\nmax-processes = 1\nsocket = %s/qemu\n",
		test_tmpdir());
	pair_start(&pair, &(struct pair_options){
				  .worker = FAKE_WORKER,
				  .vgpud_lines = "warm-workers = 0\n",
				  .sections = sections,
			  });
	guest_connect(&guest, pair.socket);
	guest_open(&guest, 0, "app");
}

/* Sessions that exist here are still served, and a new one is too. */
static void check_others(void)
{
	struct guest other;

	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	guest_connect(&other, pair.socket);
	guest_open(&other, 0, "app");
	guest_close(&other, 0);
	guest_disconnect(&other);
}

static void stop(void)
{
	check_others();
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	pair_stop(&pair);
}

/* A machine that is honest again. */
static void check_qemu(void)
{
	struct guest qemu;

	guest_connect_qemu(&qemu, qemu_socket());
	guest_open(&qemu, 0, "app");
	guest_close(&qemu, 0);
	guest_disconnect(&qemu);
}

static void await_end(int fd)
{
	char bytes[4096];
	ssize_t n;

	do
		n = read(fd, bytes, sizeof(bytes));
	while (n > 0);
	close(fd);
}

static unsigned int count_fds(void)
{
	unsigned int n = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pair.pid);
	dir = opendir(path);
	check(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

TEST(a_client_that_never_reads_its_greeting_delays_nobody)
{
	int fd;

	start();
	fd = guest_try_connect(qemu_socket());
	check(fd >= 0);
	pair_wait_log(&pair, "vm=qemu id=", 1);
	check_others();
	close(fd);
	pair_wait_log(&pair, "the VM disconnected", 2);
	check_qemu();
	stop();
}

TEST(a_client_that_disconnects_during_its_greeting_is_released)
{
	uint64_t number;
	int fd;

	start();
	for (int i = 0; i < 20; i++) {
		fd = guest_try_connect(qemu_socket());
		check(fd >= 0);
		if (i % 2)
			check(read(fd, &number, 8) >= 0);
		close(fd);
	}
	check_others();
	guest_wait_for((fd = guest_try_connect(qemu_socket())) >= 0);
	close(fd);
	stop();
}

TEST(data_from_a_vm_is_not_read)
{
	static const char garbage[65536];
	struct guest qemu;

	start();
	guest_connect_qemu(&qemu, qemu_socket());
	while (send(qemu.socket, garbage, sizeof(garbage), MSG_DONTWAIT) > 0)
		;
	check_eq(errno, EAGAIN);
	guest_open(&qemu, 0, "app");
	check_others();
	guest_close(&qemu, 0);
	guest_disconnect(&qemu);
	stop();
}

TEST(a_connection_that_is_half_closed_is_closed)
{
	struct pair_session session;
	struct guest qemu;

	start();
	guest_connect_qemu(&qemu, qemu_socket());
	guest_open(&qemu, 0, "app");
	check_eq(shutdown(qemu.socket, SHUT_WR), 0);
	pair_read_session(&pair, 0, &session);
	check_str(session.vm, "qemu");
	check_qemu();
	guest_disconnect(&qemu);
	stop();
}

TEST(a_full_interrupt_that_would_block_stops_nobody)
{
	const uint64_t full = UINT64_MAX - 1;
	struct guest qemu;

	start();
	guest_connect_qemu(&qemu, qemu_socket());
	for (unsigned int i = 0; i < qemu.n_interrupts; i++) {
		check_eq(write(qemu.interrupts[i], &full, 8), 8);
		check_eq(fcntl(qemu.interrupts[i], F_SETFL, 0), 0);
	}
	for (unsigned int i = 0; i < qemu.n_doorbells; i++)
		check_eq(fcntl(qemu.doorbells[i], F_SETFL, 0), 0);
	for (int i = 0; i < 3; i++) {
		guest_open(&qemu, 0, "app");
		check_others();
		guest_close(&qemu, 0);
	}
	guest_disconnect(&qemu);
	stop();
}

TEST_SECONDS(thousands_of_connections_cost_a_bounded_share, 60)
{
	unsigned int n_fds, n_lines;

	pair_needs_descriptors();
	start();
	n_fds = count_fds();
	for (int i = 0; i < N_CONNECTIONS; i++) {
		int fd = guest_try_connect(i % 2 ? qemu_socket() : pair.socket);

		/* While the endpoint accepts no connections the queue is full, and
		 * connect() blocks. */
		check(fd >= 0);
		close(fd);
		if (i % 500 == 0)
			check_others();
	}
	check_others();
	n_lines = pair_count_log(&pair, "");
	check(n_lines < N_CONNECTIONS / 2);
	guest_wait_for(count_fds() == n_fds);
	stop();
}

TEST(connections_that_stay_are_bounded)
{
	int fds[200];

	start();
	for (int i = 0; i < 200; i++) {
		fds[i] = guest_try_connect(qemu_socket());
		check(fds[i] >= 0);
	}
	/* All but the first are disconnected. */
	for (int i = 199; i > 0; i--)
		await_end(fds[i]);
	check_others();
	close(fds[0]);
	pair_wait_log(&pair, "one socket serves one QEMU", 1);
	stop();
}

TEST(an_entry_that_is_claimed_by_the_dead_is_freed)
{
	struct guest qemu;

	start();
	guest_connect_qemu(&qemu, qemu_socket());
	guest_claim(&qemu, 0, "app");
	guest_entry(&qemu, 0)->claim = 4711;
	guest_wait(&qemu, 0, VGPU_CHANNEL_FREE);
	check_eq(guest_entry(&qemu, 0)->claim, 0);
	check_eq(guest_entry(&qemu, 0)->pid, 0);
	guest_open(&qemu, 0, "app");
	guest_close(&qemu, 0);
	guest_disconnect(&qemu);
	stop();
}
