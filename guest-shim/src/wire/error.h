/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names of error codes
 */

#include "vgpu/cuda.h"

/* Returns: the name of a code, or NULL for a number that is none. */
const char *shim_error_name(CUresult error);
