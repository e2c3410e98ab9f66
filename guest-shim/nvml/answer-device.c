/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: which devices there are, and what they are
 */

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "nvml/device.h"
#include "nvml/g-nvml-answers.h"
#include "nvml/page.h"
#include "nvml/text.h"

/*
 * Finding one
 */

nvmlReturn_t answer_nvmlDeviceGetCount_v2(unsigned int *deviceCount)
{
	*deviceCount = nvml_device_n();
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetHandleByIndex_v2(
	unsigned int index, nvmlDevice_t *device)
{
	if (index >= nvml_device_n())
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = nvml_device_get(index);
	return NVML_SUCCESS;
}

/* Devices have no serial number in a guest. */
nvmlReturn_t answer_nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
	return NVML_ERROR_NOT_FOUND;
}

typedef bool (*is_wanted_fn)(const struct vgpu_status_device *status, const void *what);

static nvmlReturn_t find(nvmlDevice_t *device, is_wanted_fn is_wanted, const void *what)
{
	struct vgpu_status_device status;

	for (unsigned int i = 0; i < nvml_device_n(); i++) {
		nvmlReturn_t result = nvml_device_read(nvml_device_get(i), &status, NULL);

		if (result != NVML_SUCCESS)
			return result;
		if (is_wanted(&status, what)) {
			*device = nvml_device_get(i);
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

static bool has_uuid_text(const struct vgpu_status_device *status, const void *what)
{
	char text[NVML_DEVICE_UUID_TEXT_SIZE];

	nvml_device_uuid_text(status->info.uuid, text);
	return !strcasecmp(text, what);
}

static bool has_uuid(const struct vgpu_status_device *status, const void *what)
{
	return !memcmp(status->info.uuid, what, sizeof(status->info.uuid));
}

nvmlReturn_t answer_nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	return find(device, has_uuid_text, uuid);
}

nvmlReturn_t answer_nvmlDeviceGetHandleByUUIDV(
	const nvmlUUID_t *uuid, nvmlDevice_t *device)
{
	char text[sizeof(uuid->value.str) + 1] = "";

	if (uuid->version != nvmlUUID_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (uuid->type == NVML_UUID_TYPE_BINARY)
		return find(device, has_uuid, uuid->value.bytes);
	if (uuid->type != NVML_UUID_TYPE_ASCII)
		return NVML_ERROR_INVALID_ARGUMENT;
	memcpy(text, uuid->value.str, sizeof(uuid->value.str));
	return find(device, has_uuid_text, text);
}

/*
 * PCI: the address of the host's device, as libcuda tells it
 */

struct place {
	unsigned int domain, bus, device;
};

static struct place place_of(const struct vgpu_status_device *status)
{
	int domain = 0, bus = 0, device = 0;

	nvml_device_attribute(status, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, &domain);
	nvml_device_attribute(status, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &bus);
	nvml_device_attribute(status, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, &device);
	return (struct place){
		(unsigned int)domain,
		(unsigned int)bus,
		(unsigned int)device,
	};
}

/* [domain:]bus:device[.function], in hexadecimal. */
static bool parse_place(const char *text, struct place *place)
{
	unsigned int function = 0;
	int n;

	n = sscanf(text, "%x:%x:%x.%x", &place->domain, &place->bus, &place->device,
		&function);
	if (n >= 3)
		return !function;
	place->domain = 0;
	n = sscanf(text, "%x:%x.%x", &place->bus, &place->device, &function);
	return n >= 2 && !function;
}

static bool is_at(const struct vgpu_status_device *status, const void *what)
{
	const struct place *place = what;
	struct place own = place_of(status);

	return own.domain == place->domain && own.bus == place->bus &&
	       own.device == place->device;
}

nvmlReturn_t answer_nvmlDeviceGetHandleByPciBusId_v2(
	const char *pciBusId, nvmlDevice_t *device)
{
	struct place place;

	if (!parse_place(pciBusId, &place))
		return NVML_ERROR_INVALID_ARGUMENT;
	return find(device, is_at, &place);
}

nvmlReturn_t answer_nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);
	struct place place;

	if (result != NVML_SUCCESS)
		return result;
	place = place_of(&status);
	*pci = (nvmlPciInfo_t){
		.domain = place.domain,
		.bus = place.bus,
		.device = place.device,
	};
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy),
		NVML_DEVICE_PCI_BUS_ID_LEGACY_FMT, place.domain & 0xffff, place.bus,
		place.device);
	snprintf(pci->busId, sizeof(pci->busId), NVML_DEVICE_PCI_BUS_ID_FMT, place.domain,
		place.bus, place.device);
	return NVML_SUCCESS;
}

/* The first form ends after the short text, the numbers and the device's id. */
nvmlReturn_t answer_nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	nvmlPciInfo_t all;
	nvmlReturn_t result = answer_nvmlDeviceGetPciInfo_v3(device, &all);

	if (result == NVML_SUCCESS)
		memcpy(pci, &all, offsetof(nvmlPciInfo_t, pciSubSystemId));
	return result;
}

/* The second one has the subsystem, too, and room that stays unused. */
nvmlReturn_t answer_nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	nvmlPciInfo_t all;
	nvmlReturn_t result = answer_nvmlDeviceGetPciInfo_v3(device, &all);

	if (result == NVML_SUCCESS)
		memcpy(pci, &all, offsetof(nvmlPciInfo_t, busId));
	return result;
}

nvmlReturn_t answer_nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci)
{
	nvmlPciInfo_t all;
	nvmlReturn_t result;

	if (pci->version != nvmlPciInfoExt_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	result = answer_nvmlDeviceGetPciInfo_v3(device, &all);
	if (result != NVML_SUCCESS)
		return result;
	*pci = (nvmlPciInfoExt_t){
		.version = nvmlPciInfoExt_v1,
		.domain = all.domain,
		.bus = all.bus,
		.device = all.device,
		/* A display controller, of the 3D kind. */
		.baseClass = 0x03,
		.subClass = 0x02,
	};
	memcpy(pci->busId, all.busId, sizeof(pci->busId));
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetBusType(nvmlDevice_t device, nvmlBusType_t *type)
{
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);
	int64_t generation;

	if (result == NVML_SUCCESS)
		*type = nvml_device_sensor(
				&status, VGPU_SENSOR_PCIE_GENERATION, &generation)
				? NVML_BUS_TYPE_PCIE
				: NVML_BUS_TYPE_UNKNOWN;
	return result;
}

/* Each device is alone on its board, as far as the guest knows. */
nvmlReturn_t answer_nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int *boardId)
{
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);
	struct place place;

	if (result != NVML_SUCCESS)
		return result;
	place = place_of(&status);
	*boardId = place.domain << 16 | place.bus << 8 | place.device << 3;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetMultiGpuBoard(
	nvmlDevice_t device, unsigned int *multiGpuBool)
{
	*multiGpuBool = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceOnSameBoard(
	nvmlDevice_t device1, nvmlDevice_t device2, int *onSameBoard)
{
	*onSameBoard = device1 == device2;
	return NVML_SUCCESS;
}

/*
 * What it is
 */

nvmlReturn_t answer_nvmlDeviceGetName(
	nvmlDevice_t device, char *name, unsigned int length)
{
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);

	return result == NVML_SUCCESS ? nvml_text_answer(name, length, status.info.name)
				      : result;
}

nvmlReturn_t answer_nvmlDeviceGetUUID(
	nvmlDevice_t device, char *uuid, unsigned int length)
{
	char text[NVML_DEVICE_UUID_TEXT_SIZE];
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);

	if (result != NVML_SUCCESS)
		return result;
	nvml_device_uuid_text(status.info.uuid, text);
	return nvml_text_answer(uuid, length, text);
}

nvmlReturn_t answer_nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *type)
{
	struct nvml_page_head head;
	nvmlReturn_t result = nvml_page_read_head(&head);

	if (result == NVML_SUCCESS)
		*type = head.flags & VGPU_STATUS_SOFTGPU ? NVML_BRAND_UNKNOWN
							 : NVML_BRAND_NVIDIA;
	return result;
}

nvmlReturn_t answer_nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
	*index = nvml_device_index(device);
	return NVML_SUCCESS;
}

/* There is no device file, so the number is only one that differs. */
nvmlReturn_t answer_nvmlDeviceGetMinorNumber(
	nvmlDevice_t device, unsigned int *minorNumber)
{
	*minorNumber = nvml_device_index(device);
	return NVML_SUCCESS;
}

static nvmlReturn_t read_attribute(
	nvmlDevice_t device, CUdevice_attribute number, int *valuep)
{
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);

	if (result != NVML_SUCCESS)
		return result;
	return nvml_device_attribute(&status, number, valuep) ? NVML_SUCCESS
							      : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t answer_nvmlDeviceGetCudaComputeCapability(
	nvmlDevice_t device, int *major, int *minor)
{
	nvmlReturn_t result = read_attribute(
		device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major);

	if (result == NVML_SUCCESS)
		result = read_attribute(
			device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor);
	return result;
}

/* By compute capability, from this one on: the architecture, and its cores in each
 * multiprocessor. */
static const struct {
	int major, minor;
	unsigned int architecture;
	unsigned int cores;
} architectures[] = {
	{ 3, 0, NVML_DEVICE_ARCH_KEPLER, 192 },
	{ 5, 0, NVML_DEVICE_ARCH_MAXWELL, 128 },
	{ 6, 0, NVML_DEVICE_ARCH_PASCAL, 64 },
	{ 6, 1, NVML_DEVICE_ARCH_PASCAL, 128 },
	{ 7, 0, NVML_DEVICE_ARCH_VOLTA, 64 },
	{ 7, 5, NVML_DEVICE_ARCH_TURING, 64 },
	{ 8, 0, NVML_DEVICE_ARCH_AMPERE, 64 },
	{ 8, 6, NVML_DEVICE_ARCH_AMPERE, 128 },
	{ 8, 9, NVML_DEVICE_ARCH_ADA, 128 },
	{ 9, 0, NVML_DEVICE_ARCH_HOPPER, 128 },
	{ 10, 0, NVML_DEVICE_ARCH_BLACKWELL, 128 },
	{ 13, 0, NVML_DEVICE_ARCH_UNKNOWN, 0 },
};

/* Return: the row, or NVML_ERROR_NOT_SUPPORTED without a capability. */
static nvmlReturn_t find_architecture(nvmlDevice_t device, size_t *rowp)
{
	int major, minor;
	nvmlReturn_t result =
		answer_nvmlDeviceGetCudaComputeCapability(device, &major, &minor);

	if (result != NVML_SUCCESS)
		return result;
	if (major < architectures[0].major)
		return NVML_ERROR_NOT_SUPPORTED;
	*rowp = 0;
	for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++)
		if (major > architectures[i].major ||
			(major == architectures[i].major &&
				minor >= architectures[i].minor))
			*rowp = i;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetArchitecture(
	nvmlDevice_t device, nvmlDeviceArchitecture_t *arch)
{
	size_t row;
	nvmlReturn_t result = find_architecture(device, &row);

	if (result == NVML_SUCCESS)
		*arch = architectures[row].architecture;
	else if (result == NVML_ERROR_NOT_SUPPORTED)
		*arch = NVML_DEVICE_ARCH_UNKNOWN;
	return result == NVML_ERROR_NOT_SUPPORTED ? NVML_SUCCESS : result;
}

nvmlReturn_t answer_nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *numCores)
{
	int n_multiprocessors;
	size_t row;
	nvmlReturn_t result = find_architecture(device, &row);

	if (result == NVML_SUCCESS)
		result = read_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
			&n_multiprocessors);
	if (result == NVML_SUCCESS && !architectures[row].cores)
		result = NVML_ERROR_NOT_SUPPORTED;
	if (result == NVML_SUCCESS)
		*numCores = (unsigned int)n_multiprocessors * architectures[row].cores;
	return result;
}

nvmlReturn_t answer_nvmlDeviceGetMemoryBusWidth(
	nvmlDevice_t device, unsigned int *busWidth)
{
	int width;
	nvmlReturn_t result = read_attribute(
		device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &width);

	if (result == NVML_SUCCESS)
		*busWidth = (unsigned int)width;
	return result;
}

/* Both enumerations have the same numbers. */
nvmlReturn_t answer_nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
	int value;
	nvmlReturn_t result =
		read_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, &value);

	if (result == NVML_SUCCESS)
		*mode = (nvmlComputeMode_t)value;
	return result;
}

/*
 * What it does not do
 */

nvmlReturn_t answer_nvmlDeviceGetPersistenceMode(
	nvmlDevice_t device, nvmlEnableState_t *mode)
{
	*mode = NVML_FEATURE_DISABLED;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetDisplayMode(
	nvmlDevice_t device, nvmlEnableState_t *display)
{
	*display = NVML_FEATURE_DISABLED;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetDisplayActive(
	nvmlDevice_t device, nvmlEnableState_t *isActive)
{
	*isActive = NVML_FEATURE_DISABLED;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceIsMigDeviceHandle(
	nvmlDevice_t device, unsigned int *isMigDevice)
{
	*isMigDevice = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetMaxMigDeviceCount(
	nvmlDevice_t device, unsigned int *count)
{
	*count = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlGpmQueryDeviceSupport(
	nvmlDevice_t device, nvmlGpmSupport_t *gpmSupport)
{
	if (gpmSupport->version != NVML_GPM_SUPPORT_VERSION)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	gpmSupport->isSupportedDevice = 0;
	return NVML_SUCCESS;
}
