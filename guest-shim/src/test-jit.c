/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the compiler
 */

#include <string.h>

#include "test.h"

#include "jit.h"

static struct shim_jit jit;

TEST(numbers_travel_and_buffers_stay)
{
	char log[32];
	CUjit_option options[] = { CU_JIT_MAX_REGISTERS, CU_JIT_INFO_LOG_BUFFER,
		CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { (void *)64, log, (void *)sizeof(log) };

	check_eq(shim_jit_prepare(&jit, options, values, 3), CUDA_SUCCESS);
	check_eq(jit.n_sent, 2);
	check_eq(jit.sent_options[0], CU_JIT_MAX_REGISTERS);
	check_eq(jit.sent_values[0], 64);
	check_eq(jit.sent_options[1], CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
}

TEST(a_log_is_cut_to_the_buffer_and_its_size_told)
{
	char log[4] = "xxx";
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_ERROR_LOG_BUFFER };
	void *values[] = { (void *)sizeof(log), log };
	ProtobufCBinaryData none = {}, text = { 5, (uint8_t *)"abcde" };

	check_eq(shim_jit_prepare(&jit, options, values, 2), CUDA_SUCCESS);
	shim_jit_finish(&jit, 0, &none, &text);
	check_str(log, "abc");
	check_eq((uintptr_t)values[0], 3);
}

TEST(the_time_comes_back_in_place_of_the_value)
{
	CUjit_option option = CU_JIT_WALL_TIME;
	void *value = NULL;
	float time;

	check_eq(shim_jit_prepare(&jit, &option, &value, 1), CUDA_SUCCESS);
	shim_jit_finish(&jit, 1.5f, &(ProtobufCBinaryData){}, &(ProtobufCBinaryData){});
	memcpy(&time, &value, sizeof(time));
	check(time == 1.5f);
}

TEST(what_names_the_programs_memory_is_refused)
{
	CUjit_option option = CU_JIT_GLOBAL_SYMBOL_NAMES;
	void *value = NULL;

	check_eq(shim_jit_prepare(&jit, &option, &value, 1), CUDA_ERROR_NOT_SUPPORTED);
	option = CU_JIT_NUM_OPTIONS;
	check_eq(shim_jit_prepare(&jit, &option, &value, 1), CUDA_ERROR_INVALID_VALUE);
	check_eq(shim_jit_prepare(&jit, NULL, NULL, 1), CUDA_ERROR_INVALID_VALUE);
}
