/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Kernels: where their parameters lie
 *
 * CUfunction and CUkernel are asked by different calls of the driver, and older
 * drivers have neither; then the sizes of parameters are not known.
 */

#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/base/context.h"

/* Parameters in one reply: what fits a reply slot. */
#define KERNEL_INFO_MAX 190u

/* Attributes of a function returned at once, with one bit each that shows whether the
 * driver knew it. */
#define KERNEL_ATTRIBUTES_MAX 32u

/* The longest mangled name that fits a reply slot besides the other fields. */
#define KERNEL_NAME_MAX 1900u

/* A kernel has at most 32 764 bytes of parameters, so never more parameters. */
#define KERNEL_PARAMS_MAX 32764u

/*
 * The size of a kernel's parameter block, queried once per entry.
 *
 * Return: CUDA_SUCCESS, or CUDA_ERROR_NOT_SUPPORTED if the driver does not know it.
 */
CUresult kernel_param_size(struct call *call, struct kernel *kernel, uint32_t *sizep);

/* The offset and size of one parameter. Return: CUDA_ERROR_INVALID_VALUE after the
 * last. */
CUresult kernel_param(struct call *call, const struct kernel *kernel, size_t index,
	size_t *offsetp, size_t *sizep);

/* Answers vgpuFunctionInfo. */
CUresult kernel_describe(struct call *call, const Vgpu__VgpuFunctionInfoRequest *request,
	Vgpu__VgpuFunctionInfoReply *reply);

/* Answers vgpuFunctionAttributes. */
CUresult kernel_attributes(struct call *call,
	const Vgpu__VgpuFunctionAttributesRequest *request,
	Vgpu__VgpuFunctionAttributesReply *reply);

/* Handles in one reply. */
#define KERNEL_LIST_MAX 190u

/*
 * Makes room for an enumeration: of the *np that there are, no more than the caller
 * asked for, and for the handles of one reply.
 */
CUresult kernel_list_prepare(struct call *call, unsigned int *np, unsigned int wanted,
	void ***objectsp, uint64_t **handlesp);

/* Gives handles to those from `first` on, as many as a reply takes. */
CUresult kernel_list(struct call *call, enum vgpu_handle_kind kind, void **objects,
	unsigned int n, unsigned int first, const struct object *parent,
	uint64_t *handles, size_t *n_handlesp);

/*
 * A name as a reply can carry it.
 *
 * Return: CUDA_SUCCESS, or CUDA_ERROR_NOT_SUPPORTED for one that does not fit.
 */
CUresult kernel_name(struct call *call, const char *name, char **namep);
