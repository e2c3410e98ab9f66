/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices: handles, and what each of them is
 */

#include <stdint.h>
#include <string.h>

#include "test.h"
#include "vgpu/nvml.h"

#include "page-double.h"

#define UUID_1 "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"

static struct vgpu_status *status;
static nvmlDevice_t device;

static void begin(void)
{
	status = page_double_start();
	check_eq(nvmlInit(), NVML_SUCCESS);
	check_eq(nvmlDeviceGetHandleByIndex(1, &device), NVML_SUCCESS);
}

static void end(void)
{
	check_eq(nvmlShutdown(), NVML_SUCCESS);
	page_double_finish();
}

TEST(a_handle_is_one_that_was_given_out)
{
	const uintptr_t wrong[] = { 0, 1, 0x1000, UINTPTR_MAX, (uintptr_t)device + 1,
		(uintptr_t)&status };
	nvmlEnableState_t mode;
	unsigned int n = 99;
	nvmlDevice_t other;

	begin();
	check_eq(nvmlDeviceGetHandleByIndex(2, &other), NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlDeviceGetIndex(device, &n), NVML_SUCCESS);
	check_eq(n, 1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		nvmlDevice_t bad = (nvmlDevice_t)wrong[i];

		check_eq(nvmlDeviceGetIndex(bad, &n), NVML_ERROR_INVALID_ARGUMENT);
		/* The order of the checks: the device, then support. */
		check_eq(nvmlDeviceGetEccMode(bad, &mode, &mode),
			NVML_ERROR_INVALID_ARGUMENT);
		check_eq(nvmlDeviceGetNvLinkState(bad, 0, &mode),
			NVML_ERROR_INVALID_ARGUMENT);
		check_eq(nvmlDeviceSetPersistenceMode(bad, NVML_FEATURE_ENABLED),
			NVML_ERROR_INVALID_ARGUMENT);
	}
	check_eq(nvmlDeviceGetIndex((nvmlDevice_t)((uintptr_t)device + 1), &n),
		NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlDeviceGetNvLinkState(device, 0, &mode), NVML_ERROR_NOT_SUPPORTED);
	check_eq(nvmlDeviceSetPersistenceMode(device, NVML_FEATURE_ENABLED),
		NVML_ERROR_NO_PERMISSION);
	end();
}

TEST(a_device_is_found_by_its_uuid)
{
	nvmlUUID_t uuid = { .version = nvmlUUID_v1, .type = NVML_UUID_TYPE_BINARY };
	nvmlDevice_t found = NULL;
	char text[NVML_DEVICE_UUID_BUFFER_SIZE] = "";

	begin();
	check_eq(nvmlDeviceGetUUID(device, text, sizeof(UUID_1)), NVML_SUCCESS);
	check_str(text, UUID_1);
	check_eq(nvmlDeviceGetUUID(device, text, sizeof(UUID_1) - 1),
		NVML_ERROR_INSUFFICIENT_SIZE);
	check_eq(nvmlDeviceGetHandleByUUID(UUID_1, &found), NVML_SUCCESS);
	check(found == device);
	check_eq(nvmlDeviceGetHandleByUUID("GPU-0", &found), NVML_ERROR_NOT_FOUND);
	check_eq(nvmlDeviceGetHandleBySerial("1", &found), NVML_ERROR_NOT_FOUND);
	memcpy(uuid.value.bytes, status->devices[1].info.uuid, 16);
	found = NULL;
	check_eq(nvmlDeviceGetHandleByUUIDV(&uuid, &found), NVML_SUCCESS);
	check(found == device);
	uuid.type = NVML_UUID_TYPE_ASCII;
	memcpy(uuid.value.str, UUID_1, sizeof(UUID_1));
	check_eq(nvmlDeviceGetHandleByUUIDV(&uuid, &found), NVML_SUCCESS);
	/* A text without an end. */
	memset(uuid.value.str, 'x', sizeof(uuid.value.str));
	check_eq(nvmlDeviceGetHandleByUUIDV(&uuid, &found), NVML_ERROR_NOT_FOUND);
	uuid.type = NVML_UUID_TYPE_NONE;
	check_eq(nvmlDeviceGetHandleByUUIDV(&uuid, &found), NVML_ERROR_INVALID_ARGUMENT);
	uuid.version = 0;
	check_eq(nvmlDeviceGetHandleByUUIDV(&uuid, &found),
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	end();
}

TEST(a_device_is_found_by_its_place_on_the_bus)
{
	static const char *const same[] = { "00000001:A1:03.0", "0001:a1:03.0",
		"1:a1:3" };
	static const char *const others[] = { "0000:a1:03.0", "a1:03.0", "1:a1:4.0" };
	nvmlPciInfoExt_t ext = { .version = nvmlPciInfoExt_v1 };
	nvmlDevice_t found;
	nvmlPciInfo_t pci;

	begin();
	check_eq(nvmlDeviceGetPciInfo(device, &pci), NVML_SUCCESS);
	check_str(pci.busId, "00000001:A1:03.0");
	check_str(pci.busIdLegacy, "0001:A1:03.0");
	check_eq(pci.domain, 1);
	check_eq(pci.bus, 0xa1);
	check_eq(pci.device, 3);
	check_eq(nvmlDeviceGetPciInfoExt(device, &ext), NVML_SUCCESS);
	check_str(ext.busId, pci.busId);
	ext.version = 1;
	check_eq(nvmlDeviceGetPciInfoExt(device, &ext),
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	for (int i = 0; i < 3; i++) {
		found = NULL;
		check_eq(nvmlDeviceGetHandleByPciBusId(same[i], &found), NVML_SUCCESS);
		check(found == device);
		check_eq(nvmlDeviceGetHandleByPciBusId(others[i], &found),
			NVML_ERROR_NOT_FOUND);
	}
	check_eq(nvmlDeviceGetHandleByPciBusId("fog", &found),
		NVML_ERROR_INVALID_ARGUMENT);
	end();
}

#undef nvmlDeviceGetPciInfo
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci);

TEST(older_forms_of_the_place_write_less)
{
	nvmlPciInfo_t pci;

	begin();
	memset(&pci, 0x55, sizeof(pci));
	check_eq(nvmlDeviceGetPciInfo(device, &pci), NVML_SUCCESS);
	check_str(pci.busIdLegacy, "0001:A1:03.0");
	check_eq(pci.pciSubSystemId, 0x55555555);
	check_eq(nvmlDeviceGetPciInfo_v2(device, &pci), NVML_SUCCESS);
	check_eq(pci.pciSubSystemId, 0);
	check_eq(pci.busId[0], 0x55);
	end();
}

TEST(a_device_has_a_name_and_a_kind)
{
	nvmlDeviceArchitecture_t architecture;
	nvmlComputeMode_t mode;
	nvmlBrandType_t brand;
	unsigned int n;
	int major, minor;
	char name[16];

	begin();
	check_eq(nvmlDeviceGetName(device, name, sizeof("Double 1")), NVML_SUCCESS);
	check_str(name, "Double 1");
	check_eq(nvmlDeviceGetName(device, name, sizeof("Double 1") - 1),
		NVML_ERROR_INSUFFICIENT_SIZE);
	check_eq(
		nvmlDeviceGetCudaComputeCapability(device, &major, &minor), NVML_SUCCESS);
	check_eq(major, 8);
	check_eq(minor, 7);
	check_eq(nvmlDeviceGetArchitecture(device, &architecture), NVML_SUCCESS);
	check_eq(architecture, NVML_DEVICE_ARCH_AMPERE);
	check_eq(nvmlDeviceGetNumGpuCores(device, &n), NVML_SUCCESS);
	check_eq(n, 1280);
	check_eq(nvmlDeviceGetMemoryBusWidth(device, &n), NVML_ERROR_NOT_SUPPORTED);
	check_eq(nvmlDeviceGetComputeMode(device, &mode), NVML_SUCCESS);
	check_eq(mode, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS);
	check_eq(nvmlDeviceGetBrand(device, &brand), NVML_SUCCESS);
	check_eq(brand, NVML_BRAND_NVIDIA);
	page_double_begin();
	status->flags = VGPU_STATUS_SOFTGPU;
	page_double_end();
	check_eq(nvmlDeviceGetBrand(device, &brand), NVML_SUCCESS);
	check_eq(brand, NVML_BRAND_UNKNOWN);
	end();
}

TEST(an_architecture_is_known_by_the_compute_capability)
{
	static const struct {
		int major, minor;
		unsigned int architecture;
	} rows[] = {
		{ 2, 0, NVML_DEVICE_ARCH_UNKNOWN },
		{ 3, 5, NVML_DEVICE_ARCH_KEPLER },
		{ 7, 2, NVML_DEVICE_ARCH_VOLTA },
		{ 7, 5, NVML_DEVICE_ARCH_TURING },
		{ 8, 9, NVML_DEVICE_ARCH_ADA },
		{ 12, 1, NVML_DEVICE_ARCH_BLACKWELL },
		{ 20, 0, NVML_DEVICE_ARCH_UNKNOWN },
	};

	begin();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int *attributes = status->devices[1].info.attributes;
		nvmlDeviceArchitecture_t architecture = 99;

		page_double_begin();
		attributes[75] = rows[i].major;
		attributes[76] = rows[i].minor;
		page_double_end();
		check_eq(nvmlDeviceGetArchitecture(device, &architecture), NVML_SUCCESS);
		check_eq(architecture, rows[i].architecture);
	}
	end();
}

TEST(devices_are_apart)
{
	nvmlGpuTopologyLevel_t level;
	nvmlGpuP2PStatus_t p2p;
	nvmlDevice_t first, near[2];
	unsigned int n = 2;
	int same;

	begin();
	check_eq(nvmlDeviceGetHandleByIndex(0, &first), NVML_SUCCESS);
	check_eq(
		nvmlDeviceGetTopologyCommonAncestor(first, device, &level), NVML_SUCCESS);
	check_eq(level, NVML_TOPOLOGY_SYSTEM);
	check_eq(nvmlDeviceGetTopologyNearestGpus(first, NVML_TOPOLOGY_SYSTEM, &n, near),
		NVML_SUCCESS);
	check_eq(n, 1);
	check(near[0] == device);
	n = 0;
	check_eq(nvmlDeviceGetTopologyNearestGpus(first, NVML_TOPOLOGY_SYSTEM, &n, NULL),
		NVML_SUCCESS);
	check_eq(n, 1);
	check_eq(nvmlDeviceGetTopologyNearestGpus(first, NVML_TOPOLOGY_SINGLE, &n, near),
		NVML_SUCCESS);
	check_eq(n, 0);
	check_eq(nvmlDeviceGetTopologyNearestGpus(
			 first, (nvmlGpuTopologyLevel_t)5, &n, near),
		NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlDeviceGetP2PStatus(first, device, NVML_P2P_CAPS_INDEX_READ, &p2p),
		NVML_SUCCESS);
	check_eq(p2p, NVML_P2P_STATUS_UNKNOWN);
	page_double_begin();
	status->peers[0][1] = VGPU_STATUS_PEER_KNOWN | VGPU_STATUS_PEER_ACCESS;
	status->distances[0][1] = VGPU_STATUS_DISTANCE(NVML_TOPOLOGY_SINGLE);
	page_double_end();
	check_eq(
		nvmlDeviceGetTopologyCommonAncestor(first, device, &level), NVML_SUCCESS);
	check_eq(level, NVML_TOPOLOGY_SINGLE);
	check_eq(nvmlDeviceGetP2PStatus(first, device, NVML_P2P_CAPS_INDEX_WRITE, &p2p),
		NVML_SUCCESS);
	check_eq(p2p, NVML_P2P_STATUS_OK);
	check_eq(nvmlDeviceGetP2PStatus(first, device, NVML_P2P_CAPS_INDEX_ATOMICS, &p2p),
		NVML_SUCCESS);
	check_eq(p2p, NVML_P2P_STATUS_NOT_SUPPORTED);
	check_eq(nvmlDeviceGetP2PStatus(first, device, NVML_P2P_CAPS_INDEX_NVLINK, &p2p),
		NVML_SUCCESS);
	check_eq(p2p, NVML_P2P_STATUS_NOT_SUPPORTED);
	check_eq(nvmlDeviceGetP2PStatus(device, device, NVML_P2P_CAPS_INDEX_READ, &p2p),
		NVML_SUCCESS);
	check_eq(nvmlDeviceGetP2PStatus(first, device, NVML_P2P_CAPS_INDEX_UNKNOWN, &p2p),
		NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlDeviceOnSameBoard(first, device, &same), NVML_SUCCESS);
	check_eq(same, 0);
	end();
}

typedef nvmlReturn_t (*get_state_fn)(nvmlDevice_t device, nvmlEnableState_t *state);
typedef nvmlReturn_t (*get_number_fn)(nvmlDevice_t device, unsigned int *number);

TEST(what_a_device_does_not_do_is_disabled_or_none)
{
	static const get_state_fn states[] = {
		nvmlDeviceGetDisplayMode,
		nvmlDeviceGetDisplayActive,
		nvmlDeviceGetPersistenceMode,
		nvmlDeviceGetAccountingMode,
	};
	static const get_number_fn numbers[] = {
		nvmlDeviceGetMultiGpuBoard,
		nvmlDeviceIsMigDeviceHandle,
		nvmlDeviceGetMaxMigDeviceCount,
	};
	nvmlGpmSupport_t support = {
		.version = NVML_GPM_SUPPORT_VERSION,
		.isSupportedDevice = 9,
	};

	begin();
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		nvmlEnableState_t state = NVML_FEATURE_ENABLED;

		check_eq(states[i](device, &state), NVML_SUCCESS);
		check_eq(state, NVML_FEATURE_DISABLED);
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		unsigned int number = 9;

		check_eq(numbers[i](device, &number), NVML_SUCCESS);
		check_eq(number, 0);
	}
	check_eq(nvmlGpmQueryDeviceSupport(device, &support), NVML_SUCCESS);
	check_eq(support.isSupportedDevice, 0);
	support.version = 9;
	check_eq(nvmlGpmQueryDeviceSupport(device, &support),
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	end();
}

TEST(boards_and_numbers_differ)
{
	unsigned int boards[2], number = 9;
	nvmlDevice_t first;
	nvmlBusType_t bus;

	begin();
	check_eq(nvmlDeviceGetHandleByIndex(0, &first), NVML_SUCCESS);
	check_eq(nvmlDeviceGetBoardId(first, &boards[0]), NVML_SUCCESS);
	check_eq(nvmlDeviceGetBoardId(device, &boards[1]), NVML_SUCCESS);
	check(boards[0] != boards[1]);
	check_eq(nvmlDeviceGetMinorNumber(device, &number), NVML_SUCCESS);
	check_eq(number, 1);
	check_eq(nvmlDeviceGetBusType(device, &bus), NVML_SUCCESS);
	check_eq(bus, NVML_BUS_TYPE_UNKNOWN);
	page_double_begin();
	status->devices[1].sensors_known = 1ull << VGPU_SENSOR_PCIE_GENERATION;
	page_double_end();
	check_eq(nvmlDeviceGetBusType(device, &bus), NVML_SUCCESS);
	check_eq(bus, NVML_BUS_TYPE_PCIE);
	end();
}
