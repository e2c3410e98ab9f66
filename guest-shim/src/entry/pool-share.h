/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared pools: allocations of one process that another uses
 *
 * The segments of a pool that is made for export have tokens. In the process that imports
 * it a pool allocates nothing: it maps those segments of which it was given allocations,
 * and has these as its blocks in use.
 */

#include "entry/pool.h"

/* Makes the data by which another process finds an allocation of an exportable pool. */
CUresult shim_pool_export(CUdeviceptr address, CUmemPoolPtrExportData *data);

/* Finds an allocation for an imported pool. */
CUresult shim_pool_import(struct shim_pool *pool, const CUmemPoolPtrExportData *data,
	CUdeviceptr *addressp);
