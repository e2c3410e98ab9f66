/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Greeting: the first words on a new connection
 */

#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/packet.h"
#include "keeper/greeting.h"
#include "test.h"

static int shm, doorbells[VGPU_IVSHMEM_VECTORS], interrupts[VGPU_IVSHMEM_VECTORS],
	pair[2];

static void open_all(void)
{
	shm = memfd_create("test", MFD_CLOEXEC);
	for (unsigned int i = 0; i < VGPU_IVSHMEM_VECTORS; i++) {
		doorbells[i] = eventfd(i, EFD_NONBLOCK);
		interrupts[i] = eventfd(100 + i, EFD_NONBLOCK);
	}
	check_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
}

static void close_all(void)
{
	close(shm);
	for (unsigned int i = 0; i < VGPU_IVSHMEM_VECTORS; i++) {
		close(doorbells[i]);
		close(interrupts[i]);
	}
	close(pair[0]);
	close(pair[1]);
}

/* Reads like QEMU: 8 bytes at a time, the descriptor that came with them. */
static void expect(const char *bytes, int want_fd, uint64_t want_count)
{
	size_t size, n_fds;
	char data[8];
	uint64_t count;
	bool cut;
	int fd;

	check_eq(packet_receive(pair[1], data, 8, &size, &fd, 1, &n_fds, &cut), 0);
	check_eq(size, 8);
	check(!cut);
	check(!memcmp(data, bytes, 8));
	check_eq(n_fds, want_fd);
	if (!n_fds)
		return;
	if (want_count) {
		check_eq(read(fd, &count, 8), 8);
		check_eq(count, want_count);
	}
	close(fd);
}

TEST(qemu_reads_version_id_memory_and_eventfds_in_this_order)
{
	char data;

	open_all();
	check_eq(greeting_send_ivshmem(pair[0], 0x0201, shm, doorbells, interrupts), 0);
	expect("\0\0\0\0\0\0\0\0", 0, 0);
	expect("\1\2\0\0\0\0\0\0", 0, 0);
	expect("\xff\xff\xff\xff\xff\xff\xff\xff", 1, 0);
	for (unsigned int i = 0; i < VGPU_IVSHMEM_VECTORS; i++)
		expect("\0\0\0\0\0\0\0\0", 1, i);
	for (unsigned int i = 0; i < VGPU_IVSHMEM_VECTORS; i++)
		expect("\1\2\0\0\0\0\0\0", 1, 100 + i);
	check(recv(pair[1], &data, 1, MSG_DONTWAIT) < 0);
	close_all();
}

TEST(only_version_and_id_travel_without_a_descriptor)
{
	struct greeting_number numbers[GREETING_IVSHMEM_N];

	open_all();
	greeting_ivshmem(numbers, 5, shm, doorbells, interrupts);
	for (unsigned int i = 0; i < GREETING_IVSHMEM_N; i++)
		check((numbers[i].fd < 0) == (i < 2));
	close_all();
}

TEST(a_guest_process_gets_memory_and_two_doorbells)
{
	struct vgpu_socket_greeting greeting;
	int fds[PACKET_FDS_MAX];
	size_t size, n_fds;
	uint64_t count;
	struct stat a, b;
	bool cut;

	open_all();
	check_eq(greeting_send_socket(pair[0], shm, doorbells + 1), 0);
	check_eq(packet_receive(pair[1], &greeting, sizeof(greeting), &size, fds,
			 PACKET_FDS_MAX, &n_fds, &cut),
		0);
	check_eq(size, sizeof(greeting));
	check(greeting.magic == VGPU_SHM_MAGIC);
	check_eq(greeting.protocol_version, VGPU_PROTOCOL_VERSION);
	check_eq(greeting.n_fds, 3);
	check_eq(n_fds, 3);
	check_eq(fstat(fds[0], &a), 0);
	check_eq(fstat(shm, &b), 0);
	check(a.st_ino == b.st_ino);
	for (int i = 1; i <= 2; i++) {
		check_eq(read(fds[i], &count, 8), 8);
		check_eq(count, i);
	}
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	close_all();
}

TEST(a_peer_that_is_gone_is_no_signal)
{
	open_all();
	shutdown(pair[1], SHUT_RDWR);
	check_eq(greeting_send_ivshmem(pair[0], 1, shm, doorbells, interrupts),
		PACKET_E_EOF);
	check_eq(greeting_send_socket(pair[0], shm, doorbells), PACKET_E_EOF);
	close_all();
}
