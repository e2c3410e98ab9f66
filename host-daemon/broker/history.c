/* SPDX-License-Identifier: Apache-2.0 */
/*
 * History: what the devices did in the last seconds, and what happened to them
 */

#include <stdlib.h>
#include <string.h>

#include "broker/history.h"

struct history *history_of(struct history **historyp)
{
	if (!*historyp)
		*historyp = calloc(1, sizeof(**historyp));
	return *historyp;
}

/* A sensor as a number of at most max - 1, or max where it is unknown. */
static uint32_t sensor(const struct vgpu_status_device *device,
	enum vgpu_status_sensor number, uint32_t max)
{
	const int64_t value = device->sensors[number];

	if (!(device->sensors_known >> number & 1) || value < 0)
		return max;
	return value < max ? (uint32_t)value : max - 1;
}

static uint8_t percent(uint32_t value)
{
	return value > 100 ? UINT8_MAX : (uint8_t)value;
}

static uint8_t engine(
	const struct vgpu_status_device *device, enum vgpu_status_sensor number)
{
	return percent(sensor(device, number, UINT32_MAX));
}

void history_sample(struct history *history, const struct vgpu_status *status)
{
	const unsigned int slot = history->n_samples++ % VGPU_STATUS_SAMPLES;

	for (uint32_t i = 0; i < status->n_devices; i++) {
		const struct vgpu_status_device *device = &status->devices[i];

		history->samples[i][slot] = (struct vgpu_status_sample){
			.at_us = status->updated_us,
			.power = sensor(device, VGPU_SENSOR_POWER, UINT32_MAX),
			.clock_sm = (uint16_t)sensor(
				device, VGPU_SENSOR_CLOCK_SM, UINT16_MAX),
			.clock_memory = (uint16_t)sensor(
				device, VGPU_SENSOR_CLOCK_MEMORY, UINT16_MAX),
			.utilisation = percent(device->utilisation),
			.memory_utilisation = percent(device->memory_utilisation),
			.encoder = engine(device, VGPU_SENSOR_ENCODER),
			.decoder = engine(device, VGPU_SENSOR_DECODER),
			.jpeg = engine(device, VGPU_SENSOR_JPEG),
			.ofa = engine(device, VGPU_SENSOR_OFA),
		};
	}
}

void history_note(struct history *history, const struct vgpu_status *status,
	enum vgpu_status_event_type type, uint32_t device, int64_t detail)
{
	uint64_t at_us = status->updated_us;

	if (at_us <= history->last_event_us)
		at_us = history->last_event_us + 1;
	history->last_event_us = at_us;
	history->events[history->n_events++ % VGPU_STATUS_EVENTS] =
		(struct vgpu_status_event){
			.at_us = at_us,
			.type = type,
			.device = device,
			.detail = detail,
		};
}

void history_write(
	const struct history *history, uint32_t n_devices, uint8_t *page, bool all)
{
	const unsigned int first =
		all ? 0 : (history->n_samples - 1) % VGPU_STATUS_SAMPLES;
	const unsigned int n = all ? VGPU_STATUS_SAMPLES : 1;

	for (uint32_t i = 0; history->n_samples && i < n_devices; i++)
		memcpy(page + offsetof(struct vgpu_status, samples) +
				(i * VGPU_STATUS_SAMPLES + first) *
					sizeof(struct vgpu_status_sample),
			&history->samples[i][first],
			n * sizeof(struct vgpu_status_sample));
	memcpy(page + offsetof(struct vgpu_status, events), history->events,
		sizeof(history->events));
}
