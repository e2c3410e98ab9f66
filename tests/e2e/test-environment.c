/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: variables of the environment that change how calls behave
 */

#include "e2e.h"

/* Long enough to be seen running, even where every call waits for its answer. */
#define MANY_ROUNDS 200000

TEST(a_blocking_launch_returns_when_the_kernel_has_ended)
{
	struct fixture fixture;
	CUfunction step;
	CUdeviceptr x;
	unsigned int *word;

	check_eq(setenv("CUDA_LAUNCH_BLOCKING", "1", 1), 0);
	fixture = fixture_new();
	step = fixture_function(&fixture, "step");
	check_ok(cuMemHostAlloc((void **)&word, 4, CU_MEMHOSTALLOC_DEVICEMAP));
	check_ok(cuMemHostGetDevicePointer(&x, word, 0));
	*word = 1;
	for (int i = 1; i <= 3; i++) {
		check_ok(launch_step(step, x, MANY_ROUNDS, NULL));
		check_eq(__atomic_load_n(word, __ATOMIC_ACQUIRE),
			stepped(1, i * MANY_ROUNDS));
		check_ok(launch_step(step, x, 0, CU_STREAM_PER_THREAD));
		check_ok(cuStreamQuery(CU_STREAM_PER_THREAD));
	}
}

TEST(a_blocking_launch_returns_the_error_of_its_kernel)
{
	CUdeviceptr nowhere = 16, somewhere;
	void *bad[] = { &nowhere }, *good[] = { &somewhere };
	struct fixture fixture;
	CUfunction store;

	check_eq(setenv("CUDA_LAUNCH_BLOCKING", "1", 1), 0);
	fixture = fixture_new();
	store = fixture_function(&fixture, "store_at");
	check_ok(cuMemAlloc(&somewhere, 4));
	check_ok(cuLaunchKernel(store, 2, 1, 1, 32, 1, 1, 0, NULL, good, NULL));
	check_cu(cuLaunchKernel(store, 2, 1, 1, 32, 1, 1, 0, NULL, bad, NULL),
		CUDA_ERROR_ILLEGAL_ADDRESS);
}

static CUmoduleLoadingMode loading_mode(const char *wanted)
{
	CUmoduleLoadingMode mode = 0;

	if (wanted)
		check_eq(setenv("CUDA_MODULE_LOADING", wanted, 1), 0);
	check_ok(cuInit(0));
	check_ok(cuModuleGetLoadingMode(&mode));
	return mode;
}

TEST(loading_is_lazy_unless_it_is_said)
{
	check_eq(loading_mode(NULL), CU_MODULE_LAZY_LOADING);
}

TEST(loading_is_eager_where_it_is_said_at_the_start)
{
	CUmoduleLoadingMode mode = 0;

	check_eq(loading_mode("EAGER"), CU_MODULE_EAGER_LOADING);
	check_eq(setenv("CUDA_MODULE_LOADING", "LAZY", 1), 0);
	check_ok(cuModuleGetLoadingMode(&mode));
	check_eq(mode, CU_MODULE_EAGER_LOADING);
	check_cu(cuModuleGetLoadingMode(NULL), CUDA_ERROR_INVALID_VALUE);
}

TEST(loading_is_lazy_where_the_default_is_said)
{
	check_eq(loading_mode("DEFAULT"), CU_MODULE_LAZY_LOADING);
}

TEST(hidden_devices_are_none)
{
	check_eq(setenv("CUDA_VISIBLE_DEVICES", "-1", 1), 0);
	check_cu(cuInit(0), CUDA_ERROR_NO_DEVICE);
}
