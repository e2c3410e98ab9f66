/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backing: physical memory of a driver that can be taken away from its addresses
 */

#include "worker/memory/backing.h"

static CUresult release(const struct vgpu_driver *driver, struct backing *backing)
{
	CUresult result = CUDA_SUCCESS;

	if (backing->has_memory)
		result = driver->cuMemRelease(backing->memory);
	if (result == CUDA_SUCCESS)
		backing->has_memory = false;
	return result;
}

static CUresult open_to_devices(const struct vgpu_driver *driver,
	const struct backing *backing, const struct backing_place *place)
{
	CUmemAccessDesc access[VGPU_DEVICES_MAX];
	size_t n = 0;

	for (int i = 0; i < (int)VGPU_DEVICES_MAX; i++)
		if (backing->access[i])
			access[n++] = (CUmemAccessDesc){
				.location = { CU_MEM_LOCATION_TYPE_DEVICE, i },
				.flags = (CUmemAccess_flags)backing->access[i],
			};
	return n ? driver->cuMemSetAccess(place->address, place->size, access, n)
		 : CUDA_SUCCESS;
}

/* With memory. */
static CUresult map(const struct vgpu_driver *driver, struct backing *backing,
	const struct backing_place *place)
{
	CUresult result;

	result = driver->cuMemMap(place->address, place->size, 0, backing->memory, 0);
	if (result != CUDA_SUCCESS)
		return result;
	result = open_to_devices(driver, backing, place);
	if (result != CUDA_SUCCESS)
		driver->cuMemUnmap(place->address, place->size);
	backing->is_mapped = result == CUDA_SUCCESS;
	return result;
}

CUresult backing_make(const struct vgpu_driver *driver, struct backing *backing,
	const struct backing_place *place)
{
	CUresult result = CUDA_SUCCESS;

	if (backing->is_mapped)
		return CUDA_SUCCESS;
	if (!backing->has_memory)
		result = driver->cuMemCreate(
			&backing->memory, place->size, &place->prop, 0);
	if (result != CUDA_SUCCESS)
		return result;
	backing->has_memory = true;
	result = map(driver, backing, place);
	if (result != CUDA_SUCCESS)
		release(driver, backing);
	return result;
}

CUresult backing_drop(const struct vgpu_driver *driver, struct backing *backing,
	const struct backing_place *place)
{
	CUresult result = CUDA_SUCCESS;

	if (backing->is_mapped)
		result = driver->cuMemUnmap(place->address, place->size);
	if (result != CUDA_SUCCESS)
		return result;
	backing->is_mapped = false;
	result = release(driver, backing);
	/* It would take room on the device without use. */
	if (result != CUDA_SUCCESS)
		map(driver, backing, place);
	return result;
}
