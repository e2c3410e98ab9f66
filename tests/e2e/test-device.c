/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: initialisation and devices
 */

#include "e2e.h"

TEST(calls_before_init_say_so)
{
	CUcontext context;
	CUdeviceptr p;
	int n;

	check_cu(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
	check_cu(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
	check_cu(cuMemAlloc(&p, 16), CUDA_ERROR_NOT_INITIALIZED);
}

TEST(init_refuses_flags)
{
	check_cu(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuInit(0));
	check_ok(cuInit(0));
}

TEST(driver_version_is_known_and_at_least_thirteen)
{
	int version = 0;

	check_ok(cuDriverGetVersion(&version));
	check_ok(cuInit(0));
	check_ok(cuDriverGetVersion(&version));
	check(version >= 13000);
	check_cu(cuDriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
}

TEST(device_has_name_memory_uuid_and_capability)
{
	CUuuid uuid = {}, zero = {};
	int n = 0, major = 0, minor = -1;
	char name[128] = "", small[4];
	CUdevice device;
	size_t total = 0;

	check_ok(cuInit(0));
	check_ok(cuDeviceGetCount(&n));
	check(n >= 1);
	check_ok(cuDeviceGet(&device, 0));
	check_ok(cuDeviceGetName(name, sizeof(name), device));
	check(strlen(name) > 3);
	check_ok(cuDeviceGetName(small, sizeof(small), device));
	check_eq(strlen(small), 3);
	check_ok(cuDeviceTotalMem(&total, device));
	check(total >= 1u << 28);
	check_ok(cuDeviceGetUuid(&uuid, device));
	check(memcmp(&uuid, &zero, sizeof(uuid)));
	check_ok(cuDeviceComputeCapability(&major, &minor, device));
	check(major >= 5 && minor >= 0);
}

TEST(device_ordinals_out_of_range_are_refused)
{
	CUdevice device;
	size_t total;
	int n, value;

	check_ok(cuInit(0));
	check_ok(cuDeviceGetCount(&n));
	check_cu(cuDeviceGet(&device, n), CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuDeviceTotalMem(&total, n), CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, n),
		CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuDeviceGetCount(NULL), CUDA_ERROR_INVALID_VALUE);
}

TEST(device_attributes_fit_together)
{
	int warp, block, major, minor, major2, minor2, sm;

	check_ok(cuInit(0));
	check_ok(cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
	check_eq(warp, 32);
	check_ok(cuDeviceGetAttribute(
		&block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0));
	check(block >= 512 && block % warp == 0);
	check_ok(cuDeviceGetAttribute(&sm, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	check(sm >= 1);
	check_ok(cuDeviceGetAttribute(
		&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	check_ok(cuDeviceGetAttribute(
		&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
	check_ok(cuDeviceComputeCapability(&major2, &minor2, 0));
	check_eq(major, major2);
	check_eq(minor, minor2);
	check_cu(cuDeviceGetAttribute(&sm, (CUdevice_attribute)100000, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(every_attribute_that_a_runtime_reads_at_start_is_there)
{
	/* the ids cudart 13.0 reads of each device; one refusal makes it give up */
	static const int ids[] = { 75, 76, 40, 16, 18, 19, 21, 77, 22, 23, 73, 74, 70, 71,
		72, 45, 46, 24, 25, 26, 47, 48, 49, 52, 42, 43, 27, 28, 29, 53, 54, 55,
		56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 31, 32, 33, 34, 50,
		35, 41, 37, 38, 108, 39, 30, 51, 8, 97, 81, 12, 82, 10, 11, 1, 2, 3, 4, 5,
		6, 7, 9, 14, 78, 79, 80, 83, 84, 85, 86, 88, 89, 90, 91, 95, 100, 101,
		106, 109, 111, 99, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 125,
		129, 130, 131, 133, 134, 139, 140, 143 };
	int value;

	check_ok(cuInit(0));
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		check_ok(cuDeviceGetAttribute(&value, (CUdevice_attribute)ids[i], 0));
}

TEST(pci_bus_id_finds_the_device_again)
{
	CUdevice device = -1;
	char id[32] = "";

	check_ok(cuInit(0));
	check_ok(cuDeviceGetPCIBusId(id, sizeof(id), 0));
	check(strlen(id) >= 7);
	check_ok(cuDeviceGetByPCIBusId(&device, id));
	check_eq(device, 0);
	check_cu(cuDeviceGetByPCIBusId(&device, "ffff:ff:1f.0"),
		CUDA_ERROR_INVALID_DEVICE);
}

TEST(error_names_and_strings_are_the_drivers)
{
	const char *text = NULL;

	check_ok(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
	check_str(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
	check_ok(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
	check(text && strstr(text, "memory"));
	check_cu(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
	check(!text);
}

TEST(device_is_no_peer_of_itself)
{
	int can = 1, value;

	check_ok(cuInit(0));
	check_ok(cuDeviceCanAccessPeer(&can, 0, 0));
	check_eq(can, 0);
	check(cuDeviceGetP2PAttribute(
		&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
	check(cuDeviceCanAccessPeer(&can, 0, 99) != CUDA_SUCCESS);
}

TEST(old_properties_agree_with_the_attributes)
{
	CUdevprop properties = {};
	int threads, shared;

	check_ok(cuInit(0));
	check_ok(cuDeviceGetProperties(&properties, 0));
	check_ok(cuDeviceGetAttribute(
		&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0));
	check_ok(cuDeviceGetAttribute(
		&shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 0));
	check_eq(properties.maxThreadsPerBlock, threads);
	check_eq(properties.sharedMemPerBlock, shared);
	check_eq(properties.SIMDWidth, 32);
}

TEST(no_atomic_operation_reaches_host_memory)
{
	CUatomicOperation operations[] = { CU_ATOMIC_OPERATION_INTEGER_ADD,
		CU_ATOMIC_OPERATION_CAS };
	unsigned int capabilities[] = { 77, 77 };
	int native = -1;

	check_ok(cuInit(0));
	check_ok(cuDeviceGetAttribute(
		&native, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 0));
	check_eq(native, 0);
	check_ok(cuDeviceGetHostAtomicCapabilities(capabilities, operations, 2, 0));
	check_eq(capabilities[0], 0);
	check_eq(capabilities[1], 0);
	operations[1] = CU_ATOMIC_OPERATION_MAX;
	check_cu(cuDeviceGetHostAtomicCapabilities(capabilities, operations, 2, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuDeviceGetHostAtomicCapabilities(capabilities, operations, 1, 99),
		CUDA_ERROR_INVALID_DEVICE);
}
