/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words that the device writes, with and without a device that can
 */

#include "fixture.h"
#include "test.h"
#include "worker/base/session.h"
#include "worker/wait/words.h"

static struct fixture fixture;

/* The driver's state. */
static int can;
static CUresult next_result;
static CUhostFn function;
static void *function_data;

static CUresult attribute(int *value, CUdevice_attribute which, CUdevice device)
{
	*value = which == CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS ? can : 7;
	return CUDA_SUCCESS;
}

static CUresult write_value(
	CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
	if (next_result == CUDA_SUCCESS)
		*(uint64_t *)(uintptr_t)address = value;
	return next_result;
}

static CUresult launch_function(CUstream stream, CUhostFn fn, void *data)
{
	if (next_result == CUDA_SUCCESS) {
		function = fn;
		function_data = data;
	}
	return next_result;
}

static void begin(int is_able)
{
	struct vgpu_driver *table = &fixture.driver.table;

	fixture_init(&fixture);
	can = is_able;
	table->cuDeviceGetAttribute = attribute;
	table->cuStreamWriteValue64_v2 = write_value;
	table->cuLaunchHostFunc = launch_function;
	words_init(&fixture.session);
}

static uint64_t word(uint32_t number)
{
	return ((struct vgpu_word *)(fixture.session.area + VGPU_WORDS_OFF))[number]
		.value;
}

static uint64_t record(uint32_t slot)
{
	return ((uint64_t *)(fixture.session.area + VGPU_RECORDS_OFF))[slot];
}

TEST(a_device_that_can_writes_words_itself)
{
	begin(1);
	check(fixture.session.writes_words);
	check_eq(word_write(&fixture.session, NULL, 5, 42), CUDA_SUCCESS);
	check_eq(word(5), 42);
	check_eq(word_write_record(&fixture.session, NULL, 1ull << 32 | 9), CUDA_SUCCESS);
	check_eq(record(vgpu_record_slot(1ull << 32 | 9)), 1ull << 32 | 9);
	check(!function);
	fixture_deinit(&fixture);
}

TEST(for_others_a_host_function_writes_when_the_stream_is_there)
{
	begin(0);
	check(!fixture.session.writes_words);
	check_eq(word_write(&fixture.session, NULL, 5, 42), CUDA_SUCCESS);
	check(function);
	check_eq(word(5), 0);
	function(function_data);
	check_eq(word(5), 42);
	fixture_deinit(&fixture);
}

TEST(a_driver_without_either_refuses)
{
	begin(0);
	fixture.driver.table.cuLaunchHostFunc = NULL;
	check_eq(word_write(&fixture.session, NULL, 5, 42), CUDA_ERROR_NOT_SUPPORTED);
	check_eq(word(5), 0);
	fixture_deinit(&fixture);
}

TEST(what_the_driver_refuses_is_returned)
{
	next_result = CUDA_ERROR_LAUNCH_FAILED;
	begin(1);
	check_eq(word_write(&fixture.session, NULL, 5, 42), CUDA_ERROR_LAUNCH_FAILED);
	fixture_deinit(&fixture);
	begin(0);
	check_eq(word_write(&fixture.session, NULL, 5, 42), CUDA_ERROR_LAUNCH_FAILED);
	check(!function);
	fixture_deinit(&fixture);
}

/* The numbers come from the guest. */
TEST(words_that_do_not_exist_are_not_written)
{
	begin(1);
	check_eq(word_write(&fixture.session, NULL, VGPU_WORDS_MAX, 1),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(word_write(&fixture.session, NULL, UINT32_MAX, 1),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(word_write(&fixture.session, NULL, VGPU_WORDS_MAX - 1, 1), CUDA_SUCCESS);
	check_eq(word(VGPU_WORDS_MAX - 1), 1);
	word_write_now(&fixture.session, UINT32_MAX, 1);
	word_write_now(&fixture.session, 6, 3);
	check_eq(word(6), 3);
	word_write_record_now(&fixture.session, 1ull << 32 | 3);
	check_eq(record(vgpu_record_slot(1ull << 32 | 3)), 1ull << 32 | 3);
	fixture_deinit(&fixture);
}
