/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Device: those that the user asked for, and the processes on each of them
 */

#include <stdbool.h>

#include "vgpu/nvml.h"

#define SMI_DEVICES_MAX 64u
/* More than any device has; the rest is not shown. */
#define SMI_PROCESSES_MAX 1024u

struct smi_devices {
	unsigned int n;
	nvmlDevice_t all[SMI_DEVICES_MAX];
};

/* @list: indices, UUIDs and bus ids, by commas; NULL: all devices. */
nvmlReturn_t smi_devices_find(struct smi_devices *devices, const char *list);

struct smi_process {
	unsigned int pid;
	bool draws;
	bool has_memory;
	unsigned long long memory;
	char name[256];
	bool has_utilisation;
	unsigned int sm, memory_controller, encoder, decoder; /* % */
};

struct smi_processes {
	unsigned int n;
	struct smi_process all[SMI_PROCESSES_MAX];
};

/* Those that compute, then those that draw. */
nvmlReturn_t smi_processes_find(struct smi_processes *processes, nvmlDevice_t device);
