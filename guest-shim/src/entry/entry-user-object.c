/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: user objects
 */

#include "vgpu/g-driver.pb-c.h"

#include "process/call.h"
#include "process/callback.h"

CUresult shim_cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
	unsigned int initialRefcount, unsigned int flags)
{
	Vgpu__CuUserObjectCreateRequest request =
		VGPU__CU_USER_OBJECT_CREATE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuUserObjectCreate);
	const struct shim_callback callback = {
		.kind = SHIM_CALLBACK_OF_OBJECT,
		.host_function = destroy,
		.data = ptr,
	};
	const ProtobufCMessage *reply;
	CUresult result;

	result = shim_call_error(
		&call, object_out && destroy ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
	if (result == CUDA_SUCCESS)
		result = shim_callback_add(&callback, &request.cookie);
	if (result != CUDA_SUCCESS)
		return result;
	request.initial_refcount = initialRefcount;
	request.flags = flags;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_user_object_create_reply__descriptor, &reply);
	if (result == CUDA_SUCCESS)
		*object_out =
			(CUuserObject)(uintptr_t)((const Vgpu__CuUserObjectCreateReply *)
							  reply)
				->object_out;
	else
		shim_callback_withdraw(request.cookie);
	return result;
}
