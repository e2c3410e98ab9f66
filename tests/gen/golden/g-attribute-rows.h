/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* The value of each documented attribute on softgpu */

#pragma once

static const struct attribute_row rows_CUdevice_attribute[] = {
	{ "CU_DEVICE_ATTRIBUTE_WARP_SIZE", 10, { "32", "64" } },
	{ "CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY", 83, { "0", "0" } },
	{ "CU_DEVICE_ATTRIBUTE_NUMA_ID", 131, { "-1", "-1" } },
	{ "CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED", 132, { "0", "0" } },
};
