/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that run each call, and handlers written by hand */

#pragma once

#include "vgpu/cuda.h"
#include "vgpu/g-driver.pb-c.h"

struct call;

int dispatch_vgpuHello(struct call *call);
int dispatch_cuStreamGetPriority(struct call *call);
int dispatch_cuMemsetD16Async(struct call *call);
int dispatch_cuMemAlloc_v2(struct call *call);
int dispatch_cuEventDestroy(struct call *call);
int dispatch_cuEventQuery(struct call *call);
int dispatch_cuFind(struct call *call);
int dispatch_cuLaunch(struct call *call);

/* Return the version of the host. */
CUresult handle_vgpuHello(struct call *call, const Vgpu__VgpuHelloRequest *request,
	Vgpu__VgpuHelloReply *reply);
/* Allocate linear device memory. */
CUresult handle_cuMemAlloc_v2(struct call *call, const Vgpu__CuMemAllocV2Request *request,
	Vgpu__CuMemAllocV2Reply *reply);
/* Find a thing by name and change how it counts. */
CUresult handle_cuFind(struct call *call, const Vgpu__CuFindRequest *request,
	Vgpu__CuFindReply *reply);
/* Launch what a pointer leads to. */
CUresult handle_cuLaunch(struct call *call, const Vgpu__CuLaunchRequest *request,
	Vgpu__CuLaunchReply *reply);
