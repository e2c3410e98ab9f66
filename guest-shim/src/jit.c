/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the compiler in the driver
 */

#include <string.h>

#include "jit.h"

enum treatment { SEND, KEEP_HERE, LEAVE_OUT, REFUSE };

static enum treatment treatment_of(CUjit_option option)
{
	switch (option) {
	case CU_JIT_MAX_REGISTERS:
	case CU_JIT_THREADS_PER_BLOCK:
	case CU_JIT_WALL_TIME:
	case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
	case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
	case CU_JIT_OPTIMIZATION_LEVEL:
	case CU_JIT_TARGET_FROM_CUCONTEXT:
	case CU_JIT_TARGET:
	case CU_JIT_FALLBACK_STRATEGY:
	case CU_JIT_GENERATE_DEBUG_INFO:
	case CU_JIT_LOG_VERBOSE:
	case CU_JIT_GENERATE_LINE_INFO:
	case CU_JIT_CACHE_MODE:
	case CU_JIT_FAST_COMPILE:
		return SEND;
	case CU_JIT_INFO_LOG_BUFFER:
	case CU_JIT_ERROR_LOG_BUFFER:
		return KEEP_HERE;
	case CU_JIT_GLOBAL_SYMBOL_NAMES:
	case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
	case CU_JIT_GLOBAL_SYMBOL_COUNT:
	case CU_JIT_REFERENCED_KERNEL_NAMES:
	case CU_JIT_REFERENCED_KERNEL_COUNT:
	case CU_JIT_REFERENCED_VARIABLE_NAMES:
	case CU_JIT_REFERENCED_VARIABLE_COUNT:
		return REFUSE;
	default:
		return LEAVE_OUT;
	}
}

CUresult shim_jit_prepare(
	struct shim_jit *jit, const CUjit_option *options, void **values, unsigned int n)
{
	if (n > SHIM_JIT_OPTIONS_MAX || (n && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	jit->options = options;
	jit->values = values;
	jit->n = n;
	jit->n_sent = 0;
	for (unsigned int i = 0; i < n; i++) {
		if ((int)options[i] < 0 || options[i] >= CU_JIT_NUM_OPTIONS)
			return CUDA_ERROR_INVALID_VALUE;
		switch (treatment_of(options[i])) {
		case SEND:
			jit->sent_options[jit->n_sent] = (int32_t)options[i];
			jit->sent_values[jit->n_sent++] = (uint64_t)(uintptr_t)values[i];
			break;
		case REFUSE:
			return CUDA_ERROR_NOT_SUPPORTED;
		case KEEP_HERE:
		case LEAVE_OUT:
			break;
		}
	}
	return CUDA_SUCCESS;
}

/* Fills the program's buffer and tells how much is in it. */
static void return_log(const struct shim_jit *jit, CUjit_option buffer_option,
	CUjit_option size_option, const ProtobufCBinaryData *log)
{
	char *buffer = NULL;
	void **sizep = NULL;
	size_t size;

	for (unsigned int i = 0; i < jit->n; i++) {
		if (jit->options[i] == buffer_option)
			buffer = jit->values[i];
		else if (jit->options[i] == size_option)
			sizep = &jit->values[i];
	}
	size = sizep ? (size_t)(uint32_t)(uintptr_t)*sizep : 0;
	if (!buffer || !size)
		return;
	size = log->len < size - 1 ? log->len : size - 1;
	if (size)
		memcpy(buffer, log->data, size);
	buffer[size] = '\0';
	*sizep = (void *)(uintptr_t)size;
}

void shim_jit_finish(const struct shim_jit *jit, float wall_time,
	const ProtobufCBinaryData *info, const ProtobufCBinaryData *error)
{
	return_log(jit, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, info);
	return_log(
		jit, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, error);
	for (unsigned int i = 0; i < jit->n; i++)
		if (jit->options[i] == CU_JIT_WALL_TIME)
			memcpy(&jit->values[i], &wall_time, sizeof(wall_time));
}
