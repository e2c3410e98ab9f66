/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host mappings
 */

#include <stdlib.h>
#include <sys/mman.h>

#include "driver/driver.h"
#include "worker/base/call.h"
#include "worker/base/session.h"
#include "worker/memory/host-mapping.h"

bool host_mapping_is_possible(const struct vgpu_driver *driver, CUdevice device)
{
	static const CUdevice_attribute needed[] = {
		CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
		CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING,
		CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
	};
	int value = driver->cuMemHostRegister_v2 && driver->cuMemHostUnregister &&
		    driver->cuMemAddressReserve && driver->cuMemCreate;

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]) && value; i++)
		if (driver->cuDeviceGetAttribute(&value, needed[i], device) !=
			CUDA_SUCCESS)
			value = 0;
	return value;
}

/* What a driver expects at its addresses without memory; the worker keeps others away
 * from those that it has instead. */
static void unmap(const struct host_mapping *mapping)
{
	int protection = mapping->is_lent ? PROT_NONE : PROT_READ | PROT_WRITE;

	mmap((void *)(uintptr_t)mapping->alias.address, mapping->alias.size, protection,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

struct host_mapping *host_mapping_new(struct call *call, uint64_t address, uint64_t size,
	uint64_t arena_address, bool is_lent)
{
	struct session *session = call->session;
	struct host_mapping *mapping = calloc(1, sizeof(*mapping));

	if (!mapping)
		return NULL;
	mapping->is_lent = is_lent;
	mapping->alias.address = address;
	mapping->alias.size = size;
	if (arena_map_at(session, address, size, arena_address)) {
		free(mapping);
		return NULL;
	}
	arena_add_alias(session, &mapping->alias);
	return mapping;
}

void host_mapping_free(struct call *call, struct host_mapping *mapping)
{
	arena_remove_alias(call->session, &mapping->alias);
	unmap(mapping);
	free(mapping);
}

static bool is_open(const struct host_mapping *mapping)
{
	for (uint32_t i = 0; i < VGPU_DEVICES_MAX; i++)
		if (mapping->access[i])
			return true;
	return false;
}

CUresult host_mapping_set_access(struct call *call, struct host_mapping *mapping,
	uint32_t who, CUmemAccess_flags flags)
{
	uint8_t before = mapping->access[who];
	CUresult result = CUDA_SUCCESS;

	mapping->access[who] = (uint8_t)flags;
	if (who == HOST_MAPPING_GUEST)
		return CUDA_SUCCESS;
	if (is_open(mapping))
		result = arena_open_alias(call->session, call->runner, &mapping->alias);
	else
		mapping->is_closing = true;
	if (result != CUDA_SUCCESS)
		mapping->access[who] = before;
	return result;
}

void host_mapping_close(struct call *call, struct host_mapping *mapping)
{
	arena_close_alias(call->session, call->runner, &mapping->alias);
}
