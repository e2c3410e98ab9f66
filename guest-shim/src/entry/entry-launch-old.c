/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: launches of the first versions of CUDA
 *
 * There a function has the state of its next launch: block shape, shared memory and a
 * block of parameters. It is kept here, belongs to what is known of the function, is made
 * at the first call that sets something, and stays as that does. A launch is then an
 * ordinary one. Threads that set up the same function at once get some of both: as each
 * value is checked when it is used, that is all that can happen.
 */

#include <stdlib.h>
#include <string.h>

#include "code/function.h"
#include "code/launch.h"
#include "process/call.h"

struct shim_old_launch {
	uint32_t block[3];
	uint32_t shared_bytes;
	uint32_t param_bytes;
	uint8_t params[VGPU_LAUNCH_PARAMS_MAX];
};

/* The state of a function, after what every launch checks before its arguments. */
static CUresult get_state(CUfunction handle, struct shim_old_launch **statep)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuLaunchKernel);
	struct shim_old_launch *state, *none = NULL;
	struct shim_function *function;
	CUresult result;

	result = shim_call_check(call.id);
	if (result == CUDA_SUCCESS)
		result = shim_function_get(handle, &function);
	if (result != CUDA_SUCCESS)
		return result;
	*statep = __atomic_load_n(&function->old_launch, __ATOMIC_ACQUIRE);
	if (*statep)
		return CUDA_SUCCESS;
	state = calloc(1, sizeof(*state));
	if (!state)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!__atomic_compare_exchange_n(&function->old_launch, &none, state, false,
		    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		free(state);
		state = none;
	}
	*statep = state;
	return CUDA_SUCCESS;
}

CUresult shim_cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
	struct shim_old_launch *state;
	CUresult result = get_state(hfunc, &state);

	if (result != CUDA_SUCCESS)
		return result;
	if (x <= 0 || y <= 0 || z <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	state->block[0] = (uint32_t)x;
	state->block[1] = (uint32_t)y;
	state->block[2] = (uint32_t)z;
	return CUDA_SUCCESS;
}

CUresult shim_cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
	struct shim_old_launch *state;
	CUresult result = get_state(hfunc, &state);

	if (result == CUDA_SUCCESS)
		state->shared_bytes = bytes;
	return result;
}

CUresult shim_cuParamSetSize(CUfunction hfunc, unsigned int numbytes)
{
	struct shim_old_launch *state;
	CUresult result = get_state(hfunc, &state);

	if (result != CUDA_SUCCESS)
		return result;
	if (numbytes > sizeof(state->params))
		return CUDA_ERROR_INVALID_VALUE;
	state->param_bytes = numbytes;
	return CUDA_SUCCESS;
}

static CUresult set_param(CUfunction hfunc, int offset, const void *value, size_t size)
{
	struct shim_old_launch *state;
	CUresult result = get_state(hfunc, &state);

	if (result != CUDA_SUCCESS)
		return result;
	if (offset < 0 || size > sizeof(state->params) ||
		(size_t)offset > sizeof(state->params) - size || (size && !value))
		return CUDA_ERROR_INVALID_VALUE;
	if (size)
		memcpy(state->params + offset, value, size);
	return CUDA_SUCCESS;
}

CUresult shim_cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
	return set_param(hfunc, offset, &value, sizeof(value));
}

CUresult shim_cuParamSetf(CUfunction hfunc, int offset, float value)
{
	return set_param(hfunc, offset, &value, sizeof(value));
}

CUresult shim_cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
	return set_param(hfunc, offset, ptr, numbytes);
}

static CUresult launch(CUfunction function, int width, int height, CUstream stream)
{
	struct shim_old_launch *state;
	CUresult result = get_state(function, &state);
	size_t param_bytes;

	if (result != CUDA_SUCCESS)
		return result;
	if (width <= 0 || height <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	param_bytes = state->param_bytes;
	return shim_launch(&(struct shim_launch){
		.function = function,
		.dims = {
			.axis = { { (uint32_t)width, state->block[0] },
				{ (uint32_t)height, state->block[1] },
				{ 1, state->block[2] } },
			.shared_bytes = state->shared_bytes,
		},
		.stream = stream,
		.extra = (void *[]){ CU_LAUNCH_PARAM_BUFFER_POINTER, state->params,
			CU_LAUNCH_PARAM_BUFFER_SIZE, &param_bytes, CU_LAUNCH_PARAM_END },
	});
}

CUresult shim_cuLaunch(CUfunction f)
{
	return launch(f, 1, 1, NULL);
}

CUresult shim_cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
	return launch(f, grid_width, grid_height, NULL);
}

CUresult shim_cuLaunchGridAsync(
	CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
	return launch(f, grid_width, grid_height, hStream);
}
