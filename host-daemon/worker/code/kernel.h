/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Kernels: their parameters, attributes and names
 *
 * The driver has different queries for CUfunction and CUkernel, and older drivers have
 * neither; the sizes of parameters are unknown then.
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

/* Handles vgpuFunctionInfo. */
CUresult kernel_describe(struct call *call, const Vgpu__VgpuFunctionInfoRequest *request,
	Vgpu__VgpuFunctionInfoReply *reply);

/* Handles vgpuFunctionAttributes. */
CUresult kernel_attributes(struct call *call,
	const Vgpu__VgpuFunctionAttributesRequest *request,
	Vgpu__VgpuFunctionAttributesReply *reply);

/* Handles in one reply. */
#define KERNEL_LIST_MAX 190u

/*
 * Allocates memory for an enumeration: for the smaller of *np, the number of objects, and
 * `wanted`, and for the handles of one reply.
 */
CUresult kernel_list_prepare(struct call *call, unsigned int *np, unsigned int wanted,
	void ***objectsp, uint64_t **handlesp);

/* Allocates handles for objects from `first` on, as many as fit in a reply; they are
 * parts of the object `of`, which has that handle. */
CUresult kernel_list(struct call *call, enum vgpu_handle_kind kind, void **objects,
	unsigned int n, unsigned int first, const struct object *of, uint64_t handle,
	uint64_t *handles, size_t *n_handlesp);

/*
 * Copies a name for the reply.
 *
 * Return: CUDA_SUCCESS, or CUDA_ERROR_NOT_SUPPORTED if it does not fit.
 */
CUresult kernel_name(struct call *call, const char *name, char **namep);
