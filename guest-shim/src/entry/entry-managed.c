/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: managed memory
 *
 * It is arena memory, which the device accesses at the same address as the program. It
 * never migrates: advice is stored and returned, no more. Devices report that they have
 * no concurrent managed access, and advice or a prefetch that names a device returns
 * CUDA_ERROR_INVALID_DEVICE, as such a device's driver does. Advice and prefetches for
 * the host succeed.
 */

#include <stdlib.h>

#include "vgpu/g-calls.h"

#include "memory/advice.h"
#include "memory/arena.h"
#include "memory/range.h"
#include "process/call.h"
#include "process/context.h"
#include "process/device.h"
#include "process/stream.h"
#include "wait/capture.h"

static bool device_has(CUdevice number, CUdevice_attribute attribute)
{
	const struct vgpu_device_info *device = shim_device_get(number);
	int value = 0;

	return device && shim_device_attribute(device, attribute, &value) && value;
}

CUresult shim_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	struct shim_range range = { .kind = SHIM_RANGE_MANAGED, .flags = flags };
	CUresult result = shim_call_check(VGPU_CALL_cuMemAllocManaged);
	void *pointer;

	if (result != CUDA_SUCCESS)
		return result;
	range.context = shim_thread_context(shim_thread_get());
	if (!range.context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!dptr || !bytesize ||
		(flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_has(range.context->device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = shim_capture_check_memory();
	if (result != CUDA_SUCCESS)
		return result;
	pointer = shim_arena_alloc_zeroed(bytesize);
	if (!pointer)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range.base = (uint64_t)(uintptr_t)pointer;
	range.size = bytesize;
	if (!shim_range_add(&range)) {
		shim_arena_free(pointer);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	shim_advice_forget(range.base, range.size);
	*dptr = range.base;
	return CUDA_SUCCESS;
}

/* Whether all of a range is managed memory of one allocation. */
static bool is_managed(CUdeviceptr address, size_t size)
{
	struct shim_range range;

	return size && shim_range_find(address, &range) &&
	       shim_range_is_managed(&range) && shim_range_covers(address, size);
}

/*
 * Where managed memory may be wanted: on the host, or on a device that has concurrent
 * access to it.
 */
static CUresult check_location(const CUmemLocation *location)
{
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_HOST:
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_DEVICE:
		if (!device_has(
			    location->id, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS))
			return CUDA_ERROR_INVALID_DEVICE;
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		/* The guest does not know the host's nodes. */
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* The location that a device number of the first forms of these calls means. */
static CUmemLocation location_of(CUdevice device)
{
	if (device == CU_DEVICE_CPU)
		return (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_HOST };
	return (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device };
}

/*
 * Advice
 */

struct advising {
	CUmem_advise advice;
	CUmemLocation location;
};

static void set_accessed_by(
	struct shim_advice *advice, const CUmemLocation *location, bool is_set)
{
	if (location->type == CU_MEM_LOCATION_TYPE_HOST)
		advice->is_accessed_by_host = is_set;
	else if (is_set)
		advice->accessed_by |= 1ull << location->id;
	else
		advice->accessed_by &= ~(1ull << location->id);
}

static void advise(struct shim_advice *advice, const void *argument)
{
	const struct advising *advising = argument;

	switch (advising->advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
		advice->is_read_mostly = true;
		break;
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
		advice->is_read_mostly = false;
		break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		advice->preferred = advising->location;
		break;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		advice->preferred.type = CU_MEM_LOCATION_TYPE_INVALID;
		break;
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
		set_accessed_by(advice, &advising->location, true);
		break;
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		set_accessed_by(advice, &advising->location, false);
		break;
	default:
		break;
	}
}

/* Some advice is about no location, whatever the program names. */
static bool needs_location(CUmem_advise advice)
{
	return advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
	       advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
	       advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
}

CUresult shim_cuMemAdvise_v2(
	CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
	const struct advising advising = { advice, location };
	CUresult result = CUDA_SUCCESS;

	SHIM_CHECK_READY();
	if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY ||
		advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY || !is_managed(devPtr, count))
		return CUDA_ERROR_INVALID_VALUE;
	if (needs_location(advice))
		result = check_location(&location);
	if (result != CUDA_SUCCESS)
		return result;
	if (!shim_advice_change(devPtr, count, advise, &advising))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

CUresult shim_cuMemAdvise(
	CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
	return shim_cuMemAdvise_v2(devPtr, count, advice, location_of(device));
}

/*
 * Prefetching
 */

static void note_prefetch(struct shim_advice *advice, const void *argument)
{
	advice->prefetched = *(const CUmemLocation *)argument;
}

CUresult shim_cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count,
	CUmemLocation location, unsigned int flags, CUstream hStream)
{
	CUresult result = shim_call_check(VGPU_CALL_cuMemPrefetchAsync_v2);

	if (result == CUDA_SUCCESS)
		result = shim_stream_check(hStream);
	if (result != CUDA_SUCCESS)
		return result;
	if (flags || !is_managed(devPtr, count))
		return CUDA_ERROR_INVALID_VALUE;
	result = check_location(&location);
	if (result != CUDA_SUCCESS)
		return result;
	if (!shim_advice_change(devPtr, count, note_prefetch, &location))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

CUresult shim_cuMemPrefetchAsync(
	CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
	return shim_cuMemPrefetchAsync_v2(
		devPtr, count, location_of(dstDevice), 0, hStream);
}

/*
 * Batches
 *
 * CUDA documents an error for them if a device lacks concurrent managed access, whatever
 * the operations name.
 */

/* The rules for the two arrays of locations. */
static bool has_legal_locations(
	size_t count, const CUmemLocation *locations, const size_t *first_ops, size_t n)
{
	if (!locations || !first_ops || !n || n > count || first_ops[0])
		return false;
	for (size_t i = 1; i < n; i++)
		if (first_ops[i] <= first_ops[i - 1] || first_ops[i] >= count)
			return false;
	return true;
}

static CUresult check_batch(uint32_t call, const CUdeviceptr *addresses,
	const size_t *sizes, size_t count, unsigned long long flags, CUstream stream)
{
	CUresult result = shim_call_check((uint16_t)call);

	if (result == CUDA_SUCCESS)
		result = shim_stream_check(stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!addresses || !sizes || !count || flags || !stream ||
		stream == CU_STREAM_LEGACY)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (!is_managed(addresses[i], sizes[i]))
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult check_access(void)
{
	for (int device = 0; device < shim_device_n(); device++)
		if (!device_has(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS))
			return CUDA_ERROR_INVALID_DEVICE;
	return CUDA_SUCCESS;
}

static CUresult check_prefetches(
	size_t count, const CUmemLocation *locations, const size_t *first_ops, size_t n)
{
	CUresult result;

	if (!has_legal_locations(count, locations, first_ops, n))
		return CUDA_ERROR_INVALID_VALUE;
	result = check_access();
	for (size_t i = 0; result == CUDA_SUCCESS && i < n; i++)
		result = check_location(&locations[i]);
	return result;
}

static CUresult prefetch_all(const CUdeviceptr *addresses, const size_t *sizes,
	size_t count, const CUmemLocation *locations, const size_t *first_ops, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < count; i++) {
		if (at + 1 < n && first_ops[at + 1] == i)
			at++;
		if (!shim_advice_change(
			    addresses[i], sizes[i], note_prefetch, &locations[at]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

CUresult shim_cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
	CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs, size_t numPrefetchLocs,
	unsigned long long flags, CUstream hStream)
{
	CUresult result = check_batch(
		VGPU_CALL_cuMemPrefetchBatchAsync, dptrs, sizes, count, flags, hStream);

	if (result == CUDA_SUCCESS)
		result = check_prefetches(
			count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs);
	return result == CUDA_SUCCESS ? prefetch_all(dptrs, sizes, count, prefetchLocs,
						prefetchLocIdxs, numPrefetchLocs)
				      : result;
}

/* Contents that nobody will read may as well stay. */
CUresult shim_cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
	unsigned long long flags, CUstream hStream)
{
	CUresult result = check_batch(
		VGPU_CALL_cuMemDiscardBatchAsync, dptrs, sizes, count, flags, hStream);

	return result == CUDA_SUCCESS ? check_access() : result;
}

CUresult shim_cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes,
	size_t count, CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
	size_t numPrefetchLocs, unsigned long long flags, CUstream hStream)
{
	return shim_cuMemPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs,
		prefetchLocIdxs, numPrefetchLocs, flags, hStream);
}

/*
 * Attachment
 *
 * It restricts who may touch managed memory while a stream works. Here everybody may at
 * any time, so that every attachment is kept.
 */

CUresult shim_cuStreamAttachMemAsync(
	CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
	CUresult result = shim_call_check(VGPU_CALL_cuStreamAttachMemAsync);
	struct shim_range range;

	if (result == CUDA_SUCCESS)
		result = shim_stream_check(hStream);
	if (result != CUDA_SUCCESS)
		return result;
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
		flags != CU_MEM_ATTACH_SINGLE)
		return CUDA_ERROR_INVALID_VALUE;
	/* The default stream is shared by all. */
	if (flags == CU_MEM_ATTACH_SINGLE && (!hStream || hStream == CU_STREAM_LEGACY))
		return CUDA_ERROR_INVALID_VALUE;
	if (!shim_range_find(dptr, &range) || !shim_range_is_managed(&range) ||
		range.base != dptr || (length && length != range.size))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/*
 * Attributes of ranges
 */

/* The attribute value that all pages seen so far share. */
struct common {
	bool is_first;
	bool is_read_mostly;
	CUmemLocation preferred;
	CUmemLocation prefetched;
	bool is_accessed_by_host;
	uint64_t accessed_by;
};

static void join_location(CUmemLocation *location, const CUmemLocation *other)
{
	if (location->type != other->type ||
		(location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
			location->id != other->id))
		location->type = CU_MEM_LOCATION_TYPE_INVALID;
}

static void join(const struct shim_advice *advice, void *data)
{
	struct common *common = data;

	if (common->is_first) {
		*common = (struct common){
			.is_read_mostly = advice->is_read_mostly,
			.preferred = advice->preferred,
			.prefetched = advice->prefetched,
			.is_accessed_by_host = advice->is_accessed_by_host,
			.accessed_by = advice->accessed_by,
		};
		return;
	}
	common->is_read_mostly &= advice->is_read_mostly;
	common->is_accessed_by_host &= advice->is_accessed_by_host;
	common->accessed_by &= advice->accessed_by;
	join_location(&common->preferred, &advice->preferred);
	join_location(&common->prefetched, &advice->prefetched);
}

static CUdevice device_of(const CUmemLocation *location)
{
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_HOST:
		return CU_DEVICE_CPU;
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return location->id;
	default:
		return CU_DEVICE_INVALID;
	}
}

/* As many devices as fit; what is left over is marked as no device. */
static CUresult list_devices(const struct common *common, int *devices, size_t n)
{
	size_t used = 0;

	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	if (common->is_accessed_by_host)
		devices[used++] = CU_DEVICE_CPU;
	for (int device = 0; device < shim_device_n() && used < n; device++)
		if (common->accessed_by & 1ull << device)
			devices[used++] = device;
	while (used < n)
		devices[used++] = CU_DEVICE_INVALID;
	return CUDA_SUCCESS;
}

static CUresult answer(const struct common *common, CUmem_range_attribute attribute,
	void *data, size_t size)
{
	int *value = data;

	if (!data || size % sizeof(int))
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
		return list_devices(common, data, size / sizeof(int));
	if (size != sizeof(int))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		*value = common->is_read_mostly;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
		*value = device_of(&common->preferred);
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		*value = device_of(&common->prefetched);
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
		*value = common->preferred.type;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		*value = common->preferred.id;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		*value = common->prefetched.type;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		*value = common->prefetched.id;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult shim_cuMemRangeGetAttributes(void **data, size_t *dataSizes,
	CUmem_range_attribute *attributes, size_t numAttributes, CUdeviceptr devPtr,
	size_t count)
{
	struct common common = { .is_first = true };
	CUresult result = CUDA_SUCCESS;

	SHIM_CHECK_READY();
	if (!data || !dataSizes || !attributes || !numAttributes ||
		!is_managed(devPtr, count))
		return CUDA_ERROR_INVALID_VALUE;
	shim_advice_look(devPtr, count, join, &common);
	for (size_t i = 0; i < numAttributes && result == CUDA_SUCCESS; i++)
		result = answer(&common, attributes[i], data[i], dataSizes[i]);
	return result;
}

CUresult shim_cuMemRangeGetAttribute(void *data, size_t dataSize,
	CUmem_range_attribute attribute, CUdeviceptr devPtr, size_t count)
{
	return shim_cuMemRangeGetAttributes(
		&data, &dataSize, &attribute, 1, devPtr, count);
}
