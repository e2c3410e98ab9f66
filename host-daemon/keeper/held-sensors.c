/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held sensors: the process that reads NVIDIA's sensors, and its page
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/sensors.h"
#include "keeper/child.h"
#include "keeper/held-sensors.h"
#include "vgpu/cleanup.h"
#include "vgpu/log.h"
#include "vgpud/clock.h"
#include "vgpud/link.h"

/* Pause before the next attempt after a failure, doubled each time. */
#define PAUSE_MIN_MS 1000
#define PAUSE_MAX_MS 300000

void held_sensors_init(struct held_sensors *sensors)
{
	*sensors = (struct held_sensors)HELD_SENSORS_NULL;
	if (sensors_make(&sensors->page))
		vgpu_log_warning("there is no page for sensors: guests see none");
}

void held_sensors_deinit(struct held_sensors *sensors)
{
	if (sensors->pid) {
		kill(sensors->pid, SIGKILL);
		while (waitpid(sensors->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	sensors->pid = 0;
	sensors->page = vgpu_close(sensors->page);
}

int held_sensors_tell(const struct held_sensors *sensors, int link)
{
	const struct link_message message = { .type = LINK_SENSORS };

	return sensors->page < 0 ? 0 : link_send(link, &message, &sensors->page, 1);
}

/* softgpu and the null driver have none. */
static bool is_wanted(const struct config *config)
{
	return strcmp(config->nvml, "no") && strcmp(config->driver, "soft") &&
	       strcmp(config->driver, "null");
}

bool held_sensors_is_due(
	const struct held_sensors *sensors, const struct config *config, int64_t now)
{
	return sensors->page >= 0 && !sensors->pid && !sensors->is_absent &&
	       now >= sensors->start_at && is_wanted(config);
}

/* The next attempt. */
static void put_off(struct held_sensors *sensors)
{
	unsigned int ms = PAUSE_MIN_MS;

	for (unsigned int i = 0; i < sensors->n_failures && ms < PAUSE_MAX_MS; i++)
		ms *= 2;
	sensors->n_failures++;
	sensors->start_at = clock_now() + (ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS);
}

/* As vgpud's own lines. Return: -1: standard error. */
static int open_log(const struct config *config)
{
	return config->log_file ? open(config->log_file,
					  O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY)
				: -1;
}

void held_sensors_start(
	struct held_sensors *sensors, const struct config *config, uid_t uid, int network)
{
	_vgpu_cleanup_(vgpu_closep) int log = open_log(config);
	const bool is_default = !strcmp(config->nvml, "auto");
	char number[16];
	char *argv[] = { "vgpu-sensors", "--page", "3", "--log-level",
		(char *)vgpu_log_level_name(vgpu_log_get_level()), "--sandbox",
		config->sandbox ? "yes" : "no", "--uid", number,
		is_default ? NULL : "--library", config->nvml, NULL };
	struct child child = {
		.path = config->sensors,
		.argv = argv,
		.fds = &sensors->page,
		.n_fds = 1,
		.output = log,
		.network = network,
		.own_session = true,
	};

	snprintf(number, sizeof(number), "%u", (unsigned int)uid);
	sensors->uid = uid;
	if (!child_spawn(&sensors->pid, &child))
		return;
	sensors->pid = 0;
	put_off(sensors);
}

void held_sensors_reload(struct held_sensors *sensors)
{
	sensors->is_absent = false;
	sensors->n_failures = 0;
	sensors->start_at = 0;
	if (sensors->pid)
		kill(sensors->pid, SIGKILL);
}

bool held_sensors_handle_exit(struct held_sensors *sensors, pid_t pid, int status)
{
	if (!sensors->pid || sensors->pid != pid)
		return false;
	sensors->pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == SENSORS_EXIT_ABSENT) {
		sensors->is_absent = true;
		return true;
	}
	put_off(sensors);
	vgpu_log_warning("the process that reads sensors has ended (%s %d): guests see "
			 "none until the next one",
		WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return true;
}
