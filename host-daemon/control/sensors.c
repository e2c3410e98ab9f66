/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sensors: what NVIDIA's NVML tells of the host's devices
 */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/sensors.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

#define MEASURED_OFF offsetof(struct sensors_page, n_devices)

int sensors_make(int *fdp)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;

	fd = memfd_create("vgpu-sensors", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, sizeof(struct sensors_page)) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return vgpu_error_origin(-errno);
	*fdp = fd;
	fd = -1;
	return 0;
}

int sensors_map(struct sensors_page **pagep, int fd)
{
	void *map = mmap(NULL, sizeof(struct sensors_page), PROT_READ | PROT_WRITE,
		MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return vgpu_error_origin(-errno);
	*pagep = map;
	return 0;
}

struct sensors_page *sensors_unmap(struct sensors_page *page)
{
	if (page)
		munmap(page, sizeof(*page));
	return NULL;
}

void sensors_write(struct sensors_page *page, const struct sensors_page *measured)
{
	const uint32_t sequence = __atomic_load_n(&page->sequence, __ATOMIC_RELAXED);

	/* Of an earlier process that died while it wrote. */
	__atomic_store_n(&page->sequence, sequence | 1, __ATOMIC_RELAXED);
	/* Partner: the fence of sensors_read(). */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy((uint8_t *)page + MEASURED_OFF, (const uint8_t *)measured + MEASURED_OFF,
		sizeof(*page) - MEASURED_OFF);
	__atomic_store_n(&page->sequence, (sequence | 1) + 1, __ATOMIC_RELEASE);
}

static uint32_t min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t sensors_find(const struct sensors_page *page, const uint8_t uuid[16])
{
	uint32_t i = 0;

	while (i < page->n_devices &&
		memcmp(page->devices[i].uuid, uuid, sizeof(page->devices[i].uuid)) != 0)
		i++;
	return i;
}

bool sensors_read(const struct sensors_page *page, struct sensors_page *copy)
{
	const uint32_t sequence = __atomic_load_n(&page->sequence, __ATOMIC_ACQUIRE);

	memcpy((uint8_t *)copy + MEASURED_OFF, (const uint8_t *)page + MEASURED_OFF,
		sizeof(*page) - MEASURED_OFF);
	/* Partner: the fence of sensors_write(). */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	copy->n_devices = min(copy->n_devices, VGPU_DEVICES_MAX);
	copy->n_processes = min(copy->n_processes, SENSORS_PROCESSES_MAX);
	copy->driver_version[sizeof(copy->driver_version) - 1] = '\0';
	return sequence % 2 == 0 &&
	       __atomic_load_n(&page->sequence, __ATOMIC_RELAXED) == sequence;
}
