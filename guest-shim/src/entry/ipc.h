/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * IPC: memory of other processes that is mapped here
 *
 * What another process exports is imported and mapped like memory of cuMemCreate(), once
 * for all that is opened in it.
 */

#include <stdint.h>

#include "vgpu/cuda.h"

#include "memory/token-file.h"

/* A random number of this process, by which it knows its own exports. 0: there are no
 * random numbers. */
uint64_t shim_ipc_process(void);

/* Maps memory, readable and writable by a device. */
CUresult shim_ipc_map(CUmemGenericAllocationHandle memory, uint64_t size, CUdevice device,
	uint64_t *basep);

/* Opens what has a token, or one use more of it; closes one use by any address in it. */
CUresult shim_ipc_open(const uint8_t token[SHIM_TOKEN_SIZE], uint64_t size,
	CUdevice device, uint64_t *basep);
CUresult shim_ipc_close(uint64_t address);
