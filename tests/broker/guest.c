/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest process that only opens channels, for tests of vgpud
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "guest.h"
#include "control/packet.h"
#include "test.h"
#include "vgpu/hello.h"

static const uint8_t boot_id[16] = "boot of a test.";

int guest_try_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void map_memory(struct guest *guest)
{
	struct stat st;

	check_eq(fstat(guest->shm, &st), 0);
	guest->size = st.st_size;
	guest->map = mmap(NULL, guest->size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_NORESERVE, guest->shm, 0);
	check(guest->map != MAP_FAILED);
	guest->header = (struct vgpu_shm_header *)guest->map;
	check(guest->header->magic == VGPU_SHM_MAGIC);
	check_eq(guest->header->shm_size, guest->size);
}

void guest_connect(struct guest *guest, const char *path)
{
	struct vgpu_socket_greeting greeting;
	int fds[VGPU_SOCKET_FDS];
	size_t size, n_fds;
	bool cut;

	memset(guest, 0, sizeof(*guest));
	guest->socket = guest_try_connect(path);
	check(guest->socket >= 0);
	check_eq(packet_receive(guest->socket, &greeting, sizeof(greeting), &size, fds,
			 VGPU_SOCKET_FDS, &n_fds, &cut),
		0);
	check_eq(size, sizeof(greeting));
	check_eq(n_fds, VGPU_SOCKET_FDS);
	check(greeting.magic == VGPU_SHM_MAGIC);
	guest->shm = fds[0];
	guest->doorbells[guest->n_doorbells++] = fds[1];
	guest->doorbells[guest->n_doorbells++] = fds[2];
	map_memory(guest);
	check_eq(guest->header->n_channels, 1);
}

/* One number of an ivshmem server, with the descriptor that came with it or -1. */
static int64_t receive_number(int socket, int *fdp)
{
	size_t size, n_fds;
	int64_t number;
	bool cut;

	check_eq(packet_receive(socket, &number, 8, &size, fdp, 1, &n_fds, &cut), 0);
	check_eq(size, 8);
	check(!cut);
	if (!n_fds)
		*fdp = -1;
	return number;
}

void guest_connect_qemu(struct guest *guest, const char *path)
{
	int fd;

	memset(guest, 0, sizeof(*guest));
	guest->socket = guest_try_connect(path);
	check(guest->socket >= 0);
	check_eq(receive_number(guest->socket, &fd), 0);
	check_eq(fd, -1);
	guest->peer = receive_number(guest->socket, &fd);
	check(guest->peer >= 1 && guest->peer <= 65535);
	check_eq(fd, -1);
	check_eq(receive_number(guest->socket, &guest->shm), -1);
	check(guest->shm >= 0);
	for (unsigned int i = 0; i < VGPU_IVSHMEM_VECTORS; i++) {
		check_eq(receive_number(guest->socket, &guest->doorbells[i]), 0);
		check(guest->doorbells[i] >= 0);
		guest->n_doorbells++;
	}
	for (unsigned int i = 0; i < VGPU_IVSHMEM_VECTORS; i++) {
		check_eq(receive_number(guest->socket, &guest->interrupts[i]),
			guest->peer);
		check(guest->interrupts[i] >= 0);
		guest->n_interrupts++;
	}
	map_memory(guest);
}

void guest_connect_plain(struct guest *guest, const char *path)
{
	memset(guest, 0, sizeof(*guest));
	guest->socket = -1;
	guest->shm = open(path, O_RDWR | O_CLOEXEC);
	check(guest->shm >= 0);
	map_memory(guest);
}

void guest_disconnect(struct guest *guest)
{
	check_eq(munmap(guest->map, guest->size), 0);
	for (unsigned int i = 0; i < guest->n_doorbells; i++)
		close(guest->doorbells[i]);
	for (unsigned int i = 0; i < guest->n_interrupts; i++)
		close(guest->interrupts[i]);
	close(guest->shm);
	if (guest->socket >= 0)
		close(guest->socket);
}

struct vgpu_channel_entry *guest_entry(const struct guest *guest, unsigned int channel)
{
	return (struct vgpu_channel_entry *)(guest->map + VGPU_SHM_TABLE_OFF) + channel;
}

uint8_t *guest_area(const struct guest *guest, unsigned int channel)
{
	return guest->map + guest->header->area_off + (uint64_t)channel * VGPU_AREA_SIZE;
}

uint8_t *guest_extent(const struct guest *guest, unsigned int extent)
{
	return guest->map + guest->header->extents_off +
	       (uint64_t)extent * VGPU_EXTENT_SIZE;
}

void guest_ring(struct guest *guest)
{
	const uint64_t one = 1;

	__atomic_add_fetch(&guest->header->n_requests, 1, __ATOMIC_RELEASE);
	if (guest->n_doorbells)
		check_eq(write(guest->doorbells[0], &one, 8), 8);
}

void guest_ask(struct guest *guest, unsigned int channel, uint32_t state)
{
	__atomic_store_n(&guest_entry(guest, channel)->state, state, __ATOMIC_RELEASE);
	guest_ring(guest);
}

void guest_wait(struct guest *guest, unsigned int channel, uint32_t state)
{
	struct vgpu_channel_entry *entry = guest_entry(guest, channel);

	for (int ms = 0; __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) != state;
		ms++) {
		if (ms > 30000)
			test_fail(__FILE__, __LINE__, "state is %u (reason %u), not %u",
				entry->state, entry->reason, state);
		usleep(1000);
	}
}

void guest_claim(struct guest *guest, unsigned int channel, const char *comm)
{
	struct vgpu_channel_entry *entry = guest_entry(guest, channel);
	uint32_t expected = VGPU_CHANNEL_FREE;

	check(__atomic_compare_exchange_n(&entry->state, &expected, VGPU_CHANNEL_CLAIMED,
		false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	entry->protocol_version = VGPU_PROTOCOL_VERSION;
	entry->api_version = 13000;
	entry->pid = getpid();
	memcpy(entry->boot_id, boot_id, sizeof(boot_id));
	entry->window_base = GUEST_WINDOW_1;
	entry->window_size = GUEST_WINDOW_1_SIZE;
	memcpy(entry->comm, comm, strnlen(comm, sizeof(entry->comm)));
}

void guest_open(struct guest *guest, unsigned int channel, const char *comm)
{
	guest_claim(guest, channel, comm);
	guest_ask(guest, channel, VGPU_CHANNEL_OPENING);
	guest_wait(guest, channel, VGPU_CHANNEL_OPEN);
}

uint32_t guest_open_refused(struct guest *guest, unsigned int channel, const char *comm)
{
	guest_claim(guest, channel, comm);
	guest_ask(guest, channel, VGPU_CHANNEL_OPENING);
	guest_wait(guest, channel, VGPU_CHANNEL_REFUSED);
	return guest_entry(guest, channel)->reason;
}

void guest_close(struct guest *guest, unsigned int channel)
{
	guest_ask(guest, channel, VGPU_CHANNEL_CLOSING);
	guest_wait(guest, channel, VGPU_CHANNEL_FREE);
}

uint64_t guest_count_grants(const struct guest *guest, unsigned int channel)
{
	/* Partner: handle_grant() of the fake worker. */
	return __atomic_load_n(
		(uint64_t *)(guest_area(guest, channel) + GUEST_GRANTS_OFF),
		__ATOMIC_ACQUIRE);
}
