/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: green contexts
 *
 * A green context holds the primary context of its device, whose memory, code and events
 * it uses. CUDA has two handles for it, which differ here as well: a CUgreenCtx, and the
 * CUcontext to which cuCtxFromGreenCtx converts it.
 */

#include "vgpu/g-driver.pb-c.h"

#include "entry/resource.h"
#include "g-remote.h"
#include "process/call.h"
#include "process/context.h"
#include "process/device.h"
#include "process/stream.h"
#include "wait/event.h"

static CUgreenCtx public_of(const struct shim_context *context)
{
	return (CUgreenCtx)(uintptr_t)context->green;
}

static bool is_live(const struct shim_context *context)
{
	return shim_context_check(context) == CUDA_SUCCESS;
}

static CUresult destroy_on_host(uint64_t green)
{
	Vgpu__CuGreenCtxDestroyRequest request = VGPU__CU_GREEN_CTX_DESTROY_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGreenCtxDestroy);

	request.h_ctx = green;
	return shim_call_sync(&call, &request.base,
		&vgpu__cu_green_ctx_destroy_reply__descriptor, NULL);
}

/* The primary context is held. */
static CUresult create(CUgreenCtx *greenp, const struct shim_resource_desc *desc,
	struct shim_context *home, unsigned int flags)
{
	Vgpu__CuGreenCtxCreateRequest request = VGPU__CU_GREEN_CTX_CREATE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGreenCtxCreate);
	const Vgpu__CuGreenCtxCreateReply *reply;
	const ProtobufCMessage *message;
	const struct shim_context *context;
	CUresult result;

	request.dev = shim_device_to_host(home->device);
	request.flags = flags;
	request.source = desc->origin.green;
	request.is_split = desc->n_parts != 0;
	request.use_flags = desc->origin.use_flags;
	request.min_count = desc->origin.min_count;
	request.n_groups = desc->origin.n_groups;
	request.parts.len = desc->n_parts * sizeof(desc->parts[0]);
	request.parts.data = (uint8_t *)desc->parts;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_green_ctx_create_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuGreenCtxCreateReply *)message;
	context = shim_context_add_green(
		reply->context, reply->ph_ctx, reply->sm_count, home);
	if (!context) {
		destroy_on_host(reply->ph_ctx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*greenp = public_of(context);
	return CUDA_SUCCESS;
}

CUresult shim_cuGreenCtxCreate(
	CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	const struct shim_resource_desc *found;
	struct shim_context *home;
	CUresult result;

	result = shim_call_check(VGPU_CALL_cuGreenCtxCreate);
	if (result != CUDA_SUCCESS)
		return result;
	home = shim_context_primary(dev);
	if (!home)
		return CUDA_ERROR_INVALID_DEVICE;
	found = shim_resource_desc_find(desc);
	if (!phCtx || !found || found->origin.device != dev ||
		flags != CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_context_retain(home);
	if (result != CUDA_SUCCESS)
		return result;
	result = create(phCtx, found, home, flags);
	if (result != CUDA_SUCCESS)
		shim_context_release(home);
	return result;
}

CUresult shim_cuGreenCtxDestroy(CUgreenCtx hCtx)
{
	struct shim_context *context, *home;
	CUresult result;

	result = shim_call_check(VGPU_CALL_cuGreenCtxDestroy);
	if (result != CUDA_SUCCESS)
		return result;
	context = shim_context_find_green(hCtx);
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	home = shim_context_home(context);
	/* Of two threads one destroys it; so does the end of the primary context. */
	if (!__atomic_exchange_n(&context->is_live, 0, __ATOMIC_ACQ_REL))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	result = destroy_on_host(context->green);
	shim_context_wipe(context);
	shim_context_release(home);
	return result;
}

CUresult shim_cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
	const struct shim_context *context;

	SHIM_CHECK_READY();
	if (!pContext)
		return CUDA_ERROR_INVALID_VALUE;
	context = shim_context_find_green(hCtx);
	if (!context || !is_live(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	*pContext = shim_context_public(context);
	return CUDA_SUCCESS;
}

CUresult shim_cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId)
{
	const struct shim_context *context;
	const struct shim_thread *thread;

	SHIM_CHECK_READY();
	if (!greenCtxId)
		return CUDA_ERROR_INVALID_VALUE;
	thread = shim_thread_get();
	if (greenCtx)
		context = shim_context_find_green(greenCtx);
	else
		context = thread ? shim_thread_top(thread) : NULL;
	if (!context || !context->green)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!is_live(context))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*greenCtxId = context->id;
	return CUDA_SUCCESS;
}

/* A word is bound to a stream in a current context, and there may be none. */
static CUresult add_stream(
	struct shim_context *context, CUstream stream, unsigned int flags)
{
	struct shim_context *pushed;
	CUresult result;

	result = shim_context_push(context);
	if (result != CUDA_SUCCESS)
		return result;
	result = shim_stream_add(context, stream, flags);
	shim_context_pop(&pushed);
	return result;
}

CUresult shim_cuGreenCtxStreamCreate(
	CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)
{
	Vgpu__CuGreenCtxStreamCreateRequest request =
		VGPU__CU_GREEN_CTX_STREAM_CREATE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGreenCtxStreamCreate);
	const ProtobufCMessage *message;
	struct shim_context *context;
	CUstream stream;
	CUresult result;

	if (!phStream || flags != CU_STREAM_NON_BLOCKING)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	context = shim_context_find_green(greenCtx);
	if (!context || !is_live(context))
		return shim_call_error(&call, CUDA_ERROR_INVALID_CONTEXT);
	request.green_ctx = context->green;
	request.flags = flags;
	request.priority = priority;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_green_ctx_stream_create_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	stream = (CUstream)(uintptr_t)((const Vgpu__CuGreenCtxStreamCreateReply *)message)
			 ->ph_stream;
	result = add_stream(context, stream, flags);
	if (result == CUDA_SUCCESS)
		*phStream = stream;
	return result;
}

static bool is_shared(CUevent handle)
{
	const struct shim_event *event = shim_event_find(handle);

	return event && event->share;
}

CUresult shim_cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	CUresult result;

	SHIM_CHECK_READY();
	if (!shim_context_find_green(hCtx))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (is_shared(hEvent))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = shim_remote_cuGreenCtxRecordEvent(hCtx, hEvent);
	if (result == CUDA_SUCCESS)
		shim_event_note_elsewhere(hEvent);
	return result;
}

CUresult shim_cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	SHIM_CHECK_READY();
	if (!shim_context_find_green(hCtx))
		return CUDA_ERROR_INVALID_CONTEXT;
	return is_shared(hEvent) ? CUDA_ERROR_NOT_SUPPORTED
				 : shim_remote_cuGreenCtxWaitEvent(hCtx, hEvent);
}
