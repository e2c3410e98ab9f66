/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays and texture objects in the worker: what is charged, what reaches the driver
 *
 * The driver here makes arrays of any size and counts them. Texture objects get small
 * numbers, in each context anew, as NVIDIA's driver gives them.
 */

#include <string.h>

#include "driver/driver.h"
#include "fixture.h"
#include "test.h"
#include "vgpu/array-box.h"
#include "vgpu/g-calls.h"
#include "worker/base/context.h"
#include "worker/handle/context-end.h"
#include "worker/memory/array.h"
#include "worker/memory/device-memory.h"

#define REPLY VGPU_FRAME_REPLY

static struct fixture fixture;
static unsigned int n_arrays, n_textures, n_copies;
static uint8_t driver_arrays[64];

static CUresult make_array(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	check(n_arrays < sizeof(driver_arrays));
	*array = (CUarray)&driver_arrays[n_arrays++];
	return CUDA_SUCCESS;
}

static CUresult end_array(CUarray array)
{
	check((uint8_t *)array >= driver_arrays &&
		(uint8_t *)array < driver_arrays + sizeof(driver_arrays));
	n_arrays--;
	return CUDA_SUCCESS;
}

static CUresult copy_box(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	n_copies++;
	return CUDA_SUCCESS;
}

static CUresult make_texture(CUtexObject *number, const CUDA_RESOURCE_DESC *resource,
	const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view)
{
	*number = ++n_textures;
	return CUDA_SUCCESS;
}

static CUresult end_texture(CUtexObject number)
{
	check(number && number <= n_textures);
	return CUDA_SUCCESS;
}

static void begin(uint64_t quota)
{
	n_arrays = n_textures = n_copies = 0;
	fixture_init(&fixture);
	fixture_enter(&fixture, 0);
	fixture_limit_memory(&fixture, quota);
	fixture.driver.table.cuArray3DCreate_v2 = make_array;
	fixture.driver.table.cuArrayDestroy = end_array;
	fixture.driver.table.cuMemcpy3DAsync_v2 = copy_box;
	fixture.driver.table.cuTexObjectCreate = make_texture;
	fixture.driver.table.cuTexObjectDestroy = end_texture;
}

/* Return: the handle, 0 where it was refused. */
static uint64_t create(uint64_t width, uint64_t height, uint64_t depth)
{
	Vgpu__CuArray3DCreateV2Request request = VGPU__CU_ARRAY3_DCREATE_V2_REQUEST__INIT;
	Vgpu__CuArray3DCreateV2Reply *reply;
	uint64_t handle;

	request.width = width;
	request.height = height;
	request.depth = depth;
	request.format = CU_AD_FORMAT_FLOAT;
	request.num_channels = 4;
	check_eq(fixture_call(
			 &fixture, 0, VGPU_CALL_cuArray3DCreate_v2, REPLY, &request.base),
		0);
	if (fixture.result)
		return 0;
	reply = (void *)protobuf_c_message_unpack(
		&vgpu__cu_array3_dcreate_v2_reply__descriptor, NULL, fixture.reply_size,
		fixture.reply);
	check(reply);
	handle = reply->p_handle;
	protobuf_c_message_free_unpacked(&reply->base, NULL);
	return handle;
}

static CUresult destroy(uint64_t handle)
{
	Vgpu__CuArrayDestroyRequest request = VGPU__CU_ARRAY_DESTROY_REQUEST__INIT;

	request.h_array = handle;
	check_eq(
		fixture_call(&fixture, 0, VGPU_CALL_cuArrayDestroy, REPLY, &request.base),
		0);
	return fixture.result;
}

TEST(sizes_follow_shapes_and_do_not_overflow)
{
	CUDA_ARRAY3D_DESCRIPTOR d = { 100, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 };
	uint64_t size;

	check(array_size(&d, 1, &size));
	/* No allocation takes less. */
	check_eq(size, 512);
	d.Width = 513;
	check(array_size(&d, 1, &size));
	check_eq(size, 1024);
	d.Width = 100;
	d.Height = 9;
	check(array_size(&d, 1, &size));
	check_eq(size, 128 * 16);
	/* Layers stay as many in all levels, slices do not. */
	d = (CUDA_ARRAY3D_DESCRIPTOR){ 64, 8, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 };
	check(array_size(&d, 2, &size));
	check_eq(size, 512 * 4 + 512 * 2);
	d.Flags = CUDA_ARRAY3D_LAYERED;
	check(array_size(&d, 2, &size));
	check_eq(size, 512 * 8);
	d = (CUDA_ARRAY3D_DESCRIPTOR){ SIZE_MAX, 1, 1, CU_AD_FORMAT_FLOAT, 4, 0 };
	check(!array_size(&d, 1, &size));
	d = (CUDA_ARRAY3D_DESCRIPTOR){ 1 << 20, 1 << 20, 1 << 20, CU_AD_FORMAT_FLOAT, 4,
		0 };
	check(!array_size(&d, 1, &size));
	d.Depth = 1;
	check(array_size(&d, 1, &size));
	check(!array_size(&d, 0, &size));
	check(!array_size(&d, UINT32_MAX, &size));
}

TEST(a_quota_bounds_arrays)
{
	uint64_t array, other;

	begin(1u << 20);
	array = create(256, 128, 0);
	check(array);
	other = create(256, 64, 0);
	check(other);
	check_eq(create(256, 128, 0), 0);
	check_eq(fixture.result, CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(create(1 << 20, 1 << 20, 1 << 20), 0);
	check_eq(fixture.result, CUDA_ERROR_INVALID_VALUE);
	check_eq(n_arrays, 2);
	check_eq(destroy(array), CUDA_SUCCESS);
	check_eq(destroy(array), CUDA_ERROR_INVALID_HANDLE);
	check(create(256, 128, 0));
	fixture_deinit(&fixture);
}

TEST(the_end_of_a_context_releases_the_memory_of_its_arrays)
{
	begin(1u << 20);
	check(create(256, 256, 0));
	check_eq(fixture.session.memory->used, 1u << 20);
	check_eq(context_reset(&fixture.session, &fixture.session.runner,
			 context_find(&fixture.session, fixture.context)),
		CUDA_SUCCESS);
	check_eq(fixture.session.memory->used, 0);
	fixture_deinit(&fixture);
}

static CUresult copy(uint64_t array, uint64_t x, uint64_t width, uint64_t address)
{
	Vgpu__VgpuCopyArrayRequest request = VGPU__VGPU_COPY_ARRAY_REQUEST__INIT;
	struct vgpu_array_box box = {
		.to = { .x = x },
		.from = { .address = address, .pitch = width, .rows = 1 },
		.width = width,
		.height = 1,
		.depth = 1,
	};

	request.dst_array = array;
	request.box.data = (uint8_t *)&box;
	request.box.len = sizeof(box);
	request.word = UINT32_MAX;
	check_eq(fixture_call(&fixture, 0, VGPU_CALL_vgpuCopyArray, REPLY, &request.base),
		0);
	return fixture.result;
}

TEST(copies_stay_within_the_array_and_the_guests_memory)
{
	uint64_t array;

	begin(0);
	array = create(64, 0, 0);
	check_eq(copy(array, 0, 1024, fixture.arena), CUDA_SUCCESS);
	check_eq(n_copies, 1);
	check_eq(copy(array, 16, 1024, fixture.arena), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy(array, UINT64_MAX - 15, 16, fixture.arena),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(copy(array, 0, 1024, fixture.arena - 16), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy(array, 0, 1024, (uintptr_t)&fixture), CUDA_ERROR_INVALID_VALUE);
	check_eq(copy(array + 1, 0, 1024, fixture.arena), CUDA_ERROR_INVALID_HANDLE);
	check_eq(copy(0, 0, 1024, fixture.arena), CUDA_ERROR_INVALID_VALUE);
	check_eq(n_copies, 1);
	fixture_deinit(&fixture);
}

static CUresult texture(const CUDA_RESOURCE_DESC *resource, size_t size)
{
	Vgpu__CuTexObjectCreateRequest request = VGPU__CU_TEX_OBJECT_CREATE_REQUEST__INIT;
	CUDA_TEXTURE_DESC description = {};

	request.resource.data = (uint8_t *)resource;
	request.resource.len = size;
	request.texture.data = (uint8_t *)&description;
	request.texture.len = sizeof(description);
	check_eq(fixture_call(
			 &fixture, 0, VGPU_CALL_cuTexObjectCreate, REPLY, &request.base),
		0);
	return fixture.result;
}

static CUresult end(uint64_t number)
{
	Vgpu__CuTexObjectDestroyRequest request =
		VGPU__CU_TEX_OBJECT_DESTROY_REQUEST__INIT;

	request.tex_object = number;
	check_eq(fixture_call(
			 &fixture, 0, VGPU_CALL_cuTexObjectDestroy, REPLY, &request.base),
		0);
	return fixture.result;
}

TEST(textures_are_over_what_is_the_guests_and_end_by_their_numbers)
{
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_LINEAR };

	begin(0);
	resource.res.linear.format = CU_AD_FORMAT_FLOAT;
	resource.res.linear.numChannels = 1;
	resource.res.linear.devPtr = fixture.arena;
	resource.res.linear.sizeInBytes = 4096;
	check_eq(texture(&resource, sizeof(resource)), CUDA_SUCCESS);
	check_eq(texture(&resource, sizeof(resource) - 1), CUDA_ERROR_INVALID_VALUE);
	resource.res.linear.devPtr = (uintptr_t)&fixture;
	check_eq(texture(&resource, sizeof(resource)), CUDA_ERROR_INVALID_VALUE);
	resource.resType = CU_RESOURCE_TYPE_PITCH2D;
	memset(&resource.res, 0xff, sizeof(resource.res));
	check_eq(texture(&resource, sizeof(resource)), CUDA_ERROR_INVALID_VALUE);
	/* The driver's own handle of an array is no handle of a guest. */
	resource.resType = CU_RESOURCE_TYPE_ARRAY;
	resource.res.array.hArray = (CUarray)&driver_arrays[0];
	check_eq(texture(&resource, sizeof(resource)), CUDA_ERROR_INVALID_HANDLE);
	check_eq(n_textures, 1);
	check_eq(end(2), CUDA_ERROR_INVALID_VALUE);
	check_eq(end(0), CUDA_ERROR_INVALID_VALUE);
	check_eq(end(1), CUDA_SUCCESS);
	check_eq(end(1), CUDA_ERROR_INVALID_VALUE);
	fixture_deinit(&fixture);
}
