/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: the link to the host, and what is between devices
 *
 * The links are those of the host: a guest has none of its own to the devices.
 */

#include <stddef.h>

#include "nvml/device.h"
#include "nvml/g-nvml-answers.h"
#include "nvml/page.h"

/*
 * PCI Express
 */

nvmlReturn_t answer_nvmlDeviceGetCurrPcieLinkGeneration(
	nvmlDevice_t device, unsigned int *currLinkGen)
{
	return nvml_device_answer(device, VGPU_SENSOR_PCIE_GENERATION, currLinkGen);
}

nvmlReturn_t answer_nvmlDeviceGetCurrPcieLinkWidth(
	nvmlDevice_t device, unsigned int *currLinkWidth)
{
	return nvml_device_answer(device, VGPU_SENSOR_PCIE_WIDTH, currLinkWidth);
}

nvmlReturn_t answer_nvmlDeviceGetMaxPcieLinkGeneration(
	nvmlDevice_t device, unsigned int *maxLinkGen)
{
	return nvml_device_answer(device, VGPU_SENSOR_PCIE_GENERATION_MAX, maxLinkGen);
}

nvmlReturn_t answer_nvmlDeviceGetMaxPcieLinkWidth(
	nvmlDevice_t device, unsigned int *maxLinkWidth)
{
	return nvml_device_answer(device, VGPU_SENSOR_PCIE_WIDTH_MAX, maxLinkWidth);
}

/* The transfers of a lane by generation, in millions a second: what the standard says. */
static const unsigned int speeds[] = {
	[NVML_PCIE_LINK_MAX_SPEED_2500MBPS] = 2500,
	[NVML_PCIE_LINK_MAX_SPEED_5000MBPS] = 5000,
	[NVML_PCIE_LINK_MAX_SPEED_8000MBPS] = 8000,
	[NVML_PCIE_LINK_MAX_SPEED_16000MBPS] = 16000,
	[NVML_PCIE_LINK_MAX_SPEED_32000MBPS] = 32000,
	[NVML_PCIE_LINK_MAX_SPEED_64000MBPS] = 64000,
};

/* A generation that has a speed. */
static nvmlReturn_t generation_of(
	nvmlDevice_t device, enum vgpu_status_sensor sensor, unsigned int *generation)
{
	nvmlReturn_t result = nvml_device_answer(device, sensor, generation);

	if (result == NVML_SUCCESS &&
		(*generation >= sizeof(speeds) / sizeof(speeds[0]) ||
			!speeds[*generation]))
		result = NVML_ERROR_NOT_SUPPORTED;
	return result;
}

nvmlReturn_t answer_nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned int *pcieSpeed)
{
	unsigned int generation;
	nvmlReturn_t result =
		generation_of(device, VGPU_SENSOR_PCIE_GENERATION, &generation);

	if (result == NVML_SUCCESS)
		*pcieSpeed = speeds[generation];
	return result;
}

/* NVML's constants have the numbers of the generations. */
nvmlReturn_t answer_nvmlDeviceGetPcieLinkMaxSpeed(
	nvmlDevice_t device, unsigned int *maxSpeed)
{
	unsigned int generation;
	nvmlReturn_t result =
		generation_of(device, VGPU_SENSOR_PCIE_GENERATION_MAX, &generation);

	if (result == NVML_SUCCESS)
		*maxSpeed = generation;
	return result;
}

/* Of the whole card. */
nvmlReturn_t answer_nvmlDeviceGetPcieThroughput(
	nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned int *value)
{
	if ((unsigned int)counter >= NVML_PCIE_UTIL_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	return nvml_device_answer(device,
		counter == NVML_PCIE_UTIL_TX_BYTES ? VGPU_SENSOR_PCIE_SENT
						   : VGPU_SENSOR_PCIE_RECEIVED,
		value);
}

nvmlReturn_t answer_nvmlDeviceGetPcieReplayCounter(
	nvmlDevice_t device, unsigned int *value)
{
	return nvml_device_answer(device, VGPU_SENSOR_PCIE_REPLAYS, value);
}

/*
 * Between devices
 */

/* A number of a pair of devices, of a table in the page. */
static nvmlReturn_t read_pair(
	size_t table, nvmlDevice_t a, nvmlDevice_t b, uint8_t *numberp)
{
	uint8_t row[VGPU_DEVICES_MAX];
	struct nvml_page_head head;
	const struct nvml_piece pieces[] = {
		{ .to = &head, .size = NVML_PAGE_HEAD },
		{
			.to = row,
			.off = table + nvml_device_index(a) * sizeof(row),
			.size = sizeof(row),
		},
	};
	nvmlReturn_t result = nvml_page_read(pieces, 2);

	if (result == NVML_SUCCESS)
		*numberp = head.flags & VGPU_STATUS_WHOLE ? row[nvml_device_index(b)] : 0;
	return result;
}

/* Where the host does not know it the two are as far apart as can be. */
static nvmlReturn_t level_of(
	nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t *levelp)
{
	uint8_t distance;
	nvmlReturn_t result =
		read_pair(offsetof(struct vgpu_status, distances), a, b, &distance);

	if (result != NVML_SUCCESS)
		return result;
	*levelp = NVML_TOPOLOGY_SYSTEM;
	if (a == b)
		*levelp = NVML_TOPOLOGY_INTERNAL;
	else if (distance && distance <= VGPU_STATUS_DISTANCE(NVML_TOPOLOGY_SYSTEM))
		*levelp = (nvmlGpuTopologyLevel_t)((distance - 1) * 10);
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetTopologyCommonAncestor(
	nvmlDevice_t device1, nvmlDevice_t device2, nvmlGpuTopologyLevel_t *pathInfo)
{
	return level_of(device1, device2, pathInfo);
}

nvmlReturn_t answer_nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device,
	nvmlGpuTopologyLevel_t level, unsigned int *count, nvmlDevice_t *deviceArray)
{
	unsigned int room = *count, n = 0;

	if (level < NVML_TOPOLOGY_INTERNAL || level > NVML_TOPOLOGY_SYSTEM ||
		level % 10 || (room && !deviceArray))
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < nvml_device_n(); i++) {
		nvmlDevice_t other = nvml_device_get(i);
		nvmlGpuTopologyLevel_t distance;
		nvmlReturn_t result = level_of(device, other, &distance);

		if (result != NVML_SUCCESS)
			return result;
		if (other == device || distance != level)
			continue;
		if (n < room)
			deviceArray[n] = other;
		n++;
	}
	*count = n;
	return room && room < n ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static nvmlGpuP2PStatus_t status_of(bool is_possible)
{
	return is_possible ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
}

/*
 * As libcuda answers it. NCCL asks for each pair, that of a device with itself too, and
 * takes no error.
 */
nvmlReturn_t answer_nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2,
	nvmlGpuP2PCapsIndex_t p2pIndex, nvmlGpuP2PStatus_t *p2pStatus)
{
	uint8_t peer;
	nvmlReturn_t result;

	if ((unsigned int)p2pIndex >= NVML_P2P_CAPS_INDEX_UNKNOWN)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = read_pair(offsetof(struct vgpu_status, peers), device1, device2, &peer);
	if (result != NVML_SUCCESS)
		return result;
	if (p2pIndex == NVML_P2P_CAPS_INDEX_NVLINK)
		*p2pStatus = NVML_P2P_STATUS_NOT_SUPPORTED;
	else if (p2pIndex == NVML_P2P_CAPS_INDEX_PCI || device1 == device2 ||
		 !(peer & VGPU_STATUS_PEER_KNOWN))
		*p2pStatus = NVML_P2P_STATUS_UNKNOWN;
	else
		*p2pStatus = status_of(peer & (p2pIndex == NVML_P2P_CAPS_INDEX_ATOMICS
							      ? VGPU_STATUS_PEER_ATOMICS
							      : VGPU_STATUS_PEER_ACCESS));
	return NVML_SUCCESS;
}
