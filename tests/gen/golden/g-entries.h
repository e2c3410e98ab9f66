/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* The functions behind the exported ones */

#pragma once

#include "vgpu/cuda.h"

CUresult shim_cuInit(unsigned int Flags);
CUresult shim_cuNameOf(int number, const char **name);
CUresult shim_cuNumberOf(const char *name, size_t *number);
CUresult shim_cuNumberOf_ptds(const char *name, size_t *number);
CUresult shim_cuNumberOf_on(const char *name, size_t *number, CUstream stream);
CUresult shim_cuNumber(const char *name, size_t *number);
CUresult shim_cuStreamGetPriority(CUstream hStream, int *priority);
CUresult shim_cuStreamGetPriority_ptsz(CUstream hStream, int *priority);
CUresult shim_cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N,
	CUstream hStream);
CUresult shim_cuMemsetD16Async_ptsz(CUdeviceptr dstDevice, unsigned short us, size_t N,
	CUstream hStream);
CUresult shim_cuMemAlloc(unsigned int *dptr, unsigned int bytesize);
CUresult shim_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize);
CUresult shim_cuEventDestroy(CUevent hEvent);
CUresult shim_cuEventQuery(CUevent hEvent);
CUresult shim_cuFind(size_t *found, const char *name, int *count);
CUresult shim_cuLaunch(void **params, CUstream hStream);
CUresult shim_cuLaunch_ptsz(void **params, CUstream hStream);
CUresult shim_cuGraphLaunch(CUgraph graph, CUstream hStream);
CUresult shim_cuGraphLaunch_ptsz(CUgraph graph, CUstream hStream);
