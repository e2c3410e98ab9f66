/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's library
 *
 * Written by the first call only, under `once`; later calls read.
 */

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "runtime/driver.h"
#include "runtime/types.h"
#include "runtime/version.h"

struct vgpu_driver rt_driver;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int open_error;
static int driver_version;

/* In place of any function: arguments are in registers or removed by the caller. */
static CUresult absent(void)
{
	return (CUresult)cudaErrorCallRequiresNewerDriver;
}

/* The table consists of pointers to functions only. */
static void fill_gaps(void)
{
	CUresult (*substitute)(void) = absent;
	char *entry = (char *)&rt_driver;

	_Static_assert(sizeof(rt_driver) % sizeof(substitute) == 0, "pointers only");
	for (size_t i = 0; i < sizeof(rt_driver); i += sizeof(substitute)) {
		void *found;

		memcpy(&found, entry + i, sizeof(found));
		if (!found)
			memcpy(entry + i, &substitute, sizeof(substitute));
	}
}

static int open_library(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library)
		return cudaErrorInsufficientDriver;
	vgpu_driver_resolve(&rt_driver, library);
	fill_gaps();
	if (rt_driver.cuDriverGetVersion(&driver_version) ||
		driver_version / 1000 < rt_version / 1000)
		return cudaErrorInsufficientDriver;
	return rt_driver.cuInit(0);
}

static void open_once(void)
{
	open_error = open_library();
}

int rt_driver_open(void)
{
	pthread_once(&once, open_once);
	return open_error;
}

int rt_driver_version(int *versionp)
{
	if (!versionp)
		return cudaErrorInvalidValue;
	rt_driver_open();
	*versionp = driver_version;
	return 0;
}
