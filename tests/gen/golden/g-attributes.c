/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Device attributes with a fixed value for guests */

#include "worker/handle/generated.h"

bool attribute_answer(CUdevice_attribute attribute, int *valuep)
{
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_NUMA_ID:
		*valuep = -1;
		return true;
	case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
	case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
		*valuep = 0;
		return true;
	default:
		return false;
	}
}
