/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeds of the dispatch fuzzer: make-seeds-dispatch FOLDER
 *
 * One file for each call from the generator, and rows of calls that fit together: handles
 * and addresses are those that a fresh session gives out.
 */

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "vgpu/launch.h"
#include "vgpu/load.h"
#include "worker/fixture.h"

static const char *folder;
static uint8_t row[65536];
static size_t row_size;

static uint64_t first_handle(enum vgpu_handle_kind kind)
{
	return vgpu_handle_make(kind, 0, 1);
}

static const uint64_t base = 0x550000000000;

static uint64_t memory(void)
{
	return base + FIXTURE_SHM_SIZE;
}

static uint64_t arena(void)
{
	return base + FIXTURE_EXTENTS_OFF +
	       FIXTURE_FIRST_EXTENT * (uint64_t)VGPU_EXTENT_SIZE;
}

static void add(uint32_t call, uint32_t flags, const ProtobufCMessage *request)
{
	struct vgpu_frame frame = { .call = call, .flags = flags };

	frame.size = sizeof(frame) +
		     protobuf_c_message_pack(request, row + row_size + sizeof(frame));
	memcpy(row + row_size, &frame, sizeof(frame));
	row_size += vgpu_frame_padded(frame.size);
}

static int write_file(const char *name, const void *data, size_t size)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	if (!file || fwrite(data, 1, size, file) != size || fclose(file)) {
		perror(path);
		return 1;
	}
	return 0;
}

static int write_row(const char *name)
{
	int r = write_file(name, row, row_size);

	memset(row, 0, sizeof(row));
	row_size = 0;
	return r;
}

static void add_alloc(void)
{
	Vgpu__CuMemAllocV2Request alloc = VGPU__CU_MEM_ALLOC_V2_REQUEST__INIT;

	alloc.bytesize = 65536;
	add(VGPU_CALL_cuMemAlloc_v2, VGPU_FRAME_REPLY, &alloc.base);
}

static int copies(void)
{
	Vgpu__CuMemcpyHtoDAsyncV2Request up = VGPU__CU_MEMCPY_HTO_DASYNC_V2_REQUEST__INIT;
	Vgpu__CuMemcpyDtoHAsyncV2Request down =
		VGPU__CU_MEMCPY_DTO_HASYNC_V2_REQUEST__INIT;
	Vgpu__CuMemcpy2DAsyncV2Request rectangle =
		VGPU__CU_MEMCPY2_DASYNC_V2_REQUEST__INIT;
	Vgpu__CuMemsetD2D32AsyncRequest fill = VGPU__CU_MEMSET_D2_D32_ASYNC_REQUEST__INIT;
	Vgpu__CuMemFreeV2Request release = VGPU__CU_MEM_FREE_V2_REQUEST__INIT;

	add_alloc();
	up.dst_device = down.src_device = memory();
	up.src_host = down.dst_host = arena();
	up.byte_count = down.byte_count = 4096;
	up.word = down.word = 9;
	up.word_value = down.word_value = 1;
	add(VGPU_CALL_cuMemcpyHtoDAsync_v2, 0, &up.base);
	add(VGPU_CALL_cuMemcpyDtoHAsync_v2, 0, &down.base);
	rectangle.dst = memory();
	rectangle.src = arena();
	rectangle.dst_pitch = rectangle.src_pitch = 512;
	rectangle.width = 100;
	rectangle.height = 7;
	rectangle.word = UINT32_MAX;
	add(VGPU_CALL_cuMemcpy2DAsync_v2, 0, &rectangle.base);
	fill.dst_device = memory();
	fill.dst_pitch = 512;
	fill.width = 10;
	fill.height = 3;
	fill.h_stream = 2;
	add(VGPU_CALL_cuMemsetD2D32Async, 0, &fill.base);
	release.dptr = memory();
	add(VGPU_CALL_cuMemFree_v2, VGPU_FRAME_REPLY, &release.base);
	return write_row("row-copies");
}

static void add_module(void)
{
	Vgpu__CuModuleLoadDataExRequest load = VGPU__CU_MODULE_LOAD_DATA_EX_REQUEST__INIT;
	Vgpu__CuModuleGetFunctionRequest get = VGPU__CU_MODULE_GET_FUNCTION_REQUEST__INIT;
	Vgpu__CuMemsetD8AsyncRequest fill = VGPU__CU_MEMSET_D8_ASYNC_REQUEST__INIT;
	struct vgpu_load block = { .n_images = 1, .images = { { arena(), 16 } } };

	/* An image that is not empty. */
	fill.dst_device = arena();
	fill.n = 16;
	fill.uc = 'x';
	add(VGPU_CALL_cuMemsetD8Async, 0, &fill.base);
	load.load = (ProtobufCBinaryData){ sizeof(block), (uint8_t *)&block };
	add(VGPU_CALL_cuModuleLoadDataEx, VGPU_FRAME_REPLY, &load.base);
	get.hmod = first_handle(VGPU_HANDLE_MODULE);
	get.name = (char *)"kernel";
	add(VGPU_CALL_cuModuleGetFunction, VGPU_FRAME_REPLY, &get.base);
}

static int launches(void)
{
	Vgpu__CuLaunchKernelRequest launch = VGPU__CU_LAUNCH_KERNEL_REQUEST__INIT;
	Vgpu__CuStreamCreateWithPriorityRequest create =
		VGPU__CU_STREAM_CREATE_WITH_PRIORITY_REQUEST__INIT;
	Vgpu__CuStreamSynchronizeRequest wait = VGPU__CU_STREAM_SYNCHRONIZE_REQUEST__INIT;
	Vgpu__CuModuleUnloadRequest unload = VGPU__CU_MODULE_UNLOAD_REQUEST__INIT;
	struct vgpu_launch_dims dims = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
	uint8_t params[FAKE_PARAM_SIZE] = {};

	add_module();
	add(VGPU_CALL_cuStreamCreateWithPriority, VGPU_FRAME_REPLY, &create.base);
	launch.f = first_handle(VGPU_HANDLE_FUNCTION);
	launch.h_stream = first_handle(VGPU_HANDLE_STREAM);
	launch.dims = (ProtobufCBinaryData){ sizeof(dims), (uint8_t *)&dims };
	launch.params = (ProtobufCBinaryData){ sizeof(params), params };
	add(VGPU_CALL_cuLaunchKernel, VGPU_FRAME_REPLY, &launch.base);
	add(VGPU_CALL_cuLaunchKernel, 0, &launch.base);
	wait.h_stream = launch.h_stream;
	add(VGPU_CALL_cuStreamSynchronize, VGPU_FRAME_REPLY, &wait.base);
	unload.hmod = first_handle(VGPU_HANDLE_MODULE);
	add(VGPU_CALL_cuModuleUnload, VGPU_FRAME_REPLY, &unload.base);
	return write_row("row-launches");
}

static int events(void)
{
	Vgpu__CuEventCreateRequest create = VGPU__CU_EVENT_CREATE_REQUEST__INIT;
	Vgpu__CuEventRecordRequest record = VGPU__CU_EVENT_RECORD_REQUEST__INIT;
	Vgpu__CuStreamWaitEventRequest wait = VGPU__CU_STREAM_WAIT_EVENT_REQUEST__INIT;
	Vgpu__CuEventDestroyV2Request destroy = VGPU__CU_EVENT_DESTROY_V2_REQUEST__INIT;
	Vgpu__CuDevicePrimaryCtxResetV2Request reset =
		VGPU__CU_DEVICE_PRIMARY_CTX_RESET_V2_REQUEST__INIT;

	create.event = first_handle(VGPU_HANDLE_EVENT);
	record.h_event = wait.h_event = destroy.h_event = create.event;
	wait.h_stream = 2;
	add(VGPU_CALL_cuEventCreate, 0, &create.base);
	add(VGPU_CALL_cuEventRecord, 0, &record.base);
	add(VGPU_CALL_cuStreamWaitEvent, 0, &wait.base);
	add(VGPU_CALL_cuEventDestroy_v2, 0, &destroy.base);
	add(VGPU_CALL_cuDevicePrimaryCtxReset_v2, VGPU_FRAME_REPLY, &reset.base);
	add_alloc();
	return write_row("row-events");
}

static int copy_generated(void)
{
	static uint8_t data[VGPU_FRAME_MAX];
	struct dirent *entry;
	char path[4096];
	DIR *seeds;
	FILE *file;
	size_t n;
	int r = 0;

	seeds = opendir(GENERATED_SEEDS);
	if (!seeds) {
		perror(GENERATED_SEEDS);
		return 1;
	}
	while ((entry = readdir(seeds))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", GENERATED_SEEDS, entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		n = fread(data, 1, sizeof(data), file);
		fclose(file);
		r |= write_file(entry->d_name, data, n);
	}
	closedir(seeds);
	return r;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make-seeds-dispatch FOLDER\n");
		return 2;
	}
	folder = argv[1];
	return copies() | launches() | events() | copy_generated();
}
