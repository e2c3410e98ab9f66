/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Kernels: where their parameters lie
 *
 * CUfunction and CUkernel are asked by different calls of the driver, and older
 * drivers have neither; then the sizes of parameters are not known.
 */

#include "g-handlers.h"
#include "worker/call.h"
#include "worker/context.h"

/* Parameters told in one reply: what fits a reply slot. */
#define KERNEL_INFO_MAX 190u

/* A mangled name beside the rest of a reply in its slot. */
#define KERNEL_NAME_MAX 1900u

/* A kernel has at most 32 764 bytes of parameters, so never more parameters. */
#define KERNEL_PARAMS_MAX 32764u

/*
 * The size of a kernel's parameter block, asked once for each entry.
 *
 * Return: CUDA_SUCCESS, or CUDA_ERROR_NOT_SUPPORTED where the driver cannot tell.
 */
CUresult kernel_param_size(struct call *call, struct kernel *kernel, uint32_t *sizep);

/* Answers vgpuFunctionInfo. */
CUresult kernel_describe(struct call *call, const Vgpu__VgpuFunctionInfoRequest *request,
	Vgpu__VgpuFunctionInfoReply *reply);

/*
 * A name as a reply can carry it.
 *
 * Return: CUDA_SUCCESS, or CUDA_ERROR_NOT_SUPPORTED for one that does not fit.
 */
CUresult kernel_name(struct call *call, const char *name, char **namep);
