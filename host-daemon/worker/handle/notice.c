/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on notices
 *
 * The budget that CUDA means is the VM's quota here, which no driver knows: the driver is
 * not called.
 */

#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/base/session.h"
#include "worker/memory/notice.h"

CUresult handle_cuDeviceRegisterAsyncNotification(struct call *call,
	const Vgpu__CuDeviceRegisterAsyncNotificationRequest *request,
	Vgpu__CuDeviceRegisterAsyncNotificationReply *reply)
{
	if (request->device < 0 || request->device >= call->session->n_devices)
		return CUDA_ERROR_INVALID_DEVICE;
	return notices_arm(call->session);
}

CUresult handle_vgpuNoticeNext(struct call *call,
	const Vgpu__VgpuNoticeNextRequest *request, Vgpu__VgpuNoticeNextReply *reply)
{
	return notices_next(call->session, &reply->bytes_over_budget);
}
