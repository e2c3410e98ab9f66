/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties of devices
 *
 * Almost all of them are attributes of the driver: a table says where each goes in the
 * structures of both versions.
 */

#include <string.h>

#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/properties.h"
#include "runtime/version.h"

/* A member that is in neither structure has no place there. */
#define NOWHERE UINT16_MAX

struct row {
	CUdevice_attribute attribute;
	uint16_t offset_13, offset_12;
	uint8_t size;
};

#define SIZE(_type, _member) sizeof(((_type *)0)->_member)
#define BOTH(_member, _attribute)                                                        \
	{                                                                                \
		CU_DEVICE_ATTRIBUTE_##_attribute, offsetof(cudaDeviceProp, _member),     \
			offsetof(rt_device_prop_12, _member),                            \
			SIZE(cudaDeviceProp, _member)                                    \
	}
#define ONLY_13(_member, _attribute)                                                     \
	{                                                                                \
		CU_DEVICE_ATTRIBUTE_##_attribute, offsetof(cudaDeviceProp, _member),     \
			NOWHERE, SIZE(cudaDeviceProp, _member)                           \
	}
#define ONLY_12(_member, _attribute)                                                     \
	{                                                                                \
		CU_DEVICE_ATTRIBUTE_##_attribute, NOWHERE,                               \
			offsetof(rt_device_prop_12, _member),                            \
			SIZE(rt_device_prop_12, _member)                                 \
	}

static const struct row rows[] = {
	BOTH(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
	BOTH(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
	BOTH(warpSize, WARP_SIZE),
	BOTH(memPitch, MAX_PITCH),
	BOTH(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
	BOTH(maxThreadsDim[0], MAX_BLOCK_DIM_X),
	BOTH(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
	BOTH(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
	BOTH(maxGridSize[0], MAX_GRID_DIM_X),
	BOTH(maxGridSize[1], MAX_GRID_DIM_Y),
	BOTH(maxGridSize[2], MAX_GRID_DIM_Z),
	BOTH(totalConstMem, TOTAL_CONSTANT_MEMORY),
	BOTH(major, COMPUTE_CAPABILITY_MAJOR),
	BOTH(minor, COMPUTE_CAPABILITY_MINOR),
	BOTH(textureAlignment, TEXTURE_ALIGNMENT),
	BOTH(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
	BOTH(multiProcessorCount, MULTIPROCESSOR_COUNT),
	BOTH(integrated, INTEGRATED),
	BOTH(canMapHostMemory, CAN_MAP_HOST_MEMORY),
	BOTH(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH),
	BOTH(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH),
	BOTH(maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH),
	BOTH(maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT),
	BOTH(maxTexture2DMipmap[0], MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH),
	BOTH(maxTexture2DMipmap[1], MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT),
	BOTH(maxTexture2DLinear[0], MAXIMUM_TEXTURE2D_LINEAR_WIDTH),
	BOTH(maxTexture2DLinear[1], MAXIMUM_TEXTURE2D_LINEAR_HEIGHT),
	BOTH(maxTexture2DLinear[2], MAXIMUM_TEXTURE2D_LINEAR_PITCH),
	BOTH(maxTexture2DGather[0], MAXIMUM_TEXTURE2D_GATHER_WIDTH),
	BOTH(maxTexture2DGather[1], MAXIMUM_TEXTURE2D_GATHER_HEIGHT),
	BOTH(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH),
	BOTH(maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT),
	BOTH(maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH),
	BOTH(maxTexture3DAlt[0], MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE),
	BOTH(maxTexture3DAlt[1], MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE),
	BOTH(maxTexture3DAlt[2], MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE),
	BOTH(maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH),
	BOTH(maxTexture1DLayered[0], MAXIMUM_TEXTURE1D_LAYERED_WIDTH),
	BOTH(maxTexture1DLayered[1], MAXIMUM_TEXTURE1D_LAYERED_LAYERS),
	BOTH(maxTexture2DLayered[0], MAXIMUM_TEXTURE2D_LAYERED_WIDTH),
	BOTH(maxTexture2DLayered[1], MAXIMUM_TEXTURE2D_LAYERED_HEIGHT),
	BOTH(maxTexture2DLayered[2], MAXIMUM_TEXTURE2D_LAYERED_LAYERS),
	BOTH(maxTextureCubemapLayered[0], MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH),
	BOTH(maxTextureCubemapLayered[1], MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS),
	BOTH(maxSurface1D, MAXIMUM_SURFACE1D_WIDTH),
	BOTH(maxSurface2D[0], MAXIMUM_SURFACE2D_WIDTH),
	BOTH(maxSurface2D[1], MAXIMUM_SURFACE2D_HEIGHT),
	BOTH(maxSurface3D[0], MAXIMUM_SURFACE3D_WIDTH),
	BOTH(maxSurface3D[1], MAXIMUM_SURFACE3D_HEIGHT),
	BOTH(maxSurface3D[2], MAXIMUM_SURFACE3D_DEPTH),
	BOTH(maxSurface1DLayered[0], MAXIMUM_SURFACE1D_LAYERED_WIDTH),
	BOTH(maxSurface1DLayered[1], MAXIMUM_SURFACE1D_LAYERED_LAYERS),
	BOTH(maxSurface2DLayered[0], MAXIMUM_SURFACE2D_LAYERED_WIDTH),
	BOTH(maxSurface2DLayered[1], MAXIMUM_SURFACE2D_LAYERED_HEIGHT),
	BOTH(maxSurface2DLayered[2], MAXIMUM_SURFACE2D_LAYERED_LAYERS),
	BOTH(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH),
	BOTH(maxSurfaceCubemapLayered[0], MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH),
	BOTH(maxSurfaceCubemapLayered[1], MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS),
	BOTH(surfaceAlignment, SURFACE_ALIGNMENT),
	BOTH(concurrentKernels, CONCURRENT_KERNELS),
	BOTH(ECCEnabled, ECC_ENABLED),
	BOTH(pciBusID, PCI_BUS_ID),
	BOTH(pciDeviceID, PCI_DEVICE_ID),
	BOTH(pciDomainID, PCI_DOMAIN_ID),
	BOTH(tccDriver, TCC_DRIVER),
	BOTH(asyncEngineCount, ASYNC_ENGINE_COUNT),
	BOTH(unifiedAddressing, UNIFIED_ADDRESSING),
	BOTH(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
	BOTH(l2CacheSize, L2_CACHE_SIZE),
	BOTH(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE),
	BOTH(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
	BOTH(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
	BOTH(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
	BOTH(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
	BOTH(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
	BOTH(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
	BOTH(managedMemory, MANAGED_MEMORY),
	BOTH(isMultiGpuBoard, MULTI_GPU_BOARD),
	BOTH(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID),
	BOTH(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED),
	BOTH(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS),
	BOTH(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
	BOTH(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
	BOTH(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
	BOTH(cooperativeLaunch, COOPERATIVE_LAUNCH),
	BOTH(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
	BOTH(pageableMemoryAccessUsesHostPageTables,
		PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
	BOTH(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
	BOTH(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
	BOTH(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE),
	BOTH(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
	BOTH(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
	BOTH(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED),
	BOTH(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED),
	BOTH(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED),
	BOTH(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
	BOTH(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED),
	BOTH(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS),
	BOTH(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING),
	BOTH(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES),
	BOTH(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
	BOTH(ipcEventSupported, IPC_EVENT_SUPPORTED),
	BOTH(clusterLaunch, CLUSTER_LAUNCH),
	BOTH(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS),
	ONLY_13(deviceNumaConfig, NUMA_CONFIG),
	ONLY_13(deviceNumaId, NUMA_ID),
	ONLY_13(mpsEnabled, MPS_ENABLED),
	ONLY_13(hostNumaId, HOST_NUMA_ID),
	ONLY_13(gpuPciDeviceID, GPU_PCI_DEVICE_ID),
	ONLY_13(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID),
	ONLY_13(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED),
	ONLY_12(clockRate, CLOCK_RATE),
	ONLY_12(deviceOverlap, GPU_OVERLAP),
	ONLY_12(kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT),
	ONLY_12(computeMode, COMPUTE_MODE),
	ONLY_12(maxTexture1DLinear, MAXIMUM_TEXTURE1D_LINEAR_WIDTH),
	ONLY_12(memoryClockRate, MEMORY_CLOCK_RATE),
	ONLY_12(singleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
	ONLY_12(cooperativeMultiDeviceLaunch, COOPERATIVE_MULTI_DEVICE_LAUNCH),
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

/* A member of either width: int or size_t. */
static void store(char *prop, size_t offset, size_t size, int value)
{
	size_t wide = (size_t)value;

	if (size == sizeof(wide))
		memcpy(prop + offset, &wide, sizeof(wide));
	else
		memcpy(prop + offset, &value, sizeof(value));
}

static int fill(char *prop, int device, bool is_13)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct row *row = &rows[i];
		size_t offset = is_13 ? row->offset_13 : row->offset_12;
		int value;
		CUresult result;

		if (offset == NOWHERE)
			continue;
		result = rt_driver.cuDeviceGetAttribute(&value, row->attribute, device);
		/* An older driver lacks attributes; what they stand for, too. */
		if (result == CUDA_ERROR_INVALID_VALUE)
			value = 0;
		else if (result)
			return result;
		store(prop, offset, row->size, value);
	}
	return 0;
}

/* The name, the UUID and the size of the memory: no attributes. */
static int fill_rest(
	char *name, size_t name_size, CUuuid *uuid, size_t *memory_sizep, int device)
{
	int error = rt_driver.cuDeviceGetName(name, (int)name_size, device);

	if (!error)
		error = rt_driver.cuDeviceGetUuid(uuid, device);
	if (!error)
		error = rt_driver.cuDeviceTotalMem_v2(memory_sizep, device);
	return error;
}

int rt_properties(cudaDeviceProp *prop, int device)
{
	cudaDeviceProp found = { 0 };
	int error;

	if (!prop)
		return cudaErrorInvalidValue;
	if (!rt_context_is_device(device))
		return cudaErrorInvalidDevice;
	error = fill_rest(found.name, sizeof(found.name), &found.uuid,
		&found.totalGlobalMem, device);
	if (!error)
		error = fill((char *)&found, device, true);
	if (!error)
		*prop = found;
	return error;
}

/* Of the structure of CUDA 12 the first bytes. */
static int store_12(void *prop, size_t size, int device)
{
	rt_device_prop_12 found = { 0 };
	int error;

	if (!prop)
		return cudaErrorInvalidValue;
	if (!rt_context_is_device(device))
		return cudaErrorInvalidDevice;
	error = fill_rest(found.name, sizeof(found.name), &found.uuid,
		&found.totalGlobalMem, device);
	if (!error)
		error = fill((char *)&found, device, false);
	if (!error)
		memcpy(prop, &found, size);
	return error;
}

int rt_properties_12(rt_device_prop_12 *prop, int device)
{
	return store_12(prop, sizeof(*prop), device);
}

int rt_properties_11(rt_device_prop_11 *prop, int device)
{
	return store_12(prop, offsetof(rt_device_prop_12, hostRegisterSupported), device);
}

/* Where a device is, which says nothing about its abilities. */
static bool is_place(CUdevice_attribute attribute)
{
	return attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ||
	       attribute == CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID ||
	       attribute == CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID ||
	       attribute == CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID;
}

/* How many of the wanted properties the device has. */
static int count_matches(const char *wanted, int device)
{
	union {
		cudaDeviceProp of_13;
		rt_device_prop_12 of_12;
	} has;
	bool is_13 = rt_version >= 13000;
	int n = 0;

	if (is_13 ? rt_properties(&has.of_13, device)
		  : rt_properties_12(&has.of_12, device))
		return -1;
	for (size_t i = 0; i < N_ROWS; i++) {
		size_t offset = is_13 ? rows[i].offset_13 : rows[i].offset_12;
		size_t want = 0, have = 0;

		if (offset == NOWHERE || is_place(rows[i].attribute))
			continue;
		memcpy(&want, wanted + offset, rows[i].size);
		memcpy(&have, (const char *)&has + offset, rows[i].size);
		n += want && have >= want;
	}
	return n;
}

int rt_choose_device(int *devicep, const void *wanted)
{
	int best = -1;

	if (!devicep || !wanted)
		return cudaErrorInvalidValue;
	for (int i = 0; i < rt_context_n_devices(); i++) {
		int n = count_matches(wanted, i);

		if (n <= best)
			continue;
		best = n;
		*devicep = i;
	}
	return 0;
}

int rt_runtime_version(int *versionp)
{
	if (!versionp)
		return cudaErrorInvalidValue;
	*versionp = rt_version;
	return 0;
}
