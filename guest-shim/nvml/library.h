/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Library: between the first nvmlInit and the last nvmlShutdown
 *
 * Each call of the program is between nvml_enter() and nvml_leave(): what nvmlShutdown
 * releases is kept until the calls of other threads have returned.
 */

#include <stdbool.h>

#include "vgpu/nvml.h"

/* Returns: NVML_ERROR_UNINITIALIZED, or NVML_SUCCESS and the library stays. */
nvmlReturn_t nvml_enter(void);

/* Returns: its argument. */
nvmlReturn_t nvml_leave(nvmlReturn_t result);
