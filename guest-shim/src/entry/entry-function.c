/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: attributes of functions and kernels
 *
 * A CUDA runtime asks for one attribute after the other: the first query fetches all of
 * them, and the layout of all parameters. Queries that this cannot answer, including
 * errors, are sent to the host unchanged.
 *
 * Libraries of kernels set the shared memory of a function before each of its launches,
 * always to the same value: an attribute that already has the value is not set again, or
 * each launch would need a new reply.
 */

#include "vgpu/g-driver.pb-c.h"

#include "code/function.h"
#include "code/memo.h"
#include "code/runtime.h"
#include "g-remote.h"
#include "process/device.h"

/* Parameters in one reply, as in the description. */
#define PARAMS_AT_A_TIME 190u

#define ACCEPTED_N 1024u

/* Hashes of settings that the driver accepted; atomic, any may be lost. */
static uint64_t accepted[ACCEPTED_N];

static bool ask_attribute(const Vgpu__VgpuFunctionAttributesRequest *request,
	CUfunction_attribute attribute, int *valuep)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuFunctionAttributes);
	const Vgpu__VgpuFunctionAttributesReply *reply;
	const ProtobufCMessage *message;

	if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX ||
		shim_memo_call(&call, &request->base,
			&vgpu__vgpu_function_attributes_reply__descriptor,
			&message) != CUDA_SUCCESS)
		return false;
	reply = (const Vgpu__VgpuFunctionAttributesReply *)message;
	if (!(reply->known & 1u << attribute) || (size_t)attribute >= reply->n_attributes)
		return false;
	*valuep = reply->attributes[attribute];
	return true;
}

static Vgpu__VgpuFunctionAttributesRequest of_function(CUfunction function)
{
	Vgpu__VgpuFunctionAttributesRequest all =
		VGPU__VGPU_FUNCTION_ATTRIBUTES_REQUEST__INIT;

	all.function = (uint64_t)(uintptr_t)function;
	return all;
}

static Vgpu__VgpuFunctionAttributesRequest of_kernel(CUkernel kernel, CUdevice device)
{
	Vgpu__VgpuFunctionAttributesRequest all = of_function((CUfunction)kernel);

	all.is_of_device = 1;
	all.device = shim_device_to_host(device);
	return all;
}

CUresult shim_cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	const Vgpu__VgpuFunctionAttributesRequest all = of_function(hfunc);

	if (pi && hfunc && ask_attribute(&all, attrib, pi))
		return CUDA_SUCCESS;
	return shim_remote_cuFuncGetAttribute(pi, attrib, hfunc);
}

CUresult shim_cuKernelGetAttribute(
	int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
	const Vgpu__VgpuFunctionAttributesRequest all = of_kernel(kernel, dev);

	if (pi && kernel && shim_device_get(dev) && ask_attribute(&all, attrib, pi))
		return CUDA_SUCCESS;
	return shim_remote_cuKernelGetAttribute(pi, attrib, kernel, dev);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/* A setting that the driver once accepted. @all names the function, and the device. */
static uint64_t setting(const Vgpu__VgpuFunctionAttributesRequest *all,
	CUfunction_attribute attribute, int value)
{
	uint64_t hash = mix(1, all->function);

	hash = mix(hash, (uint64_t)all->is_of_device << 32 | (uint32_t)all->device);
	hash = mix(hash, (uint64_t)attribute << 32 | (uint32_t)value);
	return hash ? hash : 1;
}

/* Whether setting the attribute again would change nothing. */
static bool is_set(const Vgpu__VgpuFunctionAttributesRequest *all,
	CUfunction_attribute attribute, int value)
{
	uint64_t wanted = setting(all, attribute, value);
	int now;

	return __atomic_load_n(&accepted[wanted % ACCEPTED_N], __ATOMIC_RELAXED) ==
		       wanted &&
	       ask_attribute(all, attribute, &now) && now == value;
}

static CUresult note_set(const Vgpu__VgpuFunctionAttributesRequest *all,
	CUfunction_attribute attribute, int value, CUresult result)
{
	uint64_t wanted = setting(all, attribute, value);

	if (result == CUDA_SUCCESS && value &&
		attribute >= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH &&
		attribute <= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)
		shim_function_note_clusters();
	if (result == CUDA_SUCCESS)
		__atomic_store_n(
			&accepted[wanted % ACCEPTED_N], wanted, __ATOMIC_RELAXED);
	return result;
}

CUresult shim_cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
	const Vgpu__VgpuFunctionAttributesRequest all = of_function(hfunc);

	if (hfunc && is_set(&all, attrib, value))
		return CUDA_SUCCESS;
	return note_set(&all, attrib, value,
		shim_remote_cuFuncSetAttribute(hfunc, attrib, value));
}

CUresult shim_cuKernelSetAttribute(
	CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
	const Vgpu__VgpuFunctionAttributesRequest all = of_kernel(kernel, dev);

	if (kernel && shim_device_get(dev) && is_set(&all, attrib, val))
		return CUDA_SUCCESS;
	return note_set(&all, attrib, val,
		shim_remote_cuKernelSetAttribute(attrib, val, kernel, dev));
}

CUresult shim_cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	return shim_runtime_function_result(
		kernel, shim_remote_cuKernelGetFunction(pFunc, kernel));
}

/* Returns: whether the known layout of the function includes that parameter. */
static bool ask_param(const void *function, size_t index, size_t *offsetp, size_t *sizep)
{
	Vgpu__VgpuFunctionInfoRequest request = VGPU__VGPU_FUNCTION_INFO_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuFunctionInfo);
	const Vgpu__VgpuFunctionInfoReply *reply;
	const ProtobufCMessage *message;
	uint32_t i = index % PARAMS_AT_A_TIME;

	if (!function || !offsetp || index > UINT32_MAX)
		return false;
	request.function = (uint64_t)(uintptr_t)function;
	request.first = (uint32_t)index - i;
	if (shim_memo_call(&call, &request.base,
		    &vgpu__vgpu_function_info_reply__descriptor,
		    &message) != CUDA_SUCCESS)
		return false;
	reply = (const Vgpu__VgpuFunctionInfoReply *)message;
	if (i >= reply->n_offsets || i >= reply->n_sizes)
		return false;
	*offsetp = reply->offsets[i];
	if (sizep)
		*sizep = reply->sizes[i];
	return true;
}

CUresult shim_cuFuncGetParamInfo(
	CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	return ask_param(func, paramIndex, paramOffset, paramSize)
		       ? CUDA_SUCCESS
		       : shim_remote_cuFuncGetParamInfo(
				 func, paramIndex, paramOffset, paramSize);
}

CUresult shim_cuKernelGetParamInfo(
	CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	return ask_param(kernel, paramIndex, paramOffset, paramSize)
		       ? CUDA_SUCCESS
		       : shim_remote_cuKernelGetParamInfo(
				 kernel, paramIndex, paramOffset, paramSize);
}
