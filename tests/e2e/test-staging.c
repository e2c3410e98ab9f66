/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: copies of pageable memory, as a remoted library stages them
 *
 * Sizes are close to the thresholds at which the guest's library chooses another path,
 * and the source is changed or freed as early as CUDA allows.
 */

#include <pthread.h>

#include "e2e.h"

/* More than any copy of the tests, and room around it. */
#define ROOM ((1u << 20) + 4096)
#define GAP 0xc3
/* More than all blocks together, and not a whole number of any. */
#define LARGE ((13u << 20) + 4093)

static const size_t sizes[] = { 1, 3, 63, 64, 65, 2047, 2048, 2049, 4095, 4096, 4097,
	16383, 16384, 16385, 65535, 65536, 65537, 262143, 262144, 262145, 524287, 524288,
	524289, 1000003 };

static void fill(uint8_t *bytes, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(seed + i * 7 + (i >> 8) * 13 + (i >> 16) * 29);
}

static bool is_gap(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != GAP)
			return false;
	return true;
}

/* The copied bytes arrived, and the bytes around them are unchanged. */
static void check_size(CUdeviceptr p, uint8_t *out, uint8_t *in, size_t size, int place)
{
	static const size_t offsets[] = { 0, 1, 16, 33 };
	size_t from = 64 + offsets[place & 3], to = 64 + offsets[place >> 2 & 3];
	CUstream stream = place & 1 ? CU_STREAM_PER_THREAD : NULL;

	fill(out + from, size, (unsigned int)size + place);
	memset(in, GAP, to + size + 64);
	check_ok(cuMemsetD8(p, GAP, to + size + 64));
	check_ok(cuCtxSynchronize());
	check_ok(cuMemcpyHtoDAsync(p + to, out + from, size, stream));
	check_ok(cuStreamSynchronize(stream));
	check_ok(cuMemcpyDtoHAsync(in + to, p + to, size, stream));
	check_ok(cuStreamSynchronize(stream));
	check(!memcmp(in + to, out + from, size));
	check(is_gap(in, to) && is_gap(in + to + size, 64));
	check_ok(cuMemcpyDtoH(in, p, to + size + 64));
	check(!memcmp(in + to, out + from, size));
	check(is_gap(in, to) && is_gap(in + to + size, 64));
}

TEST(copies_of_any_size_and_alignment_touch_what_they_should)
{
	uint8_t *out = malloc(ROOM), *in = malloc(ROOM);
	CUdeviceptr p;

	fixture_new();
	check_ok(cuMemAlloc(&p, ROOM));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int place = 0; place < (sizes[i] < 100000 ? 16 : 5); place++)
			check_size(p, out, in, sizes[i], place);
	free(out);
	free(in);
}

TEST(copies_larger_than_all_staging_touch_what_they_should)
{
	const size_t room = LARGE + 4096;
	uint8_t *out = malloc(room), *in = malloc(room);
	CUdeviceptr p;

	fixture_new();
	check_ok(cuMemAlloc(&p, room));
	for (int place = 0; place < 16; place += 5)
		check_size(p, out, in, LARGE, place);
	free(out);
	free(in);
}

/* Copies the same buffer `n` times, each time with something else in it. */
static void check_rewritten(CUstream stream, size_t size, unsigned int n)
{
	uint8_t *source = malloc(size), *all = malloc(size * n);
	CUdeviceptr p;

	check_ok(cuMemAlloc(&p, size * n));
	for (unsigned int i = 0; i < n; i++) {
		fill(source, size, i * 5 + 1);
		check_ok(cuMemcpyHtoDAsync(p + i * size, source, size, stream));
		memset(source, 0, size);
	}
	check_ok(cuStreamSynchronize(stream));
	check_ok(cuMemcpyDtoH(all, p, size * n));
	for (unsigned int i = 0; i < n; i++) {
		fill(source, size, i * 5 + 1);
		check(!memcmp(source, all + i * size, size));
	}
	check_ok(cuMemFree(p));
	free(source);
	free(all);
}

TEST(a_source_may_be_rewritten_once_the_call_has_returned)
{
	CUstream stream;

	fixture_new();
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_rewritten(stream, 4, 3000);
	check_rewritten(stream, 100, 3000);
	check_rewritten(NULL, 4096, 300);
	check_rewritten(CU_STREAM_PER_THREAD, 4097, 200);
	check_rewritten(stream, 16384, 100);
	check_rewritten(stream, 40000, 100);
	check_rewritten(stream, 300000, 20);
}

/* While a kernel holds the stream, later copies have to preserve their sources. */
TEST(copies_after_a_kernel_are_in_order_with_staged_ones)
{
	enum { N = 400 };
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	unsigned int results[N], value;
	CUdeviceptr x, all;
	CUstream stream;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAlloc(&x, 4));
	check_ok(cuMemAlloc(&all, sizeof(results)));
	check_ok(cuMemsetD32(x, 0, 1));
	check_ok(cuCtxSynchronize());
	check_ok(launch_step(step, x, 100000, stream));
	for (unsigned int i = 0; i < N / 4; i++) {
		value = i;
		check_ok(cuMemcpyHtoDAsync(x, &value, 4, stream));
		check_ok(launch_step(step, x, 1, stream));
		check_ok(cuMemcpyDtoDAsync(all + i * 4, x, 4, stream));
	}
	check_ok(cuStreamSynchronize(stream));
	check_ok(cuMemcpyDtoH(results, all, sizeof(results)));
	for (unsigned int i = 0; i < N / 4; i++)
		check_eq(results[i], stepped(i, 1));
}

TEST(small_copies_of_many_streams_do_not_mix)
{
	enum { STREAMS = 40, ROUNDS = 50, SIZE = 200 };
	uint8_t source[SIZE], *all = malloc(STREAMS * ROUNDS * SIZE);
	CUstream streams[STREAMS];
	CUdeviceptr p;

	fixture_new();
	check_ok(cuMemAlloc(&p, STREAMS * ROUNDS * SIZE));
	for (int i = 0; i < STREAMS; i++)
		check_ok(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < STREAMS; i++) {
			int n = i * ROUNDS + round;

			fill(source, SIZE, n);
			check_ok(cuMemcpyHtoDAsync(
				p + n * SIZE, source, SIZE, streams[i]));
		}
	for (int i = 0; i < STREAMS; i++)
		check_ok(cuStreamDestroy(streams[i]));
	check_ok(cuCtxSynchronize());
	check_ok(cuMemcpyDtoH(all, p, STREAMS * ROUNDS * SIZE));
	for (int n = 0; n < STREAMS * ROUNDS; n++) {
		fill(source, SIZE, n);
		check(!memcmp(source, all + n * SIZE, SIZE));
	}
	free(all);
}

/* Any staging that a stream took along would be missed at the end. */
TEST(streams_that_are_created_and_destroyed_leak_nothing)
{
	uint8_t *host = malloc(ROOM), *back = malloc(ROOM);
	CUdeviceptr p;

	fixture_new();
	check_ok(cuMemAlloc(&p, ROOM));
	fill(host, ROOM, 9);
	for (int i = 0; i < 300; i++) {
		CUstream stream;

		check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		check_ok(cuMemcpyHtoDAsync(p + i * 100, host + i * 100, 100, stream));
		check_ok(cuStreamDestroy(stream));
	}
	check_ok(cuCtxSynchronize());
	for (size_t done = 0; done < ROOM - 40000; done += 40000) {
		check_ok(cuMemcpyDtoH(back, p, 30000));
		check(!memcmp(back, host, 30000));
		check_ok(cuMemcpyHtoD(p + done, host + done, 40000));
		check_ok(cuMemcpyDtoH(back + done, p + done, 40000));
		check(!memcmp(back + done, host + done, 40000));
	}
	free(host);
	free(back);
}

TEST(a_destination_may_be_freed_right_after_the_copy)
{
	uint8_t *host = malloc(ROOM), *back = malloc(ROOM);
	CUdeviceptr p, q;

	fixture_new();
	check_ok(cuMemAlloc(&q, ROOM));
	fill(host, ROOM, 4);
	for (int i = 0; i < 60; i++) {
		size_t size = sizes[(i * 7) % (sizeof(sizes) / sizeof(sizes[0]))];

		check_ok(cuMemAlloc(&p, size));
		check_ok(cuMemcpyHtoDAsync(p, host, size, NULL));
		check_ok(cuMemFree(p));
		check_cu(cuMemcpyHtoD(p, host, size), CUDA_ERROR_INVALID_VALUE);
		check_ok(cuMemcpyHtoD(q, host + i, size));
		check_ok(cuMemcpyDtoH(back, q, size));
		check(!memcmp(back, host + i, size));
	}
	free(host);
	free(back);
}

struct writer {
	CUcontext context;
	CUstream stream;
	CUdeviceptr to;
	unsigned int number;
};

#define WRITER_COPIES 400
#define WRITER_SIZE 360

static void *write_many(void *argument)
{
	const struct writer *writer = argument;
	uint8_t source[WRITER_SIZE];

	check_ok(cuCtxSetCurrent(writer->context));
	for (unsigned int i = 0; i < WRITER_COPIES; i++) {
		fill(source, WRITER_SIZE, writer->number * 1000 + i);
		check_ok(cuMemcpyHtoDAsync(writer->to + i * WRITER_SIZE, source,
			WRITER_SIZE, writer->stream));
	}
	return NULL;
}

TEST(threads_that_share_a_stream_do_not_mix_their_copies)
{
	enum { WRITERS = 6 };
	struct fixture fixture = fixture_new();
	size_t each = WRITER_COPIES * WRITER_SIZE;
	uint8_t source[WRITER_SIZE], *all = malloc(WRITERS * each);
	struct writer writers[WRITERS];
	pthread_t threads[WRITERS];
	CUstream stream;
	CUdeviceptr p;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAlloc(&p, WRITERS * each));
	for (unsigned int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){ fixture.context, stream, p + i * each, i };
		check_eq(pthread_create(&threads[i], NULL, write_many, &writers[i]), 0);
	}
	for (unsigned int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	check_ok(cuStreamSynchronize(stream));
	check_ok(cuMemcpyDtoH(all, p, WRITERS * each));
	for (unsigned int i = 0; i < WRITERS * WRITER_COPIES; i++) {
		fill(source, WRITER_SIZE, i / WRITER_COPIES * 1000 + i % WRITER_COPIES);
		check(!memcmp(source, all + i * WRITER_SIZE, WRITER_SIZE));
	}
	free(all);
}

/* A context that ends by a fault, with copies of both directions queued after the
 * kernel. */
static void fault_with_copies(CUdevice device, uint8_t *host)
{
	CUcontext context;
	CUmodule module;
	CUfunction function;
	CUresult result;
	CUstream stream;
	CUdeviceptr p;

	check_ok(cuCtxCreate(&context, NULL, 0, device));
	check_ok(cuModuleLoadData(&module, kernels_ptx));
	check_ok(cuModuleGetFunction(&function, module, "fill"));
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuMemAlloc(&p, ROOM));
	check_ok(cuMemcpyHtoDAsync(p, host, 100, stream));
	check_ok(launch_fill(function, 0x10, 1, 1, stream));
	/* Each may be the first call that returns the fault, so either result is
	 * valid. */
	result = cuMemcpyHtoDAsync(p, host, 200, stream);
	check(!result || result == CUDA_ERROR_ILLEGAL_ADDRESS);
	result = cuMemcpyHtoDAsync(p, host, 50000, stream);
	check(!result || result == CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuMemcpyDtoHAsync(host, p, ROOM, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_cu(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_ok(cuCtxDestroy(context));
}

TEST(copies_that_a_fault_ended_leak_nothing)
{
	struct fixture fixture = fixture_new();
	uint8_t *host = malloc(ROOM), *back = malloc(ROOM);
	CUdeviceptr p;

	for (int i = 0; i < 60; i++)
		fault_with_copies(fixture.device, back);
	check_ok(cuCtxSetCurrent(fixture.context));
	check_ok(cuMemAlloc(&p, ROOM));
	fill(host, ROOM, 77);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		check_ok(cuMemcpyHtoD(p + i, host + i, sizes[i]));
		check_ok(cuMemcpyDtoH(back, p + i, sizes[i]));
		check(!memcmp(back, host + i, sizes[i]));
	}
	free(host);
	free(back);
}
