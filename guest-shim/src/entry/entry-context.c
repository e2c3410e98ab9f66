/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: contexts
 */

#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "code/runtime.h"
#include "entry/pool-block.h"
#include "g-remote.h"
#include "process/call.h"
#include "process/context.h"
#include "process/device.h"

/* The answer of cuCtxGetApiVersion for every context since version 3.2 of the API. */
#define CONTEXT_API_VERSION 3020u

static struct shim_context *current(void)
{
	struct shim_thread *thread = shim_thread_get();

	return thread ? shim_thread_top(thread) : NULL;
}

/* NULL means the current context. */
static struct shim_context *find_or_current(CUcontext handle)
{
	return handle ? shim_context_find(handle) : current();
}

CUresult shim_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	struct shim_context *context;
	CUresult result;

	SHIM_CHECK_READY();
	context = shim_context_primary(dev);
	if (!pctx || !context)
		return pctx ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
	result = shim_context_retain(context);
	if (result == CUDA_SUCCESS)
		*pctx = shim_context_public(context);
	return result;
}

CUresult shim_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	struct shim_context *context;

	SHIM_CHECK_READY();
	context = shim_context_primary(dev);
	return context ? shim_context_release(context) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult shim_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	struct shim_context *context;
	CUresult fault, result;

	SHIM_CHECK_READY();
	context = shim_context_primary(dev);
	if (!context)
		return CUDA_ERROR_INVALID_DEVICE;
	fault = shim_context_fault(context);
	result = shim_remote_cuDevicePrimaryCtxReset_v2(dev);
	shim_context_reset(context);
	return shim_runtime_reset_result(fault, result);
}

CUresult shim_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	CUresult result;

	result = shim_remote_cuDevicePrimaryCtxSetFlags_v2(dev, flags);
	if (result == CUDA_SUCCESS)
		shim_context_primary(dev)->flags = flags;
	return result;
}

CUresult shim_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	const struct shim_context *context;

	SHIM_CHECK_READY();
	context = shim_context_primary(dev);
	if (!context || !flags || !active)
		return context ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
	*flags = context->flags;
	*active = shim_context_check(context) == CUDA_SUCCESS;
	return CUDA_SUCCESS;
}

static CUresult create(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	Vgpu__CuCtxCreateV4Request request = VGPU__CU_CTX_CREATE_V4_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuCtxCreate_v4);
	const ProtobufCMessage *reply;
	struct shim_context *context;
	CUresult result;

	SHIM_CHECK_READY();
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!shim_device_get(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	request.flags = flags;
	request.dev = shim_device_to_host(dev);
	result = shim_call_sync(
		&call, &request.base, &vgpu__cu_ctx_create_v4_reply__descriptor, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	context = shim_context_add(
		((const Vgpu__CuCtxCreateV4Reply *)reply)->pctx, dev, flags);
	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = shim_context_push(context);
	if (result == CUDA_SUCCESS)
		*pctx = shim_context_public(context);
	return result;
}

CUresult shim_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
	unsigned int flags, CUdevice dev)
{
	SHIM_CHECK_READY();
	/* Neither execution affinity nor sharing with graphics is remoted. */
	if (ctxCreateParams &&
		(ctxCreateParams->numExecAffinityParams || ctxCreateParams->cigParams))
		return CUDA_ERROR_NOT_SUPPORTED;
	return create(pctx, flags, dev);
}

CUresult shim_cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray,
	int numParams, unsigned int flags, CUdevice dev)
{
	SHIM_CHECK_READY();
	return numParams ? CUDA_ERROR_NOT_SUPPORTED : create(pctx, flags, dev);
}

CUresult shim_cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return create(pctx, flags, dev);
}

CUresult shim_cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return create(pctx, flags, dev);
}

CUresult shim_cuCtxDestroy_v2(CUcontext ctx)
{
	Vgpu__CuCtxDestroyV2Request request = VGPU__CU_CTX_DESTROY_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuCtxDestroy_v2);
	struct shim_context *context;
	CUresult result;

	SHIM_CHECK_READY();
	context = shim_context_find(ctx);
	/* A primary context ends by cuDevicePrimaryCtxRelease, a green one by
	 * cuGreenCtxDestroy. */
	if (!context || context->is_primary || context->green ||
		shim_context_check(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (current() == context)
		shim_context_pop(&(struct shim_context *){ NULL });
	request.ctx = context->handle;
	result = shim_call_sync(
		&call, &request.base, &vgpu__cu_ctx_destroy_v2_reply__descriptor, NULL);
	shim_context_wipe(context);
	return result;
}

CUresult shim_cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
	struct shim_context *context;

	SHIM_CHECK_READY();
	context = current();
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!pctx || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (context->is_primary || context->green)
		return CUDA_ERROR_NOT_SUPPORTED;
	__atomic_add_fetch(&context->n_attached, 1, __ATOMIC_RELAXED);
	*pctx = shim_context_public(context);
	return CUDA_SUCCESS;
}

CUresult shim_cuCtxDetach(CUcontext ctx)
{
	struct shim_context *context;

	SHIM_CHECK_READY();
	context = shim_context_find(ctx);
	if (!context || context->is_primary || context->green)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (__atomic_load_n(&context->n_attached, __ATOMIC_RELAXED)) {
		__atomic_sub_fetch(&context->n_attached, 1, __ATOMIC_RELAXED);
		return CUDA_SUCCESS;
	}
	return shim_cuCtxDestroy_v2(ctx);
}

/* Returns: NULL for what is no context, or no more. A primary context that is not
 * retained may be made current: the CUDA runtime does so, and retains it afterwards. */
static struct shim_context *find_undestroyed(CUcontext ctx)
{
	struct shim_context *context = shim_context_find(ctx);

	if (context && !context->is_primary && shim_context_check(context))
		return NULL;
	return context;
}

CUresult shim_cuCtxPushCurrent_v2(CUcontext ctx)
{
	struct shim_context *context;

	SHIM_CHECK_READY();
	context = find_undestroyed(ctx);
	return context ? shim_context_push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult shim_cuCtxPopCurrent_v2(CUcontext *pctx)
{
	struct shim_context *context;
	CUresult result;

	SHIM_CHECK_READY();
	result = shim_context_pop(&context);
	if (result == CUDA_SUCCESS && pctx)
		*pctx = shim_context_public(context);
	return result;
}

CUresult shim_cuCtxSetCurrent(CUcontext ctx)
{
	struct shim_context *context;

	SHIM_CHECK_READY();
	context = find_undestroyed(ctx);
	if (ctx && !context)
		return CUDA_ERROR_INVALID_CONTEXT;
	return shim_context_set_current(context);
}

CUresult shim_cuCtxGetCurrent(CUcontext *pctx)
{
	SHIM_CHECK_READY();
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = shim_context_public(current());
	return CUDA_SUCCESS;
}

CUresult shim_cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	const struct shim_context *context;

	SHIM_CHECK_READY();
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	context = find_or_current(ctx);
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = context->device;
	return CUDA_SUCCESS;
}

CUresult shim_cuCtxGetDevice(CUdevice *device)
{
	return shim_cuCtxGetDevice_v2(device, NULL);
}

CUresult shim_cuCtxGetFlags(unsigned int *flags)
{
	const struct shim_context *context;

	SHIM_CHECK_READY();
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	context = current();
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	*flags = context->flags;
	return CUDA_SUCCESS;
}

CUresult shim_cuCtxSetFlags(unsigned int flags)
{
	CUresult result;

	result = shim_remote_cuCtxSetFlags(flags);
	if (result == CUDA_SUCCESS)
		current()->flags = flags;
	return result;
}

/* Only green contexts have less than all multiprocessors. */
CUresult shim_cuCtxGetExecAffinity(
	CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
	CUresult result;
	int n;

	SHIM_CHECK_READY();
	if (!pExecAffinity)
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_context_check(current());
	if (result != CUDA_SUCCESS)
		return result;
	if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	if (!shim_device_attribute(shim_device_get(current()->device),
		    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &n))
		return CUDA_ERROR_NOT_SUPPORTED;
	*pExecAffinity = (CUexecAffinityParam){
		.type = type,
		.param.smCount.val =
			current()->green ? current()->n_sms : (unsigned int)n,
	};
	return CUDA_SUCCESS;
}

CUresult shim_cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
	const struct shim_context *context;

	SHIM_CHECK_READY();
	if (!ctxId)
		return CUDA_ERROR_INVALID_VALUE;
	context = find_or_current(ctx);
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ctxId = context->id;
	return CUDA_SUCCESS;
}

/* The CUDA runtime asks this to learn whether a context is still alive. */
CUresult shim_cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	const struct shim_context *context;

	SHIM_CHECK_READY();
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	context = find_or_current(ctx);
	if (shim_context_check(context) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_CONTEXT;
	*version = CONTEXT_API_VERSION;
	return CUDA_SUCCESS;
}

CUresult shim_cuCtxSynchronize(void)
{
	uint64_t n_frees = shim_pools_n_frees();
	CUresult result = shim_remote_cuCtxSynchronize();

	shim_pools_note_context_wait(result, current(), n_frees);
	return result;
}

CUresult shim_cuCtxSynchronize_v2(CUcontext ctx)
{
	uint64_t n_frees = shim_pools_n_frees();
	CUresult result = shim_remote_cuCtxSynchronize_v2(ctx);

	shim_pools_note_context_wait(
		result, ctx ? shim_context_find(ctx) : current(), n_frees);
	return result;
}
