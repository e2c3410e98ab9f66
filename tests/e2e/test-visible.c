/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: the devices that are visible to a program
 *
 * Runs on four devices of the null driver. Device n of the host has n GiB more memory
 * than device 0, and its PCI bus number decreases with n. cuDeviceTotalMem shows which
 * device the library means, cuMemGetInfo in which device's context the host runs.
 */

#include "e2e.h"

#define FIRST_GIB 64u

static void start(const char *order, const char *list)
{
	if (order)
		check_eq(setenv("CUDA_DEVICE_ORDER", order, 1), 0);
	if (list)
		check_eq(setenv("CUDA_VISIBLE_DEVICES", list, 1), 0);
	check_ok(cuInit(0));
}

/* The host's number of a device, as reported by the library and by the host. */
static int real_number(CUdevice device)
{
	size_t total, of_context, free;
	CUcontext context;

	check_ok(cuDeviceTotalMem(&total, device));
	check_ok(cuDevicePrimaryCtxRetain(&context, device));
	check_ok(cuCtxPushCurrent(context));
	check_ok(cuMemGetInfo(&free, &of_context));
	check_ok(cuCtxPopCurrent(NULL));
	check_ok(cuDevicePrimaryCtxRelease(device));
	check_eq(of_context, total);
	return (int)((total >> 30) - FIRST_GIB);
}

static void check_devices(const char *expected)
{
	int n = -1;

	check_ok(cuDeviceGetCount(&n));
	check_eq(n, strlen(expected));
	for (int i = 0; i < n; i++) {
		CUdevice device = -1;

		check_ok(cuDeviceGet(&device, i));
		check_eq(device, i);
		check_eq(real_number(device), expected[i] - '0');
	}
	check_cu(cuDeviceGet(&n, (int)strlen(expected)), CUDA_ERROR_INVALID_DEVICE);
}

TEST(all_devices_are_visible_without_a_list)
{
	start(NULL, NULL);
	check_devices("0123");
}

TEST(a_list_chooses_and_orders_devices)
{
	start(NULL, "2,0");
	check_devices("20");
}

TEST(a_list_ends_at_what_is_no_device)
{
	start(NULL, "3,1,-1,0");
	check_devices("31");
}

TEST(devices_are_found_by_uuid)
{
	/* "xGPU null driver" with the first byte counted up */
	start(NULL, "GPU-78475055-206e-756c-6c20-647269766572,GPU-76");
	check_devices("20");
}

TEST(numbers_count_in_the_order_of_the_bus)
{
	start("PCI_BUS_ID", "0,3,2");
	check_devices("301");
}

static void check_none(const char *list)
{
	int n;

	check_eq(setenv("CUDA_VISIBLE_DEVICES", list, 1), 0);
	check_cu(cuInit(0), CUDA_ERROR_NO_DEVICE);
	check_cu(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
}

TEST(without_a_visible_device_there_is_none)
{
	check_none("");
	check_none("-1");
	check_none("4,0");
	check_none("1,1");
	check_none("MIG-GPU-78475055-206e-756c-6c20-647269766572/0/0");
	/* what failed may be tried again */
	start(NULL, "1");
	check_devices("1");
}

TEST(whatever_tells_a_device_tells_the_programs_number)
{
	CUcontext context, created, found;
	CUdevice device = -1;
	CUdeviceptr p;
	size_t free, total;
	char id[32];
	int ordinal = -1;

	start(NULL, "1,3");
	check_ok(cuCtxCreate(&created, NULL, 0, 1));
	check_ok(cuCtxGetDevice(&device));
	check_eq(device, 1);
	check_ok(cuCtxDestroy(created));

	check_ok(cuDevicePrimaryCtxRetain(&context, 1));
	check_ok(cuCtxSetCurrent(context));
	check_ok(cuCtxGetCurrent(&found));
	check(found == context);
	check_ok(cuCtxGetDevice(&device));
	check_eq(device, 1);
	check_ok(cuStreamGetDevice(NULL, &device));
	check_eq(device, 1);
	check_ok(cuMemAlloc(&p, 4096));
	check_ok(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
	check_eq(ordinal, 1);
	check_ok(cuDeviceGetPCIBusId(id, sizeof(id), 1));
	check_ok(cuDeviceGetByPCIBusId(&device, id));
	check_eq(device, 1);
	/* device 2 of the host is there, but not for this program */
	check_cu(cuDeviceGetByPCIBusId(&device, "0:e:0.0"), CUDA_ERROR_INVALID_DEVICE);

	/* the context of the other one is destroyed by a reset, this one stays */
	check_ok(cuDevicePrimaryCtxRetain(&found, 0));
	check_ok(cuDevicePrimaryCtxReset(0));
	check_ok(cuMemGetInfo(&free, &total));
	check_eq(total >> 30, FIRST_GIB + 3);
	check_ok(cuDeviceGetP2PAttribute(
		&ordinal, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
	check_eq(ordinal, 0);
	check_cu(cuDeviceGetP2PAttribute(
			 &ordinal, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 2),
		CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuDevicePrimaryCtxRetain(&found, 2), CUDA_ERROR_INVALID_DEVICE);
	check_cu(cuDevicePrimaryCtxReset(-1), CUDA_ERROR_INVALID_DEVICE);
}
