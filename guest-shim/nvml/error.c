/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: the text of each return code
 */

#include "nvml/g-nvml-answers.h"

const char *answer_nvmlErrorString(nvmlReturn_t result)
{
	/* clang-format off */
	switch (result) {
	case NVML_SUCCESS:			return "Success";
	case NVML_ERROR_UNINITIALIZED:		return "The library is not initialised";
	case NVML_ERROR_INVALID_ARGUMENT:	return "Invalid argument";
	case NVML_ERROR_NOT_SUPPORTED:		return "Not supported";
	case NVML_ERROR_NO_PERMISSION:		return "No permission";
	case NVML_ERROR_ALREADY_INITIALIZED:	return "Already initialised";
	case NVML_ERROR_NOT_FOUND:		return "Not found";
	case NVML_ERROR_INSUFFICIENT_SIZE:	return "The buffer is too small";
	case NVML_ERROR_INSUFFICIENT_POWER:	return "A power cable is missing";
	case NVML_ERROR_DRIVER_NOT_LOADED:	return "No driver, or no way to the host";
	case NVML_ERROR_TIMEOUT:		return "Timeout";
	case NVML_ERROR_IRQ_ISSUE:		return "Interrupts do not arrive";
	case NVML_ERROR_LIBRARY_NOT_FOUND:	return "The library is not found";
	case NVML_ERROR_FUNCTION_NOT_FOUND:	return "The library lacks the function";
	case NVML_ERROR_CORRUPTED_INFOROM:	return "The InfoROM is corrupted";
	case NVML_ERROR_GPU_IS_LOST:		return "The device is lost";
	case NVML_ERROR_RESET_REQUIRED:		return "The device has to be reset";
	case NVML_ERROR_OPERATING_SYSTEM:	return "Refused by the operating system";
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
						return "Library and driver differ";
	case NVML_ERROR_IN_USE:			return "In use";
	case NVML_ERROR_MEMORY:			return "No memory";
	case NVML_ERROR_NO_DATA:		return "No data";
	case NVML_ERROR_VGPU_ECC_NOT_SUPPORTED:	return "Not with ECC";
	case NVML_ERROR_INSUFFICIENT_RESOURCES:	return "Resources are used up";
	case NVML_ERROR_FREQ_NOT_SUPPORTED:	return "The clock is not supported";
	case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
						return "Unknown version of a structure";
	case NVML_ERROR_DEPRECATED:		return "No longer supported";
	case NVML_ERROR_NOT_READY:		return "Not ready";
	case NVML_ERROR_GPU_NOT_FOUND:		return "No device";
	case NVML_ERROR_INVALID_STATE:		return "Not in this state";
	case NVML_ERROR_RESET_TYPE_NOT_SUPPORTED:
						return "No such kind of reset";
	case NVML_ERROR_UNKNOWN:		return "Unknown error";
	default:				return "Not a return code";
	}
	/* clang-format on */
}
