/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Share: the tokens of memory that processes of one VM share
 */

#include <stdint.h>

#include "vgpu/cuda.h"

#include "memory/token-file.h"

/* As cuMemExportToShareableHandle and cuMemImportFromShareableHandle, without a file. */
CUresult shim_share_export(
	CUmemGenericAllocationHandle handle, uint8_t token[SHIM_TOKEN_SIZE]);
CUresult shim_share_import(
	const uint8_t token[SHIM_TOKEN_SIZE], CUmemGenericAllocationHandle *handle);
