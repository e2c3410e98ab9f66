/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Held sensors: the process that reads NVIDIA's sensors, and its page
 *
 * The page lives as long as the keeper, so that brokers and further such processes find
 * the same one. A process that fails is started again after a while; one that finds no
 * NVML is not, until the configuration is loaded again.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "vgpud/config.h"

struct held_sensors {
	int page;  /* -1: there is none */
	pid_t pid; /* 0: no process */
	uid_t uid; /* of the process, 0: as vgpud */
	bool is_absent;
	int64_t start_at;	 /* ms: not before */
	unsigned int n_failures; /* in a row */
};

#define HELD_SENSORS_NULL                                                                \
	{                                                                                \
		.page = -1                                                               \
	}

/* Makes the page. Without it there are no sensors. */
void held_sensors_init(struct held_sensors *sensors);
void held_sensors_deinit(struct held_sensors *sensors);

/* Tells a broker of the page. Return: as link_send(). */
int held_sensors_tell(const struct held_sensors *sensors, int link);

/* Whether the process is due to start. */
bool held_sensors_is_due(
	const struct held_sensors *sensors, const struct config *config, int64_t now);

/* Starts it with that user id; 0: as vgpud. */
void held_sensors_start(struct held_sensors *sensors, const struct config *config,
	uid_t uid, int network);

/* Another configuration is in force: ends the process, to start with that one. */
void held_sensors_reload(struct held_sensors *sensors);

/* Return: whether that was its process. */
bool held_sensors_handle_exit(struct held_sensors *sensors, pid_t pid, int status);
