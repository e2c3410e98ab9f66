/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and meanings of results, those that this driver gives
 */

#include "api/api.h"

struct error {
	CUresult code;
	const char *name;
	const char *text;
};

#define ERROR(_code, _text)                                                              \
	{                                                                                \
		CUDA_##_code, "CUDA_" #_code, _text                                      \
	}

static const struct error errors[] = {
	ERROR(SUCCESS, "no error"),
	ERROR(ERROR_INVALID_VALUE, "invalid argument"),
	ERROR(ERROR_OUT_OF_MEMORY, "out of memory"),
	ERROR(ERROR_NOT_INITIALIZED, "initialization error"),
	ERROR(ERROR_DEINITIALIZED, "driver shutting down"),
	ERROR(ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
	ERROR(ERROR_INVALID_DEVICE, "invalid device ordinal"),
	ERROR(ERROR_INVALID_IMAGE, "device kernel image is invalid"),
	ERROR(ERROR_INVALID_CONTEXT, "invalid device context"),
	ERROR(ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for this device"),
	ERROR(ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this device"),
	ERROR(ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
	ERROR(ERROR_UNSUPPORTED_PTX_VERSION, "the PTX was made by a newer toolchain"),
	ERROR(ERROR_INVALID_SOURCE, "device kernel source is invalid"),
	ERROR(ERROR_FILE_NOT_FOUND, "file not found"),
	ERROR(ERROR_OPERATING_SYSTEM, "an operating system call failed"),
	ERROR(ERROR_INVALID_HANDLE, "invalid resource handle"),
	ERROR(ERROR_ILLEGAL_STATE, "the operation cannot be performed in this state"),
	ERROR(ERROR_NOT_FOUND, "named symbol not found"),
	ERROR(ERROR_NOT_READY, "device not ready"),
	ERROR(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
	ERROR(ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
	ERROR(ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
	ERROR(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
	ERROR(ERROR_ASSERT, "device-side assert triggered"),
	ERROR(ERROR_HOST_MEMORY_ALREADY_REGISTERED,
		"part or all of the memory is already registered"),
	ERROR(ERROR_HOST_MEMORY_NOT_REGISTERED, "the memory is not registered"),
	ERROR(ERROR_HARDWARE_STACK_ERROR, "hardware stack error"),
	ERROR(ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
	ERROR(ERROR_MISALIGNED_ADDRESS, "misaligned address"),
	ERROR(ERROR_INVALID_ADDRESS_SPACE,
		"operation not supported on this memory space"),
	ERROR(ERROR_INVALID_PC, "invalid program counter"),
	ERROR(ERROR_LAUNCH_FAILED, "unspecified launch failure"),
	ERROR(ERROR_NOT_PERMITTED, "operation not permitted"),
	ERROR(ERROR_NOT_SUPPORTED, "operation not supported"),
	ERROR(ERROR_UNKNOWN, "unknown error"),
};

static const struct error *error_find(CUresult code)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].code == code)
			return &errors[i];
	return NULL;
}

CUresult cuGetErrorName(CUresult error, const char **pStr)
{
	const struct error *found = error_find(error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = found ? found->name : NULL;
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **pStr)
{
	const struct error *found = error_find(error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = found ? found->text : NULL;
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
