/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status: what the broker publishes about the GPUs of each VM (vgpu/status.h)
 *
 * The devices are those that the last worker found before it had a guest: afterwards it
 * may be compromised. Until there was one, a VM's status remains as the broker before
 * this one left it.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "broker/history.h"
#include "broker/state.h"
#include "broker/status.h"
#include "broker/use.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "control/sensors.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpu/status.h"
#include "vgpud/clock.h"

#define STATUS_INTERVAL_MS 200

/* What NVIDIA's kernel module writes about itself. */
#define DRIVER_VERSION_PATH "/sys/module/nvidia/version"
/* softgpu has the API of CUDA 13.0, which came with this series: programs compare
 * numbers. */
#define SOFTGPU_VERSION "580.0.0"

/*
 * Devices
 */

static void read_driver_version(char *version, size_t size)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	ssize_t n;

	fd = open(DRIVER_VERSION_PATH, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, version, size - 1);
	version[n > 0 ? n : 0] = '\0';
	version[strcspn(version, "\n")] = '\0';
}

static void fill_device(struct vgpu_status_device *device, struct vgpu_device_info *info)
{
	info->name[sizeof(info->name) - 1] = '\0';
	*device = (struct vgpu_status_device){
		.info = *info,
		.utilisation = VGPU_STATUS_UNKNOWN,
		.memory_utilisation = VGPU_STATUS_UNKNOWN,
	};
}

void status_learn(struct broker *broker, const struct worker *worker)
{
	_vgpu_cleanup_(vgpu_freep) struct worker_devices *devices =
		malloc(sizeof(*devices));
	struct vgpu_status *status = broker->status;

	if (!status)
		status = broker->status = calloc(1, sizeof(*status));
	/* Without memory the next worker brings them. */
	if (!status || !devices ||
		pread(worker->stats, devices, sizeof(*devices), WORKER_DEVICES_OFF) !=
			(ssize_t)sizeof(*devices))
		return;
	status->n_devices = devices->n < VGPU_DEVICES_MAX ? devices->n : VGPU_DEVICES_MAX;
	for (uint32_t i = 0; i < status->n_devices; i++)
		fill_device(&status->devices[i], &devices->infos[i]);
	memcpy(status->peers, devices->peers, sizeof(status->peers));
	broker->n_units = devices->n_units;
	status->cuda_version = worker->driver_version;
	status->flags = VGPU_STATUS_WHOLE;
	if (devices->flags & WORKER_DEVICES_SOFTGPU)
		status->flags |= VGPU_STATUS_SOFTGPU;
	if (status->flags & VGPU_STATUS_SOFTGPU)
		snprintf(status->driver_version, sizeof(status->driver_version), "%s",
			SOFTGPU_VERSION);
	else
		read_driver_version(
			status->driver_version, sizeof(status->driver_version));
}

bool status_is_known(const struct broker *broker)
{
	return broker->status;
}

int status_use_sensors(struct broker *broker, int fd)
{
	_vgpu_cleanup_(vgpu_closep) int own = fd;
	struct stat st;
	int r;

	/* A file that can shrink would end this process. */
	if (broker->sensors || fstat(own, &st) < 0 ||
		(size_t)st.st_size != sizeof(struct sensors_page) ||
		!(fcntl(own, F_GET_SEALS) & F_SEAL_SHRINK))
		return vgpu_error_origin(-EPROTO);
	broker->measured = calloc(1, sizeof(*broker->measured));
	if (!broker->measured)
		return vgpu_error_origin(-ENOMEM);
	r = sensors_map(&broker->sensors, own);
	return r ? vgpu_error_trace(r) : 0;
}

void status_deinit(struct broker *broker)
{
	broker->sensors = sensors_unmap(broker->sensors);
	free(broker->measured);
	free(broker->status);
	broker->status = NULL;
}

/*
 * Sensors of NVIDIA's devices
 */

static void fill_distances(struct vgpu_status *status, const struct sensors_page *sensors)
{
	uint32_t places[VGPU_DEVICES_MAX];

	for (uint32_t i = 0; i < status->n_devices; i++)
		places[i] = sensors_find(sensors, status->devices[i].info.uuid);
	for (uint32_t i = 0; i < status->n_devices; i++)
		for (uint32_t k = 0; k < status->n_devices; k++)
			status->distances[i][k] =
				places[i] < sensors->n_devices &&
						places[k] < sensors->n_devices
					? sensors->distances[places[i]][places[k]]
					: 0;
}

/* Once for all VMs. */
static void fill_sensors(struct vgpu_status *status, const struct sensors_page *sensors)
{
	for (uint32_t i = 0; i < status->n_devices; i++) {
		struct vgpu_status_device *device = &status->devices[i];
		const uint32_t k = sensors_find(sensors, device->info.uuid);

		device->sensors_known = 0;
		if (k == sensors->n_devices)
			continue;
		device->sensors_known = sensors->devices[k].known;
		memcpy(device->sensors, sensors->devices[k].values,
			sizeof(device->sensors));
	}
	fill_distances(status, sensors);
	if (*sensors->driver_version)
		memcpy(status->driver_version, sensors->driver_version,
			sizeof(status->driver_version));
}

/* What was being written is read the next time. */
static void read_sensors(struct broker *broker)
{
	__atomic_add_fetch(
		&broker->sensors->wanted, !TAILQ_EMPTY(&broker->vms), __ATOMIC_RELAXED);
	if (sensors_read(broker->sensors, broker->measured))
		fill_sensors(broker->status, broker->measured);
}

/*
 * The VM's share
 */

/* The total as cuDeviceTotalMem; the processes add their use. */
static void fill_share(struct vgpu_status *status, const struct account *account)
{
	const uint64_t limit = quota_limit(account->quota);

	status->memory_limit = limit;
	status->memory_used = quota_of_others(account->quota, 0);
	for (uint32_t i = 0; i < status->n_devices; i++) {
		struct vgpu_status_device *device = &status->devices[i];

		device->memory_total = device->info.total_memory;
		if (limit && limit < device->memory_total)
			device->memory_total = limit;
		device->memory_used = 0;
		device->utilisation =
			status->flags & VGPU_STATUS_SOFTGPU ? 0 : VGPU_STATUS_UNKNOWN;
		device->memory_utilisation = VGPU_STATUS_UNKNOWN;
	}
}

/*
 * Publication
 */

/* Copies a piece to its place in the page. */
static void write_piece(
	uint8_t *to, const struct vgpu_status *status, const void *piece, size_t size)
{
	memcpy(to + ((const uint8_t *)piece - (const uint8_t *)status), piece, size);
}

/* Copies all but the sequence and the history, and only what is in use. */
static void write_parts(uint8_t *to, const struct vgpu_status *status)
{
	write_piece(to, status, &status->flags,
		offsetof(struct vgpu_status, devices) -
			offsetof(struct vgpu_status, flags));
	write_piece(to, status, status->devices,
		status->n_devices * sizeof(status->devices[0]));
	write_piece(to, status, status->processes,
		status->n_processes * sizeof(status->processes[0]));
	for (uint32_t i = 0; i < status->n_devices; i++) {
		write_piece(to, status, status->uses[i],
			status->n_processes * sizeof(status->uses[i][0]));
		write_piece(to, status, status->peers[i], sizeof(status->peers[i]));
		write_piece(
			to, status, status->distances[i], sizeof(status->distances[i]));
	}
}

/* The sequence is counted here: what is in the shared memory is never read. */
static void publish(struct vm *vm, const struct vgpu_status *status)
{
	uint8_t *to = vm->map + VGPU_STATUS_OFF;
	uint32_t *sequence = &((struct vgpu_status *)(void *)to)->sequence;
	const struct history *history = vm->account->history;

	__atomic_store_n(sequence, ++vm->status_sequence, __ATOMIC_RELAXED);
	/* Partner: a reader's fence between its copy and its second look. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	write_parts(to, status);
	if (history)
		history_write(history, status->n_devices, to, !vm->has_history);
	vm->has_history |= history != NULL;
	__atomic_store_n(sequence, ++vm->status_sequence, __ATOMIC_RELEASE);
}

static void publish_all(struct broker *broker, const struct account *account)
{
	struct vm *vm;

	TAILQ_FOREACH(vm, &broker->vms, entry)
		if (vm->account == account && !vm->gone)
			publish(vm, broker->status);
}

static uint64_t real_time_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

void status_renew(struct broker *broker)
{
	if (!status_is_known(broker) ||
		clock_now() < broker->status_renewed + STATUS_INTERVAL_MS)
		return;
	broker->status_renewed = clock_now();
	broker->status->updated_us = real_time_us();
	use_sample(broker, broker->status->updated_us);
	if (broker->sensors)
		read_sensors(broker);
	for (unsigned int i = 0; i < broker->config->n_vms; i++) {
		fill_share(broker->status, &broker->accounts[i]);
		use_fill(broker, &broker->accounts[i]);
		if (history_of(&broker->accounts[i].history))
			history_sample(broker->accounts[i].history, broker->status);
		publish_all(broker, &broker->accounts[i]);
	}
}

void status_show(struct broker *broker, struct vm *vm)
{
	if (!status_is_known(broker) || !broker->status->updated_us)
		return;
	fill_share(broker->status, vm->account);
	use_fill(broker, vm->account);
	publish(vm, broker->status);
}
