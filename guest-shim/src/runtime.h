/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * NVIDIA's runtime library: results that only it is given
 *
 * The runtime hands a driver's results to the program as they are. For some failures it
 * documents other codes than the Driver API does, two of which no CUresult has a name
 * for; so a driver gives them to the runtime. A process uses the runtime once it has
 * asked for the runtime's export table. The runtime launches kernels of libraries, by
 * their CUkernel; other users of the Driver API mostly launch functions of modules, whose
 * results stay those of the Driver API.
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

/* The result of a call on a function that failed: a function of the host, of which the
 * runtime knows no kernel, is cudaErrorInvalidDeviceFunction. */
CUresult shim_runtime_function_result(const void *function, CUresult result);

/* The result of a reset of a context that had a fault, which cudaDeviceReset returns. */
CUresult shim_runtime_reset_result(CUresult fault, CUresult result);
