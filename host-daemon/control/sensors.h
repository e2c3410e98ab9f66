/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sensors: what NVIDIA's NVML tells of the host's devices
 *
 * A page that a process of its own, vgpu-sensors, fills once a second while the broker
 * asks for it. The broker shows each VM its share (vgpu/status.h). That process serves no
 * guest, so the page is not hostile; but as it loads NVIDIA's library, it is read like
 * one that may be wrong.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/handle.h"
#include "vgpu/status.h"

#define SENSORS_PROCESSES_MAX 1024u

/* Exit status of vgpu-sensors: there is no NVML here, and will be none. */
#define SENSORS_EXIT_ABSENT 77

struct sensors_device {
	uint8_t uuid[16];
	uint64_t known; /* bits 1 << enum vgpu_status_sensor */
	int64_t values[VGPU_STATUS_SENSORS];
};

/* A process of the host on a device; one on several has several. */
struct sensors_process {
	uint32_t pid;
	uint32_t device; /* index into devices */
	uint64_t memory; /* bytes; 0: unknown */
	/* % of the last second, or VGPU_STATUS_UNKNOWN. */
	uint32_t utilisation;
	uint32_t memory_utilisation;
};

struct sensors_page {
	uint32_t wanted;   /* the broker counts it up; else nothing is measured */
	uint32_t sequence; /* odd while it is written */
	uint32_t n_devices;
	uint32_t n_processes;
	char driver_version[80];
	struct sensors_device devices[VGPU_DEVICES_MAX];
	struct sensors_process processes[SENSORS_PROCESSES_MAX];
	uint8_t distances[VGPU_DEVICES_MAX][VGPU_DEVICES_MAX]; /* VGPU_STATUS_DISTANCE */
};

/* Creates a memfd with a sealed size. Return: 0 or -errno. */
int sensors_make(int *fdp);

/* Return: 0 or -errno. */
int sensors_map(struct sensors_page **pagep, int fd);
struct sensors_page *sensors_unmap(struct sensors_page *page);

/* Replaces what is measured: all of the page but wanted and sequence. */
void sensors_write(struct sensors_page *page, const struct sensors_page *measured);

/* Return: the index of the device of that UUID in a copy, or n_devices. */
uint32_t sensors_find(const struct sensors_page *page, const uint8_t uuid[16]);

/* Copies it, with numbers that are within the arrays. Return: false if it was being
 * written. */
bool sensors_read(const struct sensors_page *page, struct sensors_page *copy);
