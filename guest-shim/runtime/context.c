/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices and their primary contexts
 *
 * `devices` is written under `lock`. The epoch grows when a primary context was reset:
 * what threads remember of their current context is void then. It is written under
 * `lock`, and read without it by each call: paired with the release in rt_device_reset().
 */

#include <pthread.h>
#include <stdlib.h>

#include "runtime/code.h"
#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/register.h"
#include "runtime/thread.h"

struct device {
	CUdevice number;
	CUcontext context;
	bool is_retained;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int init_error;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device devices[RT_MAX_DEVICES];
static int n_devices;
static unsigned long epoch = 1;

/* The driver's mode, which a variable of the environment overrides. */
static bool loads_lazily(void)
{
	const char *forced = getenv("CUDA_ENABLE_MODULE_LAZY_LOADING");
	CUmoduleLoadingMode mode;

	if (forced && atoi(forced))
		return true;
	return !rt_driver.cuModuleGetLoadingMode(&mode) && mode == CU_MODULE_LAZY_LOADING;
}

static void init_once(void)
{
	init_error = rt_driver_open();
	if (!init_error && rt_driver.cuDeviceGetCount(&n_devices))
		init_error = cudaErrorInitializationError;
	if (!init_error && !n_devices)
		init_error = cudaErrorNoDevice;
	if (n_devices > RT_MAX_DEVICES)
		n_devices = RT_MAX_DEVICES;
	for (int i = 0; !init_error && i < n_devices; i++) {
		if (rt_driver.cuDeviceGet(&devices[i].number, i))
			init_error = cudaErrorInitializationError;
	}
	if (!init_error && !loads_lazily())
		rt_code_load_all();
}

int rt_enter_bare(void)
{
	return 0;
}

int rt_enter_init(void)
{
	pthread_once(&once, init_once);
	if (!init_error && rt_code_has_managed())
		rt_code_load_managed();
	return init_error;
}

/* Before the program reads or writes a managed variable outside any call. */
char __cudaInitModule(void **handle)
{
	return rt_enter_init() == 0;
}

int rt_context_n_devices(void)
{
	return n_devices;
}

bool rt_context_is_device(int device)
{
	return device >= 0 && device < n_devices;
}

/* Errors of cuDevicePrimaryCtxRetain() that have a meaning for the program. */
static int retain_error(CUresult result)
{
	switch ((int)result) {
	case cudaSuccess:
	case cudaErrorMemoryAllocation:
	case cudaErrorECCUncorrectable:
	case cudaErrorIllegalState:
	case cudaErrorSymbolNotFound:
	case cudaErrorNotPermitted:
	case cudaErrorNotSupported:
	case cudaErrorCdpNotSupported:
	case cudaErrorCdpVersionMismatch:
		return result;
	default:
		return cudaErrorDevicesUnavailable;
	}
}

/* Under `lock`. */
static int retain(struct device *device)
{
	int error = 0;

	if (!device->is_retained)
		error = retain_error(rt_driver.cuDevicePrimaryCtxRetain(
			&device->context, device->number));
	device->is_retained = !error;
	return error;
}

int rt_context_get(int device, CUcontext *contextp)
{
	int error;

	if (!rt_context_is_device(device))
		return cudaErrorInvalidDevice;
	pthread_mutex_lock(&lock);
	error = retain(&devices[device]);
	*contextp = devices[device].context;
	pthread_mutex_unlock(&lock);
	return error;
}

/* Under `lock`. The device whose primary context it is, or was before a reset. */
static struct device *find_device(CUcontext context)
{
	for (int i = 0; i < n_devices; i++) {
		if (devices[i].context == context)
			return &devices[i];
	}
	return NULL;
}

/* Under `lock`: makes the device's context current in this thread. */
static int enter_device(struct device *device)
{
	int error = retain(device);

	if (!error)
		error = rt_driver.cuCtxSetCurrent(device->context);
	if (error)
		return error;
	rt_thread.context = device->context;
	rt_thread.epoch = epoch;
	return 0;
}

/* Another runtime in the process may have reset the device. */
static bool is_alive(CUcontext context)
{
	unsigned int version;
	CUresult result = rt_driver.cuCtxGetApiVersion(context, &version);

	/* A context that a fault ended is still the one to report it. */
	return result != CUDA_ERROR_INVALID_CONTEXT &&
	       result != CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static int enter_slowly(CUcontext current)
{
	struct device *device = &devices[rt_thread.device];
	int error = 0;

	pthread_mutex_lock(&lock);
	if (current) {
		device = find_device(current);
		if (device && !is_alive(current))
			device->is_retained = false;
	}
	if (device) {
		error = enter_device(device);
	} else {
		rt_thread.context = current;
		rt_thread.epoch = epoch;
	}
	pthread_mutex_unlock(&lock);
	return error;
}

int rt_enter_context(void)
{
	CUcontext current = NULL;
	int error = rt_enter_init();

	if (error)
		return error;
	error = rt_driver.cuCtxGetCurrent(&current);
	if (error)
		return error;
	if (current && current == rt_thread.context &&
		rt_thread.epoch == __atomic_load_n(&epoch, __ATOMIC_ACQUIRE) &&
		is_alive(current))
		return 0;
	return enter_slowly(current);
}

int rt_device_get(int *devicep)
{
	CUcontext current = NULL;

	if (!devicep)
		return cudaErrorInvalidValue;
	*devicep = rt_thread.device;
	if (!rt_driver.cuCtxGetCurrent(&current) && current) {
		CUdevice number;

		if (!rt_driver.cuCtxGetDevice(&number))
			*devicep = number;
	}
	return 0;
}

int rt_device_set(int device)
{
	int error;

	if (!rt_context_is_device(device))
		return cudaErrorInvalidDevice;
	pthread_mutex_lock(&lock);
	error = enter_device(&devices[device]);
	pthread_mutex_unlock(&lock);
	if (!error) {
		rt_thread.device = device;
		rt_thread.is_device_chosen = true;
	}
	return error;
}

int rt_device_init(int device, unsigned int device_flags, unsigned int flags)
{
	/* Whether device_flags are given: cudaInitDeviceFlagsAreValid. */
	const unsigned int flags_are_valid = 1;
	CUcontext context;

	if (!rt_context_is_device(device))
		return cudaErrorInvalidDevice;
	if (flags & flags_are_valid) {
		CUresult result = rt_driver.cuDevicePrimaryCtxSetFlags_v2(
			devices[device].number, device_flags);

		if (result)
			return result;
	}
	return rt_context_get(device, &context);
}

int rt_device_count(int *countp)
{
	if (!countp)
		return cudaErrorInvalidValue;
	*countp = n_devices;
	return 0;
}

int rt_device_flags(unsigned int *flagsp)
{
	CUcontext current = NULL;
	int is_active;

	if (!flagsp)
		return cudaErrorInvalidValue;
	if (!rt_driver.cuCtxGetCurrent(&current) && current)
		return rt_driver.cuCtxGetFlags(flagsp);
	return rt_driver.cuDevicePrimaryCtxGetState(
		devices[rt_thread.device].number, flagsp, &is_active);
}

int rt_device_set_flags(unsigned int flags)
{
	const unsigned int schedule = CU_CTX_SCHED_MASK;
	const unsigned int valid = schedule | CU_CTX_MAP_HOST |
				   CU_CTX_LMEM_RESIZE_TO_MAX | CU_CTX_SYNC_MEMOPS;
	int device, error = rt_device_get(&device);

	if (error)
		return error;
	/* At most one way of waiting. */
	if (flags & ~valid || (flags & schedule & ((flags & schedule) - 1)))
		return cudaErrorInvalidValue;
	return rt_driver.cuDevicePrimaryCtxSetFlags_v2(devices[device].number, flags);
}

/* The error of a kernel that ended the current context, which a reset still reports. */
static int pending_fault(void)
{
	int error = rt_driver.cuCtxSynchronize();

	return error >= cudaErrorIllegalAddress && error < cudaErrorNotPermitted ? error
										 : 0;
}

/* Under `lock`. */
static int reset(struct device *device)
{
	int error, fault = 0;

	if (!device->is_retained)
		return 0;
	fault = pending_fault();
	error = rt_driver.cuDevicePrimaryCtxReset_v2(device->number);
	device->is_retained = false;
	__atomic_store_n(&epoch, epoch + 1, __ATOMIC_RELEASE);
	return error ? error : fault;
}

/* As NVIDIA's runtime, it does nothing in a thread that has no current context. */
int rt_device_reset(void)
{
	CUcontext current = NULL;
	int device, error = rt_device_get(&device);

	if (error || rt_driver.cuCtxGetCurrent(&current) || !current ||
		!rt_context_is_device(device))
		return error;
	pthread_mutex_lock(&lock);
	error = reset(&devices[device]);
	pthread_mutex_unlock(&lock);
	return error;
}

int rt_valid_devices(int *devices_in, int n)
{
	if (n < 0 || n > n_devices || (n && !devices_in))
		return cudaErrorInvalidValue;
	for (int i = 0; i < n; i++) {
		if (!rt_context_is_device(devices_in[i]))
			return cudaErrorInvalidDevice;
	}
	/* The first of them, or of all, is the device of calls to come. */
	if (!rt_thread.is_device_chosen)
		rt_thread.device = n ? devices_in[0] : 0;
	return rt_driver.cuCtxSetCurrent(NULL);
}
