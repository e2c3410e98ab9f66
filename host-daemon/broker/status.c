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

#include "broker/device-set.h"
#include "broker/device-time.h"
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

void status_learn(const struct worker *worker)
{
	struct device_set *set = worker->devices;
	_vgpu_cleanup_(vgpu_freep) struct worker_devices *devices =
		malloc(sizeof(*devices));
	struct vgpu_status *status = set->status;

	if (!status)
		status = set->status = calloc(1, sizeof(*status));
	/* Without memory the next worker brings them. */
	if (!status || !devices ||
		pread(worker->stats, devices, sizeof(*devices), WORKER_DEVICES_OFF) !=
			(ssize_t)sizeof(*devices))
		return;
	status->n_devices = devices->n < VGPU_DEVICES_MAX ? devices->n : VGPU_DEVICES_MAX;
	for (uint32_t i = 0; i < status->n_devices; i++)
		fill_device(&status->devices[i], &devices->infos[i]);
	memcpy(status->peers, devices->peers, sizeof(status->peers));
	device_time_learn(worker->broker, devices);
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
	if (!sensors_read(broker->sensors, broker->measured))
		return;
	for (unsigned int i = 0; i < broker->n_sets; i++)
		if (broker->sets[i].status)
			fill_sensors(broker->sets[i].status, broker->measured);
}

/*
 * The VM's share
 */

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Memory that ended processes have left on a device; of an unknown one, on the only
 * one. */
static uint64_t left_on(
	const struct vgpu_status *status, const struct account *account, uint32_t device)
{
	return status->n_devices == 1 ? account->shares.unpaid
				      : share_table_unpaid_on(&account->shares,
						status->devices[device].info.uuid);
}

/* The total as cuDeviceTotalMem; the processes add their use to that of no process. */
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
		device->memory_used =
			smaller(left_on(status, account, i), device->memory_total);
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
			publish(vm, account->devices->status);
}

static uint64_t real_time_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

static void renew(struct broker *broker, struct account *account)
{
	struct vgpu_status *status = account->devices->status;

	fill_share(status, account);
	use_fill(broker, account);
	if (history_of(&account->history))
		history_sample(account->history, status);
	publish_all(broker, account);
}

void status_renew(struct broker *broker)
{
	const uint64_t now_us = real_time_us();
	bool is_known = false;

	for (unsigned int i = 0; i < broker->n_sets; i++)
		is_known |= broker->sets[i].status != NULL;
	if (!is_known || clock_now() < broker->status_renewed + STATUS_INTERVAL_MS)
		return;
	broker->status_renewed = clock_now();
	for (unsigned int i = 0; i < broker->n_sets; i++)
		if (broker->sets[i].status)
			broker->sets[i].status->updated_us = now_us;
	use_sample(broker, now_us);
	if (broker->sensors)
		read_sensors(broker);
	for (unsigned int i = 0; i < broker->config->n_vms; i++)
		if (broker->accounts[i].devices->status)
			renew(broker, &broker->accounts[i]);
}

void status_show(struct broker *broker, struct vm *vm)
{
	const struct vgpu_status *status = vm->account->devices->status;

	if (!status || !status->updated_us)
		return;
	fill_share(vm->account->devices->status, vm->account);
	use_fill(broker, vm->account);
	publish(vm, status);
}
