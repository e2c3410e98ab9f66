/* SPDX-License-Identifier: Apache-2.0 */
/*
 * History: samples and events in rings
 */

#include <stdlib.h>

#include "broker/history.h"
#include "test.h"

static struct vgpu_status status;
static struct history *history;
static struct vgpu_status *page;

static void begin(void)
{
	status = (struct vgpu_status){ .n_devices = 2 };
	status.devices[0].utilisation = 40;
	status.devices[0].memory_utilisation = VGPU_STATUS_UNKNOWN;
	status.devices[1].utilisation = VGPU_STATUS_UNKNOWN;
	check(history_of(&history));
	page = calloc(1, sizeof(*page));
	check(page);
}

static void end(void)
{
	free(history);
	free(page);
	history = NULL;
}

static void sample(uint64_t at_us)
{
	status.updated_us = at_us;
	history_sample(history, &status);
}

static void set(enum vgpu_status_sensor sensor, int64_t value)
{
	status.devices[0].sensors_known |= 1ull << sensor;
	status.devices[0].sensors[sensor] = value;
}

TEST(what_is_unknown_is_marked)
{
	begin();
	sample(1000);
	check_eq(history->samples[0][0].at_us, 1000);
	check_eq(history->samples[0][0].utilisation, 40);
	check_eq(history->samples[0][0].memory_utilisation, UINT8_MAX);
	check_eq(history->samples[0][0].power, UINT32_MAX);
	check_eq(history->samples[0][0].clock_sm, UINT16_MAX);
	check_eq(history->samples[1][0].utilisation, UINT8_MAX);
	end();
}

TEST(numbers_fit_or_are_the_highest_that_do)
{
	begin();
	set(VGPU_SENSOR_POWER, 123456);
	set(VGPU_SENSOR_CLOCK_SM, 1 << 20);
	set(VGPU_SENSOR_CLOCK_MEMORY, -5);
	set(VGPU_SENSOR_ENCODER, 100);
	set(VGPU_SENSOR_DECODER, 101);
	sample(1000);
	check_eq(history->samples[0][0].power, 123456);
	check_eq(history->samples[0][0].clock_sm, UINT16_MAX - 1);
	check_eq(history->samples[0][0].clock_memory, UINT16_MAX);
	check_eq(history->samples[0][0].encoder, 100);
	check_eq(history->samples[0][0].decoder, UINT8_MAX);
	end();
}

TEST(the_newest_samples_replace_the_oldest)
{
	begin();
	for (unsigned int i = 0; i < VGPU_STATUS_SAMPLES + 2; i++)
		sample(1000 + i);
	check_eq(history->samples[1][0].at_us, 1000 + VGPU_STATUS_SAMPLES);
	check_eq(history->samples[1][2].at_us, 1002);
	end();
}

TEST(only_the_newest_is_written_to_who_has_the_others)
{
	begin();
	history_write(history, 2, (uint8_t *)page, true);
	check_eq(page->samples[0][0].at_us, 0);
	sample(1000);
	sample(1001);
	history_write(history, 2, (uint8_t *)page, false);
	check_eq(page->samples[0][0].at_us, 0);
	check_eq(page->samples[1][1].at_us, 1001);
	history_write(history, 2, (uint8_t *)page, true);
	check_eq(page->samples[0][0].at_us, 1000);
	check_eq(page->samples[2][0].at_us, 0);
	end();
}

TEST(no_two_events_are_of_the_same_time)
{
	begin();
	status.updated_us = 1000;
	history_note(history, &status, VGPU_STATUS_FAULT, 1, 700);
	history_note(history, &status, VGPU_STATUS_FAULT, 0, 719);
	/* The clock was set back. */
	status.updated_us = 10;
	history_note(history, &status, VGPU_STATUS_FAULT, 0, 700);
	history_write(history, 2, (uint8_t *)page, false);
	check_eq(page->events[0].at_us, 1000);
	check_eq(page->events[0].type, VGPU_STATUS_FAULT);
	check_eq(page->events[0].device, 1);
	check_eq(page->events[0].detail, 700);
	check_eq(page->events[1].at_us, 1001);
	check_eq(page->events[2].at_us, 1002);
	check_eq(page->events[3].at_us, 0);
	end();
}

TEST(the_newest_events_replace_the_oldest)
{
	begin();
	status.updated_us = 1000;
	for (unsigned int i = 0; i < VGPU_STATUS_EVENTS + 1; i++)
		history_note(history, &status, VGPU_STATUS_FAULT, 0, i);
	check_eq(history->events[0].detail, VGPU_STATUS_EVENTS);
	check_eq(history->events[1].detail, 1);
	end();
}
