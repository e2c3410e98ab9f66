/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status: what the broker publishes about the GPUs of each VM (vgpu/status.h)
 *
 * The devices are those that the last worker found before it had a guest: afterwards it
 * may be compromised. Until there was one, a VM's status remains as the broker before
 * this one left it.
 *
 * softgpu is busy while its workers use the CPU. What NVIDIA's devices do is known from
 * the process that reads their sensors, if there is one.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "broker/state.h"
#include "broker/status.h"
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
	broker->n_units = devices->n_units;
	status->cuda_version = worker->driver_version;
	status->flags = devices->flags & WORKER_DEVICES_SOFTGPU ? VGPU_STATUS_SOFTGPU : 0;
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

static bool is_same(
	const struct sensors_device *device, const struct vgpu_device_info *info)
{
	return !memcmp(device->uuid, info->uuid, sizeof(device->uuid));
}

/* Return: its index, or n_devices. */
static uint32_t find_device(
	const struct sensors_page *sensors, const struct vgpu_device_info *info)
{
	uint32_t i = 0;

	while (i < sensors->n_devices && !is_same(&sensors->devices[i], info))
		i++;
	return i;
}

/* Once for all VMs. */
static void fill_sensors(struct vgpu_status *status, const struct sensors_page *sensors)
{
	for (uint32_t i = 0; i < status->n_devices; i++) {
		struct vgpu_status_device *device = &status->devices[i];
		const uint32_t k = find_device(sensors, &device->info);

		device->sensors_known = 0;
		if (k == sensors->n_devices)
			continue;
		device->sensors_known = sensors->devices[k].known;
		memcpy(device->sensors, sensors->devices[k].values,
			sizeof(device->sensors));
	}
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

/* Adds to a share, which was unknown before. */
static void add_share(uint32_t *sump, uint32_t part)
{
	if (part == VGPU_STATUS_UNKNOWN)
		return;
	*sump = *sump == VGPU_STATUS_UNKNOWN ? part : *sump + part;
	*sump = *sump < 100 ? *sump : 100;
}

/* A process of several devices has the sum, of at most 100. */
static void use_sensors(struct vgpu_status *status, const struct sensors_page *sensors,
	struct vgpu_status_process *process, pid_t pid)
{
	for (uint32_t i = 0; sensors && i < sensors->n_processes; i++) {
		const struct sensors_process *seen = &sensors->processes[i];

		if (seen->pid != (uint32_t)pid)
			continue;
		add_share(&process->utilisation, seen->utilisation);
		add_share(&process->memory_utilisation, seen->memory_utilisation);
		for (uint32_t k = 0; k < status->n_devices; k++) {
			struct vgpu_status_device *device = &status->devices[k];

			if (find_device(sensors, &device->info) != seen->device)
				continue;
			add_share(&device->utilisation, seen->utilisation);
			add_share(&device->memory_utilisation, seen->memory_utilisation);
		}
	}
}

/*
 * Processes
 */

/* Zero if it has exited. */
static uint64_t processor_time_ns(pid_t pid)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &time))
		return 0;
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static bool is_shown(const struct worker *worker)
{
	return worker->channel && worker->channel->record->phase == CHANNEL_OPEN;
}

static uint64_t memory_of(const struct channel *channel)
{
	const uint32_t slot = channel->record->quota_slot;
	const struct quota_page *page = channel->vm->account->quota;

	return slot ? __atomic_load_n(&page->used[slot - 1], __ATOMIC_RELAXED) : 0;
}

/* All devices of softgpu are the same processors. */
static void use_busy_time(const struct broker *broker,
	struct vgpu_status_process *process, const struct worker *worker)
{
	process->utilisation = busy_time_percent(&worker->busy, broker->n_units);
	for (uint32_t i = 0; i < broker->status->n_devices; i++)
		add_share(&broker->status->devices[i].utilisation, process->utilisation);
}

static void fill_process(const struct broker *broker, struct vgpu_status_process *process,
	const struct worker *worker)
{
	const struct ledger_channel *record = worker->channel->record;
	const struct vgpu_channel_entry *entry =
		vm_entry(worker->channel->vm, worker->channel->index);

	*process = (struct vgpu_status_process){
		.pid = record->pid,
		.opened_us = worker->shown_us,
		.memory_used = memory_of(worker->channel),
		.utilisation = VGPU_STATUS_UNKNOWN,
		.memory_utilisation = VGPU_STATUS_UNKNOWN,
	};
	memcpy(process->comm, record->comm, sizeof(process->comm));
	/* The guest's own words, for the guest: the pid is one of its namespace. */
	if (!worker->channel->vm->gone) {
		process->pid = __atomic_load_n(&entry->pid, __ATOMIC_RELAXED);
		process->uid = __atomic_load_n(&entry->uid, __ATOMIC_RELAXED);
		process->start_time =
			__atomic_load_n(&entry->start_time, __ATOMIC_RELAXED);
		process->pid_namespace =
			__atomic_load_n(&entry->pid_namespace, __ATOMIC_RELAXED);
	}
	if (broker->status->flags & VGPU_STATUS_SOFTGPU)
		use_busy_time(broker, process, worker);
	else
		use_sensors(broker->status, broker->measured, process, worker->pid);
}

static void sample_workers(struct broker *broker, uint64_t now_us)
{
	struct worker *worker;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry) {
		if (!is_shown(worker))
			continue;
		if (!worker->shown_us)
			worker->shown_us = now_us;
		busy_time_add(&worker->busy, clock_now(), processor_time_ns(worker->pid));
	}
}

static void find_processes(struct broker *broker, const struct account *account)
{
	struct vgpu_status *status = broker->status;
	const struct worker *worker;

	status->n_processes = 0;
	TAILQ_FOREACH(worker, &broker->pool.workers, entry)
		if (is_shown(worker) && worker->channel->vm->account == account &&
			status->n_processes < VGPU_STATUS_PROCESSES_MAX)
			fill_process(broker, &status->processes[status->n_processes++],
				worker);
}

/*
 * The VM's share
 */

/* As device_memory_info() of a worker. */
static void fill_share(struct vgpu_status *status, const struct account *account)
{
	const uint64_t limit = quota_limit(account->quota);
	const uint64_t used = quota_of_others(account->quota, 0);

	for (uint32_t i = 0; i < status->n_devices; i++) {
		struct vgpu_status_device *device = &status->devices[i];

		device->memory_total = device->info.total_memory;
		if (limit && limit < device->memory_total)
			device->memory_total = limit;
		device->memory_used =
			used < device->memory_total ? used : device->memory_total;
		/* The processes add their shares. */
		device->utilisation =
			status->flags & VGPU_STATUS_SOFTGPU ? 0 : VGPU_STATUS_UNKNOWN;
		device->memory_utilisation = VGPU_STATUS_UNKNOWN;
	}
}

/*
 * Publication
 */

/* Copies all but the sequence, and only what is in use. */
static void write_parts(uint8_t *to, const struct vgpu_status *status)
{
	const size_t head = offsetof(struct vgpu_status, flags);
	const size_t devices = offsetof(struct vgpu_status, devices);
	const size_t processes = offsetof(struct vgpu_status, processes);

	memcpy(to + head, (const uint8_t *)status + head, devices - head);
	memcpy(to + devices, status->devices,
		status->n_devices * sizeof(status->devices[0]));
	memcpy(to + processes, status->processes,
		status->n_processes * sizeof(status->processes[0]));
}

/* The sequence is counted here: what is in the shared memory is never read. */
static void publish(struct vm *vm, const struct vgpu_status *status)
{
	uint8_t *to = vm->map + VGPU_STATUS_OFF;
	uint32_t *sequence = &((struct vgpu_status *)(void *)to)->sequence;

	__atomic_store_n(sequence, ++vm->status_sequence, __ATOMIC_RELAXED);
	/* Partner: a reader's fence between its copy and its second look. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	write_parts(to, status);
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
	sample_workers(broker, broker->status->updated_us);
	if (broker->sensors)
		read_sensors(broker);
	for (unsigned int i = 0; i < broker->config->n_vms; i++) {
		fill_share(broker->status, &broker->accounts[i]);
		find_processes(broker, &broker->accounts[i]);
		publish_all(broker, &broker->accounts[i]);
	}
}

void status_show(struct broker *broker, struct vm *vm)
{
	if (!status_is_known(broker) || !broker->status->updated_us)
		return;
	fill_share(broker->status, vm->account);
	find_processes(broker, vm->account);
	publish(vm, broker->status);
}
