/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Functions of the guest library in streams
 */

#include "vgpu/cuda.h"

/* As cuLaunchHostFunc() does; `released` is called instead if the function never runs,
 * also if this call fails. The stream is not captured. */
CUresult shim_callback_launch(
	CUstream stream, CUhostFn function, CUhostFn released, void *data);
