/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Launch attributes as they travel: CUlaunchAttribute, of whose value only the bytes
 * that the attribute has are not zero. Those that are not listed here do not travel.
 */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "vgpu/cuda.h"

/* CUDA knows fewer than 20 launch attributes, and each may be given once. */
#define VGPU_LAUNCH_ATTRIBUTES_MAX 32u

#define VGPU_ATTRIBUTE_BYTES(_member) sizeof(((CUlaunchAttributeValue *)NULL)->_member)

/* Bytes at the start of the value that mean something, 0 where none travel. */
static inline size_t vgpu_launch_attribute_size(CUlaunchAttributeID id)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		return VGPU_ATTRIBUTE_BYTES(accessPolicyWindow);
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		return VGPU_ATTRIBUTE_BYTES(cooperative);
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		return VGPU_ATTRIBUTE_BYTES(syncPolicy);
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		return VGPU_ATTRIBUTE_BYTES(clusterDim);
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		return VGPU_ATTRIBUTE_BYTES(clusterSchedulingPolicyPreference);
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
		return VGPU_ATTRIBUTE_BYTES(programmaticStreamSerializationAllowed);
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		return VGPU_ATTRIBUTE_BYTES(programmaticEvent);
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		return VGPU_ATTRIBUTE_BYTES(priority);
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		return VGPU_ATTRIBUTE_BYTES(memSyncDomainMap);
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		return VGPU_ATTRIBUTE_BYTES(memSyncDomain);
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
		return VGPU_ATTRIBUTE_BYTES(preferredClusterDim);
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		return offsetof(CUlaunchAttributeValue, launchCompletionEvent.flags) +
		       VGPU_ATTRIBUTE_BYTES(launchCompletionEvent.flags);
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return VGPU_ATTRIBUTE_BYTES(sharedMemCarveout);
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return VGPU_ATTRIBUTE_BYTES(nvlinkUtilCentricScheduling);
	default:
		return 0;
	}
}

/* Copies what travels. Return: false, leaving @to alone, for what does not. */
static inline bool vgpu_launch_attribute_copy(
	CUlaunchAttribute *to, const CUlaunchAttribute *from)
{
	size_t size = vgpu_launch_attribute_size(from->id);

	if (!size)
		return false;
	memset(to, 0, sizeof(*to));
	to->id = from->id;
	memcpy(&to->value, &from->value, size);
	return true;
}

/* The event that an attribute has recorded. Return: NULL for other attributes. */
static inline CUevent *vgpu_launch_attribute_event(CUlaunchAttribute *attribute)
{
	switch (attribute->id) {
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		return &attribute->value.programmaticEvent.event;
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		return &attribute->value.launchCompletionEvent.event;
	default:
		return NULL;
	}
}
