/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planted bug: the host's number of processes is believed
 *
 * Built instead of guest-shim/nvml/page-bound.c into the target that must find it.
 */

#include "nvml/page.h"

void nvml_page_bound(struct nvml_page_head *head)
{
	if (head->n_devices > VGPU_DEVICES_MAX)
		head->n_devices = VGPU_DEVICES_MAX;
	head->driver_version[sizeof(head->driver_version) - 1] = '\0';
}
