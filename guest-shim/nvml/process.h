/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Process: the VM's processes that use a device, as the caller sees them
 *
 * The page has each pid in the process's own pid namespace. A caller in another namespace
 * finds the process in its /proc, by that pid and the start time; one that it does not
 * see there is left out.
 */

#include <stdint.h>

#include "vgpu/nvml.h"
#include "vgpu/status.h"

struct nvml_processes {
	uint32_t n;
	uint64_t updated_us;
	struct vgpu_status_process all[VGPU_STATUS_PROCESSES_MAX];
};

/* Memory and utilisation are those on the device. A host that does not tell the devices
 * of a process apart shows each process on each device, with all that it uses. */
nvmlReturn_t nvml_processes_read(struct nvml_processes *processes, nvmlDevice_t device);
