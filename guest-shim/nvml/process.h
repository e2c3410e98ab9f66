/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Process: the VM's processes that use its devices, as the caller sees them
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

nvmlReturn_t nvml_processes_read(struct nvml_processes *processes);
