/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Text: into a buffer of the program, or NVML_ERROR_INSUFFICIENT_SIZE
 */

#include <string.h>

#include "vgpu/nvml.h"

static inline nvmlReturn_t nvml_text_answer(
	char *buffer, unsigned int length, const char *text)
{
	size_t size = strlen(text) + 1;

	if (size > length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(buffer, text, size);
	return NVML_SUCCESS;
}
