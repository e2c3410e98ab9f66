/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: two devices, copies between them, and kernels of one in the other's memory
 */

#include <pthread.h>
#include <sched.h>

#include "e2e.h"

#define N 1024

/* A device with a context, the kernels and an array of N words. */
struct side {
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction fill;
	CUdeviceptr words;
};

static void side_init(struct side *side, int ordinal)
{
	check_ok(cuDeviceGet(&side->device, ordinal));
	check_ok(cuDevicePrimaryCtxRetain(&side->context, side->device));
	check_ok(cuCtxSetCurrent(side->context));
	check_ok(cuModuleLoadData(&side->module, kernels_ptx));
	check_ok(cuModuleGetFunction(&side->fill, side->module, "fill"));
	check_ok(cuMemAlloc(&side->words, N * 4));
	check_ok(cuMemsetD32(side->words, 100 + ordinal, N));
}

static struct side a, b;

static void begin(void)
{
	int n = 0;

	check_ok(cuInit(0));
	check_ok(cuDeviceGetCount(&n));
	check_eq(n, 2);
	side_init(&a, 0);
	side_init(&b, 1);
	check_ok(cuCtxSetCurrent(a.context));
}

TEST(two_devices_are_distinct)
{
	size_t free_before, free_after, total;
	CUuuid first, second;
	CUdevice device;
	CUstream stream;
	int bus[2];

	begin();
	check_ok(cuDeviceGetUuid(&first, a.device));
	check_ok(cuDeviceGetUuid(&second, b.device));
	check(memcmp(&first, &second, sizeof(first)));
	check_ok(cuDeviceGetAttribute(&bus[0], CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, a.device));
	check_ok(cuDeviceGetAttribute(&bus[1], CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, b.device));
	check(bus[0] != bus[1]);
	check_ok(cuCtxGetDevice(&device));
	check_eq(device, 0);
	check_ok(cuCtxSetCurrent(b.context));
	check_ok(cuCtxGetDevice(&device));
	check_eq(device, 1);
	check_ok(cuPointerGetAttribute(
		&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, b.words));
	check_eq(device, 1);
	/* Kernels run on the second one too. */
	check_ok(launch_fill(b.fill, b.words, 77, N, NULL));
	check_eq(device_word(b.words + 4 * N - 4), 77);
	check_cu(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
	/* An allocation on one device does not reduce the free memory of the other. */
	check_ok(cuMemGetInfo(&free_before, &total));
	check_ok(cuCtxSetCurrent(a.context));
	check_ok(cuMemAlloc(&a.words, 64 << 20));
	check_ok(cuCtxSetCurrent(b.context));
	check_ok(cuMemGetInfo(&free_after, &total));
	check_eq(free_after, free_before);
	check_ok(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	check_ok(cuCtxSetCurrent(a.context));
	check_ok(cuStreamGetDevice(stream, &device));
	check_eq(device, 1);
	check_ok(cuStreamGetDevice(NULL, &device));
	check_eq(device, 0);
	check_ok(cuStreamDestroy(stream));
}

TEST(devices_say_that_they_can_be_peers)
{
	int value = -1;

	begin();
	check_ok(cuDeviceCanAccessPeer(&value, a.device, b.device));
	check_eq(value, 1);
	check_ok(cuDeviceCanAccessPeer(&value, a.device, a.device));
	check_eq(value, 0);
	check_cu(cuDeviceCanAccessPeer(&value, a.device, 2), CUDA_ERROR_INVALID_DEVICE);
	check_ok(cuDeviceGetP2PAttribute(
		&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, a.device, b.device));
	check_eq(value, 1);
	check_cu(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED,
			 a.device, a.device),
		CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuDeviceGetP2PAttribute(
			 &value, (CUdevice_P2PAttribute)99, a.device, b.device),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(devices_say_which_atomic_operations_reach_a_peer)
{
	CUatomicOperation operations[100];
	unsigned int capabilities[101], both;
	int can = 0;

	begin();
	for (int i = 0; i < 100; i++)
		operations[i] =
			i % 2 ? CU_ATOMIC_OPERATION_CAS : CU_ATOMIC_OPERATION_INTEGER_ADD;
	memset(capabilities, 0xff, sizeof(capabilities));
	check_ok(cuDeviceGetP2PAttribute(&can,
		CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, a.device, b.device));
	check_ok(cuDeviceGetP2PAtomicCapabilities(
		capabilities, operations, 100, a.device, b.device));
	both = CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64;
	for (int i = 0; i < 100; i++)
		check_eq(capabilities[i] & both, can ? both : 0);
	/* Compare-and-swap returns something, so it is no reduction. */
	check_eq(capabilities[98] & CU_ATOMIC_CAPABILITY_REDUCTION,
		can ? CU_ATOMIC_CAPABILITY_REDUCTION : 0);
	check_eq(capabilities[99] & CU_ATOMIC_CAPABILITY_REDUCTION, 0);
	check_eq(capabilities[100], ~0u);
	operations[99] = CU_ATOMIC_OPERATION_MAX;
	check_cu(cuDeviceGetP2PAtomicCapabilities(
			 capabilities, operations, 100, a.device, b.device),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuDeviceGetP2PAtomicCapabilities(
			 capabilities, operations, 1, a.device, a.device),
		CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuDeviceGetP2PAtomicCapabilities(
			 capabilities, operations, 0, a.device, b.device),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(copies_between_devices_need_no_peer_access)
{
	CUDA_MEMCPY3D_PEER box = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcPitch = 64,
		.srcHeight = 4,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstPitch = 64,
		.dstHeight = 4,
		.WidthInBytes = 32,
		.Height = 4,
		.Depth = 16,
	};
	CUstream stream;

	begin();
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemcpyPeer(a.words, a.context, b.words, b.context, N * 4));
	check_eq(device_word(a.words), 101);
	check_eq(device_word(a.words + N * 4 - 4), 101);
	check_ok(cuMemsetD32(a.words, 55, N));
	check_ok(cuCtxSynchronize());
	check_ok(cuMemcpyPeerAsync(b.words, b.context, a.words, a.context, 64, stream));
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(b.words), 55);
	check_eq(device_word(b.words + 64), 101);
	box.srcContext = b.context, box.srcDevice = b.words;
	box.dstContext = a.context, box.dstDevice = a.words;
	check_ok(cuMemcpy3DPeer(&box));
	check_eq(device_word(a.words + 64), 101);
	check_eq(device_word(a.words + 64 + 32), 55);
	check_ok(cuMemcpyDtoD(a.words, b.words, N * 4));
	check_eq(device_word(a.words + 4 * N - 4), 101);
}

TEST(a_kernel_faults_in_the_memory_of_a_device_that_is_no_peer)
{
	begin();
	check_ok(launch_fill(a.fill, b.words, 1, N, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_kernel_writes_the_memory_of_a_peer)
{
	begin();
	check_ok(cuCtxEnablePeerAccess(b.context, 0));
	check_ok(launch_fill(a.fill, b.words, 31, N, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(device_word(b.words), 31);
	check_eq(device_word(b.words + N * 4 - 4), 31);
	/* The other way it was not enabled. */
	check_ok(cuCtxSetCurrent(b.context));
	check_ok(launch_fill(b.fill, a.words, 1, N, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(peer_access_ends_when_it_is_disabled)
{
	begin();
	check_cu(cuCtxDisablePeerAccess(b.context), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	check_ok(cuCtxEnablePeerAccess(b.context, 0));
	check_cu(cuCtxEnablePeerAccess(b.context, 0),
		CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	check_ok(launch_fill(a.fill, b.words, 8, N, NULL));
	check_ok(cuCtxDisablePeerAccess(b.context));
	check_cu(cuCtxDisablePeerAccess(b.context), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	check_eq(device_word(b.words), 8);
	check_ok(launch_fill(a.fill, b.words, 9, N, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_pool_is_accessible_to_the_devices_it_names)
{
	const CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemLocation second = { CU_MEM_LOCATION_TYPE_DEVICE, 1 };
	CUmemAccessDesc right = { second, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CUdeviceptr before, after;
	CUmemoryPool pool;

	begin();
	check_ok(cuMemPoolCreate(&pool, &props));
	check_ok(cuMemPoolGetAccess(&flags, pool, &second));
	check_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	/* Memory that it has, and memory that it gets. */
	check_ok(cuMemAllocFromPoolAsync(&before, 32 << 20, pool, NULL));
	check_ok(cuMemPoolSetAccess(pool, &right, 1));
	check_ok(cuMemPoolGetAccess(&flags, pool, &second));
	check_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	check_ok(cuMemAllocFromPoolAsync(&after, 32 << 20, pool, NULL));
	check_ok(cuCtxSynchronize());
	check_ok(cuCtxSetCurrent(b.context));
	check_ok(launch_fill(b.fill, before, 21, N, NULL));
	check_ok(launch_fill(b.fill, after, 22, N, NULL));
	check_ok(cuCtxSynchronize());
	check_ok(cuCtxSetCurrent(a.context));
	check_eq(device_word(before + 4 * N - 4), 21);
	check_eq(device_word(after + 4 * N - 4), 22);
	right.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	check_ok(cuMemPoolSetAccess(pool, &right, 1));
	check_ok(cuCtxSetCurrent(b.context));
	check_ok(launch_fill(b.fill, before, 23, N, NULL));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(peers_that_cannot_be_are_refused)
{
	CUcontext second;

	begin();
	check_cu(cuCtxEnablePeerAccess(a.context, 0), CUDA_ERROR_INVALID_CONTEXT);
	check_cu(cuCtxEnablePeerAccess(NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
	check_cu(cuCtxEnablePeerAccess((CUcontext)(uintptr_t)0x777777, 0),
		CUDA_ERROR_INVALID_CONTEXT);
	check_cu(cuCtxEnablePeerAccess(b.context, 1), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuCtxCreate(&second, NULL, 0, a.device));
	check_cu(cuCtxEnablePeerAccess(a.context, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	check_ok(cuCtxDestroy(second));
	check_cu(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(pinned_and_managed_memory_is_everybodys)
{
	unsigned int *pinned, *managed;
	CUdeviceptr p;

	begin();
	check_ok(cuMemAllocHost((void **)&pinned, N * 4));
	check_ok(cuMemAllocManaged(&p, N * 4, CU_MEM_ATTACH_GLOBAL));
	managed = (unsigned int *)(uintptr_t)p;
	check_ok(cuCtxSetCurrent(b.context));
	check_ok(launch_fill(b.fill, (CUdeviceptr)(uintptr_t)pinned, 5, N, NULL));
	check_ok(launch_fill(b.fill, p, 6, N, NULL));
	check_ok(cuCtxSynchronize());
	check(pinned[0] == 5 && pinned[N - 1] == 5);
	check(managed[0] == 6 && managed[N - 1] == 6);
}

TEST(an_invisible_device_is_refused_by_queries_of_arrays)
{
	const CUDA_ARRAY3D_DESCRIPTOR descriptor = {
		.Width = 16,
		.Height = 16,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
	};
	CUDA_ARRAY_MEMORY_REQUIREMENTS requirements;
	CUmipmappedArray mipmap;
	CUarray array;

	check_eq(setenv("CUDA_VISIBLE_DEVICES", "1", 1), 0);
	check_ok(cuInit(0));
	side_init(&a, 0);
	check_ok(cuArray3DCreate(&array, &descriptor));
	check_ok(cuMipmappedArrayCreate(&mipmap, &descriptor, 2));
	/* The memory of these arrays is not deferred; the host has a device 1. */
	check_cu(cuArrayGetMemoryRequirements(&requirements, array, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuArrayGetMemoryRequirements(&requirements, array, 1),
		CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuMipmappedArrayGetMemoryRequirements(&requirements, mipmap, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMipmappedArrayGetMemoryRequirements(&requirements, mipmap, 1),
		CUDA_ERROR_INVALID_DEVICE);
}

enum { SEGMENTS = 4, SEGMENT = 32 << 20 };

static CUdeviceptr blocks[SEGMENTS];

static void *grow(void *pool)
{
	check_ok(cuCtxSetCurrent(a.context));
	for (int i = 0; i < SEGMENTS; i++)
		check_ok(cuMemAllocFromPoolAsync(&blocks[i], SEGMENT, pool, NULL));
	check_ok(cuStreamSynchronize(NULL));
	return NULL;
}

static void *trim(void *pool)
{
	check_ok(cuCtxSetCurrent(a.context));
	for (int i = 0; i < SEGMENTS; i++)
		check_ok(cuMemPoolTrimTo(pool, 0));
	return NULL;
}

/* Whichever thread comes first: all of the pool has the rights, once they are given. */
TEST(a_pool_that_grows_has_one_set_of_rights)
{
	const CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
	};
	const CUmemAccessDesc right = { { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	pthread_t threads[2];
	CUmemoryPool pool;

	begin();
	for (int round = 0; round < 40; round++) {
		check_ok(cuMemPoolCreate(&pool, &props));
		check_eq(pthread_create(&threads[0], NULL, grow, pool), 0);
		check_eq(pthread_create(&threads[1], NULL, trim, pool), 0);
		for (int i = 0; i < round % 8; i++)
			sched_yield();
		check_ok(cuMemPoolSetAccess(pool, &right, 1));
		for (int i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		check_ok(cuCtxSetCurrent(b.context));
		for (int i = 0; i < SEGMENTS; i++)
			check_ok(cuMemcpyDtoD(blocks[i], b.words, 16));
		check_ok(cuCtxSynchronize());
		check_ok(cuCtxSetCurrent(a.context));
		for (int i = 0; i < SEGMENTS; i++)
			check_ok(cuMemFreeAsync(blocks[i], NULL));
		check_ok(cuMemPoolDestroy(pool));
		check_ok(cuStreamSynchronize(NULL));
	}
}

TEST(memory_on_the_host_is_for_both_devices)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_HOST },
	};
	const CUmemAccessDesc rights[] = {
		{ { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
			CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
		{ { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
			CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
		{ { CU_MEM_LOCATION_TYPE_HOST, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READ },
	};
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr address = 0;
	unsigned int *words;

	begin();
	check_ok(cuMemCreate(&handle, 2 << 20, &prop, 0));
	check_ok(cuMemAddressReserve(&address, 2 << 20, 0, 0, 0));
	check_ok(cuMemMap(address, 2 << 20, 0, handle, 0));
	check_ok(cuMemSetAccess(address, 2 << 20, rights, 3));
	words = (unsigned int *)(uintptr_t)address;
	check_ok(launch_fill(a.fill, address, 5, N, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(words[N - 1], 5);
	check_ok(cuCtxSetCurrent(b.context));
	check_ok(launch_fill(b.fill, address, 6, N, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(words[N - 1], 6);
	check_ok(cuMemUnmap(address, 2 << 20));
	check_ok(cuMemRelease(handle));
}

/* Memory of a device that the other has no access to. */
static CUdeviceptr map_for(CUdevice device)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, device },
	};
	const CUmemAccessDesc right = { prop.location,
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr address = 0;

	check_ok(cuMemCreate(&handle, 2 << 20, &prop, 0));
	check_ok(cuMemAddressReserve(&address, 2 << 20, 0, 0, 0));
	check_ok(cuMemMap(address, 2 << 20, 0, handle, 0));
	check_ok(cuMemSetAccess(address, 2 << 20, &right, 1));
	check_ok(cuMemRelease(handle));
	return address;
}

TEST(each_side_of_a_copy_is_accessed_by_its_own_device)
{
	CUDA_MEMCPY3D_PEER box = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.WidthInBytes = 32,
		.Height = 1,
		.Depth = 1,
	};
	CUdeviceptr of_a, of_b;

	begin();
	of_a = map_for(a.device);
	of_b = map_for(b.device);
	check_ok(cuMemsetD32(of_a, 71, N));
	check_cu(cuMemsetD32(of_b, 72, N), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpyDtoD(of_b, of_a, 64), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemcpyPeer(of_b, b.context, of_a, a.context, N * 4));
	/* With the wrong device for either side. */
	check_cu(cuMemcpyPeer(of_b, a.context, of_a, a.context, 64),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpyPeer(of_b, b.context, of_a, b.context, 64),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuCtxSetCurrent(b.context));
	check_eq(device_word(of_b + N * 4 - 4), 71);
	check_ok(cuMemsetD32(of_b, 73, N));
	check_ok(cuCtxSynchronize());
	check_ok(cuMemcpyPeerAsync(of_a, a.context, of_b, b.context, 64, NULL));
	check_ok(cuCtxSynchronize());
	check_ok(cuCtxSetCurrent(a.context));
	check_eq(device_word(of_a + 60), 73);
	check_eq(device_word(of_a + 64), 71);
	box.srcContext = b.context, box.srcDevice = of_b;
	box.dstContext = a.context, box.dstDevice = of_a + 64;
	check_ok(cuMemcpy3DPeer(&box));
	check_eq(device_word(of_a + 92), 73);
	check_eq(device_word(of_a + 96), 71);
	box.srcContext = a.context;
	check_cu(cuMemcpy3DPeer(&box), CUDA_ERROR_INVALID_VALUE);
}
