/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: settings of core dumps
 */

#include "e2e.h"

static void set_global_bool(CUcoredumpSettings attrib, unsigned char value, CUresult want)
{
	size_t size = 1;
	CUresult result = cuCoredumpSetAttributeGlobal(attrib, &value, &size);

	check_eq(result, want);
}

static int get_bool(CUcoredumpSettings attrib)
{
	unsigned char value = 7;
	size_t size = 1;

	check_ok(cuCoredumpGetAttribute(attrib, &value, &size));
	check_eq(size, 1);
	return value;
}

TEST(no_core_dump_can_be_enabled)
{
	unsigned char on = 1;
	size_t size = 1;

	fixture_new();
	check_eq(get_bool(CU_COREDUMP_ENABLE_ON_EXCEPTION), 0);
	set_global_bool(CU_COREDUMP_ENABLE_ON_EXCEPTION, 0, CUDA_SUCCESS);
	set_global_bool(CU_COREDUMP_ENABLE_ON_EXCEPTION, 1, CUDA_ERROR_NOT_SUPPORTED);
	set_global_bool(CU_COREDUMP_ENABLE_USER_TRIGGER, 1, CUDA_ERROR_NOT_SUPPORTED);
	check_cu(cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size),
		CUDA_ERROR_NOT_SUPPORTED);
	check_eq(get_bool(CU_COREDUMP_ENABLE_ON_EXCEPTION), 0);
}

TEST(a_context_has_the_settings_of_the_process_until_it_has_its_own)
{
	unsigned int flags = CU_COREDUMP_SKIP_LOCAL_MEMORY, seen = 0;
	struct fixture fixture = fixture_new();
	char name[1024] = "dump.%p", found[1024];
	unsigned char off = 0;
	CUcontext other;
	size_t size = strlen(name) + 1;

	check_eq(get_bool(CU_COREDUMP_TRIGGER_HOST), 1);
	set_global_bool(CU_COREDUMP_TRIGGER_HOST, 0, CUDA_SUCCESS);
	check_eq(get_bool(CU_COREDUMP_TRIGGER_HOST), 0);
	check_ok(cuCoredumpSetAttribute(CU_COREDUMP_FILE, name, &size));
	size = sizeof(flags);
	check_ok(cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &size));
	/* From here on it has its own. */
	set_global_bool(CU_COREDUMP_TRIGGER_HOST, 1, CUDA_SUCCESS);
	check_eq(get_bool(CU_COREDUMP_TRIGGER_HOST), 0);
	size = 1;
	check_ok(cuCoredumpSetAttribute(CU_COREDUMP_LIGHTWEIGHT, &off, &size));
	size = sizeof(found);
	check_ok(cuCoredumpGetAttribute(CU_COREDUMP_FILE, found, &size));
	check(!strcmp(found, name));
	check_eq(size, strlen(name) + 1);
	size = sizeof(seen);
	check_ok(cuCoredumpGetAttribute(CU_COREDUMP_GENERATION_FLAGS, &seen, &size));
	check_eq(seen, flags);
	size = sizeof(found);
	check_ok(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, found, &size));
	check(!strncmp(found, "core.cuda.", 10));
	check_ok(cuCtxCreate(&other, NULL, 0, fixture.device));
	check_eq(get_bool(CU_COREDUMP_TRIGGER_HOST), 1);
	check_ok(cuCtxDestroy(other));
}

TEST(sizes_and_settings_are_checked)
{
	char name[2048], small;
	unsigned int flags = 1u << 30;
	size_t size = 0;

	fixture_new();
	check_ok(cuCoredumpGetAttributeGlobal(CU_COREDUMP_PIPE, NULL, &size));
	check(size > strlen("corepipe.cuda."));
	size = 1;
	check_cu(cuCoredumpGetAttributeGlobal(CU_COREDUMP_PIPE, &small, &size),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuCoredumpGetAttributeGlobal(CU_COREDUMP_PIPE, &small, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuCoredumpGetAttributeGlobal(CU_COREDUMP_MAX, &small, &size),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuCoredumpSetAttributeGlobal(CU_COREDUMP_MAX, &small, &size),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, NULL, &size),
		CUDA_ERROR_INVALID_VALUE);
	memset(name, 'x', sizeof(name));
	size = sizeof(name);
	check_cu(cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, name, &size),
		CUDA_ERROR_INVALID_VALUE);
	size = 1023;
	check_ok(cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, name, &size));
	size = sizeof(name);
	check_ok(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, name, &size));
	check_eq(size, 1024);
	check_eq(name[1023], 0);
	size = sizeof(flags);
	check_cu(
		cuCoredumpSetAttributeGlobal(CU_COREDUMP_GENERATION_FLAGS, &flags, &size),
		CUDA_ERROR_INVALID_VALUE);
	/* The pipe is one for all contexts. */
	check_cu(cuCoredumpSetAttribute(CU_COREDUMP_PIPE, name, &size),
		CUDA_ERROR_NOT_PERMITTED);
}
