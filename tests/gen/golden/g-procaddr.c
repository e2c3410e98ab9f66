/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Table of cuGetProcAddress */

#include "vgpu/cuda.h"
#include "vgpu/procaddr.h"

const struct vgpu_procaddr vgpu_procaddr[] = {
	{ "cuEventDestroy", 2000, (void *)cuEventDestroy, 0, NULL },
	{ "cuEventQuery", 2000, (void *)cuEventQuery, 0, NULL },
	{ "cuFind", 12040, (void *)cuFind, 0, NULL },
	{ "cuGraphLaunch", 10000,
		(void *)cuGraphLaunch,
		10000, (void *)cuGraphLaunch_ptsz },
	{ "cuInit", 2000, (void *)cuInit, 0, NULL },
	{ "cuLaunch", 2000, (void *)cuLaunch, 7000, (void *)cuLaunch_ptsz },
	{ "cuMemAlloc", 2000, (void *)cuMemAlloc, 0, NULL },
	{ "cuMemAlloc", 3020, (void *)cuMemAlloc_v2, 0, NULL },
	{ "cuMemsetD16Async", 3020,
		(void *)cuMemsetD16Async,
		7000, (void *)cuMemsetD16Async_ptsz },
	{ "cuNameOf", 6000, (void *)cuNameOf, 0, NULL },
	{ "cuNumber", 2000, (void *)cuNumber, 0, NULL },
	{ "cuNumberOf", 6000, (void *)cuNumberOf, 7000, (void *)cuNumberOf_ptds },
	{ "cuStreamGetPriority", 5050,
		(void *)cuStreamGetPriority,
		7000, (void *)cuStreamGetPriority_ptsz },
};

const size_t vgpu_n_procaddr = sizeof(vgpu_procaddr) / sizeof(vgpu_procaddr[0]);
