/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: streams, as far as they are not generated
 */

#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "code/memo.h"
#include "entry/pool-block.h"
#include "memory/copy.h"
#include "process/call.h"
#include "process/context.h"
#include "process/stream.h"

CUresult shim_cuStreamCreateWithPriority(
	CUstream *phStream, unsigned int flags, int priority)
{
	Vgpu__CuStreamCreateWithPriorityRequest request =
		VGPU__CU_STREAM_CREATE_WITH_PRIORITY_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamCreateWithPriority);
	const ProtobufCMessage *reply;
	CUstream stream;
	CUresult result;

	if (!phStream || flags & ~(unsigned int)CU_STREAM_NON_BLOCKING)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.flags = flags;
	request.priority = priority;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_stream_create_with_priority_reply__descriptor, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	stream = (CUstream)(uintptr_t)((const Vgpu__CuStreamCreateWithPriorityReply *)
					       reply)
			 ->ph_stream;
	result = shim_stream_add(shim_thread_top(shim_thread_get()), stream, flags);
	if (result == CUDA_SUCCESS)
		*phStream = stream;
	return result;
}

CUresult shim_cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	return shim_cuStreamCreateWithPriority(phStream, Flags, 0);
}

static CUresult destroy_stream(CUstream hStream)
{
	Vgpu__CuStreamDestroyV2Request request = VGPU__CU_STREAM_DESTROY_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamDestroy_v2);
	CUresult result = shim_call_check(call.id);

	if (result == CUDA_SUCCESS) {
		shim_copy_end_stream(hStream);
		result = shim_stream_remove(hStream);
	}
	if (result != CUDA_SUCCESS)
		return result;
	request.h_stream = (uint64_t)(uintptr_t)hStream;
	result = shim_call_async(&call, &request.base, NULL);
	shim_memo_forget(VGPU_REMEMBERS_STREAM);
	return result;
}

/* No context has to be current. */
CUresult shim_cuStreamDestroy_v2(CUstream hStream)
{
	bool is_lent = shim_is_ready() && shim_context_lend(shim_stream_context(hStream));
	CUresult result = destroy_stream(hStream);
	struct shim_context *context;

	if (is_lent)
		shim_context_pop(&context);
	return result;
}

CUresult shim_cuStreamQuery(CUstream hStream)
{
	return shim_stream_query(hStream);
}

CUresult shim_cuStreamSynchronize(CUstream hStream)
{
	CUresult result = shim_stream_synchronize(hStream);

	shim_pools_note_wait(result);
	return result;
}

/* Finds the green context of a stream, or NULL, and the context that it shares with
 * others.
 */
static CUresult find_contexts(CUstream handle, CUcontext *contextp, CUgreenCtx *greenp)
{
	const struct shim_context *green;
	struct shim_stream *stream;
	CUresult result;

	result = shim_stream_find_checked(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	green = stream->context->green ? stream->context : stream->green;
	*greenp = green ? (CUgreenCtx)(uintptr_t)green->green : NULL;
	*contextp = shim_context_public(shim_context_home(stream->context));
	return CUDA_SUCCESS;
}

CUresult shim_cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	SHIM_CHECK_READY();
	if (!pCtx || !pGreenCtx)
		return CUDA_ERROR_INVALID_VALUE;
	return find_contexts(hStream, pCtx, pGreenCtx);
}

CUresult shim_cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
	CUcontext context;

	SHIM_CHECK_READY();
	if (!phCtx)
		return CUDA_ERROR_INVALID_VALUE;
	return find_contexts(hStream, &context, phCtx);
}

CUresult shim_cuStreamGetAttribute(
	CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	Vgpu__CuStreamGetAttributeRequest request =
		VGPU__CU_STREAM_GET_ATTRIBUTE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamGetAttribute);
	const ProtobufCMessage *reply;
	uint64_t number;
	CUresult result;

	if (!value)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.h_stream = (uint64_t)(uintptr_t)hStream;
	request.attr = (int32_t)attr;
	result = shim_memo_call(&call, &request.base,
		&vgpu__cu_stream_get_attribute_reply__descriptor, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	number = ((const Vgpu__CuStreamGetAttributeReply *)reply)->number;
	memset(value, 0, sizeof(*value));
	memcpy(value, &number, sizeof(number));
	return CUDA_SUCCESS;
}

/* All attributes that a stream has here fit a number: a window of the cache is empty. */
CUresult shim_cuStreamSetAttribute(
	CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *param)
{
	Vgpu__CuStreamSetAttributeRequest request =
		VGPU__CU_STREAM_SET_ATTRIBUTE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamSetAttribute);
	CUresult result;

	if (!param || (attr == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW &&
			      param->accessPolicyWindow.num_bytes))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.h_stream = (uint64_t)(uintptr_t)hStream;
	request.attr = (int32_t)attr;
	memcpy(&request.number, param, sizeof(request.number));
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_stream_set_attribute_reply__descriptor, NULL);
	shim_memo_forget(VGPU_REMEMBERS_STREAM);
	return result;
}
