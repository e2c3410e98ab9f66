/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: notifications of a device
 */

#include "vgpu/g-driver.pb-c.h"

#include "process/call.h"
#include "process/device.h"
#include "process/notice.h"

/* What both calls check first. */
static CUresult check(enum vgpu_call id, CUdevice device)
{
	CUresult result = shim_call_check(id);

	if (result != CUDA_SUCCESS)
		return result;
	/* CUDA forbids these two calls, and no others, in the functions themselves. */
	if (shim_notice_is_running_here())
		return CUDA_ERROR_NOT_PERMITTED;
	return shim_device_get(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* Lowered limits are noticed from the reply on. */
static CUresult arm_host(CUdevice device)
{
	Vgpu__CuDeviceRegisterAsyncNotificationRequest request =
		VGPU__CU_DEVICE_REGISTER_ASYNC_NOTIFICATION_REQUEST__INIT;
	struct shim_call call =
		SHIM_CALL_INIT(VGPU_CALL_cuDeviceRegisterAsyncNotification);

	request.device = shim_device_to_host(device);
	return shim_call_sync(&call, &request.base,
		&vgpu__cu_device_register_async_notification_reply__descriptor, NULL);
}

CUresult shim_cuDeviceRegisterAsyncNotification(CUdevice device,
	CUasyncCallback callbackFunc, void *userData, CUasyncCallbackHandle *callback)
{
	CUresult result;

	result = check(VGPU_CALL_cuDeviceRegisterAsyncNotification, device);
	if (result != CUDA_SUCCESS)
		return result;
	if (!callbackFunc || !callback)
		return CUDA_ERROR_INVALID_VALUE;
	if (!shim_notice_has_room())
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = arm_host(device);
	return result == CUDA_SUCCESS
		       ? shim_notice_add(device, callbackFunc, userData, callback)
		       : result;
}

CUresult shim_cuDeviceUnregisterAsyncNotification(
	CUdevice device, CUasyncCallbackHandle callback)
{
	CUresult result;

	result = check(VGPU_CALL_cuDeviceUnregisterAsyncNotification, device);
	return result == CUDA_SUCCESS ? shim_notice_remove(device, callback) : result;
}
