/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch configurations
 *
 * The driver checks the values of attributes. An event, however, may be destroyed after a
 * launch that names it was accepted, so it is looked up each time.
 */

#include "code/launch-config.h"
#include "wait/event.h"
#include "wire/reason.h"

static CUresult take_attribute(
	struct shim_launch_config *to, const CUlaunchAttribute *from)
{
	CUlaunchAttribute *attribute = &to->attributes[to->n_attributes];
	const CUevent *event;

	switch (from->id) {
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		to->dims.flags &= ~(uint32_t)VGPU_LAUNCH_COOPERATIVE;
		if (from->value.cooperative)
			to->dims.flags |= VGPU_LAUNCH_COOPERATIVE;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
		shim_reason_tell(SHIM_REASON_ATTRIBUTE,
			"a launch fails with CUDA_ERROR_NOT_SUPPORTED (801): nodes of "
			"graphs that a device updates are not remoted");
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		if (!vgpu_launch_attribute_copy(attribute, from))
			return CUDA_ERROR_INVALID_VALUE;
	}
	event = vgpu_launch_attribute_event(attribute);
	if (event && !shim_event_exists(*event))
		return CUDA_ERROR_INVALID_HANDLE;
	if (event)
		shim_event_note_elsewhere(*event);
	to->n_attributes++;
	return CUDA_SUCCESS;
}

CUresult shim_launch_config_take(
	struct shim_launch_config *to, const CUlaunchConfig *from)
{
	CUresult result = CUDA_SUCCESS;

	to->dims = (struct vgpu_launch_dims){
		.axis = { { from->gridDimX, from->blockDimX },
			{ from->gridDimY, from->blockDimY },
			{ from->gridDimZ, from->blockDimZ } },
		.shared_bytes = from->sharedMemBytes,
	};
	to->n_attributes = 0;
	if ((from->numAttrs && !from->attrs) ||
		from->numAttrs > VGPU_LAUNCH_ATTRIBUTES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < from->numAttrs && result == CUDA_SUCCESS; i++)
		result = take_attribute(to, &from->attrs[i]);
	return result;
}
