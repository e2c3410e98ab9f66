/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our runtime on drivers that are old, broken or incomplete: FAKE_… as in fake/fake.c
 */

#include <dlfcn.h>
#include <stdlib.h>

#include "test.h"

#include "runtime/types.h"

const bool test_keeps_descriptors = true;

static void *find(const char *version, const char *name)
{
	void *library = dlopen(getenv(version), RTLD_NOW);
	void *found = library ? dlsym(library, name) : NULL;

	check(found);
	return found;
}

/* cudaGetLastError() starts the runtime and says whether that failed. */
static int start(const char *version)
{
	return ((int (*)(void))find(version, "cudaGetLastError"))();
}

static int call(const char *version, const char *name, void *p)
{
	return ((int (*)(void *, size_t))find(version, name))(p, 16);
}

TEST(a_driver_of_the_same_major_version_is_enough)
{
	int version = 0;

	setenv("FAKE_VERSION", "12000", 1);
	check_eq(start("RUNTIME_12"), 0);
	check_eq(start("RUNTIME_13"), cudaErrorInsufficientDriver);
	/* The failure lasts. */
	setenv("FAKE_VERSION", "13000", 1);
	check_eq(start("RUNTIME_13"), cudaErrorInsufficientDriver);
	check_eq(call("RUNTIME_13", "cudaDriverGetVersion", &version), 0);
	check_eq(version, 12000);
}

TEST(errors_of_the_start_are_passed_on)
{
	void *p;
	int n = 7;

	setenv("FAKE_INIT", "100", 1);
	check_eq(start("RUNTIME_13"), cudaErrorNoDevice);
	check_eq(call("RUNTIME_13", "cudaMalloc", &p), cudaErrorNoDevice);
	check_eq(call("RUNTIME_13", "cudaGetDeviceCount", &n), cudaErrorNoDevice);
	check_eq(start("RUNTIME_13"), cudaErrorNoDevice);
	setenv("FAKE_INIT", "0", 1);
	setenv("FAKE_COUNT", "999", 1);
	check_eq(start("RUNTIME_12"), cudaErrorInitializationError);
}

TEST(a_context_that_cannot_be_made_is_an_unavailable_device)
{
	setenv("FAKE_RETAIN", "304", 1);
	check_eq(call("RUNTIME_13", "cudaFree", NULL), cudaErrorDevicesUnavailable);
	/* Until it can: nothing is latched. */
	setenv("FAKE_RETAIN", "2", 1);
	check_eq(call("RUNTIME_13", "cudaFree", NULL), cudaErrorMemoryAllocation);
	setenv("FAKE_RETAIN", "0", 1);
	check_eq(call("RUNTIME_13", "cudaFree", NULL), 0);
}

TEST(a_function_that_the_driver_lacks_is_an_error)
{
	void *p = &p;

	check_eq(call("RUNTIME_13", "cudaFree", NULL), 0);
	check_eq(call("RUNTIME_13", "cudaMalloc", &p), cudaErrorCallRequiresNewerDriver);
	check_eq(start("RUNTIME_13"), cudaErrorCallRequiresNewerDriver);
	check_eq(start("RUNTIME_13"), 0);
}
