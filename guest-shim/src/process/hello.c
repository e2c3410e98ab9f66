/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hello: the first calls, which ask the host for its devices
 *
 * Attributes that promise what is not remoted come from the host as if the device could
 * not do it (protocol/api/enums.xml).
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/g-driver.pb-c.h"
#include "vgpu/log.h"

#include "process/call.h"
#include "process/context.h"
#include "process/device.h"
#include "process/environment.h"
#include "process/hello.h"
#include "wire/reason.h"

static void copy_bytes(void *destination, size_t size, const ProtobufCBinaryData *bytes)
{
	memset(destination, 0, size);
	memcpy(destination, bytes->data, bytes->len < size ? bytes->len : size);
}

static void fill(struct vgpu_device_info *device, const Vgpu__VgpuDeviceInfoReply *reply)
{
	snprintf(device->name, sizeof(device->name), "%s", reply->device_name);
	copy_bytes(&device->uuid, sizeof(device->uuid), &reply->uuid);
	copy_bytes(device->known, sizeof(device->known), &reply->known);
	device->total_memory = reply->total_mem;
	memset(device->attributes, 0, sizeof(device->attributes));
	for (size_t i = 0; i < reply->n_attributes && i < VGPU_DEVICE_ATTRIBUTES_N; i++)
		device->attributes[i] = reply->attributes[i];
}

static CUresult load(CUdevice number)
{
	Vgpu__VgpuDeviceInfoRequest request = VGPU__VGPU_DEVICE_INFO_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuDeviceInfo);
	const ProtobufCMessage *reply;
	CUresult result;

	request.device = number;
	result = shim_call_sync(
		&call, &request.base, &vgpu__vgpu_device_info_reply__descriptor, &reply);
	if (result == CUDA_SUCCESS)
		fill(&shim_devices.all[number], (const Vgpu__VgpuDeviceInfoReply *)reply);
	return result;
}

/* Takes over what hello left in the arena. */
static void take_told(const struct vgpu_device_info *told, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		shim_devices.all[i] = told[i];
		shim_devices.all[i].name[sizeof(told->name) - 1] = '\0';
	}
}

static CUresult choose_visible(void)
{
	shim_devices.n_visible = shim_environment_choose(getenv("CUDA_DEVICE_ORDER"),
		getenv("CUDA_VISIBLE_DEVICES"), shim_devices.all, shim_devices.n_all,
		shim_devices.visible);
	if (shim_devices.n_visible < shim_devices.n_all)
		vgpu_log_info("the program sees %d of %d devices", shim_devices.n_visible,
			shim_devices.n_all);
	if (!shim_devices.n_visible) {
		shim_reason_note(SHIM_REASON_VISIBLE,
			"CUDA_VISIBLE_DEVICES=%.128s names none of the %d devices of "
			"this virtual machine, or one of them twice",
			getenv("CUDA_VISIBLE_DEVICES"), shim_devices.n_all);
		return CUDA_ERROR_NO_DEVICE;
	}
	shim_context_setup(shim_devices.n_visible);
	return CUDA_SUCCESS;
}

static CUresult say_hello(struct vgpu_device_info *room, uint32_t *n_toldp)
{
	Vgpu__VgpuHelloRequest request = VGPU__VGPU_HELLO_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuHello);
	const Vgpu__VgpuHelloReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	request.destination = (uint64_t)(uintptr_t)room;
	request.room = room ? sizeof(shim_devices.all) : 0;
	result = shim_call_sync(
		&call, &request.base, &vgpu__vgpu_hello_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__VgpuHelloReply *)message;
	if (reply->n_devices <= 0)
		return CUDA_ERROR_NO_DEVICE;
	shim_devices.n_all = reply->n_devices < (int)VGPU_DEVICES_MAX
				     ? reply->n_devices
				     : (int)VGPU_DEVICES_MAX;
	*n_toldp = reply->n_told < (uint32_t)shim_devices.n_all
			   ? reply->n_told
			   : (uint32_t)shim_devices.n_all;
	vgpu_log_info("the host's driver is %s, version %d, %d devices",
		reply->driver_name, reply->driver_version, shim_devices.n_all);
	return CUDA_SUCCESS;
}

CUresult shim_hello(struct vgpu_device_info *room)
{
	uint32_t n_told = 0;
	CUresult result = say_hello(room, &n_told);

	if (room)
		take_told(room, n_told);
	for (int i = (int)n_told; i < shim_devices.n_all && result == CUDA_SUCCESS; i++)
		result = load(i);
	return result == CUDA_SUCCESS ? choose_visible() : result;
}
