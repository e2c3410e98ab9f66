/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constant properties of the devices
 */

#include <string.h>

#include "driver/driver.h"
#include "vgpu/handle.h"
#include "vgpu/status.h"
#include "worker/handle/device-info.h"
#include "worker/handle/generated.h"
#include "worker/memory/host-mapping.h"

static struct {
	bool is_loaded;
	int n;
	CUresult results[VGPU_DEVICES_MAX];
	struct vgpu_device_info infos[VGPU_DEVICES_MAX];
	uint8_t peers[VGPU_DEVICES_MAX][VGPU_DEVICES_MAX]; /* VGPU_STATUS_PEER_* */
} devices;

/* Memory of the host at addresses of the program is the worker's work: what the driver
 * says of its own does not count. */
static bool is_of_host_mappings(int attribute)
{
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
		return true;
	default:
		return false;
	}
}

static void ask_attributes(
	const struct vgpu_driver *driver, CUdevice device, struct vgpu_device_info *info)
{
	int value;

	for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX && i < VGPU_DEVICE_ATTRIBUTES_N;
		i++) {
		if (!attribute_answer(i, &value) &&
			driver->cuDeviceGetAttribute(&value, i, device) != CUDA_SUCCESS)
			continue;
		if (is_of_host_mappings(i))
			value = host_mapping_is_possible(driver, device);
		info->attributes[i] = value;
		info->known[i / 8] |= 1 << i % 8;
	}
}

static CUresult ask(
	const struct vgpu_driver *driver, CUdevice device, struct vgpu_device_info *info)
{
	CUuuid *uuid = (CUuuid *)(void *)info->uuid;
	size_t total = 0;
	CUresult result;

	result = driver->cuDeviceGetName(info->name, sizeof(info->name), device);
	info->name[sizeof(info->name) - 1] = '\0';
	if (result == CUDA_SUCCESS)
		result = driver->cuDeviceTotalMem_v2(&total, device);
	if (result == CUDA_SUCCESS && driver->cuDeviceGetUuid_v2)
		result = driver->cuDeviceGetUuid_v2(uuid, device);
	else if (result == CUDA_SUCCESS)
		result = driver->cuDeviceGetUuid(uuid, device);
	if (result != CUDA_SUCCESS)
		return result;
	info->total_memory = total;
	ask_attributes(driver, device, info);
	return CUDA_SUCCESS;
}

/* As calls of the guest are answered, see peer.c: where the worker places memory itself,
 * no device has access to that of another. */
static uint8_t ask_peer(const struct vgpu_driver *driver, CUdevice device, CUdevice peer)
{
	int has_access = 0, has_atomics = 0;

	if (!driver->cuDeviceCanAccessPeer || !driver->cuDeviceGetP2PAttribute ||
		driver->cuDeviceCanAccessPeer(&has_access, device, peer) != CUDA_SUCCESS)
		return 0;
	driver->cuDeviceGetP2PAttribute(&has_atomics,
		CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, device, peer);
	return (uint8_t)(VGPU_STATUS_PEER_KNOWN |
			 (has_access ? VGPU_STATUS_PEER_ACCESS : 0) |
			 (has_access && has_atomics ? VGPU_STATUS_PEER_ATOMICS : 0));
}

static void load_peers(const struct driver *driver)
{
	for (int i = 0; i < devices.n; i++)
		for (int k = 0; k < devices.n; k++)
			if (i != k)
				devices.peers[i][k] =
					driver->set_window
						? ask_peer(&driver->table, i, k)
						: VGPU_STATUS_PEER_KNOWN;
}

void device_info_load(const struct driver *driver, int n_devices)
{
	if (devices.is_loaded)
		return;
	devices.n = n_devices < (int)VGPU_DEVICES_MAX ? n_devices : (int)VGPU_DEVICES_MAX;
	for (int i = 0; i < devices.n; i++)
		devices.results[i] = ask(&driver->table, i, &devices.infos[i]);
	load_peers(driver);
	devices.is_loaded = true;
}

void device_info_publish(struct worker_devices *published)
{
	for (int i = 0; i < devices.n; i++)
		published->infos[i] = devices.infos[i];
	memcpy(published->peers, devices.peers, sizeof(published->peers));
	published->n = (uint32_t)devices.n;
	published->n_units =
		(uint32_t)devices.infos[0]
			.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
}

CUresult device_info_get(int device, struct vgpu_device_info *info)
{
	if (device < 0 || device >= devices.n)
		return CUDA_ERROR_INVALID_DEVICE;
	*info = devices.infos[device];
	return devices.results[device];
}
