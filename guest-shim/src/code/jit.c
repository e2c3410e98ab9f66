/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the compiler in the driver
 */

#include <string.h>

#include "code/jit.h"

static CUresult send(struct vgpu_load *load, CUjit_option option, void *value)
{
	if (load->n_options == VGPU_LOAD_OPTIONS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	load->options[load->n_options++] = (struct vgpu_load_option){
		.option = option,
		.value = (uint64_t)(uintptr_t)value,
	};
	return CUDA_SUCCESS;
}

static void note_size(struct shim_jit_log *log, void **valuep)
{
	log->size = (uint32_t)(uintptr_t)*valuep;
	log->sizep = valuep;
}

static CUresult prepare(
	struct shim_jit *jit, CUjit_option option, void **valuep, struct vgpu_load *load)
{
	switch (option) {
	case CU_JIT_INFO_LOG_BUFFER:
		jit->info.buffer = *valuep;
		return CUDA_SUCCESS;
	case CU_JIT_ERROR_LOG_BUFFER:
		jit->error.buffer = *valuep;
		return CUDA_SUCCESS;
	case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
		note_size(&jit->info, valuep);
		return CUDA_SUCCESS;
	case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
		note_size(&jit->error, valuep);
		return CUDA_SUCCESS;
	case CU_JIT_GLOBAL_SYMBOL_NAMES:
	case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
	case CU_JIT_GLOBAL_SYMBOL_COUNT:
	case CU_JIT_REFERENCED_KERNEL_NAMES:
	case CU_JIT_REFERENCED_KERNEL_COUNT:
	case CU_JIT_REFERENCED_VARIABLE_NAMES:
	case CU_JIT_REFERENCED_VARIABLE_COUNT:
		return CUDA_ERROR_NOT_SUPPORTED;
	case CU_JIT_WALL_TIME:
		jit->wall_timep = valuep;
		break;
	case CU_JIT_THREADS_PER_BLOCK:
		jit->threads_per_blockp = valuep;
		break;
	default:
		break;
	}
	return send(load, option, *valuep);
}

/* How much of a log has to come back. */
static uint32_t wanted(const struct shim_jit_log *log)
{
	if (!log->buffer)
		return 0;
	return log->size < VGPU_LOAD_LOG_MAX ? log->size : VGPU_LOAD_LOG_MAX;
}

CUresult shim_jit_prepare(struct shim_jit *jit, const CUjit_option *options,
	void **values, unsigned int n, struct vgpu_load *load)
{
	CUresult result;

	*jit = (struct shim_jit){};
	if (n && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < n; i++) {
		if ((int)options[i] < 0 || options[i] >= CU_JIT_NUM_OPTIONS)
			return CUDA_ERROR_INVALID_VALUE;
		result = prepare(jit, options[i], &values[i], load);
		if (result != CUDA_SUCCESS)
			return result;
	}
	load->info_size = wanted(&jit->info);
	load->error_size = wanted(&jit->error);
	return CUDA_SUCCESS;
}

/* Fills the program's buffer and stores its used size. */
static void return_log(
	const struct shim_jit_log *log, uint32_t room, const char *text, uint32_t size)
{
	if (!room)
		return;
	if (size > room - 1)
		size = room - 1;
	if (size)
		memcpy(log->buffer, text, size);
	log->buffer[size] = '\0';
	*log->sizep = (void *)(uintptr_t)size;
}

void shim_jit_finish(const struct shim_jit *jit, const struct vgpu_load *load,
	const struct vgpu_load_result *result, const char *logs)
{
	return_log(&jit->info, load->info_size, logs, result->info_size);
	return_log(&jit->error, load->error_size, logs + load->info_size,
		result->error_size);
	if (jit->wall_timep)
		memcpy(jit->wall_timep, &result->wall_time, sizeof(result->wall_time));
	if (jit->threads_per_blockp)
		*jit->threads_per_blockp = (void *)(uintptr_t)result->threads_per_block;
}
