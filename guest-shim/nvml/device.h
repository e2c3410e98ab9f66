/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Device: what an nvmlDevice_t stands for
 *
 * A handle is the place of a device in a table of the library, so any other value is
 * recognised without a look at memory. It stays valid when the library is initialised
 * again. If the host shows another device at its place, the device is lost.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/nvml.h"
#include "vgpu/status.h"

/* Learns which devices there are. When the library is initialised. */
nvmlReturn_t nvml_device_setup(void);

unsigned int nvml_device_n(void);
bool nvml_device_is_valid(nvmlDevice_t device);
nvmlDevice_t nvml_device_get(unsigned int index);
unsigned int nvml_device_index(nvmlDevice_t device);

/* Its present state. @updated_usp: when it was measured, or NULL. */
nvmlReturn_t nvml_device_read(
	nvmlDevice_t device, struct vgpu_status_device *status, uint64_t *updated_usp);

/* The same, and how much the VM may allocate on all devices together, in bytes;
 * UINT64_MAX: that is not limited. */
nvmlReturn_t nvml_device_read_memory(
	nvmlDevice_t device, struct vgpu_status_device *status, uint64_t *leftp);

/* Returns: false if its driver does not tell. */
bool nvml_device_attribute(
	const struct vgpu_status_device *status, CUdevice_attribute number, int *valuep);
bool nvml_device_sensor(const struct vgpu_status_device *status,
	enum vgpu_status_sensor sensor, int64_t *valuep);

/* A sensor of a device as an answer: NVML_ERROR_NOT_SUPPORTED where it is unknown. */
nvmlReturn_t nvml_device_answer(
	nvmlDevice_t device, enum vgpu_status_sensor sensor, unsigned int *valuep);
nvmlReturn_t nvml_device_answer_64(
	nvmlDevice_t device, enum vgpu_status_sensor sensor, unsigned long long *valuep);

/* GPU- and the UUID in the usual groups. */
#define NVML_DEVICE_UUID_TEXT_SIZE sizeof("GPU-00000000-0000-0000-0000-000000000000")
void nvml_device_uuid_text(const uint8_t uuid[16], char text[NVML_DEVICE_UUID_TEXT_SIZE]);
