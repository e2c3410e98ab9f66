/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: copies of boxes, between contexts and in batches
 */

#include "e2e.h"

#define WIDTH 48
#define HEIGHT 5
#define DEPTH 4

static uint8_t byte_at(size_t x, size_t y, size_t z)
{
	return (uint8_t)(x * 7 + y * 31 + z * 101 + 1);
}

/* A box in memory that the host reads: rows of `pitch` bytes, layers of `rows` rows. */
struct room {
	uint8_t *bytes;
	size_t pitch;
	size_t rows;
};

static size_t room_size(const struct room *room)
{
	return room->pitch * room->rows * DEPTH;
}

static void fill_room(const struct room *room)
{
	memset(room->bytes, 0xee, room_size(room));
	for (size_t z = 0; z < DEPTH; z++)
		for (size_t y = 0; y < HEIGHT; y++)
			for (size_t x = 0; x < WIDTH; x++)
				room->bytes[(z * room->rows + y) * room->pitch + x] =
					byte_at(x, y, z);
}

/* The copied rows have arrived, and the bytes between rows and layers are unchanged. */
static void check_room(const struct room *room, uint8_t gap)
{
	for (size_t z = 0; z < DEPTH; z++)
		for (size_t y = 0; y < room->rows; y++)
			for (size_t x = 0; x < room->pitch; x++) {
				uint8_t byte =
					room->bytes[(z * room->rows + y) * room->pitch +
						    x];
				bool is_inside = x < WIDTH && y < HEIGHT;

				check_eq(byte, is_inside ? byte_at(x, y, z) : gap);
			}
}

static CUDA_MEMCPY3D box(void)
{
	return (CUDA_MEMCPY3D){ .WidthInBytes = WIDTH, .Height = HEIGHT, .Depth = DEPTH };
}

#define SET_HOST(_copy, _side, _room)                                                    \
	((_copy)->_side##MemoryType = CU_MEMORYTYPE_HOST,                                \
		(_copy)->_side##Host = (_room)->bytes,                                   \
		(_copy)->_side##Pitch = (_room)->pitch,                                  \
		(_copy)->_side##Height = (_room)->rows)

#define SET_DEVICE(_copy, _side, _address, _pitch, _rows)                                \
	((_copy)->_side##MemoryType = CU_MEMORYTYPE_DEVICE,                              \
		(_copy)->_side##Device = (_address), (_copy)->_side##Pitch = (_pitch),   \
		(_copy)->_side##Height = (_rows))

/* There, across the device, and back, by calls that wait and by calls that do not. */
static void travel(const struct room *out, const struct room *in, CUstream stream)
{
	CUdeviceptr a, b;
	CUDA_MEMCPY3D there = box(), across = box(), back = box();

	check_ok(cuMemAlloc(&a, 64 * 6 * DEPTH));
	check_ok(cuMemAlloc(&b, 128 * 9 * DEPTH));
	fill_room(out);
	memset(in->bytes, 0x55, room_size(in));
	SET_HOST(&there, src, out);
	SET_DEVICE(&there, dst, a, 64, 6);
	SET_DEVICE(&across, src, a, 64, 6);
	SET_DEVICE(&across, dst, b, 128, 9);
	SET_DEVICE(&back, src, b, 128, 9);
	SET_HOST(&back, dst, in);
	if (stream) {
		check_ok(cuMemcpy3DAsync(&there, stream));
		check_ok(cuMemcpy3DAsync(&across, stream));
		check_ok(cuMemcpy3DAsync(&back, stream));
		check_ok(cuStreamSynchronize(stream));
	} else {
		check_ok(cuMemcpy3D(&there));
		check_ok(cuMemcpy3D(&across));
		check_ok(cuMemcpy3D(&back));
	}
	check_room(in, 0x55);
	check_ok(cuMemFree(a));
	check_ok(cuMemFree(b));
}

TEST(boxes_of_pageable_and_pinned_memory_travel)
{
	struct room out = { .pitch = 50, .rows = 7 }, in = { .pitch = 64, .rows = 5 };
	uint8_t *pageable = malloc(2 * 64 * 7 * DEPTH);
	void *pinned;
	CUstream stream;

	fixture_new();
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAllocHost(&pinned, 2 * 64 * 7 * DEPTH));
	for (int i = 0; i < 4; i++) {
		out.bytes = i & 1 ? pinned : pageable;
		in.bytes = (uint8_t *)(i & 2 ? pinned : pageable) + 64 * 7 * DEPTH;
		travel(&out, &in, NULL);
		travel(&out, &in, stream);
	}
	free(pageable);
}

TEST(a_box_with_offsets_lands_where_they_say)
{
	struct room out = { malloc(50 * 7 * DEPTH), 50, 7 };
	CUDA_MEMCPY3D copy = box();
	CUdeviceptr p;
	uint8_t byte = 0;

	fixture_new();
	fill_room(&out);
	check_ok(cuMemAlloc(&p, 64 * 8 * 6));
	check_ok(cuMemsetD8(p, 0x11, 64 * 8 * 6));
	SET_HOST(&copy, src, &out);
	SET_DEVICE(&copy, dst, p, 64, 8);
	copy.srcXInBytes = 2, copy.srcY = 1, copy.srcZ = 1;
	copy.dstXInBytes = 3, copy.dstY = 2, copy.dstZ = 2;
	copy.WidthInBytes = 20, copy.Height = 3, copy.Depth = 2;
	check_ok(cuMemcpy3D(&copy));
	check_ok(cuMemcpyDtoH(&byte, p + (2 * 8 + 2) * 64 + 3, 1));
	check_eq(byte, byte_at(2, 1, 1));
	check_ok(cuMemcpyDtoH(&byte, p + (3 * 8 + 4) * 64 + 22, 1));
	check_eq(byte, byte_at(21, 3, 2));
	check_ok(cuMemcpyDtoH(&byte, p + (3 * 8 + 4) * 64 + 23, 1));
	check_eq(byte, 0x11);
	check_ok(cuMemcpyDtoH(&byte, p + (2 * 8 + 1) * 64 + 3, 1));
	check_eq(byte, 0x11);
	free(out.bytes);
}

TEST(a_box_larger_than_a_staging_block_travels)
{
	size_t pitch = 700001, size = pitch * 3 * 2;
	uint8_t *out = malloc(size), *in = calloc(1, size);
	CUDA_MEMCPY3D copy = { .WidthInBytes = pitch, .Height = 3, .Depth = 2 };
	CUdeviceptr p;

	fixture_new();
	for (size_t i = 0; i < size; i++)
		out[i] = byte_at(i, i >> 8, i >> 16);
	check_ok(cuMemAlloc(&p, size));
	SET_HOST(&copy, src, (&(struct room){ out, pitch, 3 }));
	SET_DEVICE(&copy, dst, p, pitch, 3);
	check_ok(cuMemcpy3D(&copy));
	SET_DEVICE(&copy, src, p, pitch, 3);
	SET_HOST(&copy, dst, (&(struct room){ in, pitch, 3 }));
	check_ok(cuMemcpy3D(&copy));
	check(!memcmp(out, in, size));
	free(out);
	free(in);
}

TEST(impossible_boxes_are_refused_and_nothing_is_written)
{
	uint8_t host[WIDTH * HEIGHT * DEPTH] = {};
	const struct room room = { host, WIDTH, HEIGHT };
	CUDA_MEMCPY3D copy = box();
	CUstream stream;
	CUdeviceptr p;

	fixture_new();
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAlloc(&p, sizeof(host)));
	check_ok(cuMemsetD8(p, 0x42, sizeof(host)));
	SET_HOST(&copy, src, &room);
	SET_DEVICE(&copy, dst, p, WIDTH - 1, HEIGHT);
	check_cu(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);
	SET_DEVICE(&copy, dst, p, WIDTH, HEIGHT - 1);
	check_cu(cuMemcpy3DAsync(&copy, stream), CUDA_ERROR_INVALID_VALUE);
	SET_DEVICE(&copy, dst, p, WIDTH, HEIGHT + 1);
	check_cu(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);
	SET_DEVICE(&copy, src, p, WIDTH, HEIGHT);
	SET_DEVICE(&copy, dst, p + 1, WIDTH, HEIGHT);
	check_cu(cuMemcpy3DAsync(&copy, stream), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemcpy3D(NULL), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemsetD2D8(p, 64, 0, 64, 1000), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemsetD2D16Async(p, 64, 0, 33, 2, stream), CUDA_ERROR_INVALID_VALUE);
	check_cu(
		cuMemsetD2D32Async(p + 2, 64, 0, 4, 2, stream), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(p + WIDTH), 0x42424242);
	check_eq(device_word(p + sizeof(host) - 4), 0x42424242);
}

TEST(copies_between_contexts_move_bytes)
{
	struct fixture fixture = fixture_new();
	uint8_t host[1000], back[1000] = {};
	CUcontext other;
	CUdeviceptr a, b;
	CUstream stream;

	check_ok(cuMemAlloc(&a, sizeof(host)));
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (size_t i = 0; i < sizeof(host); i++)
		host[i] = byte_at(i, i, 3);
	check_ok(cuMemcpyHtoD(a, host, sizeof(host)));
	check_ok(cuCtxCreate(&other, NULL, 0, fixture.device));
	check_ok(cuMemAlloc(&b, sizeof(host)));
	check_ok(cuMemcpyPeer(b, other, a, fixture.context, sizeof(host)));
	check_ok(cuMemcpyDtoH(back, b, sizeof(back)));
	check(!memcmp(host, back, sizeof(host)));
	check_ok(cuCtxSetCurrent(fixture.context));
	check_ok(cuMemsetD8(a, 0, sizeof(host)));
	check_ok(cuCtxSynchronize());
	check_ok(cuMemcpyPeerAsync(a, fixture.context, b, other, sizeof(host), stream));
	check_ok(cuStreamSynchronize(stream));
	memset(back, 0, sizeof(back));
	check_ok(cuMemcpyDtoH(back, a, sizeof(back)));
	check(!memcmp(host, back, sizeof(host)));
	check_cu(cuMemcpyPeer(b, (CUcontext)(uintptr_t)0x1234567, a, fixture.context, 1),
		CUDA_ERROR_INVALID_CONTEXT);
	check_cu(
		cuMemcpyPeerAsync(b, other, a + 1, fixture.context, sizeof(host), stream),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuCtxDestroy(other));
	check_cu(cuMemcpyPeer(b, other, a, fixture.context, 1),
		CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST(boxes_between_contexts_move_bytes)
{
	struct fixture fixture = fixture_new();
	struct room out = { malloc(50 * 7 * DEPTH), 50, 7 },
		    in = { malloc(64 * 5 * DEPTH), 64, 5 };
	CUDA_MEMCPY3D_PEER copy = {
		.WidthInBytes = WIDTH, .Height = HEIGHT, .Depth = DEPTH
	};
	CUcontext other;
	CUdeviceptr a, b;
	CUstream stream;

	fill_room(&out);
	memset(in.bytes, 0x66, room_size(&in));
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAlloc(&a, 64 * 6 * DEPTH));
	check_ok(cuCtxCreate(&other, NULL, 0, fixture.device));
	check_ok(cuMemAlloc(&b, 128 * 9 * DEPTH));
	check_ok(cuCtxSetCurrent(fixture.context));
	SET_HOST(&copy, src, &out);
	SET_DEVICE(&copy, dst, a, 64, 6);
	copy.srcContext = copy.dstContext = fixture.context;
	check_ok(cuMemcpy3DPeer(&copy));
	SET_DEVICE(&copy, src, a, 64, 6);
	SET_DEVICE(&copy, dst, b, 128, 9);
	copy.dstContext = other;
	check_ok(cuMemcpy3DPeerAsync(&copy, stream));
	check_ok(cuStreamSynchronize(stream));
	SET_DEVICE(&copy, src, b, 128, 9);
	SET_HOST(&copy, dst, &in);
	copy.srcContext = other;
	copy.dstContext = fixture.context;
	check_ok(cuMemcpy3DPeer(&copy));
	check_room(&in, 0x66);
	copy.srcContext = NULL;
	check_cu(cuMemcpy3DPeer(&copy), CUDA_ERROR_INVALID_CONTEXT);
	free(out.bytes);
	free(in.bytes);
}

static CUdeviceptr as_device(const void *pointer)
{
	return (CUdeviceptr)(uintptr_t)pointer;
}

/* The first forms of the batches, which headers no longer declare. */
typedef CUresult (*batch_fn)(CUdeviceptr *, CUdeviceptr *, size_t *, size_t,
	CUmemcpyAttributes *, size_t *, size_t, size_t *, CUstream);
typedef CUresult (*batch_of_boxes_fn)(
	size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *, unsigned long long, CUstream);

static void *first_form(const char *name, int version)
{
	void *function = NULL;

	check_ok(cuGetProcAddress(name, &function, version, 0, NULL));
	check(function);
	return function;
}

TEST(a_batch_copies_in_every_direction)
{
	uint8_t *pageable = malloc(4096), *back = calloc(1, 4096), *pinned;
	CUmemcpyAttributes attributes[] = {
		{ .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL },
		{ .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM },
	};
	size_t sizes[] = { 4096, 4096, 4096, 4096 }, first[] = { 0, 2 }, fail = 7;
	CUdeviceptr a, b, to[4], from[4];
	CUstream stream;
	batch_fn batch;

	fixture_new();
	batch = (batch_fn)first_form("cuMemcpyBatchAsync", 12080);
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAllocHost((void **)&pinned, 4096));
	check_ok(cuMemAlloc(&a, 4096));
	check_ok(cuMemAlloc(&b, 4096));
	for (size_t i = 0; i < 4096; i++)
		pageable[i] = byte_at(i, 1, 2);
	memset(pinned, 0, 4096);
	from[0] = as_device(pageable), to[0] = a;
	from[1] = a, to[1] = b;
	from[2] = b, to[2] = as_device(pinned);
	from[3] = a, to[3] = as_device(back);
	check_ok(cuMemcpyBatchAsync_v2(to, from, sizes, 4, attributes, first, 2, stream));
	check_ok(cuStreamSynchronize(stream));
	check(!memcmp(pageable, pinned, 4096));
	check(!memcmp(pageable, back, 4096));
	/* The first form also returns which copy failed. */
	memset(back, 0, 4096);
	check_ok(batch(to, from, sizes, 4, attributes, first, 2, &fail, stream));
	check_ok(cuStreamSynchronize(stream));
	check(!memcmp(pageable, back, 4096));
	sizes[2] = 4097;
	check_cu(batch(to, from, sizes, 4, attributes, first, 2, &fail, stream),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(fail, 2);
	first[0] = 1;
	check_cu(batch(to, from, sizes, 4, attributes, first, 2, &fail, stream),
		CUDA_ERROR_INVALID_VALUE);
	check(fail == SIZE_MAX);
	check_cu(cuMemcpyBatchAsync_v2(
			 to, from, sizes, 2, attributes, (size_t[]){ 0 }, 1, NULL),
		CUDA_ERROR_INVALID_VALUE);
	check_ok(cuStreamSynchronize(stream));
	free(pageable);
	free(back);
}

TEST(a_source_promised_for_the_call_alone_may_change_after_it)
{
	CUmemcpyAttributes attributes = {
		.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL
	};
	size_t size = 3 << 20, first = 0;
	unsigned int *pinned;
	CUdeviceptr p, from;
	CUstream stream;

	fixture_new();
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAllocHost((void **)&pinned, size));
	check_ok(cuMemAlloc(&p, size));
	memset(pinned, 0x12, size);
	from = as_device(pinned);
	check_ok(cuMemcpyBatchAsync_v2(
		&p, &from, &size, 1, &attributes, &first, 1, stream));
	memset(pinned, 0, size);
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(p), 0x12121212);
	check_eq(device_word(p + size - 4), 0x12121212);
}

TEST(a_batch_of_boxes_is_copied_there_and_back)
{
	struct room out = { malloc(50 * 7 * DEPTH), 50, 7 },
		    in = { malloc(64 * 5 * DEPTH), 64, 5 };
	CUDA_MEMCPY3D_BATCH_OP operations[2] = {};
	CUstream stream;
	batch_of_boxes_fn batch;
	size_t fail = 5;
	CUdeviceptr p;

	fixture_new();
	batch = (batch_of_boxes_fn)first_form("cuMemcpy3DBatchAsync", 12080);
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAlloc(&p, WIDTH * HEIGHT * DEPTH));
	fill_room(&out);
	memset(in.bytes, 0x77, room_size(&in));
	for (int i = 0; i < 2; i++) {
		operations[i].src.type = operations[i].dst.type =
			CU_MEMCPY_OPERAND_TYPE_POINTER;
		operations[i].extent = (CUextent3D){ WIDTH, HEIGHT, DEPTH };
		operations[i].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	}
	operations[0].src.op.ptr.ptr = as_device(out.bytes);
	operations[0].src.op.ptr.rowLength = out.pitch;
	operations[0].src.op.ptr.layerHeight = out.rows;
	operations[0].dst.op.ptr.ptr = p;
	operations[1].src.op.ptr.ptr = p;
	operations[1].dst.op.ptr.ptr = as_device(in.bytes);
	operations[1].dst.op.ptr.rowLength = in.pitch;
	operations[1].dst.op.ptr.layerHeight = in.rows;
	check_ok(cuMemcpy3DBatchAsync_v2(2, operations, 0, stream));
	check_ok(cuStreamSynchronize(stream));
	check_room(&in, 0x77);
	memset(in.bytes, 0x78, room_size(&in));
	check_ok(batch(2, operations, &fail, 0, stream));
	check_ok(cuStreamSynchronize(stream));
	check_room(&in, 0x78);
	memset(in.bytes, 0x77, room_size(&in));
	check_ok(batch(2, operations, &fail, 0, stream));
	check_ok(cuStreamSynchronize(stream));
	check_room(&in, 0x77);
	operations[1].src.op.ptr.ptr = p + 1;
	check_cu(batch(2, operations, &fail, 0, stream), CUDA_ERROR_INVALID_VALUE);
	check_eq(fail, 1);
	free(out.bytes);
	free(in.bytes);
}

TEST(memory_set_to_be_synchronous_is_waited_for)
{
	struct fixture fixture = fixture_new();
	unsigned int wanted = 1, is_set = 9;
	CUdeviceptr p, q;
	int local;

	check_ok(cuMemAlloc(&p, 4096));
	check_ok(cuMemAlloc(&q, 4096));
	check_ok(cuMemsetD8(p, 0, 4096));
	check_ok(cuPointerGetAttribute(&is_set, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	check_eq(is_set, 0);
	check_ok(cuPointerSetAttribute(&wanted, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	check_ok(cuPointerGetAttribute(&is_set, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p + 9));
	check_eq(is_set, 1);
	/* After a kernel that takes a while, calls return only when it is done. */
	check_ok(launch_step(fixture_function(&fixture, "step"), p, 200000, NULL));
	check_ok(cuMemsetD32(p + 64, 5, 16));
	check_ok(cuStreamQuery(NULL));
	check_ok(launch_step(fixture_function(&fixture, "step"), p, 200000, NULL));
	check_ok(cuMemcpyDtoD(q, p, 4096));
	check_ok(cuStreamQuery(NULL));
	check_eq(device_word(q), stepped(0, 400000));
	check_eq(device_word(q + 64), 5);
	check_cu(cuPointerSetAttribute(&wanted, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p),
		CUDA_ERROR_INVALID_VALUE);
	check_cu(cuPointerSetAttribute(&wanted, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
			 (CUdeviceptr)(uintptr_t)&local),
		CUDA_ERROR_INVALID_VALUE);
}
