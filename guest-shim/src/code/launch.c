/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches
 *
 * The parameters a program names one by one, or hands over as a buffer, travel as the
 * block that the kernel sees. A launch of a shape that was accepted before, with a grid
 * that the device can have, is not waited for; every other one is, so that a refusal
 * reaches the caller. Attributes belong to the shape. Nothing on this path allocates
 * memory.
 */

#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "code/function.h"
#include "code/launch.h"
#include "code/runtime.h"
#include "process/call.h"
#include "process/context.h"
#include "process/device.h"
#include "process/environment.h"
#include "wait/capture.h"

/* The arguments that the program passes by `extra`. */
struct packed_params {
	const void *data;
	size_t size;
};

static CUresult parse_extra(void **extra, struct packed_params *packed)
{
	bool has_size = false;

	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
			packed->data = extra[1];
		} else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1]) {
			packed->size = *(const size_t *)extra[1];
			has_size = true;
		} else {
			return CUDA_ERROR_INVALID_VALUE;
		}
	}
	if (!has_size || (packed->size && !packed->data) ||
		packed->size > VGPU_LAUNCH_PARAMS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static uint32_t end_of_params(const struct shim_function *function)
{
	const uint32_t n = function->n_params;

	return n ? function->offsets[n - 1] + function->sizes[n - 1] : 0;
}

/* Nearly all parameters are pointers or numbers: a call of memcpy() costs more. */
static inline void copy_param(uint8_t *to, const void *from, uint32_t size)
{
	if (size == sizeof(uint64_t))
		memcpy(to, from, sizeof(uint64_t));
	else if (size == sizeof(uint32_t))
		memcpy(to, from, sizeof(uint32_t));
	else
		memcpy(to, from, size);
}

static inline void gather_words(uint8_t *block, void *const *params, uint32_t n)
{
#pragma GCC unroll 4
	for (uint32_t i = 0; i < n; i++, block += sizeof(uint64_t))
		memcpy(block, params[i], sizeof(uint64_t));
}

CUresult shim_launch_gather(const struct shim_launch *launch,
	const struct shim_function *function, uint8_t *block)
{
	struct packed_params packed = {};
	CUresult result;

	if (launch->extra) {
		if (launch->params)
			return CUDA_ERROR_INVALID_VALUE;
		result = parse_extra(launch->extra, &packed);
		if (result != CUDA_SUCCESS)
			return result;
		/* Alignment at the end may be missing or too much, parameters may not. */
		if (packed.size < end_of_params(function))
			return CUDA_ERROR_INVALID_VALUE;
		memset(block, 0, function->param_bytes);
		memcpy(block, packed.data,
			packed.size < function->param_bytes ? packed.size
							    : function->param_bytes);
		return CUDA_SUCCESS;
	}
	if (!function->n_params)
		return CUDA_SUCCESS;
	if (!launch->params)
		return CUDA_ERROR_INVALID_VALUE;
	if (function->has_gaps)
		memset(block, 0, function->param_bytes);
	if (function->is_words) {
		gather_words(block, launch->params, function->n_params);
		return CUDA_SUCCESS;
	}
	for (uint32_t i = 0; i < function->n_params; i++)
		copy_param(block + function->offsets[i], launch->params[i],
			function->sizes[i]);
	return CUDA_SUCCESS;
}

/* Whether the driver must accept these dimensions, given that it accepted the shape
 * before. */
static bool has_legal_grid(
	const struct shim_context *context, const struct vgpu_launch_dims *dims)
{
	const struct vgpu_device_info *device = shim_device_get(context->device);

	for (int i = 0; i < 3; i++) {
		int max = device->attributes[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i];

		if (!dims->axis[i].grid || dims->axis[i].grid > (unsigned int)max)
			return false;
	}
	return true;
}

static CUresult send_plain(struct shim_call *call, const struct shim_launch *launch,
	const ProtobufCBinaryData *params)
{
	Vgpu__CuLaunchKernelRequest request = VGPU__CU_LAUNCH_KERNEL_REQUEST__INIT;

	request.f = (uint64_t)(uintptr_t)launch->function;
	request.h_stream = (uint64_t)(uintptr_t)launch->stream;
	request.dims.data = (uint8_t *)&launch->dims;
	request.dims.len = vgpu_launch_dims_size(&launch->dims);
	request.params = *params;
	return shim_call_async(call, &request.base, launch->stream);
}

static CUresult send_with_attributes(struct shim_call *call,
	const struct shim_launch *launch, const ProtobufCBinaryData *params)
{
	Vgpu__CuLaunchKernelExRequest request = VGPU__CU_LAUNCH_KERNEL_EX_REQUEST__INIT;

	call->id = VGPU_CALL_cuLaunchKernelEx;
	request.f = (uint64_t)(uintptr_t)launch->function;
	request.h_stream = (uint64_t)(uintptr_t)launch->stream;
	request.dims.data = (uint8_t *)&launch->dims;
	request.dims.len = vgpu_launch_dims_size(&launch->dims);
	request.params = *params;
	request.attributes.data = (uint8_t *)launch->attributes;
	request.attributes.len = launch->n_attributes * sizeof(*launch->attributes);
	return shim_call_async(call, &request.base, launch->stream);
}

CUresult shim_launch(const struct shim_launch *launch)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuLaunchKernel);
	struct shim_function *function;
	ProtobufCBinaryData params;
	struct shim_context *context;
	struct shim_thread *thread;
	uint64_t shape;
	CUresult result;

	result = shim_call_begin(&call);
	if (result != CUDA_SUCCESS)
		return result;
	thread = call.thread;
	context = shim_thread_top(thread);
	result = shim_function_get(launch->function, &function);
	if (result != CUDA_SUCCESS)
		return shim_runtime_function_result(launch->function, result);
	if (function->is_words && launch->params && !launch->extra)
		gather_words(thread->params, launch->params, function->n_params);
	else
		result = shim_launch_gather(launch, function, thread->params);
	if (result != CUDA_SUCCESS)
		return result;

	shape = shim_function_shape(context, function, launch);
	call.wants_result = !shim_function_knows(function, shape) ||
			    !has_legal_grid(context, &launch->dims);
	params.data = thread->params;
	params.len = function->param_bytes;
	result = launch->n_attributes ? send_with_attributes(&call, launch, &params)
				      : send_plain(&call, launch, &params);
	if (__builtin_expect(result != CUDA_SUCCESS, 0))
		return shim_runtime_launch_result(context, launch, result);
	if (call.wants_result)
		shim_function_remember(function, shape);
	if (shim_environment.launches_block && !shim_channel_has_capture())
		result = shim_stream_synchronize(launch->stream);
	return result;
}
