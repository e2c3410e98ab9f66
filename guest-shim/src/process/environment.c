/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environment: variables of the CUDA driver and of this library
 *
 * A list of visible devices ends at the first invalid entry. An entry is the number of a
 * device in the chosen order, or "GPU-" with a unique prefix of its UUID. There are no
 * MIG instances, so an entry for one is invalid.
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/handle.h"
#include "vgpu/log.h"

#include "process/device.h"
#include "process/environment.h"

#define UUID_PREFIX "GPU-"
#define UUID_TEXT_SIZE sizeof("GPU-00000000-0000-0000-0000-000000000000")

struct shim_environment shim_environment = { .loading_mode = CU_MODULE_LAZY_LOADING };

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value && strcmp(value, "0") != 0;
}

static bool read_image_cache(void)
{
	const char *value = getenv("VGPU_IMAGE_CACHE");

	return !value || (strcmp(value, "0") != 0 && strcmp(value, "no") != 0);
}

static CUmoduleLoadingMode read_loading_mode(void)
{
	const char *value = getenv("CUDA_MODULE_LOADING");

	if (value && !strcmp(value, "EAGER"))
		return CU_MODULE_EAGER_LOADING;
	if (value && *value && strcmp(value, "LAZY") != 0 &&
		strcmp(value, "DEFAULT") != 0)
		vgpu_log_warning(
			"CUDA_MODULE_LOADING=%s is none of LAZY, EAGER, DEFAULT", value);
	return CU_MODULE_LAZY_LOADING;
}

void shim_environment_read(void)
{
	shim_environment = (struct shim_environment){
		.is_synchronous = is_set("VGPU_SYNC"),
		.launches_block = is_set("CUDA_LAUNCH_BLOCKING"),
		.remembers_images = read_image_cache(),
		.loading_mode = read_loading_mode(),
	};
}

/* Where a device sits on the PCI bus, as one number. */
static uint64_t bus_position(const struct vgpu_device_info *device)
{
	static const int parts[] = {
		CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
		CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
		CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
	};
	uint64_t position = 0;
	int value;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		value = 0;
		shim_device_attribute(device, parts[i], &value);
		position = position << 16 | (uint16_t)value;
	}
	return position;
}

/* By insertion: devices are few, and equal ones keep their order. */
static void sort_by_bus(const struct vgpu_device_info *devices, int n_devices, int *order)
{
	for (int i = 1; i < n_devices; i++) {
		uint64_t position = bus_position(&devices[order[i]]);
		int moved = order[i], j = i;

		for (; j && bus_position(&devices[order[j - 1]]) > position; j--)
			order[j] = order[j - 1];
		order[j] = moved;
	}
}

static void format_uuid(const struct vgpu_device_info *device, char text[UUID_TEXT_SIZE])
{
	char *end = text + sprintf(text, UUID_PREFIX);

	for (int i = 0; i < 16; i++)
		end += sprintf(end, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			device->uuid[i]);
}

/* Returns: the device whose UUID alone begins like that, or -1. */
static int find_by_uuid(const char *entry, size_t size,
	const struct vgpu_device_info *devices, int n_devices)
{
	char text[UUID_TEXT_SIZE];
	int found = -1;

	if (size <= strlen(UUID_PREFIX))
		return -1;
	for (int i = 0; i < n_devices; i++) {
		format_uuid(&devices[i], text);
		if (strncasecmp(text, entry, size) != 0 || size >= sizeof(text))
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

/* Returns: the device that an entry of the list names, or -1. */
static int find_entry(const char *entry, size_t size,
	const struct vgpu_device_info *devices, int n_devices, const int *order)
{
	unsigned long number = 0;
	size_t i;

	if (!strncmp(entry, UUID_PREFIX, strlen(UUID_PREFIX)))
		return find_by_uuid(entry, size, devices, n_devices);
	for (i = 0; i < size && isdigit((unsigned char)entry[i]); i++)
		if (number < VGPU_DEVICES_MAX)
			number = number * 10 + (unsigned long)(entry[i] - '0');
	if (!size || i < size || number >= (unsigned long)n_devices)
		return -1;
	return order[number];
}

/* Takes the next entry off the list, without the blanks around it. */
static const char *next_entry(const char **listp, size_t *sizep)
{
	const char *entry = *listp, *end = strchrnul(entry, ',');

	*listp = *end ? end + 1 : NULL;
	while (entry < end && isblank((unsigned char)*entry))
		entry++;
	while (entry < end && isblank((unsigned char)end[-1]))
		end--;
	*sizep = (size_t)(end - entry);
	return entry;
}

int shim_environment_choose(const char *order_name, const char *list,
	const struct vgpu_device_info *devices, int n_devices, int *chosen)
{
	bool is_taken[VGPU_DEVICES_MAX] = {};
	int order[VGPU_DEVICES_MAX], n = 0;

	for (int i = 0; i < n_devices; i++)
		order[i] = i;
	if (order_name && !strcmp(order_name, "PCI_BUS_ID"))
		sort_by_bus(devices, n_devices, order);
	else if (order_name && *order_name && strcmp(order_name, "FASTEST_FIRST") != 0)
		vgpu_log_warning(
			"CUDA_DEVICE_ORDER=%s is neither FASTEST_FIRST nor PCI_BUS_ID",
			order_name);
	if (!list) {
		memcpy(chosen, order, (size_t)n_devices * sizeof(*chosen));
		return n_devices;
	}
	while (list) {
		size_t size;
		const char *entry = next_entry(&list, &size);
		int found = find_entry(entry, size, devices, n_devices, order);

		if (found < 0)
			break;
		/* A device named twice makes the whole list void. */
		if (is_taken[found])
			return 0;
		is_taken[found] = true;
		chosen[n++] = found;
	}
	return n;
}
