/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport: the ivshmem device through sysfs, without a kernel module
 *
 * The memory is the device's BAR2, mapped through the file resource2; the doorbell
 * register is in BAR0. No interrupt reaches a process this way, so sleeping means polling
 * with growing pauses, and the heartbeat shows that the host is alive, or the worker if
 * the heartbeat has stopped: see shim_channel_find_dead(). An ivshmem device of another
 * kind is ignored: the magic number decides.
 */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpu/wake.h"

#include "wire/reason.h"
#include "wire/sentence.h"
#include "wire/transport.h"

#define DEVICES_DIR "/sys/bus/pci/devices"
/* Red Hat, Inc. / Inter-VM shared memory. */
#define IVSHMEM_VENDOR 0x1af4
#define IVSHMEM_DEVICE 0x1110

#define REGISTERS_SIZE 4096 /* BAR0 has 256 bytes, a mapping has pages */
#define REGISTER_DOORBELL 3 /* 32-bit index: peer << 16 | vector */
#define HOST_PEER 0u

/* Pauses of a poller grow from the first to the second of these. */
#define PAUSE_MIN_US 20u
#define PAUSE_MAX_US 1000u

static int read_hex(int dir_fd, const char *name, unsigned long *valuep)
{
	_vgpu_cleanup_(vgpu_closep) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	*valuep = strtoul(text, NULL, 16);
	return 0;
}

static bool is_ivshmem(int dir_fd)
{
	unsigned long vendor = 0, device = 0;

	return !read_hex(dir_fd, "vendor", &vendor) && vendor == IVSHMEM_VENDOR &&
	       !read_hex(dir_fd, "device", &device) && device == IVSHMEM_DEVICE;
}

/* A device without a driver answers only once it is enabled. That needs root, and was
 * otherwise done when access was granted: a failure here proves nothing yet. */
static void enable(int dir_fd)
{
	_vgpu_cleanup_(vgpu_closep) int fd = openat(dir_fd, "enable", O_RDWR | O_CLOEXEC);
	char state = '1';

	if (fd < 0 || (read(fd, &state, 1) == 1 && state != '0'))
		return;
	if (pwrite(fd, "1", 1, 0) < 0)
		vgpu_log_debug("enabling the device: %m");
}

static void map_registers(struct shim_transport *transport, int dir_fd)
{
	_vgpu_cleanup_(vgpu_closep) int fd =
		openat(dir_fd, "resource0", O_RDWR | O_SYNC | O_CLOEXEC);
	void *map;

	if (fd < 0)
		return;
	map = mmap(NULL, REGISTERS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return;
	madvise(map, REGISTERS_SIZE, MADV_DONTFORK);
	transport->registers = map;
}

static void sysfs_close(struct shim_transport *transport)
{
	if (transport->registers)
		munmap((void *)transport->registers, REGISTERS_SIZE);
	transport->registers = NULL;
	transport->shm_fd = vgpu_close(transport->shm_fd);
}

/* A kernel driver of an earlier boot, or one that crashed, has left its boot id: while
 * there is one, the host takes processes of other boots for intruders. Now there is no
 * driver, else its device would not be mapped here. */
static void forget_driver(struct vgpu_shm_header *header)
{
	memset(header->boot_id, 0, sizeof(header->boot_id));
}

static int open_device(struct shim_transport *transport, int dir_fd)
{
	struct stat info;
	int r;

	enable(dir_fd);
	transport->shm_fd = openat(dir_fd, "resource2", O_RDWR | O_CLOEXEC);
	if (transport->shm_fd < 0)
		/* The kernel has no file for what it has given no addresses. */
		return errno == ENOENT ? -ENOSPC : -errno;
	if (fstat(transport->shm_fd, &info))
		r = -errno;
	else
		r = shim_transport_map_header(transport, (uint64_t)info.st_size);
	if (r) {
		sysfs_close(transport);
		return r;
	}
	map_registers(transport, dir_fd);
	shim_transport_begin_heartbeat(transport);
	forget_driver(transport->header);
	return 0;
}

static void note_device(const char *name, int error)
{
	char text[SHIM_SENTENCE_SIZE];

	shim_sentence_of_device(text, name, error);
	shim_reason_note(SHIM_REASON_TRANSPORT, "%s", text);
}

/* Records why a device cannot be used. A device that may be ours is more relevant than
 * one that certainly is not. */
static int note_failure(const char *name, int error, int worst)
{
	if (error == -EPROTO || (error == -ENXIO && worst != -ENODEV))
		return error == -EPROTO ? error : worst;
	note_device(name, error);
	return error;
}

int shim_transport_sysfs_open(struct shim_transport *transport, const char *devices)
{
	int r = 0, worst = -ENODEV;
	struct dirent *entry;
	DIR *dir;

	dir = opendir(devices);
	if (!dir) {
		r = -errno;
		note_device(devices, r);
		return r;
	}
	while ((entry = readdir(dir))) {
		_vgpu_cleanup_(vgpu_closep) int fd = -1;

		if (entry->d_name[0] == '.')
			continue;
		fd = openat(
			dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || !is_ivshmem(fd))
			continue;
		r = open_device(transport, fd);
		vgpu_log_info("ivshmem device %s: %s", entry->d_name,
			r ? strerror(-r) : "has a vGPU host behind it");
		worst = r ? note_failure(entry->d_name, r, worst) : 0;
		if (!r || r == -EPROTO)
			break;
	}
	closedir(dir);
	if (worst == -ENODEV)
		note_device(NULL, worst);
	return worst;
}

static int sysfs_open(struct shim_transport *transport)
{
	return shim_transport_sysfs_open(transport, DEVICES_DIR);
}

static void sysfs_doorbell(struct shim_transport *transport, uint32_t number)
{
	/* The number of requests, for debugging. */
	if (number == VGPU_DOORBELL_CONTROL)
		__atomic_add_fetch(&transport->header->n_requests, 1, __ATOMIC_RELEASE);
	if (!transport->registers || vgpu_wake_is_lost())
		return;
	/* The host that is woken finds what was written before. On x86 no instruction:
	 * its device registers are written in order. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	transport->registers[REGISTER_DOORBELL] = HOST_PEER << 16 | number;
}

static void sysfs_sleep(struct shim_transport *transport, const uint32_t *word,
	uint32_t seen, uint32_t timeout_us)
{
	uint32_t pause_us = PAUSE_MIN_US, slept_us = 0;

	while (slept_us < timeout_us && __atomic_load_n(word, __ATOMIC_ACQUIRE) == seen) {
		struct timespec pause = { .tv_nsec = (long)pause_us * 1000 };

		nanosleep(&pause, NULL);
		slept_us += pause_us;
		pause_us = pause_us * 2 < PAUSE_MAX_US ? pause_us * 2 : PAUSE_MAX_US;
	}
}

const struct shim_transport_ops shim_transport_sysfs = {
	.name = "sysfs",
	.open = sysfs_open,
	.doorbell = sysfs_doorbell,
	.sleep = sysfs_sleep,
	.silence_ns = shim_transport_heartbeat_ns,
	.close = sysfs_close,
};
