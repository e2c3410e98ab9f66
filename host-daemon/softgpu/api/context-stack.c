/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of contexts that each thread has
 */

#include "api/api.h"

/* Programs push one or two; an endless recursion shall not take all memory. */
#define STACK_MAX 64

/* The id distinguishes a context from a later one at the same address: destroyed contexts
 * stay on the stacks of all threads. */
static __thread struct {
	struct {
		CUcontext context;
		uint64_t id;
	} entries[STACK_MAX];
	size_t n;
} stack;

CUcontext stack_top(void)
{
	return stack.n ? stack.entries[stack.n - 1].context : NULL;
}

CUcontext stack_hold(void)
{
	CUcontext context = stack_top();

	return context && object_hold(context, OBJECT_CONTEXT) &&
			       context->id == stack.entries[stack.n - 1].id
		       ? context
		       : NULL;
}

CUresult stack_push(CUcontext context)
{
	if (stack.n == STACK_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack.entries[stack.n].context = context;
	stack.entries[stack.n++].id = context->id;
	return CUDA_SUCCESS;
}

CUresult stack_pop(CUcontext *contextp)
{
	if (!stack.n)
		return CUDA_ERROR_INVALID_CONTEXT;
	*contextp = stack.entries[--stack.n].context;
	return CUDA_SUCCESS;
}

CUresult stack_set(CUcontext context)
{
	if (stack.n)
		stack.n--;
	return context ? stack_push(context) : CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	return object_hold(ctx, OBJECT_CONTEXT) ? stack_push(ctx)
						: CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	result = stack_pop(&context);
	if (!result && pctx)
		*pctx = context;
	return result;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (ctx && !object_hold(ctx, OBJECT_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	return stack_set(ctx);
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = stack_top();
	return CUDA_SUCCESS;
}

/* Return: the context named, or the current one where none is. */
static CUresult stack_resolve(CUcontext ctx, CUcontext *contextp)
{
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!ctx)
		ctx = stack_hold();
	else if (!object_hold(ctx, OBJECT_CONTEXT))
		ctx = NULL;
	*contextp = ctx;
	return ctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	return cuCtxGetDevice_v2(device, NULL);
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = stack_resolve(ctx, &context);
	if (result)
		return result;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = context->device;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = stack_resolve(NULL, &context);
	if (result)
		return result;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = setting_get(context->flags);
	return CUDA_SUCCESS;
}

/* A context always has the whole device. */
CUresult cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
	API_CALL;
	CUcontext context;
	CUresult result;
	int n;

	result = stack_resolve(NULL, &context);
	if (result)
		return result;
	if (!pExecAffinity)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	result = cuDeviceGetAttribute(
		&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, context->device);
	if (result)
		return result;
	*pExecAffinity = (CUexecAffinityParam){
		.type = type,
		.param.smCount.val = n,
	};
	return CUDA_SUCCESS;
}

/* There is no such cache, and so no persisting lines. */
CUresult cuCtxResetPersistingL2Cache(void)
{
	API_CALL;
	CUcontext context;

	return stack_resolve(NULL, &context);
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = stack_resolve(ctx, &context);
	if (result)
		return result;
	if (!ctxId)
		return CUDA_ERROR_INVALID_VALUE;
	*ctxId = context->id;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = stack_resolve(ctx, &context);
	if (result)
		return result;
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = 3020;
	return CUDA_SUCCESS;
}
