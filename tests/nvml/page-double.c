/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that publishes a page and does nothing else: a thread of the test
 *
 * Connections stay open until it stops. The memory outlives it, as the keeper keeps that
 * of a VM.
 */

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test.h"
#include "vgpu/cuda.h"
#include "vgpu/hello.h"
#include "vgpu/ring-layout.h"

#include "page-double.h"

#define CONNECTIONS_MAX 64u

static struct {
	char path[108];
	int memory;
	int doorbell;
	int listener;
	int end; /* eventfd: the thread ends */
	int connections[CONNECTIONS_MAX];
	unsigned int n_connections;
	struct vgpu_shm_header *header;
	struct vgpu_status *status;
	pthread_t thread;
} host;

static void greet(int connection)
{
	const int fds[VGPU_SOCKET_FDS] = { host.memory, host.doorbell, host.doorbell };
	struct vgpu_socket_greeting greeting = {
		.magic = VGPU_SHM_MAGIC,
		.protocol_version = VGPU_PROTOCOL_VERSION,
		.n_fds = VGPU_SOCKET_FDS,
	};
	union {
		char buffer[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr align;
	} control = {};
	struct iovec iov = { .iov_base = &greeting, .iov_len = sizeof(greeting) };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(head), fds, sizeof(fds));
	check_eq(sendmsg(connection, &message, MSG_NOSIGNAL), sizeof(greeting));
}

/* Forgets connections whose other side has closed. */
static void sweep(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < host.n_connections; i++) {
		char byte;

		if (recv(host.connections[i], &byte, 1, MSG_DONTWAIT) == 0)
			close(host.connections[i]);
		else
			host.connections[n++] = host.connections[i];
	}
	host.n_connections = n;
}

static void *serve(void *unused)
{
	struct pollfd fds[2] = {
		{ .fd = host.listener, .events = POLLIN },
		{ .fd = host.end, .events = POLLIN },
	};

	for (;;) {
		int connection;

		check(poll(fds, 2, -1) > 0);
		if (fds[1].revents)
			return NULL;
		connection = accept4(host.listener, NULL, NULL, SOCK_CLOEXEC);
		check(connection >= 0);
		sweep();
		check(host.n_connections < CONNECTIONS_MAX);
		host.connections[host.n_connections++] = connection;
		greet(connection);
	}
}

void page_double_restart(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memcpy(address.sun_path, host.path, sizeof(host.path));
	host.end = eventfd(0, EFD_CLOEXEC);
	host.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(!bind(host.listener, (struct sockaddr *)&address, sizeof(address)));
	check(!listen(host.listener, 64));
	check(!pthread_create(&host.thread, NULL, serve, NULL));
}

void page_double_stop(void)
{
	check(!eventfd_write(host.end, 1));
	check(!pthread_join(host.thread, NULL));
	for (unsigned int i = 0; i < host.n_connections; i++)
		close(host.connections[i]);
	host.n_connections = 0;
	close(host.listener);
	close(host.end);
	unlink(host.path);
}

void page_double_finish(void)
{
	page_double_stop();
	munmap(host.header, VGPU_EXTENT_SIZE);
	close(host.memory);
	close(host.doorbell);
}

void page_double_begin(void)
{
	__atomic_store_n(
		&host.status->sequence, host.status->sequence + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

void page_double_end(void)
{
	__atomic_store_n(
		&host.status->sequence, host.status->sequence + 1, __ATOMIC_RELEASE);
}

static void set(struct vgpu_device_info *info, CUdevice_attribute number, int value)
{
	info->attributes[number] = value;
	info->known[number / 8] |= (uint8_t)(1u << number % 8);
}

static void fill_device(struct vgpu_status_device *device, int number)
{
	struct vgpu_device_info *info = &device->info;

	snprintf(info->name, sizeof(info->name), "Double %d", number);
	for (int i = 0; i < 16; i++)
		info->uuid[i] = (uint8_t)(number << 4 | i);
	info->total_memory = 1u << 30;
	set(info, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 1);
	set(info, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0xa0 + number);
	set(info, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 3);
	set(info, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8);
	set(info, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 7);
	set(info, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 10);
	set(info, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1500000);
	set(info, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_EXCLUSIVE_PROCESS);
	device->memory_total = 800u << 20; /* as of a limit */
	device->memory_used = 300u << 20;
	device->utilisation = 40;
	device->memory_utilisation = VGPU_STATUS_UNKNOWN;
}

struct vgpu_status *page_double_start(void)
{
	const char *folder = test_tmpdir();

	check(snprintf(host.path, sizeof(host.path), "%s/socket", folder) <
		(int)sizeof(host.path));
	setenv(VGPU_SOCKET_ENV, host.path, 1);
	host.memory = memfd_create("page", MFD_CLOEXEC);
	host.doorbell = eventfd(0, EFD_CLOEXEC);
	check(!ftruncate(host.memory, VGPU_SHM_SIZE_MIN));
	host.header = mmap(NULL, VGPU_EXTENT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		host.memory, 0);
	check(host.header != MAP_FAILED);
	*host.header = (struct vgpu_shm_header){
		.magic = VGPU_SHM_MAGIC,
		.protocol_version = VGPU_PROTOCOL_VERSION,
		.n_channels = 1,
		.shm_size = VGPU_SHM_SIZE_MIN,
		.status_off = VGPU_STATUS_OFF,
	};
	host.status = (void *)((uint8_t *)host.header + VGPU_STATUS_OFF);
	page_double_begin();
	host.status->n_devices = PAGE_DOUBLE_DEVICES;
	host.status->cuda_version = 13000;
	host.status->flags = VGPU_STATUS_WHOLE;
	host.status->updated_us = 1000;
	snprintf(host.status->driver_version, sizeof(host.status->driver_version),
		"580.12");
	for (unsigned int i = 0; i < PAGE_DOUBLE_DEVICES; i++)
		fill_device(&host.status->devices[i], (int)i);
	page_double_end();
	page_double_restart();
	return host.status;
}
