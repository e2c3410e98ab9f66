/* Generated from nvml-small.xml by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of NVML that are written by hand */

#pragma once

#include "vgpu/nvml.h"

nvmlReturn_t answer_nvmlInit_v2(void);
const char *answer_nvmlErrorString(nvmlReturn_t result);
nvmlReturn_t answer_nvmlDeviceGetPair(nvmlDevice_t device, nvmlPair_v1_t *pair,
	unsigned int *list);
