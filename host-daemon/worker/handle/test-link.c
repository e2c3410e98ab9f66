/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links: a hostile guest's links stay within its own memory and budget
 *
 * The driver here does not link: it checks its input, writes a log and returns an image
 * of its own.
 */

#include <string.h>

#include "driver/driver.h"
#include "fixture.h"
#include "test.h"
#include "vgpu/g-calls.h"
#include "worker/base/reason.h"
#include "worker/code/images.h"
#include "worker/memory/arena.h"

static struct fixture fixture;
static char image[64];
static char *error_log;
static unsigned int n_alive;
static CUresult add_result;

static CUresult create(
	unsigned int n, CUjit_option *options, void **values, CUlinkState *statep)
{
	for (unsigned int i = 0; i < n; i++)
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
			error_log = values[i];
	n_alive++;
	*statep = (CUlinkState)(uintptr_t)0x5000;
	return CUDA_SUCCESS;
}

static CUresult add(CUlinkState state, CUjitInputType type, void *data, size_t size,
	const char *name, unsigned int n, CUjit_option *options, void **values)
{
	check_eq((uintptr_t)state, 0x5000);
	check(!arena_covers(&fixture.session, (uintptr_t)data, 1));
	check_eq(((char *)data)[size], 0);
	if (error_log)
		strcpy(error_log, "said");
	return add_result;
}

static CUresult complete(CUlinkState state, void **imagep, size_t *sizep)
{
	memset(image, 'i', sizeof(image));
	*imagep = image;
	*sizep = sizeof(image);
	return CUDA_SUCCESS;
}

static CUresult destroy(CUlinkState state)
{
	n_alive--;
	return CUDA_SUCCESS;
}

static CUresult call(uint32_t id, const ProtobufCMessage *request)
{
	check_eq(fixture_call(&fixture, 0, id, VGPU_FRAME_REPLY, request), 0);
	return fixture.result;
}

static ProtobufCBinaryData bytes(struct vgpu_load *load)
{
	return (ProtobufCBinaryData){ vgpu_load_size(load), (uint8_t *)load };
}

static uint64_t link_new(uint32_t error_size)
{
	Vgpu__CuLinkCreateV2Request request = VGPU__CU_LINK_CREATE_V2_REQUEST__INIT;
	struct vgpu_load load = { .error_size = error_size };
	Vgpu__CuLinkCreateV2Reply *reply;
	uint64_t handle;

	request.load = bytes(&load);
	if (call(VGPU_CALL_cuLinkCreate_v2, &request.base))
		return 0;
	reply = vgpu__cu_link_create_v2_reply__unpack(
		NULL, fixture.reply_size, fixture.reply);
	check(reply);
	handle = reply->state_out;
	vgpu__cu_link_create_v2_reply__free_unpacked(reply, NULL);
	return handle;
}

static CUresult link_add(uint64_t link, struct vgpu_load load, int type)
{
	Vgpu__CuLinkAddDataV2Request request = VGPU__CU_LINK_ADD_DATA_V2_REQUEST__INIT;

	request.state = link;
	request.type = type;
	request.name = (char *)"name";
	request.load = bytes(&load);
	return call(VGPU_CALL_cuLinkAddData_v2, &request.base);
}

static CUresult link_piece(
	uint64_t link, uint64_t destination, uint64_t room, uint64_t offset)
{
	Vgpu__CuLinkCompleteRequest request = VGPU__CU_LINK_COMPLETE_REQUEST__INIT;
	struct vgpu_load load = {};

	request.state = link;
	request.load = bytes(&load);
	request.destination = destination;
	request.room = room;
	request.offset = offset;
	return call(VGPU_CALL_cuLinkComplete, &request.base);
}

static CUresult link_destroy(uint64_t link)
{
	Vgpu__CuLinkDestroyRequest request = VGPU__CU_LINK_DESTROY_REQUEST__INIT;

	request.state = link;
	return call(VGPU_CALL_cuLinkDestroy, &request.base);
}

static void begin(void)
{
	fixture_init(&fixture);
	fixture_enter(&fixture, 0);
	fixture.driver.table.cuLinkCreate_v2 = create;
	fixture.driver.table.cuLinkAddData_v2 = add;
	fixture.driver.table.cuLinkComplete = complete;
	fixture.driver.table.cuLinkDestroy = destroy;
	memset((void *)(uintptr_t)fixture.arena, 'x', 4096);
}

TEST(inputs_are_copied_out_of_the_arena_and_charged)
{
	struct vgpu_load load = { .n_images = 1 };
	uint64_t link;

	begin();
	link = link_new(0);
	load.first[0] = (struct vgpu_load_image){ fixture.arena, 4096 };
	check_eq(link_add(link, load, CU_JIT_INPUT_PTX), CUDA_SUCCESS);
	check_eq(fixture.session.totals.image_bytes, 4096);
	load.first[0].address = fixture.arena - 8;
	check_eq(link_add(link, load, CU_JIT_INPUT_PTX), CUDA_ERROR_INVALID_VALUE);
	load.first[0].size = UINT64_MAX;
	check_eq(link_add(link, load, CU_JIT_INPUT_PTX), CUDA_ERROR_INVALID_VALUE);
	load.first[0] = (struct vgpu_load_image){ fixture.arena, 16 };
	check_eq(link_add(link, load, 99), CUDA_ERROR_INVALID_VALUE);
	check_eq(link_add(link, load, CU_JIT_INPUT_LIBRARY), CUDA_ERROR_INVALID_IMAGE);
	load.n_images = 2;
	check_eq(link_add(link, load, CU_JIT_INPUT_PTX), CUDA_ERROR_INVALID_VALUE);
	fixture.session.totals.image_bytes_max = 4096;
	load.n_images = 1;
	check_eq(link_add(link, load, CU_JIT_INPUT_PTX), CUDA_ERROR_OUT_OF_MEMORY);
	/* No copy remains, whatever the result; inputs that do not fit are not copied. */
	check_eq(fixture.session.image_bytes, 0);
	fixture.session.totals.image_bytes_max = 8192;
	fixture.session.image_bytes = IMAGES_SESSION_MAX;
	check_eq(link_add(link, load, CU_JIT_INPUT_PTX), CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(fixture.session.image_bytes, IMAGES_SESSION_MAX);
	check_eq(fixture.session.totals.image_bytes, 4096);
	fixture.session.image_bytes = 0;
	check_eq(link_destroy(link), CUDA_SUCCESS);
	check_eq(fixture.session.totals.image_bytes, 0);
	check_eq(n_alive, 0);
	check_eq(link_destroy(link), CUDA_ERROR_INVALID_HANDLE);
	check_eq(link_add(link, load, CU_JIT_INPUT_PTX), CUDA_ERROR_INVALID_HANDLE);
	fixture_deinit(&fixture);
}

TEST(logs_go_to_the_arena_and_nowhere_else)
{
	char *log;
	struct vgpu_load load = { .n_images = 1, .error_size = 64 };
	uint64_t link;

	begin();
	log = (char *)(uintptr_t)fixture.arena + 8192;
	load.log_address = fixture.arena + 8192;
	load.first[0] = (struct vgpu_load_image){ fixture.arena, 16 };
	check_eq(link_new(VGPU_LOAD_LOG_MAX + 1), 0);
	link = link_new(64);
	check_eq(link_add(link, load, CU_JIT_INPUT_PTX), CUDA_SUCCESS);
	check_str(log, "said");
	strcpy(log, "here");
	load.error_size = 4096;
	check_eq(link_add(link, load, CU_JIT_INPUT_PTX), CUDA_SUCCESS);
	check_str(log, "here");
	load.error_size = 64;
	load.log_address = fixture.arena + FIXTURE_N_EXTENTS * VGPU_EXTENT_SIZE - 8;
	check_eq(link_add(link, load, CU_JIT_INPUT_PTX), CUDA_SUCCESS);
	check_eq(link_destroy(link), CUDA_SUCCESS);
	check_eq(fixture.session.image_bytes, 0);
	fixture_deinit(&fixture);
}

TEST(the_error_log_of_the_linker_is_the_reason_with_and_without_a_log)
{
	struct vgpu_load load = { .n_images = 1 };
	char text[VGPU_REASON_TEXT_MAX];
	uint64_t link;

	begin();
	load.first[0] = (struct vgpu_load_image){ fixture.arena, 16 };
	for (uint32_t log_size = 0; log_size <= 64; log_size += 64) {
		link = link_new(log_size);
		add_result = CUDA_SUCCESS;
		check_eq(link_add(link, load, CU_JIT_INPUT_PTX), CUDA_SUCCESS);
		add_result = CUDA_ERROR_INVALID_PTX;
		check_eq(link_add(link, load, CU_JIT_INPUT_PTX), CUDA_ERROR_INVALID_PTX);
		check_eq(reason_get(fixture.session.lanes[0], text), 4);
		check(!memcmp(text, "said", 4));
		check_eq(link_add(link + 1, load, CU_JIT_INPUT_PTX),
			CUDA_ERROR_INVALID_HANDLE);
		check_eq(reason_get(fixture.session.lanes[0], text), 0);
		check_eq(link_destroy(link), CUDA_SUCCESS);
	}
	fixture_deinit(&fixture);
}

TEST(an_image_is_fetched_piece_by_piece_into_the_arena)
{
	uint64_t link, end;
	char *arena;

	begin();
	arena = (char *)(uintptr_t)fixture.arena;
	end = fixture.arena + FIXTURE_N_EXTENTS * VGPU_EXTENT_SIZE;
	link = link_new(0);
	check_eq(link_piece(link, fixture.arena, 40, 0), CUDA_SUCCESS);
	check(arena[0] == 'i' && arena[39] == 'i' && arena[40] == 'x');
	check_eq(link_piece(link, fixture.arena + 100, UINT64_MAX, 40), CUDA_SUCCESS);
	check(arena[100] == 'i' && arena[123] == 'i' && arena[124] == 'x');
	check_eq(link_piece(link, fixture.arena, 40, 64), CUDA_SUCCESS);
	check_eq(link_piece(link, fixture.arena, 40, 65), CUDA_ERROR_INVALID_VALUE);
	check_eq(link_piece(link, end - 8, 40, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(link_piece(link, (uintptr_t)&fixture, 40, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(link_piece(link + 1, fixture.arena, 40, 0), CUDA_ERROR_INVALID_HANDLE);
	check_eq(link_destroy(link), CUDA_SUCCESS);
	fixture_deinit(&fixture);
}

TEST(a_block_of_another_size_is_refused)
{
	Vgpu__CuLinkCreateV2Request request = VGPU__CU_LINK_CREATE_V2_REQUEST__INIT;
	struct vgpu_load load = { .n_options = VGPU_LOAD_OPTIONS_MAX + 1 };
	uint32_t n_objects;

	begin();
	n_objects = fixture.session.totals.n;
	request.load = bytes(&load);
	check_eq(
		call(VGPU_CALL_cuLinkCreate_v2, &request.base), CUDA_ERROR_INVALID_VALUE);
	load.n_options = 1;
	load.options[0].option = CU_JIT_INFO_LOG_BUFFER;
	check_eq(
		call(VGPU_CALL_cuLinkCreate_v2, &request.base), CUDA_ERROR_NOT_SUPPORTED);
	request.load.len--;
	check_eq(
		call(VGPU_CALL_cuLinkCreate_v2, &request.base), CUDA_ERROR_INVALID_VALUE);
	check_eq(fixture.session.totals.n, n_objects);
	check_eq(n_alive, 0);
	fixture_deinit(&fixture);
}
