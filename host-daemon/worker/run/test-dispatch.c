/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From frames to the driver: what an honest guest gets, and what a hostile one does not
 *
 * The fake driver ends the test when anything reaches it that is not its own.
 */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "test.h"
#include "vgpu/launch.h"
#include "vgpu/load.h"
#include "worker/run/dispatch.h"
#include "worker/run/dispatcher.h"

static struct fixture fixture;

#define REPLY VGPU_FRAME_REPLY

static const ProtobufCMessage *reply_as(const ProtobufCMessageDescriptor *descriptor)
{
	const ProtobufCMessage *reply = protobuf_c_message_unpack(
		descriptor, NULL, fixture.reply_size, fixture.reply);

	check(reply);
	return reply;
}

static void begin(void)
{
	fixture_init(&fixture);
	fixture_enter(&fixture, 0);
}

static uint64_t alloc(uint64_t size)
{
	Vgpu__CuMemAllocV2Request request = VGPU__CU_MEM_ALLOC_V2_REQUEST__INIT;
	Vgpu__CuMemAllocV2Reply *reply;
	uint64_t address;

	request.bytesize = size;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuMemAlloc_v2, REPLY, &request.base),
		0);
	if (fixture.result)
		return 0;
	reply = (void *)reply_as(&vgpu__cu_mem_alloc_v2_reply__descriptor);
	address = reply->dptr;
	protobuf_c_message_free_unpacked(&reply->base, NULL);
	return address;
}

static CUresult release(uint64_t address)
{
	Vgpu__CuMemFreeV2Request request = VGPU__CU_MEM_FREE_V2_REQUEST__INIT;

	request.dptr = address;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuMemFree_v2, REPLY, &request.base),
		0);
	return fixture.result;
}

static CUresult copy(uint64_t to, uint64_t from, uint64_t size, uint64_t stream)
{
	Vgpu__CuMemcpyHtoDAsyncV2Request request =
		VGPU__CU_MEMCPY_HTO_DASYNC_V2_REQUEST__INIT;

	request.dst_device = to;
	request.src_host = from;
	request.byte_count = size;
	request.h_stream = stream;
	request.word = UINT32_MAX;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuMemcpyHtoDAsync_v2, REPLY,
			 &request.base),
		0);
	return fixture.result;
}

static uint64_t make_stream(void)
{
	Vgpu__CuStreamCreateWithPriorityRequest request =
		VGPU__CU_STREAM_CREATE_WITH_PRIORITY_REQUEST__INIT;
	Vgpu__CuStreamCreateWithPriorityReply *reply;
	uint64_t handle;

	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuStreamCreateWithPriority, REPLY,
			 &request.base),
		0);
	check_eq(fixture.result, 0);
	reply = (void *)reply_as(&vgpu__cu_stream_create_with_priority_reply__descriptor);
	handle = reply->ph_stream;
	protobuf_c_message_free_unpacked(&reply->base, NULL);
	return handle;
}

static void destroy_stream(uint64_t handle)
{
	Vgpu__CuStreamDestroyV2Request request = VGPU__CU_STREAM_DESTROY_V2_REQUEST__INIT;

	request.h_stream = handle;
	check_eq(fixture_call(
			 &fixture, 0, VGPU_CALL_cuStreamDestroy_v2, REPLY, &request.base),
		0);
}

static void bind_word(uint64_t stream, uint32_t word)
{
	Vgpu__VgpuStreamWordRequest request = VGPU__VGPU_STREAM_WORD_REQUEST__INIT;

	request.stream = stream;
	request.word = word;
	check_eq(
		fixture_call(&fixture, 0, VGPU_CALL_vgpuStreamWord, REPLY, &request.base),
		0);
}

/* The block of a load with one image and nothing else. */
static ProtobufCBinaryData load_bytes(uint64_t address, uint64_t size)
{
	static struct vgpu_load load;

	load = (struct vgpu_load){ .n_images = 1, .first = { { address, size } } };
	return (ProtobufCBinaryData){ vgpu_load_size(&load), (uint8_t *)&load };
}

/* Loads a module from the arena. Returns: its handle, or 0. */
static uint64_t load_module(uint64_t address, uint64_t size)
{
	Vgpu__CuModuleLoadDataExRequest request =
		VGPU__CU_MODULE_LOAD_DATA_EX_REQUEST__INIT;
	Vgpu__CuModuleLoadDataExReply *reply;
	uint64_t handle;

	request.load = load_bytes(address, size);
	check_eq(fixture_call(
			 &fixture, 0, VGPU_CALL_cuModuleLoadDataEx, REPLY, &request.base),
		0);
	if (fixture.result)
		return 0;
	reply = (void *)reply_as(&vgpu__cu_module_load_data_ex_reply__descriptor);
	handle = reply->module;
	protobuf_c_message_free_unpacked(&reply->base, NULL);
	return handle;
}

static uint64_t get_function(uint64_t module, char *name)
{
	Vgpu__CuModuleGetFunctionRequest request =
		VGPU__CU_MODULE_GET_FUNCTION_REQUEST__INIT;
	Vgpu__CuModuleGetFunctionReply *reply;
	uint64_t handle;

	request.hmod = module;
	request.name = name;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuModuleGetFunction, REPLY,
			 &request.base),
		0);
	if (fixture.result)
		return 0;
	reply = (void *)reply_as(&vgpu__cu_module_get_function_reply__descriptor);
	handle = reply->hfunc;
	protobuf_c_message_free_unpacked(&reply->base, NULL);
	return handle;
}

static int launch(uint64_t function, uint64_t stream, uint32_t n_params, uint32_t flags)
{
	Vgpu__CuLaunchKernelRequest request = VGPU__CU_LAUNCH_KERNEL_REQUEST__INIT;
	struct vgpu_launch_dims dims = { .axis = { { 1, 32 }, { 1, 1 }, { 1, 1 } } };
	uint8_t params[256] = {};

	request.f = function;
	request.h_stream = stream;
	request.dims = (ProtobufCBinaryData){ sizeof(dims), (uint8_t *)&dims };
	request.params = (ProtobufCBinaryData){ n_params, params };
	return fixture_call(&fixture, 0, VGPU_CALL_cuLaunchKernel, flags, &request.base);
}

static uint64_t ready_function(void)
{
	uint64_t module;

	memcpy((void *)(uintptr_t)fixture.arena, "code", 5);
	module = load_module(fixture.arena, 5);
	check(module);
	return get_function(module, "kernel");
}

TEST(a_guest_allocates_copies_and_frees)
{
	uint64_t address;

	begin();
	address = alloc(4096);
	check(address >= fixture.window.base + FIXTURE_SHM_SIZE);
	check_eq(copy(address, fixture.arena, 4096, 0), CUDA_SUCCESS);
	check_eq(fake_counts.copies, 1);
	check_eq(fixture.stats.copies_h2d, 1);
	check_eq(fixture.stats.bytes_h2d, 4096);
	check_eq(release(address), CUDA_SUCCESS);
	check_eq(fixture.stats.device_memory, 0);
	fixture_deinit(&fixture);
}

/* Between pieces the dispatcher keeps its processor, which the driver may need to copy
 * more. */
TEST(a_short_copy_may_be_a_piece_and_a_long_one_is_none)
{
	const uint64_t size = 1u << 20;
	uint64_t address;

	begin();
	address = alloc(size);
	check_eq(copy(address, fixture.arena, 4096, 0), CUDA_SUCCESS);
	check(fixture.session.runner.copies_piece);
	check_eq(copy(address, fixture.arena, size, 0), CUDA_SUCCESS);
	check(!fixture.session.runner.copies_piece);
	check_eq(release(address), CUDA_SUCCESS);
	fixture_deinit(&fixture);
}

TEST(a_copy_must_lie_in_one_allocation_and_in_the_arena)
{
	uint64_t a, b, arena_end, outside = (uintptr_t)&fixture;

	begin();
	arena_end = fixture.arena + FIXTURE_N_EXTENTS * (uint64_t)VGPU_EXTENT_SIZE;
	a = alloc(4096);
	b = alloc(4096);
	check_eq(b, a + 4096);
	check_eq(copy(a, fixture.arena, 8192, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy(a + 4095, fixture.arena, 2, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy(a - 1, fixture.arena, 1, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy(a, fixture.arena - 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy(a, arena_end - 1, 2, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy(a, arena_end, 1, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy(a, outside, 8, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy(outside, fixture.arena, 8, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy(a, fixture.arena, UINT64_MAX, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy(UINT64_MAX, fixture.arena, 1, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(
		copy(a, (uintptr_t)fixture.session.area, 8, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(fake_counts.copies, 0);
	check_eq(copy(a, arena_end - 4096, 4096, 0), CUDA_SUCCESS);
	check_eq(release(a), CUDA_SUCCESS);
	check_eq(copy(a, fixture.arena, 1, 0), CUDA_ERROR_INVALID_VALUE);
	fixture_deinit(&fixture);
}

TEST(a_quota_limits_the_memory_of_a_guest)
{
	uint64_t address;

	begin();
	fixture_limit_memory(&fixture, 8192);
	address = alloc(8000);
	check(address);
	check_eq(alloc(1000), 0);
	check_eq(fixture.result, CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(alloc(UINT64_MAX), 0);
	check_eq(fixture.result, CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(release(address), CUDA_SUCCESS);
	check(alloc(1000));
	fixture_deinit(&fixture);
}

TEST(memory_of_a_variable_that_has_gone_is_given_out_again)
{
	struct range variable = { .size = 64, .kind = RANGE_GLOBAL };

	begin();
	variable.start = alloc(256);
	check_eq(release(variable.start), CUDA_SUCCESS);
	check_eq(ranges_add(&fixture.session.ranges, &variable), 0);
	check_eq(alloc(256), variable.start);
	fixture_deinit(&fixture);
}

TEST(memory_is_freed_once_and_by_its_start)
{
	uint64_t address;

	begin();
	address = alloc(4096);
	check_eq(release(address + 1), CUDA_ERROR_INVALID_VALUE);
	check_eq(release(0), CUDA_SUCCESS);
	check_eq(release(address), CUDA_SUCCESS);
	check_eq(release(address), CUDA_ERROR_INVALID_VALUE);
	fixture_deinit(&fixture);
}

TEST(handles_that_are_stale_foreign_or_of_another_kind_are_refused)
{
	uint64_t stream, function;

	begin();
	stream = make_stream();
	function = ready_function();
	check_eq(launch(function, stream, FAKE_PARAM_SIZE, REPLY), 0);
	check_eq(fixture.result, CUDA_SUCCESS);
	check_eq(launch(stream, stream, FAKE_PARAM_SIZE, REPLY), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_HANDLE);
	check_eq(launch(function, function, FAKE_PARAM_SIZE, REPLY), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_HANDLE);
	check_eq(launch(function + 1, stream, FAKE_PARAM_SIZE, REPLY), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_HANDLE);
	check_eq(launch((uintptr_t)&fixture, stream, FAKE_PARAM_SIZE, REPLY), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_HANDLE);
	destroy_stream(stream);
	check_eq(fixture.result, CUDA_SUCCESS);
	check_eq(launch(function, stream, FAKE_PARAM_SIZE, REPLY), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_HANDLE);
	destroy_stream(stream);
	check_eq(fixture.result, CUDA_ERROR_INVALID_HANDLE);
	destroy_stream(0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_HANDLE);
	check_eq(fake_counts.launches, 1);
	fixture_deinit(&fixture);
}

TEST(a_launch_needs_parameters_of_the_kernels_size)
{
	uint64_t function;

	begin();
	function = ready_function();
	check_eq(launch(function, 0, FAKE_PARAM_SIZE - 1, REPLY), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_VALUE);
	check_eq(launch(function, 0, FAKE_PARAM_SIZE + 1, REPLY), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_VALUE);
	check_eq(launch(function, 0, 0, REPLY), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_VALUE);
	check_eq(fake_counts.launches, 0);
	check_eq(launch(function, 0, FAKE_PARAM_SIZE, REPLY), 0);
	check_eq(fixture.result, CUDA_SUCCESS);
	check_eq(fixture.stats.launches, 1);
	fixture_deinit(&fixture);
}

TEST(a_function_keeps_its_handle_and_loses_it_with_its_module)
{
	uint64_t module, function;
	Vgpu__CuModuleUnloadRequest request = VGPU__CU_MODULE_UNLOAD_REQUEST__INIT;

	begin();
	memcpy((void *)(uintptr_t)fixture.arena, "code", 5);
	module = load_module(fixture.arena, 5);
	function = get_function(module, "kernel");
	check(function && get_function(module, "kernel") == function);
	check_eq(get_function(module, ""), 0);
	check_eq(fixture.result, CUDA_ERROR_NOT_FOUND);
	request.hmod = module;
	check_eq(
		fixture_call(&fixture, 0, VGPU_CALL_cuModuleUnload, REPLY, &request.base),
		0);
	check_eq(fixture.result, CUDA_SUCCESS);
	check_eq(launch(function, 0, FAKE_PARAM_SIZE, REPLY), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_HANDLE);
	check_eq(get_function(module, "kernel"), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_HANDLE);
	fixture_deinit(&fixture);
}

TEST(an_image_must_lie_in_the_arena_and_be_bounded)
{
	begin();
	check_eq(load_module(fixture.arena - 8, 16), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_VALUE);
	check_eq(load_module((uintptr_t)&fixture, 16), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_VALUE);
	check_eq(load_module(fixture.arena, 0), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_VALUE);
	check_eq(load_module(fixture.arena, UINT64_MAX), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_VALUE);
	/* A text without an end, up to the last byte of the arena. */
	memset((void *)(uintptr_t)fixture.arena, 'x', 4 * VGPU_EXTENT_SIZE);
	check(load_module(fixture.arena, 4 * VGPU_EXTENT_SIZE));
	check_eq(fixture.session.image_bytes, 0);
	fixture_deinit(&fixture);
}

TEST(a_call_without_a_context_is_refused)
{
	Vgpu__VgpuLaneContextRequest request = VGPU__VGPU_LANE_CONTEXT_REQUEST__INIT;

	fixture_init(&fixture);
	check_eq(alloc(16), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_CONTEXT);
	request.context = vgpu_handle_make(VGPU_HANDLE_CONTEXT, 77, 1);
	check_eq(fixture_call(
			 &fixture, 0, VGPU_CALL_vgpuLaneContext, REPLY, &request.base),
		0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_CONTEXT);
	check_eq(alloc(16), 0);
	check_eq(fixture.result, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	fixture_deinit(&fixture);
}

TEST(a_reset_takes_all_that_lives_in_the_context)
{
	Vgpu__CuDevicePrimaryCtxResetV2Request request =
		VGPU__CU_DEVICE_PRIMARY_CTX_RESET_V2_REQUEST__INIT;
	uint64_t address, stream, function;

	begin();
	address = alloc(4096);
	stream = make_stream();
	function = ready_function();
	check(fake_counts.registered > 0);
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuDevicePrimaryCtxReset_v2, REPLY,
			 &request.base),
		0);
	check_eq(fixture.result, CUDA_SUCCESS);
	check_eq(fake_counts.registered, 0);
	check_eq(fake_counts.releases, 1);
	check_eq(fixture.stats.device_memory, 0);
	check_eq(launch(function, 0, FAKE_PARAM_SIZE, REPLY), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_HANDLE);
	check_eq(copy(address, fixture.arena, 1, stream), CUDA_ERROR_INVALID_HANDLE);
	check_eq(copy(address, fixture.arena, 1, 0), CUDA_ERROR_INVALID_VALUE);
	check(alloc(4096));
	check_eq(fake_counts.retains, 2);
	check(fake_counts.registered > 0);
	fixture_deinit(&fixture);
}

TEST(each_guest_thread_has_its_own_stream_and_loses_it_when_it_ends)
{
	Vgpu__VgpuLaneExitRequest request = VGPU__VGPU_LANE_EXIT_REQUEST__INIT;
	uint64_t address;

	begin();
	address = alloc(4096);
	check_eq(copy(address, fixture.arena, 16, 2), CUDA_SUCCESS);
	check_eq(copy(address, fixture.arena, 16, 2), CUDA_SUCCESS);
	check_eq(fake_counts.streams_made, 1);
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_vgpuLaneExit, 0, &request.base), 0);
	check_eq(fake_counts.streams_gone, 1);
	fixture_enter(&fixture, 0);
	check_eq(copy(address, fixture.arena, 16, 2), CUDA_SUCCESS);
	check_eq(fake_counts.streams_made, 2);
	fixture_deinit(&fixture);
}

TEST(a_stream_marks_its_word_after_every_64_calls)
{
	uint64_t function;
	int i;

	begin();
	function = ready_function();
	bind_word(0, 17);
	for (i = 0; i < 200; i++)
		check_eq(launch(function, 0, FAKE_PARAM_SIZE, 0), 0);
	check_eq(fake_counts.launches, 200);
	check_eq(fake_counts.word_writes, 3);
	check_eq(fake_counts.last_word_value, 192);
	bind_word(0, VGPU_WORDS_MAX);
	check_eq(fixture.result, CUDA_ERROR_INVALID_VALUE);
	fixture_deinit(&fixture);
}

TEST(no_mark_is_made_while_a_lane_has_calls_to_issue)
{
	uint64_t function;
	int i;

	begin();
	function = ready_function();
	bind_word(0, 17);
	marks_lane_begins(&fixture.session);
	for (i = 0; i < 100; i++)
		check_eq(launch(function, 0, FAKE_PARAM_SIZE, 0), 0);
	check_eq(fake_counts.word_writes, 0);
	marks_lane_done(&fixture.session);
	marks_make_due(&fixture.session, &fixture.session.runner);
	check_eq(fake_counts.word_writes, 1);
	check_eq(fake_counts.last_word_value, 100);
	fixture_deinit(&fixture);
}

TEST(a_copy_that_is_refused_still_gives_its_staging_back)
{
	Vgpu__CuMemcpyHtoDAsyncV2Request request =
		VGPU__CU_MEMCPY_HTO_DASYNC_V2_REQUEST__INIT;

	begin();
	request.dst_device = 12345;
	request.src_host = fixture.arena;
	request.byte_count = 8;
	request.word = 5;
	request.word_value = 99;
	check_eq(fixture_call(
			 &fixture, 0, VGPU_CALL_cuMemcpyHtoDAsync_v2, 0, &request.base),
		0);
	check_eq(fake_counts.copies, 0);
	check_eq(fake_counts.word_writes, 1);
	check_eq(fake_counts.last_word_value, 99);
	check_eq(fixture.stats.refused_async, 1);
	fixture_deinit(&fixture);
}

static uint64_t read_word(uint32_t word)
{
	const struct vgpu_word *words =
		(const struct vgpu_word *)(fixture.session.area + VGPU_WORDS_OFF);

	return __atomic_load_n(&words[word].value, __ATOMIC_ACQUIRE);
}

TEST(a_copy_without_a_stream_still_gives_its_staging_back)
{
	Vgpu__CuMemcpyDtoHAsyncV2Request linear =
		VGPU__CU_MEMCPY_DTO_HASYNC_V2_REQUEST__INIT;
	Vgpu__CuMemcpy3DAsyncV2Request box = VGPU__CU_MEMCPY3_DASYNC_V2_REQUEST__INIT;
	uint64_t stream;

	begin();
	stream = make_stream();
	destroy_stream(stream);
	linear.src_device = alloc(4096);
	linear.dst_host = fixture.arena;
	linear.byte_count = 8;
	linear.h_stream = box.h_stream = stream;
	linear.word = 5;
	linear.word_value = 99;
	check_eq(fixture_call(
			 &fixture, 0, VGPU_CALL_cuMemcpyDtoHAsync_v2, 0, &linear.base),
		0);
	check_eq(read_word(5), 99);
	box.word = 6;
	box.word_value = 77;
	check_eq(
		fixture_call(&fixture, 0, VGPU_CALL_cuMemcpy3DAsync_v2, 0, &box.base), 0);
	check_eq(read_word(6), 77);
	check_eq(fake_counts.copies, 0);
	check_eq(fixture.stats.refused_async, 2);
	/* No word is far enough away to be written outside of the channel. */
	box.word = VGPU_WORDS_MAX;
	check_eq(
		fixture_call(&fixture, 0, VGPU_CALL_cuMemcpy3DAsync_v2, 0, &box.base), 0);
	fixture_deinit(&fixture);
}

TEST(a_copy_without_a_context_still_gives_its_staging_back)
{
	Vgpu__VgpuLaneContextRequest enter = VGPU__VGPU_LANE_CONTEXT_REQUEST__INIT;
	Vgpu__CuMemcpyHtoDAsyncV2Request request =
		VGPU__CU_MEMCPY_HTO_DASYNC_V2_REQUEST__INIT;

	begin();
	request.dst_device = alloc(4096);
	request.src_host = fixture.arena;
	request.byte_count = 8;
	request.word = 5;
	request.word_value = 99;
	enter.context = vgpu_handle_make(VGPU_HANDLE_CONTEXT, 100, 1);
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_vgpuLaneContext, 0, &enter.base), 0);
	check_eq(fixture_call(
			 &fixture, 0, VGPU_CALL_cuMemcpyHtoDAsync_v2, 0, &request.base),
		0);
	check_eq(read_word(5), 99);
	check_eq(fake_counts.copies, 0);
	fixture_deinit(&fixture);
}

static CUresult copy_box(uint64_t to, uint64_t pitch, uint64_t rows, uint64_t depth)
{
	Vgpu__CuMemcpy3DAsyncV2Request request = VGPU__CU_MEMCPY3_DASYNC_V2_REQUEST__INIT;

	request.dst = to;
	request.dst_pitch = pitch;
	request.dst_rows = rows;
	request.src = fixture.arena;
	request.src_pitch = 16;
	request.src_rows = 4;
	request.width = 16;
	request.height = 4;
	request.depth = depth;
	request.word = UINT32_MAX;
	check_eq(fixture_call(
			 &fixture, 0, VGPU_CALL_cuMemcpy3DAsync_v2, REPLY, &request.base),
		0);
	return fixture.result;
}

TEST(boxes_are_checked_before_the_driver_sees_them)
{
	uint64_t address;

	begin();
	address = alloc(16 * 4 * 4);
	check_eq(copy_box(address, 16, 4, 4), CUDA_SUCCESS);
	check_eq(copy_box(address, 16, 4, 5), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy_box(address, 17, 4, 4), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy_box(address, 15, 4, 4), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy_box(address, 16, 3, 4), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy_box(address, 16, UINT64_MAX, 2), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy_box(address, UINT64_MAX / 4, 4, 2), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy_box(address, 16, 4, UINT64_MAX), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy_box(address + 1, 16, 4, 4), CUDA_ERROR_INVALID_VALUE);
	check_eq(fake_counts.copies, 1);
	fixture_deinit(&fixture);
}

TEST(copies_between_contexts_name_contexts_of_the_guest)
{
	Vgpu__CuMemcpyPeerAsyncRequest request = VGPU__CU_MEMCPY_PEER_ASYNC_REQUEST__INIT;

	begin();
	request.dst_device = request.src_device = alloc(64);
	request.byte_count = 64;
	request.dst_context = fixture.context;
	request.src_context = 0x7f0000001000;
	check_eq(fixture_call(
			 &fixture, 0, VGPU_CALL_cuMemcpyPeerAsync, REPLY, &request.base),
		0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_CONTEXT);
	request.src_context = fixture.context;
	check_eq(fixture_call(
			 &fixture, 0, VGPU_CALL_cuMemcpyPeerAsync, REPLY, &request.base),
		0);
	check_eq(fixture.result, CUDA_SUCCESS);
	check_eq(fake_counts.copies, 1);
	fixture_deinit(&fixture);
}

TEST(a_refusal_that_is_answered_leaves_the_word_to_the_guest)
{
	Vgpu__CuMemcpyHtoDAsyncV2Request request =
		VGPU__CU_MEMCPY_HTO_DASYNC_V2_REQUEST__INIT;

	begin();
	request.dst_device = 12345;
	request.src_host = fixture.arena;
	request.byte_count = 8;
	request.word = 5;
	request.word_value = 99;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuMemcpyHtoDAsync_v2, REPLY,
			 &request.base),
		0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_VALUE);
	check_eq(fake_counts.word_writes, 0);
	fixture_deinit(&fixture);
}

TEST(a_call_is_counted_before_its_caller_hears_of_it)
{
	const struct vgpu_frame frame = {
		.size = sizeof(frame),
		.call = VGPU_CALL_cuLaunchKernel,
		.flags = REPLY,
	};
	struct session *session = &fixture.session;
	struct call call;

	begin();
	bind_word(0, 17);
	call_init(&call, session, &session->runner, session->lanes[0], fixture.context,
		&frame);
	check_eq(object_find_stream(&call, 0, &call.stream), CUDA_SUCCESS);
	check_eq(call_finish(&call, NULL, CUDA_SUCCESS), 0);
	check_eq(mark_issued(call.stream), 1);
	fixture_deinit(&fixture);
}

static CUresult library_module(CUmodule *module, CUfunction function)
{
	*module = (CUmodule)(uintptr_t)0x1000;
	return CUDA_SUCCESS;
}

/* Loads a library from the arena. Returns: the handle of a kernel of it. */
static uint64_t library_kernel(void)
{
	Vgpu__CuLibraryLoadDataRequest load = VGPU__CU_LIBRARY_LOAD_DATA_REQUEST__INIT;
	Vgpu__CuLibraryGetKernelRequest get = VGPU__CU_LIBRARY_GET_KERNEL_REQUEST__INIT;
	Vgpu__CuLibraryGetKernelReply *got;
	Vgpu__CuLibraryLoadDataReply *loaded;
	uint64_t kernel;

	memcpy((void *)(uintptr_t)fixture.arena, "code", 5);
	load.load = load_bytes(fixture.arena, 5);
	check_eq(
		fixture_call(&fixture, 0, VGPU_CALL_cuLibraryLoadData, REPLY, &load.base),
		0);
	loaded = (void *)reply_as(&vgpu__cu_library_load_data_reply__descriptor);
	get.library = loaded->library;
	get.name = (char *)"kernel";
	protobuf_c_message_free_unpacked(&loaded->base, NULL);
	check_eq(
		fixture_call(&fixture, 0, VGPU_CALL_cuLibraryGetKernel, REPLY, &get.base),
		0);
	got = (void *)reply_as(&vgpu__cu_library_get_kernel_reply__descriptor);
	kernel = got->p_kernel;
	protobuf_c_message_free_unpacked(&got->base, NULL);
	return kernel;
}

TEST(the_module_of_a_library_is_not_unloaded_whichever_way_it_was_found)
{
	Vgpu__CuFuncGetModuleRequest ask = VGPU__CU_FUNC_GET_MODULE_REQUEST__INIT;
	Vgpu__CuModuleUnloadRequest unload = VGPU__CU_MODULE_UNLOAD_REQUEST__INIT;
	Vgpu__CuFuncGetModuleReply *reply;

	begin();
	fixture.driver.table.cuFuncGetModule = library_module;
	ask.hfunc = library_kernel();
	check(ask.hfunc);
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuFuncGetModule, REPLY, &ask.base),
		0);
	check_eq(fixture.result, CUDA_SUCCESS);
	reply = (void *)reply_as(&vgpu__cu_func_get_module_reply__descriptor);
	unload.hmod = reply->hmod;
	protobuf_c_message_free_unpacked(&reply->base, NULL);
	check(unload.hmod);
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuModuleUnload, REPLY, &unload.base),
		0);
	check_eq(fixture.result, CUDA_ERROR_NOT_PERMITTED);
	fixture_deinit(&fixture);
}

/* Unknown fields are kept in the memory of the call, so a message can leave its handler
 * as little as it likes. */
TEST(a_call_that_has_no_memory_left_is_refused)
{
	Vgpu__VgpuDeviceInfoRequest device = VGPU__VGPU_DEVICE_INFO_REQUEST__INIT;
	Vgpu__VgpuDeviceInfoReply device_reply = VGPU__VGPU_DEVICE_INFO_REPLY__INIT;
	Vgpu__VgpuFunctionInfoRequest info = VGPU__VGPU_FUNCTION_INFO_REQUEST__INIT;
	Vgpu__VgpuFunctionInfoReply info_reply = VGPU__VGPU_FUNCTION_INFO_REPLY__INIT;
	const struct vgpu_frame frame = { .size = sizeof(frame) };
	struct session *session = &fixture.session;
	struct call call;

	begin();
	info.function = ready_function();
	call_init(&call, session, &session->runner, session->lanes[0], fixture.context,
		&frame);
	check(call_alloc(&call, SCRATCH_SIZE));
	check_eq(handle_vgpuDeviceInfo(&call, &device, &device_reply),
		CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(handle_vgpuFunctionInfo(&call, &info, &info_reply),
		CUDA_ERROR_OUT_OF_MEMORY);
	fixture_deinit(&fixture);
}

TEST(a_fault_of_asynchronous_work_is_counted_in_the_control_page)
{
	uint64_t function;

	begin();
	function = ready_function();
	fake_counts.next_launch = CUDA_ERROR_ILLEGAL_ADDRESS;
	check_eq(launch(function, 0, FAKE_PARAM_SIZE, 0), 0);
	check_eq(context_find(&fixture.session, fixture.context)->fault,
		CUDA_ERROR_ILLEGAL_ADDRESS);
	check_eq(session_control(&fixture.session)->n_faults, 1);
	/* The first fault remains, and is published once. */
	fake_counts.next_launch = CUDA_ERROR_MISALIGNED_ADDRESS;
	check_eq(launch(function, 0, FAKE_PARAM_SIZE, 0), 0);
	check_eq(context_find(&fixture.session, fixture.context)->fault,
		CUDA_ERROR_ILLEGAL_ADDRESS);
	check_eq(session_control(&fixture.session)->n_faults, 1);
	check_eq(fixture.stats.refused_async, 0);
	fixture_deinit(&fixture);
}

TEST(a_refusal_that_is_no_fault_is_counted)
{
	uint64_t function;

	begin();
	function = ready_function();
	fake_counts.next_launch = CUDA_ERROR_INVALID_VALUE;
	check_eq(launch(function, 0, FAKE_PARAM_SIZE, 0), 0);
	check_eq(session_control(&fixture.session)->n_faults, 0);
	check_eq(fixture.stats.refused_async, 1);
	fixture_deinit(&fixture);
}

static CUresult launch_with(uint64_t function, const void *attributes, size_t size)
{
	Vgpu__CuLaunchKernelExRequest request = VGPU__CU_LAUNCH_KERNEL_EX_REQUEST__INIT;
	struct vgpu_launch_dims dims = { .axis = { { 1, 32 }, { 1, 1 }, { 1, 1 } } };
	uint8_t params[FAKE_PARAM_SIZE] = {};

	dims.flags = VGPU_LAUNCH_COOPERATIVE;
	request.f = function;
	request.dims = (ProtobufCBinaryData){ sizeof(dims), (uint8_t *)&dims };
	request.params = (ProtobufCBinaryData){ sizeof(params), params };
	request.attributes = (ProtobufCBinaryData){ size, (uint8_t *)attributes };
	check_eq(fixture_call(
			 &fixture, 0, VGPU_CALL_cuLaunchKernelEx, REPLY, &request.base),
		0);
	return fixture.result;
}

TEST(attributes_of_a_launch_are_checked_and_its_events_translated)
{
	Vgpu__CuEventCreateRequest request = VGPU__CU_EVENT_CREATE_REQUEST__INIT;
	CUlaunchAttribute attributes[33] = {};
	CUlaunchAttribute *event = &attributes[1];
	const size_t one = sizeof(attributes[0]);
	uint64_t function;

	begin();
	function = ready_function();
	request.event = vgpu_handle_make(VGPU_HANDLE_EVENT, 9, 4);
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuEventCreate, REPLY, &request.base),
		0);
	for (int i = 0; i < 33; i++)
		attributes[i].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
	event->id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
	event->value.launchCompletionEvent.event = (CUevent)(uintptr_t)request.event;
	check_eq(launch_with(function, attributes, 2 * one), CUDA_SUCCESS);
	check_eq(fake_counts.launches, 1);
	/* The flag is one more. */
	check_eq(fake_counts.attributes, 3);
	check_eq(launch_with(function, attributes, 32 * one), CUDA_SUCCESS);
	check_eq(launch_with(function, NULL, 0), CUDA_SUCCESS);
	check_eq(fake_counts.launches, 3);

	check_eq(launch_with(function, attributes, 33 * one), CUDA_ERROR_INVALID_VALUE);
	check_eq(
		launch_with(function, attributes, 2 * one - 1), CUDA_ERROR_INVALID_VALUE);
	event->value.launchCompletionEvent.event = (CUevent)(uintptr_t)function;
	check_eq(launch_with(function, attributes, 2 * one), CUDA_ERROR_INVALID_HANDLE);
	event->value.launchCompletionEvent.event = NULL;
	check_eq(launch_with(function, attributes, 2 * one), CUDA_ERROR_INVALID_HANDLE);
	event->id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
	check_eq(launch_with(function, attributes, 2 * one), CUDA_ERROR_INVALID_VALUE);
	event->id = (CUlaunchAttributeID)-1;
	check_eq(launch_with(function, attributes, 2 * one), CUDA_ERROR_INVALID_VALUE);
	event->id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
	event->value.accessPolicyWindow.num_bytes = 1;
	check_eq(launch_with(function, attributes, 2 * one), CUDA_ERROR_INVALID_VALUE);
	check_eq(fake_counts.launches, 3);
	fixture_deinit(&fixture);
}

TEST(a_guest_chooses_the_handle_of_an_event)
{
	Vgpu__CuEventCreateRequest request = VGPU__CU_EVENT_CREATE_REQUEST__INIT;
	Vgpu__CuEventRecordRequest record = VGPU__CU_EVENT_RECORD_REQUEST__INIT;

	begin();
	request.event = vgpu_handle_make(VGPU_HANDLE_EVENT, 9, 4);
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuEventCreate, REPLY, &request.base),
		0);
	check_eq(fixture.result, CUDA_SUCCESS);
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuEventCreate, REPLY, &request.base),
		0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_HANDLE);
	record.h_event = request.event;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuEventRecord, REPLY, &record.base),
		0);
	check_eq(fixture.result, CUDA_SUCCESS);
	record.h_event = vgpu_handle_make(VGPU_HANDLE_EVENT, 9, 5);
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuEventRecord, REPLY, &record.base),
		0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_HANDLE);
	request.event = 12;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_cuEventCreate, REPLY, &request.base),
		0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_HANDLE);
	fixture_deinit(&fixture);
}

TEST(a_message_that_does_not_unpack_breaks_the_protocol)
{
	static const uint8_t truncated[] = { 0x1a, 0xff }, wild[] = { 0xff, 0xff, 0xff };

	begin();
	check_eq(fixture_call_bytes(&fixture, 0, VGPU_CALL_cuLaunchKernel, REPLY,
			 truncated, sizeof(truncated)),
		CALL_E_VIOLATION);
	check_str(fixture.why, "a message does not unpack");
	check_eq(fixture_call_bytes(
			 &fixture, 0, VGPU_CALL_cuMemAlloc_v2, REPLY, wild, sizeof(wild)),
		CALL_E_VIOLATION);
	check_eq(fixture_call_bytes(
			 &fixture, 0, VGPU_CALL_cuModuleGetFunction, REPLY, "", 0),
		0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_HANDLE);
	fixture_deinit(&fixture);
}

TEST(a_message_that_unpacks_to_too_much_breaks_the_protocol)
{
	static uint8_t body[60000];
	size_t i;

	begin();
	/* Unknown fields: two bytes of message each, and a structure in memory. */
	for (i = 0; i < sizeof(body); i += 3)
		memcpy(body + i, "\xf8\x07", 2);
	check_eq(fixture_call_bytes(
			 &fixture, 0, VGPU_CALL_cuMemAlloc_v2, REPLY, body, sizeof(body)),
		CALL_E_VIOLATION);
	fixture_deinit(&fixture);
}

static int dispatch(uint32_t call, uint32_t lane, uint32_t flags)
{
	struct vgpu_frame frame = {
		.size = sizeof(frame),
		.call = call,
		.lane = lane,
		.flags = flags,
	};

	return dispatch_frame(&fixture.session, &frame, &fixture.why);
}

TEST(frames_without_a_call_a_lane_or_a_needed_reply_break_the_protocol)
{
	begin();
	check_eq(dispatch(0, 0, REPLY), CALL_E_VIOLATION);
	check_eq(dispatch(_VGPU_CALL_N, 0, 0), CALL_E_VIOLATION);
	check_eq(dispatch(UINT16_MAX, 0, 0), CALL_E_VIOLATION);
	check_eq(dispatch(VGPU_CALL_cuGraphAddHostNode, 0, 0), CALL_E_VIOLATION);
	check_eq(dispatch(VGPU_CALL_vgpuHello, VGPU_SLOTS_MAX, REPLY), CALL_E_VIOLATION);
	check_eq(dispatch(VGPU_CALL_vgpuHello, UINT32_MAX, REPLY), CALL_E_VIOLATION);
	check_eq(dispatch(VGPU_CALL_cuMemAlloc_v2, 0, 0), CALL_E_VIOLATION);
	check_eq(dispatch(VGPU_CALL_vgpuHello, 0, REPLY), 0);
	fixture_deinit(&fixture);
}

/* The whole loop: a ring with one bad frame ends the session with its reason. */
TEST(a_broken_ring_ends_the_session_and_tells_why)
{
	struct vgpu_channel_control *control;
	struct control_message message;
	int sockets[2], status;
	pid_t pid;

	begin();
	check_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	fixture.session.control = sockets[1];
	control = session_control(&fixture.session);
	pid = fork();
	check(pid >= 0);
	if (!pid) {
		control->tail = 5;
		dispatcher_main(&fixture.session);
	}
	check_eq(waitpid(pid, &status, 0), pid);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	check_eq(recv(sockets[0], &message, sizeof(message), 0), sizeof(message));
	check_eq(message.type, CONTROL_ENDED);
	check_eq(message.ended.reason, VGPU_REASON_PROTOCOL);
	close(sockets[0]);
	close(sockets[1]);
	fixture_deinit(&fixture);
}

TEST(device_attributes_pass_but_for_what_is_not_remoted)
{
	/* The fake driver says 7 to each up to 140, and does not know the others. */
	static const struct {
		CUdevice_attribute attribute;
		int value;
	} expected[] = {
		{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 7 },
		{ CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 7 },
		{ CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1 },
		{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, 7 },
		{ CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 7 },
		{ CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0 },
		{ CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 7 },
		{ CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 7 },
		{ CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, 1 },
		{ CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, -1 },
		{ CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0 },
	};
	Vgpu__VgpuDeviceInfoRequest request = VGPU__VGPU_DEVICE_INFO_REQUEST__INIT;
	Vgpu__VgpuDeviceInfoReply *reply;

	begin();
	check_eq(
		fixture_call(&fixture, 0, VGPU_CALL_vgpuDeviceInfo, REPLY, &request.base),
		0);
	check_eq(fixture.result, CUDA_SUCCESS);
	reply = (void *)reply_as(&vgpu__vgpu_device_info_reply__descriptor);
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		int id = expected[i].attribute;

		check_eq(reply->attributes[id], expected[i].value);
		check(reply->known.data[id / 8] & 1 << id % 8);
	}
	protobuf_c_message_free_unpacked(&reply->base, NULL);
	fixture_deinit(&fixture);
}
