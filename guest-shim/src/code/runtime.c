/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's runtime library: results that only it is given
 */

#include "vgpu/handle.h"

#include "code/launch.h"
#include "code/runtime.h"
#include "process/context.h"
#include "process/device.h"

/* Of cudaError_t, and of no CUresult. */
#define INVALID_CONFIGURATION ((CUresult)9)
#define INVALID_DEVICE_FUNCTION ((CUresult)98)

static bool runtime_is_here;

void shim_runtime_note(void)
{
	__atomic_store_n(&runtime_is_here, true, __ATOMIC_RELAXED);
}

static bool is_used(void)
{
	return __atomic_load_n(&runtime_is_here, __ATOMIC_RELAXED);
}

static bool is_legal_size(
	const struct vgpu_device_info *device, unsigned int size, int attribute)
{
	return size && size <= (unsigned int)device->attributes[attribute];
}

/* Whether grid, block and shared memory are such as some kernel can have. */
static bool has_legal_sizes(
	const struct shim_context *context, const struct vgpu_launch_dims *dims)
{
	const struct vgpu_device_info *device = shim_device_get(context->device);
	uint64_t n_threads = 1;

	for (int i = 0; i < 3; i++) {
		if (!is_legal_size(device, dims->axis[i].grid,
			    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i) ||
			!is_legal_size(device, dims->axis[i].block,
				CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i))
			return false;
		n_threads *= dims->axis[i].block;
	}
	return n_threads <=
	       (unsigned int)
		       device->attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
}

CUresult shim_runtime_launch_result(const struct shim_context *context,
	const struct shim_launch *launch, CUresult result)
{
	uint64_t handle = (uint64_t)(uintptr_t)launch->function;

	if (result != CUDA_ERROR_INVALID_VALUE || !is_used() ||
		vgpu_handle_kind(handle) != VGPU_HANDLE_KERNEL)
		return result;
	/* The maximum of shared memory depends on an attribute of the kernel: the driver
	 * refused it, and no other cause is left. */
	return has_legal_sizes(context, &launch->dims) &&
			       (!launch->dims.shared_bytes || launch->n_attributes)
		       ? result
		       : INVALID_CONFIGURATION;
}

CUresult shim_runtime_function_result(const void *function, CUresult result)
{
	if (result != CUDA_ERROR_INVALID_HANDLE || !is_used() ||
		vgpu_handle_kind((uint64_t)(uintptr_t)function))
		return result;
	return INVALID_DEVICE_FUNCTION;
}

CUresult shim_runtime_reset_result(CUresult fault, CUresult result)
{
	return result == CUDA_SUCCESS && is_used() ? fault : result;
}
