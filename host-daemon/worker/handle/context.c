/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on contexts
 */

#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/handle/context-end.h"
#include "worker/stream/callbacks.h"

/* A driver that dumps core on a fault would write files for the guest on the host. */
static bool asks_for_dumps(uint32_t flags)
{
	return flags & (CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE);
}

static struct context *primary_of(struct call *call, int32_t device)
{
	if (device < 0 || device >= call->session->n_devices)
		return NULL;
	return context_find(
		call->session, vgpu_handle_make(VGPU_HANDLE_CONTEXT, device, 1));
}

CUresult handle_cuDevicePrimaryCtxRetain(struct call *call,
	const Vgpu__CuDevicePrimaryCtxRetainRequest *request,
	Vgpu__CuDevicePrimaryCtxRetainReply *reply)
{
	struct context *context = primary_of(call, request->dev);
	CUresult result;

	if (!context)
		return CUDA_ERROR_INVALID_DEVICE;
	result = context_enter(call->session, call->runner, context);
	if (result != CUDA_SUCCESS)
		return result;
	__atomic_fetch_add(&context->n_retains, 1, __ATOMIC_RELAXED);
	reply->pctx = object_handle(&call->session->contexts.table, &context->object);
	return CUDA_SUCCESS;
}

CUresult handle_cuDevicePrimaryCtxRelease_v2(struct call *call,
	const Vgpu__CuDevicePrimaryCtxReleaseV2Request *request,
	Vgpu__CuDevicePrimaryCtxReleaseV2Reply *reply)
{
	struct context *context = primary_of(call, request->dev);
	uint32_t n_retains;

	if (!context)
		return CUDA_ERROR_INVALID_DEVICE;
	n_retains = __atomic_load_n(&context->n_retains, __ATOMIC_RELAXED);
	do {
		if (!n_retains)
			return CUDA_ERROR_INVALID_CONTEXT;
	} while (!__atomic_compare_exchange_n(&context->n_retains, &n_retains,
		n_retains - 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	if (n_retains > 1)
		return CUDA_SUCCESS;
	callbacks_drain(call->session, call->runner, context);
	context_left(call->runner);
	return context_reset(call->session, call->runner, context);
}

CUresult handle_cuDevicePrimaryCtxSetFlags_v2(struct call *call,
	const Vgpu__CuDevicePrimaryCtxSetFlagsV2Request *request,
	Vgpu__CuDevicePrimaryCtxSetFlagsV2Reply *reply)
{
	if (!primary_of(call, request->dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!call->driver->cuDevicePrimaryCtxSetFlags_v2 ||
		asks_for_dumps(request->flags))
		return CUDA_ERROR_NOT_SUPPORTED;
	return call->driver->cuDevicePrimaryCtxSetFlags_v2(request->dev, request->flags);
}

CUresult handle_cuDevicePrimaryCtxReset_v2(struct call *call,
	const Vgpu__CuDevicePrimaryCtxResetV2Request *request,
	Vgpu__CuDevicePrimaryCtxResetV2Reply *reply)
{
	struct context *context = primary_of(call, request->dev);

	if (!context)
		return CUDA_ERROR_INVALID_DEVICE;
	callbacks_drain(call->session, call->runner, context);
	context_left(call->runner);
	return context_reset(call->session, call->runner, context);
}

static CUresult create(struct call *call, uint32_t sm_count, uint32_t flags,
	CUdevice device, CUcontext *contextp)
{
	CUexecAffinityParam affinity = {
		.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT,
		.param.smCount.val = sm_count,
	};
	CUctxCreateParams params = {
		.execAffinityParams = &affinity,
		.numExecAffinityParams = 1,
	};
	const struct vgpu_driver *driver = call->driver;

	if (driver->cuCtxCreate_v4)
		return driver->cuCtxCreate_v4(
			contextp, sm_count ? &params : NULL, flags, device);
	if (driver->cuCtxCreate_v2 && !sm_count)
		return driver->cuCtxCreate_v2(contextp, flags, device);
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult handle_cuCtxCreate_v4(struct call *call,
	const Vgpu__CuCtxCreateV4Request *request, Vgpu__CuCtxCreateV4Reply *reply)
{
	CUcontext created, popped;
	CUresult result;

	if (!primary_of(call, request->dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (asks_for_dumps(request->flags))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = create(call, request->sm_count, request->flags, request->dev, &created);
	if (result != CUDA_SUCCESS)
		return result;
	/* The shim keeps the context stack of each guest thread. */
	call->driver->cuCtxPopCurrent_v2(&popped);
	context_left(call->runner);
	result = context_add(call->session, created, request->dev, &reply->pctx);
	if (result != CUDA_SUCCESS)
		call->driver->cuCtxDestroy_v2(created);
	return result;
}

CUresult handle_cuCtxSetFlags(struct call *call,
	const Vgpu__CuCtxSetFlagsRequest *request, Vgpu__CuCtxSetFlagsReply *reply)
{
	if (!call->driver->cuCtxSetFlags || asks_for_dumps(request->flags))
		return CUDA_ERROR_NOT_SUPPORTED;
	return call->driver->cuCtxSetFlags(request->flags);
}

CUresult handle_cuCtxDestroy_v2(struct call *call,
	const Vgpu__CuCtxDestroyV2Request *request, Vgpu__CuCtxDestroyV2Reply *reply)
{
	struct context *context = context_find(call->session, request->ctx);

	if (context)
		callbacks_drain(call->session, call->runner, context);
	context_left(call->runner);
	return context_destroy(call->session, request->ctx);
}

CUresult handle_cuCtxSynchronize(struct call *call,
	const Vgpu__CuCtxSynchronizeRequest *request, Vgpu__CuCtxSynchronizeReply *reply)
{
	return call->driver->cuCtxSynchronize();
}

CUresult handle_cuCtxSynchronize_v2(struct call *call,
	const Vgpu__CuCtxSynchronizeV2Request *request,
	Vgpu__CuCtxSynchronizeV2Reply *reply)
{
	struct context *context =
		request->ctx ? context_find(call->session, request->ctx) : call->context;
	CUresult result;

	if (context)
		call_names_context(call, context);
	/* The same as cuCtxSynchronize_v2(), which older drivers lack. */
	result = context_enter(call->session, call->runner, context);
	return result == CUDA_SUCCESS ? call->driver->cuCtxSynchronize() : result;
}

CUresult handle_vgpuContextFault(struct call *call,
	const Vgpu__VgpuContextFaultRequest *request, Vgpu__VgpuContextFaultReply *reply)
{
	const struct context *context =
		context_home(context_find(call->session, request->context));

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	reply->fault = (int32_t)__atomic_load_n(&context->fault, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}
