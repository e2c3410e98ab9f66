/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu: properties of the device
 */

#include <errno.h>
#include <unistd.h>
#include <sys/wait.h>

#include "api.h"
#include "softgpu.h"

static int attribute(CUdevice_attribute id)
{
	int value = -1;

	check_ok(cuDeviceGetAttribute(&value, id, 0));
	return value;
}

TEST(nothing_works_before_cuinit)
{
	CUcontext context;
	int count;

	check_cu(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	check_cu(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
	check_cu(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
	check_cu(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuInit(0));
	check_ok(cuInit(0));
	check_cu(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(the_device_has_the_default_identity)
{
	char name[64];
	size_t size;
	int version, count;

	check_ok(cuInit(0));
	check_ok(cuDriverGetVersion(&version));
	check_eq(version, 13000);
	check_ok(cuDeviceGetCount(&count));
	check_eq(count, 1);
	check_ok(cuDeviceGetName(name, sizeof(name), 0));
	check_str(name, "vGPU softgpu (CPU)");
	check_ok(cuDeviceTotalMem(&size, 0));
	check_eq(size, 4ull << 30);
	check_eq(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 12);
	check_eq(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), 1);
	check_eq(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
	check_eq(attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS), 0);
	check(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) >= 1);
	check_cu(cuDeviceGetName(name, sizeof(name), 1), CUDA_ERROR_INVALID_DEVICE);
}

TEST(every_attribute_of_cuda_13_0_has_a_value)
{
	int value;

	check_ok(cuInit(0));
	for (int id = 1; id <= 147; id++)
		check_ok(cuDeviceGetAttribute(&value, (CUdevice_attribute)id, 0));
	check_cu(cuDeviceGetAttribute(&value, (CUdevice_attribute)148, 0),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuDeviceGetAttribute(&value, (CUdevice_attribute)0, 0),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(the_device_has_the_configured_identity)
{
	struct softgpu_config config = {
		.size = sizeof(config),
		.cc = 75,
		.memory = 64 << 20,
		.n_threads = 3,
		.name = "a device",
	};
	CUdeviceptr address;
	char name[64];
	size_t size;

	check_eq(softgpu_configure(&config), 0);
	context_new();
	check_ok(cuDeviceGetName(name, sizeof(name), 0));
	check_str(name, "a device");
	check_ok(cuDeviceTotalMem(&size, 0));
	check_eq(size, 64 << 20);
	check_eq(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 7);
	check_eq(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 3);
	check_cu(cuMemAlloc(&address, (64 << 20) + 1), CUDA_ERROR_OUT_OF_MEMORY);
	check_ok(cuMemAlloc(&address, 64 << 20));
	check_eq(softgpu_configure(&config), -EBUSY);
}

TEST(the_environment_gives_an_identity_too)
{
	char name[64];
	size_t size;

	setenv("VGPU_SOFTGPU_CC", "9.0", 1);
	setenv("VGPU_SOFTGPU_MEMORY", "512M", 1);
	setenv("VGPU_SOFTGPU_THREADS", "5", 1);
	setenv("VGPU_SOFTGPU_NAME", "from outside", 1);
	check_ok(cuInit(0));
	check_ok(cuDeviceGetName(name, sizeof(name), 0));
	check_str(name, "from outside");
	check_ok(cuDeviceTotalMem(&size, 0));
	check_eq(size, 512 << 20);
	check_eq(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 9);
	check_eq(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 5);
}

TEST(a_bad_configuration_is_refused)
{
	struct softgpu_config config = { .size = sizeof(config), .cc = 3 };

	check_eq(softgpu_configure(&config), -EINVAL);
	config = (struct softgpu_config){ .size = sizeof(config), .memory = 1 };
	check_eq(softgpu_configure(&config), -EINVAL);
	config = (struct softgpu_config){ .size = 1 };
	check_eq(softgpu_configure(&config), -EINVAL);
	check_eq(softgpu_set_window(4096, 65536, 0, 0), -EINVAL);
	check_eq(softgpu_set_window(1ull << 40, 65537, 0, 0), -EINVAL);
	check_eq(softgpu_set_window(1ull << 40, 1 << 20, 1ull << 40, 1 << 20), -EINVAL);
}

TEST(the_uuid_follows_from_the_identity)
{
	CUuuid one, two;

	check_ok(cuInit(0));
	check_ok(cuDeviceGetUuid(&one, 0));
	check_ok(cuDeviceGetUuid(&two, 0));
	check(!memcmp(&one, &two, sizeof(one)));
	check_eq((unsigned char)one.bytes[6] >> 4, 5);
}

TEST(a_child_after_fork_is_not_initialised)
{
	int status, count;
	pid_t pid;

	context_new();
	pid = fork();
	if (!pid)
		_exit(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
					cuInit(0) == CUDA_ERROR_NOT_INITIALIZED
				? 0
				: 1);
	check_eq(waitpid(pid, &status, 0), pid);
	check_eq(status, 0);
	check_ok(cuDeviceGetCount(&count));
}

TEST(calls_are_found_by_name_and_version)
{
	CUresult (*function)(CUdevice *, CUcontext) = NULL;
	CUdriverProcAddressQueryResult status;
	void *found;

	check_ok(cuGetProcAddress("cuMemAlloc", &found, 13000, 0, &status));
	check(found && status == CU_GET_PROC_ADDRESS_SUCCESS);
	check_ok(cuGetProcAddress("cuCtxGetDevice", (void **)&function, 13000, 0, NULL));
	check_ok(cuGetProcAddress("cuCtxGetDevice", &found, 12000, 0, NULL));
	check(found != (void *)function);
	check_ok(cuGetProcAddress("cuGraphInstantiate", &found, 13000, 0, NULL));
	check_ok(cuGetProcAddress(
		"cuGraphInstantiateWithFlags", (void **)&function, 13000, 0, NULL));
	check(found == (void *)function);
	check_ok(cuGetProcAddress("cuGraphInstantiate", &found, 11000, 0, NULL));
	check(found != (void *)function);
	check_ok(cuGetProcAddress("cuImportExternalMemory", &found, 13000, 0, &status));
	check(!found && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	check_ok(cuGetProcAddress("malloc", &found, 13000, 0, NULL));
	check(!found);
	check_cu(cuGetProcAddress("cuMemAlloc", &found, 99000, 0, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuGetProcAddress("cuMemAlloc", &found, 13000, 0x100, NULL),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(results_have_names)
{
	const char *text = NULL;

	check_ok(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
	check_str(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
	check_ok(cuGetErrorString(CUDA_SUCCESS, &text));
	check_str(text, "no error");
	check_cu(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
	check(!text);
}
