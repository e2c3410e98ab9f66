/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the compiler
 */

#include <string.h>

#include "test.h"

#include "code/jit.h"

static struct vgpu_load load;
static struct shim_jit jit;

TEST(numbers_travel_and_buffers_stay)
{
	char log[32];
	CUjit_option options[] = { CU_JIT_MAX_REGISTERS, CU_JIT_INFO_LOG_BUFFER,
		CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { (void *)64, log, (void *)sizeof(log) };

	check_eq(shim_jit_prepare(&jit, options, values, 3, &load), CUDA_SUCCESS);
	check_eq(load.n_options, 1);
	check_eq(load.options[0].option, CU_JIT_MAX_REGISTERS);
	check_eq(load.options[0].value, 64);
	check_eq(load.info_size, sizeof(log));
	check_eq(load.error_size, 0);
}

TEST(a_log_is_truncated_to_the_buffer_and_its_size_returned)
{
	char info[8] = "xxxxxxx", error[4] = "xxx";
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER,
		CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { (void *)sizeof(error), error, info, (void *)sizeof(info) };
	struct vgpu_load_result result = { .info_size = 3, .error_size = 5 };

	check_eq(shim_jit_prepare(&jit, options, values, 4, &load), CUDA_SUCCESS);
	shim_jit_finish(&jit, &load, &result, "one\0\0\0\0\0abcde");
	check_str(info, "one");
	check_eq((uintptr_t)values[3], 3);
	check_str(error, "abc");
	check_eq((uintptr_t)values[0], 3);
}

TEST(numbers_come_back_in_place_of_the_values)
{
	CUjit_option options[] = { CU_JIT_WALL_TIME, CU_JIT_THREADS_PER_BLOCK };
	struct vgpu_load_result result = { .wall_time = 1.5f, .threads_per_block = 96 };
	void *values[] = { NULL, (void *)64 };
	float time;

	check_eq(shim_jit_prepare(&jit, options, values, 2, &load), CUDA_SUCCESS);
	shim_jit_finish(&jit, &load, &result, NULL);
	memcpy(&time, &values[0], sizeof(time));
	check(time == 1.5f);
	check_eq((uintptr_t)values[1], 96);
}

TEST(a_log_without_a_buffer_or_a_size_is_not_asked_for)
{
	CUjit_option options[] = { CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_ERROR_LOG_BUFFER };
	char log[4] = "xxx";
	void *values[] = { (void *)64, log };

	check_eq(shim_jit_prepare(&jit, options, values, 2, &load), CUDA_SUCCESS);
	check_eq(load.info_size, 0);
	check_eq(load.error_size, 0);
	shim_jit_finish(&jit, &load, &(struct vgpu_load_result){}, NULL);
	check_str(log, "xxx");
}

TEST(options_with_pointers_are_refused)
{
	CUjit_option option = CU_JIT_GLOBAL_SYMBOL_NAMES;
	void *value = NULL;

	check_eq(shim_jit_prepare(&jit, &option, &value, 1, &load),
		CUDA_ERROR_NOT_SUPPORTED);
	option = CU_JIT_NUM_OPTIONS;
	check_eq(shim_jit_prepare(&jit, &option, &value, 1, &load),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(shim_jit_prepare(&jit, NULL, NULL, 1, &load), CUDA_ERROR_INVALID_VALUE);
}
