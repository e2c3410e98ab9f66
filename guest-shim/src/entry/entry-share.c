/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: memory that processes of one VM share
 */

#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "entry/pool-share.h"
#include "entry/share.h"
#include "process/call.h"
#include "process/device.h"

CUresult shim_share_export(
	CUmemGenericAllocationHandle handle, uint8_t token[SHIM_TOKEN_SIZE])
{
	Vgpu__CuMemExportToShareableHandleRequest request =
		VGPU__CU_MEM_EXPORT_TO_SHAREABLE_HANDLE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemExportToShareableHandle);
	const Vgpu__CuMemExportToShareableHandleReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	request.handle = handle;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mem_export_to_shareable_handle_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuMemExportToShareableHandleReply *)message;
	if (reply->token.len != SHIM_TOKEN_SIZE)
		return shim_call_error(&call, CUDA_ERROR_UNKNOWN);
	memcpy(token, reply->token.data, SHIM_TOKEN_SIZE);
	return CUDA_SUCCESS;
}

CUresult shim_share_import(
	const uint8_t token[SHIM_TOKEN_SIZE], CUmemGenericAllocationHandle *handle)
{
	Vgpu__CuMemImportFromShareableHandleRequest request =
		VGPU__CU_MEM_IMPORT_FROM_SHAREABLE_HANDLE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemImportFromShareableHandle);
	const ProtobufCMessage *message;
	CUresult result;

	request.token.data = (uint8_t *)token;
	request.token.len = SHIM_TOKEN_SIZE;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_mem_import_from_shareable_handle_reply__descriptor, &message);
	if (result == CUDA_SUCCESS)
		*handle = ((const Vgpu__CuMemImportFromShareableHandleReply *)message)
				  ->handle;
	return result;
}

/*
 * Memory
 */

CUresult shim_cuMemExportToShareableHandle(void *shareableHandle,
	CUmemGenericAllocationHandle handle, CUmemAllocationHandleType handleType,
	unsigned long long flags)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemExportToShareableHandle);
	struct shim_token token = { .kind = SHIM_TOKEN_MEMORY };
	CUresult result;
	int fd;

	result = shim_call_check(call.id);
	if (result != CUDA_SUCCESS)
		return result;
	if (!shareableHandle || flags ||
		handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	result = shim_share_export(handle, token.bytes);
	if (result != CUDA_SUCCESS)
		return result;
	fd = shim_token_file_new(&token);
	if (fd < 0)
		return shim_call_error(&call, CUDA_ERROR_OPERATING_SYSTEM);
	*(int *)shareableHandle = fd;
	return CUDA_SUCCESS;
}

CUresult shim_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
	void *osHandle, CUmemAllocationHandleType shHandleType)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuMemImportFromShareableHandle);
	struct shim_token token;
	CUresult result;

	result = shim_call_check(call.id);
	if (result != CUDA_SUCCESS)
		return result;
	if (!handle)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	if (shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return shim_call_error(&call, CUDA_ERROR_NOT_SUPPORTED);
	if (!shim_token_file_read((int)(intptr_t)osHandle, SHIM_TOKEN_MEMORY, &token))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	return shim_share_import(token.bytes, handle);
}

/*
 * Pools
 */

CUresult shim_cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
	CUmemAllocationHandleType handleType, unsigned long long flags)
{
	struct shim_token token = { .kind = SHIM_TOKEN_POOL };
	struct shim_pool *found;
	int fd;

	SHIM_CHECK_READY();
	found = shim_pool_find(pool);
	if (!handle_out || !found || !found->is_exportable || flags ||
		handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(token.bytes, found->id, sizeof(token.bytes));
	token.device = shim_device_to_host(found->location);
	fd = shim_token_file_new(&token);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)handle_out = fd;
	return CUDA_SUCCESS;
}

CUresult shim_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
	CUmemAllocationHandleType handleType, unsigned long long flags)
{
	struct shim_token token;
	CUdevice device;

	SHIM_CHECK_READY();
	if (!pool_out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!shim_token_file_read((int)(intptr_t)handle, SHIM_TOKEN_POOL, &token))
		return CUDA_ERROR_INVALID_VALUE;
	device = shim_device_from_host(token.device);
	/* Another process may see other devices. */
	if (!shim_device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return shim_pool_new_import(device, token.bytes, pool_out);
}

CUresult shim_cuMemPoolExportPointer(
	CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
	SHIM_CHECK_READY();
	return shareData_out ? shim_pool_export(ptr, shareData_out)
			     : CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuMemPoolImportPointer(
	CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
	struct shim_pool *found;

	SHIM_CHECK_READY();
	found = shim_pool_find(pool);
	if (!ptr_out || !found || !shareData)
		return CUDA_ERROR_INVALID_VALUE;
	return shim_pool_import(found, shareData, ptr_out);
}
