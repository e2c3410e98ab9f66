/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device time: tells the arbiter which workers there are, and which devices they share
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arbiter/arbiter.h"
#include "broker/channel.h"
#include "broker/device-time.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "vgpu/cleanup.h"
#include "vgpu/log.h"

/* Return: the number of a device among all. Forged ones cannot become more than there
 * is room for. */
static uint8_t number_of(struct broker *broker, const uint8_t uuid[16])
{
	uint32_t i = 0;

	while (i < broker->n_known_devices && memcmp(broker->known_devices[i], uuid, 16))
		i++;
	if (i == VGPU_DEVICES_MAX)
		return 0;
	if (i == broker->n_known_devices)
		memcpy(broker->known_devices[broker->n_known_devices++], uuid, 16);
	return (uint8_t)i;
}

static uint32_t count_devices(const struct worker_devices *devices)
{
	return devices->n < VGPU_DEVICES_MAX ? devices->n : VGPU_DEVICES_MAX;
}

void device_time_learn(struct broker *broker, const struct worker_devices *devices)
{
	const bool is_soft = devices->flags & WORKER_DEVICES_SOFTGPU;
	uint32_t n;

	for (uint32_t i = 0; i < count_devices(devices); i++)
		number_of(broker, devices->infos[i].uuid);
	broker->n_units = devices->n_units;
	/* A set may have a part of the devices only. */
	n = is_soft ? devices->n_units : broker->n_known_devices;
	if (!broker->arbiter || n <= broker->n_shared_units)
		return;
	broker->n_shared_units = n;
	arbiter_set_units(broker->arbiter, n, !is_soft);
}

static void number_devices(struct broker *broker, const struct worker *worker,
	struct arbiter_devices *numbers)
{
	_vgpu_cleanup_(vgpu_freep) struct worker_devices *devices =
		malloc(sizeof(*devices));

	for (uint8_t i = 0; i < VGPU_DEVICES_MAX; i++)
		numbers->numbers[i] = i;
	if (!devices || pread(worker->stats, devices, sizeof(*devices),
				WORKER_DEVICES_OFF) != (ssize_t)sizeof(*devices))
		return;
	for (uint32_t i = 0; i < count_devices(devices); i++)
		numbers->numbers[i] = number_of(broker, devices->infos[i].uuid);
}

void device_time_share(const struct channel *channel, struct worker *worker)
{
	struct arbiter_vm *vm = channel->vm->account->arbiter;
	struct arbiter_devices devices;
	int r;

	if (!vm || worker->share)
		return;
	number_devices(channel->vm->broker, worker, &devices);
	r = arbiter_add_worker(vm, &worker->share, worker->stats, &devices);
	if (r)
		vgpu_log_warning("vm=%s worker=%d: its device time is not limited: %s",
			channel->vm->config->name, (int)worker->pid, strerror(-r));
}
