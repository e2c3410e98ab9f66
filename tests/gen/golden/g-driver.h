/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Table of driver functions */

#pragma once

#include <stddef.h>

#include "vgpu/cuda.h"

struct vgpu_driver {
	CUresult (*cuInit)(unsigned int Flags);
	CUresult (*cuNameOf)(int number, const char **name);
	CUresult (*cuNumberOf)(const char *name, size_t *number);
	CUresult (*cuNumber)(const char *name, size_t *number);
	CUresult (*cuStreamGetPriority)(CUstream hStream, int *priority);
	CUresult (*cuMemsetD16Async)(CUdeviceptr dstDevice, unsigned short us, size_t N,
		CUstream hStream);
	CUresult (*cuMemAlloc)(unsigned int *dptr, unsigned int bytesize);
	CUresult (*cuMemAlloc_v2)(CUdeviceptr *dptr, size_t bytesize);
	CUresult (*cuEventDestroy)(CUevent hEvent);
	CUresult (*cuEventQuery)(CUevent hEvent);
	CUresult (*cuFind)(size_t *found, const char *name, int *count);
	CUresult (*cuLaunch)(void **params, CUstream hStream);
	CUresult (*cuGraphLaunch)(CUgraph graph, CUstream hStream);
};

/*
 * Looks all symbols up in a library opened by dlopen().
 *
 * Return: how many were found.
 */
size_t vgpu_driver_resolve(struct vgpu_driver *driver, void *library);
