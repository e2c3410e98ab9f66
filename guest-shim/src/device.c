/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices
 *
 * Loaded once and constant from then on, so that the hundreds of questions a CUDA
 * runtime asks at its start cost no message. Attributes that promise what is not remoted
 * are answered as if the device could not do it, whatever the host's device can.
 */

#include <stdio.h>
#include <string.h>

#include "vgpu/g-driver.pb-c.h"
#include "vgpu/handle.h"
#include "vgpu/log.h"

#include "call.h"
#include "context.h"
#include "device.h"

static struct {
	int n;
	int driver_version;
	struct shim_device all[VGPU_DEVICES_MAX];
} devices;

/* Not remoted, hence 0. Each goes when what it names comes. */
static const uint8_t withheld[] = {
	CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
	CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
	CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
	CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
	CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
	CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
	CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
	CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH,
	CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED,
};

static void copy_bytes(void *destination, size_t size, const ProtobufCBinaryData *bytes)
{
	memset(destination, 0, size);
	memcpy(destination, bytes->data, bytes->len < size ? bytes->len : size);
}

static void fill(struct shim_device *device, const Vgpu__VgpuDeviceInfoReply *reply)
{
	snprintf(device->name, sizeof(device->name), "%s", reply->device_name);
	copy_bytes(&device->uuid, sizeof(device->uuid), &reply->uuid);
	copy_bytes(device->known, sizeof(device->known), &reply->known);
	device->total_memory = reply->total_mem;
	memset(device->attributes, 0, sizeof(device->attributes));
	for (size_t i = 0; i < reply->n_attributes && i < SHIM_ATTRIBUTES_N; i++)
		device->attributes[i] = reply->attributes[i];
	for (size_t i = 0; i < sizeof(withheld); i++)
		device->attributes[withheld[i]] = 0;
}

static CUresult load(CUdevice number)
{
	Vgpu__VgpuDeviceInfoRequest request = VGPU__VGPU_DEVICE_INFO_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuDeviceInfo);
	const ProtobufCMessage *reply;
	CUresult result;

	request.device = number;
	result = shim_call_sync(&call, &request.base,
		&vgpu__vgpu_device_info_reply__descriptor, &reply);
	if (result == CUDA_SUCCESS)
		fill(&devices.all[number], (const Vgpu__VgpuDeviceInfoReply *)reply);
	return result;
}

CUresult shim_device_load_all(void)
{
	Vgpu__VgpuHelloRequest request = VGPU__VGPU_HELLO_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuHello);
	const Vgpu__VgpuHelloReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	result = shim_call_sync(&call, &request.base, &vgpu__vgpu_hello_reply__descriptor,
		&message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__VgpuHelloReply *)message;
	if (reply->n_devices <= 0)
		return CUDA_ERROR_NO_DEVICE;
	devices.n = reply->n_devices < (int)VGPU_DEVICES_MAX ? reply->n_devices :
							       (int)VGPU_DEVICES_MAX;
	devices.driver_version = reply->driver_version;
	vgpu_log_info("the host's driver is %s, version %d, %d devices", reply->driver_name,
		reply->driver_version, devices.n);

	for (int i = 0; i < devices.n && result == CUDA_SUCCESS; i++)
		result = load(i);
	if (result == CUDA_SUCCESS)
		shim_context_setup(devices.n);
	return result;
}

int shim_device_n(void)
{
	return devices.n;
}

int shim_device_driver_version(void)
{
	return devices.driver_version;
}

const struct shim_device *shim_device_get(CUdevice device)
{
	return device >= 0 && device < devices.n ? &devices.all[device] : NULL;
}

bool shim_device_attribute(const struct shim_device *device, int attribute, int *valuep)
{
	if (attribute <= 0 || attribute >= SHIM_ATTRIBUTES_N ||
		!(device->known[attribute / 8] & 1u << attribute % 8))
		return false;
	*valuep = device->attributes[attribute];
	return true;
}
