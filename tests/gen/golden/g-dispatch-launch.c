/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* From frames to driver calls: launch */

#include "vgpu/checked.h"
#include "vgpu/g-driver.h"
#include "vgpu/g-driver.pb-c.h"
#include "g-handlers.h"
#include "worker/handle/generated.h"

/* cuLaunch: Launch what a pointer leads to. */

int dispatch_cuLaunch(struct call *call)
{
	Vgpu__CuLaunchReply reply = VGPU__CU_LAUNCH_REPLY__INIT;
	const Vgpu__CuLaunchRequest *request;

	request = (const Vgpu__CuLaunchRequest *)call_unpack(call,
		&vgpu__cu_launch_request__descriptor);
	if (!request)
		return CALL_E_VIOLATION;
	reply.result = handle_cuLaunch(call, request, &reply);
	return call_finish(call, &reply.base, reply.result);
}
