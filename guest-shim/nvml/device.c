/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device: handles, and reading the state of one device
 */

#include <stdio.h>
#include <string.h>

#include "nvml/device.h"
#include "nvml/page.h"

struct nvmlDevice_st {
	uint8_t uuid[16]; /* of the device that it stands for */
};

/* Written when the library is initialised; from then on a handle keeps its device. */
static struct nvmlDevice_st devices[VGPU_DEVICES_MAX];
static unsigned int n_devices;

nvmlReturn_t nvml_device_setup(void)
{
	struct nvml_page_head head;
	nvmlReturn_t result = nvml_page_read_head(&head);

	if (result == NVML_SUCCESS)
		__atomic_store_n(&n_devices, head.n_devices, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < n_devices && result == NVML_SUCCESS; i++) {
		uint64_t uuid[2];
		const struct nvml_piece piece = {
			.to = uuid,
			.off = offsetof(struct vgpu_status, devices) +
			       i * sizeof(struct vgpu_status_device) +
			       offsetof(struct vgpu_status_device, info.uuid),
			.size = sizeof(uuid),
		};

		result = nvml_page_read(&piece, 1);
		/* Calls of before may still compare it. */
		if (result == NVML_SUCCESS &&
			memcmp(devices[i].uuid, uuid, sizeof(uuid)) != 0)
			memcpy(devices[i].uuid, uuid, sizeof(uuid));
	}
	return result;
}

unsigned int nvml_device_n(void)
{
	return __atomic_load_n(&n_devices, __ATOMIC_ACQUIRE);
}

bool nvml_device_is_valid(nvmlDevice_t device)
{
	uintptr_t off = (uintptr_t)device - (uintptr_t)devices;

	return off % sizeof(devices[0]) == 0 &&
	       off / sizeof(devices[0]) < nvml_device_n();
}

nvmlDevice_t nvml_device_get(unsigned int index)
{
	return &devices[index];
}

unsigned int nvml_device_index(nvmlDevice_t device)
{
	return (unsigned int)(device - devices);
}

static nvmlReturn_t read_with_head(nvmlDevice_t device, struct vgpu_status_device *status,
	struct nvml_page_head *head)
{
	unsigned int index = nvml_device_index(device);
	const struct nvml_piece pieces[] = {
		{ .to = head, .size = NVML_PAGE_HEAD },
		{
			.to = status,
			.off = offsetof(struct vgpu_status, devices) +
			       index * sizeof(*status),
			.size = sizeof(*status),
		},
	};
	nvmlReturn_t result = nvml_page_read(pieces, 2);

	if (result != NVML_SUCCESS)
		return result;
	if (index >= head->n_devices ||
		memcmp(device->uuid, status->info.uuid, sizeof(device->uuid)) != 0)
		return NVML_ERROR_GPU_IS_LOST;
	status->info.name[sizeof(status->info.name) - 1] = '\0';
	return NVML_SUCCESS;
}

nvmlReturn_t nvml_device_read(
	nvmlDevice_t device, struct vgpu_status_device *status, uint64_t *updated_usp)
{
	struct nvml_page_head head;
	nvmlReturn_t result = read_with_head(device, status, &head);

	if (result == NVML_SUCCESS && updated_usp)
		*updated_usp = head.updated_us;
	return result;
}

nvmlReturn_t nvml_device_read_memory(
	nvmlDevice_t device, struct vgpu_status_device *status, uint64_t *leftp)
{
	struct nvml_page_head head;
	nvmlReturn_t result = read_with_head(device, status, &head);

	if (result != NVML_SUCCESS)
		return result;
	*leftp = UINT64_MAX;
	if (head.memory_limit)
		*leftp = head.memory_used < head.memory_limit
				 ? head.memory_limit - head.memory_used
				 : 0;
	return NVML_SUCCESS;
}

bool nvml_device_attribute(
	const struct vgpu_status_device *status, CUdevice_attribute number, int *valuep)
{
	unsigned int n = (unsigned int)number;

	if (n >= VGPU_DEVICE_ATTRIBUTES_N || !(status->info.known[n / 8] >> n % 8 & 1))
		return false;
	*valuep = status->info.attributes[n];
	return true;
}

bool nvml_device_sensor(const struct vgpu_status_device *status,
	enum vgpu_status_sensor sensor, int64_t *valuep)
{
	if (!(status->sensors_known >> sensor & 1))
		return false;
	*valuep = status->sensors[sensor];
	return true;
}

nvmlReturn_t nvml_device_answer_64(
	nvmlDevice_t device, enum vgpu_status_sensor sensor, unsigned long long *valuep)
{
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);
	int64_t value;

	if (result != NVML_SUCCESS)
		return result;
	if (!nvml_device_sensor(&status, sensor, &value))
		return NVML_ERROR_NOT_SUPPORTED;
	*valuep = (unsigned long long)value;
	return NVML_SUCCESS;
}

nvmlReturn_t nvml_device_answer(
	nvmlDevice_t device, enum vgpu_status_sensor sensor, unsigned int *valuep)
{
	unsigned long long value;
	nvmlReturn_t result = nvml_device_answer_64(device, sensor, &value);

	if (result == NVML_SUCCESS)
		*valuep = (unsigned int)value;
	return result;
}

void nvml_device_uuid_text(const uint8_t uuid[16], char text[NVML_DEVICE_UUID_TEXT_SIZE])
{
	char *out = text + sprintf(text, "GPU");

	for (int i = 0; i < 16; i++)
		out += sprintf(out, "%s%02x",
			i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			uuid[i]);
}
