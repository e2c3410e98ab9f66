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
		CUcontext handle; /* of the context, or of a green one in it */
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
	CUgreenCtx green;
	CUcontext context;

	if (!stack.n)
		return NULL;
	context = context_hold(stack.entries[stack.n - 1].handle, &green);
	return context && (green ? green->id : context->id) ==
				       stack.entries[stack.n - 1].id
		       ? context
		       : NULL;
}

CUgreenCtx stack_green(void)
{
	CUgreenCtx green = NULL;

	if (stack.n)
		context_hold(stack.entries[stack.n - 1].handle, &green);
	return green && green->id == stack.entries[stack.n - 1].id ? green : NULL;
}

/* With the handle of a context that the call holds. */
CUresult stack_push(CUcontext handle)
{
	CUgreenCtx green;
	CUcontext context;

	if (stack.n == STACK_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context = context_hold(handle, &green);
	if (!context)
		context = handle;
	stack.entries[stack.n].handle = handle;
	stack.entries[stack.n].context = context;
	stack.entries[stack.n++].id = green ? green->id : context->id;
	return CUDA_SUCCESS;
}

CUresult stack_pop(CUcontext *contextp)
{
	if (!stack.n)
		return CUDA_ERROR_INVALID_CONTEXT;
	*contextp = stack.entries[--stack.n].handle;
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
	CUgreenCtx green;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	return context_hold(ctx, &green) ? stack_push(ctx) : CUDA_ERROR_INVALID_CONTEXT;
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
	CUgreenCtx green;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (ctx && !context_hold(ctx, &green))
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
	*pctx = stack.n ? stack.entries[stack.n - 1].handle : NULL;
	return CUDA_SUCCESS;
}

/* Return: the context named, or the current one where none is. */
static CUresult stack_resolve(CUcontext ctx, CUcontext *contextp)
{
	CUgreenCtx green;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	ctx = ctx ? context_hold(ctx, &green) : stack_hold();
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

/* Only green contexts have less than the whole device. */
CUresult cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = stack_resolve(NULL, &context);
	if (result)
		return result;
	if (!pExecAffinity)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	*pExecAffinity = (CUexecAffinityParam){
		.type = type,
		.param.smCount.val = green_current_sms(),
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
	CUgreenCtx green = NULL;
	CUcontext context;
	CUresult result;

	result = stack_resolve(ctx, &context);
	if (result)
		return result;
	if (!ctxId)
		return CUDA_ERROR_INVALID_VALUE;
	if (ctx)
		context_hold(ctx, &green);
	else
		green = stack_green();
	*ctxId = green ? green->id : context->id;
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
