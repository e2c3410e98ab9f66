/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * NVIDIA's runtime library: results that only the runtime gets
 *
 * The runtime passes a driver's results on to the program. For some failures it documents
 * other codes than the Driver API does, two of which have no CUresult; so a driver
 * returns them to the runtime only. A process uses the runtime once it has requested the
 * runtime's export table. The runtime launches kernels of libraries, by their CUkernel;
 * other users of the Driver API mostly launch functions of modules, whose results are
 * those of the Driver API.
 */

#include <stdbool.h>

#include "vgpu/cuda.h"

struct shim_context;
struct shim_launch;

/* The runtime asked for its table. */
void shim_runtime_note(void);

/* The result of a launch that was refused: sizes that no launch can have are
 * cudaErrorInvalidConfiguration. */
CUresult shim_runtime_launch_result(const struct shim_context *context,
	const struct shim_launch *launch, CUresult result);

/* The result of a failed call on a function: a function of the host, which is not a
 * kernel of the runtime, is cudaErrorInvalidDeviceFunction. */
CUresult shim_runtime_function_result(const void *function, CUresult result);

/* The result of a reset of a context that had a fault, which cudaDeviceReset returns. */
CUresult shim_runtime_reset_result(CUresult fault, CUresult result);
