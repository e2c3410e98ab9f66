/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: memory that processes of one VM share
 */

#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "memory/token-file.h"
#include "process/call.h"

CUresult shim_cuMemExportToShareableHandle(void *shareableHandle,
	CUmemGenericAllocationHandle handle, CUmemAllocationHandleType handleType,
	unsigned long long flags)
{
	Vgpu__CuMemExportToShareableHandleRequest request =
		VGPU__CU_MEM_EXPORT_TO_SHAREABLE_HANDLE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemExportToShareableHandle);
	const Vgpu__CuMemExportToShareableHandleReply *reply;
	const ProtobufCMessage *message;
	CUresult result;
	int fd;

	result = shim_call_check(call.id);
	if (result != CUDA_SUCCESS)
		return result;
	if (!shareableHandle || flags ||
		handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.handle = handle;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mem_export_to_shareable_handle_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuMemExportToShareableHandleReply *)message;
	fd = reply->token.len == SHIM_TOKEN_SIZE
		     ? shim_token_file_new(SHIM_TOKEN_MEMORY, reply->token.data)
		     : -1;
	if (fd < 0)
		return shim_call_error(&call, CUDA_ERROR_OPERATING_SYSTEM);
	*(int *)shareableHandle = fd;
	return CUDA_SUCCESS;
}

CUresult shim_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
	void *osHandle, CUmemAllocationHandleType shHandleType)
{
	Vgpu__CuMemImportFromShareableHandleRequest request =
		VGPU__CU_MEM_IMPORT_FROM_SHAREABLE_HANDLE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemImportFromShareableHandle);
	const ProtobufCMessage *message;
	uint8_t token[SHIM_TOKEN_SIZE];
	CUresult result;

	result = shim_call_check(call.id);
	if (result != CUDA_SUCCESS)
		return result;
	if (!handle)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	if (shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return shim_call_error(&call, CUDA_ERROR_NOT_SUPPORTED);
	if (!shim_token_file_read((int)(intptr_t)osHandle, SHIM_TOKEN_MEMORY, token))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.token.data = token;
	request.token.len = sizeof(token);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mem_import_from_shareable_handle_reply__descriptor, &message);
	if (result == CUDA_SUCCESS)
		*handle = ((const Vgpu__CuMemImportFromShareableHandleReply *)message)
				  ->handle;
	return result;
}
