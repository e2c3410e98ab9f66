/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Use: what the guest processes of a VM do on each device
 *
 * A worker says where its session has contexts and memory, and which of its contexts had
 * faults (control/control.h); a compromised one lies about its own VM. softgpu is busy
 * while its workers use the CPU. What NVIDIA's devices do is known from the process that
 * reads their sensors, if there is one.
 */

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "broker/device-set.h"
#include "broker/flight.h"
#include "broker/history.h"
#include "broker/state.h"
#include "broker/use.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "control/sensors.h"
#include "vgpu/checked.h"
#include "vgpu/status.h"
#include "vgpud/clock.h"

/* Adds to a share, which was unknown before. */
static void add_share(uint32_t *sump, uint32_t part)
{
	if (part == VGPU_STATUS_UNKNOWN)
		return;
	*sump = *sump == VGPU_STATUS_UNKNOWN ? part : *sump + part;
	*sump = *sump < 100 ? *sump : 100;
}

/* The worker's process on one device, as the card has it. */
static const struct sensors_process *find_seen(const struct sensors_page *sensors,
	const struct vgpu_device_info *info, pid_t pid)
{
	const uint32_t device = sensors ? sensors_find(sensors, info->uuid) : 0;

	for (uint32_t i = 0; sensors && i < sensors->n_processes; i++)
		if (sensors->processes[i].pid == (uint32_t)pid &&
			sensors->processes[i].device == device)
			return &sensors->processes[i];
	return NULL;
}

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

/* Return: what is shown to the VM of a worker, or NULL: its devices are not known. */
static struct vgpu_status *status_of(const struct worker *worker)
{
	return worker->channel ? worker->channel->vm->account->devices->status : NULL;
}

static uint64_t memory_of(const struct channel *channel)
{
	const uint32_t slot = channel->record->quota_slot;
	const struct quota_page *page = channel->vm->account->quota;

	return slot ? __atomic_load_n(&page->used[slot - 1], __ATOMIC_RELAXED) : 0;
}

/* Device memory of a worker's session on a device, or UINT64_MAX without a context there.
 * A worker that an older vgpud has started does not tell devices apart. */
static uint64_t memory_on(const struct worker *worker, uint64_t all, uint32_t device)
{
	if (worker->use.devices)
		return worker->use.devices >> device & 1 ? worker->use.memory[device]
							 : UINT64_MAX;
	return all ? all : UINT64_MAX;
}

/*
 * What a worker does on a device, with so much memory on all of them.
 *
 * All devices of softgpu are the same processors, whose threads belong to none: a process
 * that uses several keeps each of them busy.
 */
static struct vgpu_status_use find_use(const struct broker *broker,
	const struct worker *worker, uint64_t memory, uint32_t device)
{
	const struct vgpu_status *status = status_of(worker);
	const struct sensors_process *seen;
	struct vgpu_status_use use = {
		.memory_used = memory_on(worker, memory, device),
		.utilisation = VGPU_STATUS_UNKNOWN,
		.memory_utilisation = VGPU_STATUS_UNKNOWN,
	};

	if (status->flags & VGPU_STATUS_SOFTGPU) {
		use.utilisation = busy_time_percent(&worker->busy, broker->n_units);
		return use;
	}
	seen = find_seen(broker->measured, &status->devices[device].info, worker->pid);
	if (!seen)
		return use;
	if (use.memory_used == UINT64_MAX)
		use.memory_used = 0;
	use.utilisation = seen->utilisation;
	use.memory_utilisation = seen->memory_utilisation;
	return use;
}

uint32_t use_utilisation(const struct broker *broker, const struct worker *worker)
{
	const struct vgpu_status *status = status_of(worker);
	uint32_t most = VGPU_STATUS_UNKNOWN;

	/* Without a status the devices are not known yet. */
	for (uint32_t i = 0; status && i < status->n_devices; i++) {
		const uint32_t part = find_use(broker, worker, 0, i).utilisation;

		if (part != VGPU_STATUS_UNKNOWN &&
			(most == VGPU_STATUS_UNKNOWN || part > most))
			most = part;
	}
	return most;
}

uint64_t use_memory_seen(const struct broker *broker, const struct worker *worker)
{
	const struct sensors_process *seen;
	const struct vgpu_status *status = status_of(worker);
	uint64_t sum = 0;

	for (uint32_t i = 0; status && i < status->n_devices; i++) {
		seen = find_seen(broker->measured, &status->devices[i].info, worker->pid);
		if (seen && !vgpu_add_u64(sum, seen->memory, &sum))
			return UINT64_MAX;
	}
	return sum;
}

/* Adds it to the device's. */
static void add_use(struct vgpu_status_device *device, const struct vgpu_status_use *use)
{
	const uint64_t left = device->memory_total - device->memory_used;

	if (use->memory_used == UINT64_MAX)
		return;
	device->memory_used += use->memory_used < left ? use->memory_used : left;
	add_share(&device->utilisation, use->utilisation);
	add_share(&device->memory_utilisation, use->memory_utilisation);
}

static void fill_process(
	struct vgpu_status_process *process, const struct worker *worker, uint64_t memory)
{
	const struct ledger_channel *record = worker->channel->record;
	const struct vgpu_channel_entry *entry =
		vm_entry(worker->channel->vm, worker->channel->index);

	*process = (struct vgpu_status_process){
		.pid = record->pid,
		.opened_us = worker->shown_us,
		.memory_used = memory,
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
}

/* A process of several devices has the sum, of at most 100. */
static void add_to_process(struct vgpu_status_process *process,
	const struct vgpu_status_use *use, bool is_shared)
{
	if (use->memory_used == UINT64_MAX)
		return;
	if (is_shared)
		process->utilisation = use->utilisation;
	else
		add_share(&process->utilisation, use->utilisation);
	add_share(&process->memory_utilisation, use->memory_utilisation);
}

/* What the worker says of itself; it stays as it was while that cannot be read. */
static void look_at_use(struct worker *worker)
{
	struct worker_use use;

	if (pread(worker->stats, &use, sizeof(use), WORKER_USE_OFF) ==
		(ssize_t)sizeof(use))
		worker->use = use;
}

/* A worker's part of the page; its process is not shown where there are too many. */
static void fill_worker(const struct broker *broker, struct worker *worker)
{
	const uint64_t memory = memory_of(worker->channel);
	struct vgpu_status *status = status_of(worker);
	const uint32_t place = status->n_processes;
	const bool has_place = place < VGPU_STATUS_PROCESSES_MAX;

	if (!worker->shown_us)
		worker->shown_us = status->updated_us;
	/* A context counts before its memory does. So where there is memory but was no
	 * context at the last look, another look tells on which devices. */
	if (memory && !worker->use.devices)
		look_at_use(worker);
	if (has_place)
		fill_process(&status->processes[status->n_processes++], worker, memory);
	for (uint32_t i = 0; i < status->n_devices; i++) {
		const struct vgpu_status_use use = find_use(broker, worker, memory, i);

		add_use(&status->devices[i], &use);
		if (!has_place)
			continue;
		status->uses[i][place] = use;
		add_to_process(&status->processes[place], &use,
			status->flags & VGPU_STATUS_SOFTGPU);
	}
}

/* Faults that were not noted so far, as far back as the worker keeps them. */
static void note_faults(struct worker *worker)
{
	const struct vgpu_status *status = status_of(worker);
	struct history *history = history_of(&worker->channel->vm->account->history);
	const uint64_t n = worker->use.n_faults;
	uint64_t i = worker->n_faults;

	if (n - i > WORKER_FAULTS)
		i = n - WORKER_FAULTS;
	for (; history && i != n; i++) {
		const uint32_t device = worker->use.faults[i % WORKER_FAULTS].device;

		if (device < status->n_devices)
			history_note(history, status, VGPU_STATUS_FAULT, device,
				worker->use.faults[i % WORKER_FAULTS].result);
	}
	if (n != worker->n_faults)
		flight_report_fault(
			worker, worker->use.faults[(n - 1) % WORKER_FAULTS].result);
	worker->n_faults = n;
}

void use_look(struct worker *worker)
{
	if (!status_of(worker))
		return;
	look_at_use(worker);
	note_faults(worker);
}

void use_sample(struct broker *broker, uint64_t now_us)
{
	struct worker *worker;

	TAILQ_FOREACH(worker, &broker->pool.workers, entry) {
		if (!is_shown(worker))
			continue;
		if (!worker->shown_us)
			worker->shown_us = now_us;
		busy_time_add(&worker->busy, clock_now(), processor_time_ns(worker->pid));
		use_look(worker);
	}
}

void use_fill(struct broker *broker, const struct account *account)
{
	struct vgpu_status *status = account->devices->status;
	struct worker *worker;

	status->n_processes = 0;
	TAILQ_FOREACH(worker, &broker->pool.workers, entry)
		if (is_shown(worker) && worker->channel->vm->account == account)
			fill_worker(broker, worker);
}
