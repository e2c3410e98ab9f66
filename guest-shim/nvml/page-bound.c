/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page: numbers of the host, within what this library has room for
 *
 * A separate file because a fuzz target is built with a faulty one.
 */

#include "nvml/page.h"

void nvml_page_bound(struct nvml_page_head *head)
{
	if (head->n_devices > VGPU_DEVICES_MAX)
		head->n_devices = VGPU_DEVICES_MAX;
	if (head->n_processes > VGPU_STATUS_PROCESSES_MAX)
		head->n_processes = VGPU_STATUS_PROCESSES_MAX;
	head->driver_version[sizeof(head->driver_version) - 1] = '\0';
}
