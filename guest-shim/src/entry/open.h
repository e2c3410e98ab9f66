/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Opening and closing: the first use of the library, fork, and exit
 */

#include "vgpu/cuda.h"

/* Makes the process ready. Any number of times, from any thread. */
CUresult shim_open(void);
