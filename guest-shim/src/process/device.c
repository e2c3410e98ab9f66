/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices
 *
 * Loaded once and constant from then on, so that the hundreds of questions a CUDA
 * runtime asks at its start cost no message. Attributes that promise what is not remoted
 * come from the host as if the device could not do it (protocol/api/enums.xml).
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/g-driver.pb-c.h"
#include "vgpu/handle.h"
#include "vgpu/log.h"

#include "process/call.h"
#include "process/context.h"
#include "process/device.h"
#include "process/environment.h"
#include "wire/reason.h"

static struct {
	/* The host's, by its own numbers. */
	int n_all;
	struct vgpu_device_info all[VGPU_DEVICES_MAX];
	/* Those of them that the program sees, by the program's numbers. */
	int n_visible;
	int visible[VGPU_DEVICES_MAX];
} devices;

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
		fill(&devices.all[number], (const Vgpu__VgpuDeviceInfoReply *)reply);
	return result;
}

/* Takes over what hello left in the arena. */
static void take_told(const struct vgpu_device_info *told, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		devices.all[i] = told[i];
		devices.all[i].name[sizeof(told->name) - 1] = '\0';
	}
}

static CUresult choose_visible(void)
{
	devices.n_visible = shim_environment_choose(getenv("CUDA_DEVICE_ORDER"),
		getenv("CUDA_VISIBLE_DEVICES"), devices.all, devices.n_all,
		devices.visible);
	if (devices.n_visible < devices.n_all)
		vgpu_log_info("the program sees %d of %d devices", devices.n_visible,
			devices.n_all);
	if (!devices.n_visible) {
		shim_reason_note(SHIM_REASON_VISIBLE,
			"CUDA_VISIBLE_DEVICES=%.128s names none of the %d devices of "
			"this virtual machine, or one of them twice",
			getenv("CUDA_VISIBLE_DEVICES"), devices.n_all);
		return CUDA_ERROR_NO_DEVICE;
	}
	shim_context_setup(devices.n_visible);
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
	request.room = room ? sizeof(devices.all) : 0;
	result = shim_call_sync(
		&call, &request.base, &vgpu__vgpu_hello_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__VgpuHelloReply *)message;
	if (reply->n_devices <= 0)
		return CUDA_ERROR_NO_DEVICE;
	devices.n_all = reply->n_devices < (int)VGPU_DEVICES_MAX ? reply->n_devices
								 : (int)VGPU_DEVICES_MAX;
	*n_toldp = reply->n_told < (uint32_t)devices.n_all ? reply->n_told
							   : (uint32_t)devices.n_all;
	vgpu_log_info("the host's driver is %s, version %d, %d devices",
		reply->driver_name, reply->driver_version, devices.n_all);
	return CUDA_SUCCESS;
}

CUresult shim_device_load_all(struct vgpu_device_info *room)
{
	uint32_t n_told = 0;
	CUresult result = say_hello(room, &n_told);

	if (room)
		take_told(room, n_told);
	for (int i = (int)n_told; i < devices.n_all && result == CUDA_SUCCESS; i++)
		result = load(i);
	return result == CUDA_SUCCESS ? choose_visible() : result;
}

int shim_device_n(void)
{
	return devices.n_visible;
}

const struct vgpu_device_info *shim_device_get(CUdevice device)
{
	return device >= 0 && device < devices.n_visible
		       ? &devices.all[devices.visible[device]]
		       : NULL;
}

CUdevice shim_device_to_host(CUdevice device)
{
	return device >= 0 && device < devices.n_visible ? devices.visible[device]
							 : SHIM_NO_DEVICE;
}

CUdevice shim_device_from_host(CUdevice number)
{
	for (int i = 0; i < devices.n_visible; i++)
		if (devices.visible[i] == number)
			return i;
	return SHIM_NO_DEVICE;
}

bool shim_device_attribute(
	const struct vgpu_device_info *device, int attribute, int *valuep)
{
	if (attribute <= 0 || attribute >= VGPU_DEVICE_ATTRIBUTES_N ||
		!(device->known[attribute / 8] & 1u << attribute % 8))
		return false;
	*valuep = device->attributes[attribute];
	return true;
}
