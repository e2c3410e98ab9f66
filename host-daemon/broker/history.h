/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * History: what the devices did in the last seconds, and what happened to them, as one
 * VM sees it
 *
 * Of a section, so that with transport socket a process that connects sees what was
 * before. A new broker begins with an empty one.
 */

#include <stdbool.h>

#include "vgpu/status.h"

struct history {
	unsigned int n_samples; /* so far; each is at n % VGPU_STATUS_SAMPLES */
	unsigned int n_events;	/* the same of events */
	uint64_t last_event_us;
	struct vgpu_status_sample samples[VGPU_DEVICES_MAX][VGPU_STATUS_SAMPLES];
	struct vgpu_status_event events[VGPU_STATUS_EVENTS];
};

/* Makes one where there is none. Return: NULL without memory. */
struct history *history_of(struct history **historyp);

/* Adds a sample of each device, from the state that is about to be published. */
void history_sample(struct history *history, const struct vgpu_status *status);

/* Adds an event, in the place of the oldest one. */
void history_note(struct history *history, const struct vgpu_status *status,
	enum vgpu_status_event_type type, uint32_t device, int64_t detail);

/* Writes the newest sample of each device into a VM's page, or all of them; and all
 * events. */
void history_write(
	const struct history *history, uint32_t n_devices, uint8_t *page, bool all);
