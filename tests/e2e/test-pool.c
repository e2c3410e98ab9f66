/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: memory that is allocated and freed in the order of streams
 */

#include <pthread.h>

#include "e2e.h"

#define MIB (1ull << 20)
#define N_WORDS (MIB / 4)

static const CUmemLocation here = { .type = CU_MEM_LOCATION_TYPE_DEVICE };

static struct fixture begin(void)
{
	struct fixture fixture = fixture_new();
	int is_supported = 0;

	check_ok(cuDeviceGetAttribute(
		&is_supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
	if (!is_supported)
		test_skip("the device has no memory pools");
	return fixture;
}

static CUstream stream_new(unsigned int flags)
{
	CUstream stream = NULL;

	check_ok(cuStreamCreate(&stream, flags));
	return stream;
}

static CUdeviceptr take(size_t size, CUstream stream)
{
	CUdeviceptr address = 0;

	check_ok(cuMemAllocAsync(&address, size, stream));
	check(address);
	return address;
}

static CUmemoryPool pool_new(size_t max_size)
{
	const CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = here,
		.maxSize = max_size,
	};
	CUmemoryPool pool = NULL;

	check_ok(cuMemPoolCreate(&pool, &props));
	check(pool);
	return pool;
}

static CUdeviceptr take_from(CUmemoryPool pool, size_t size, CUstream stream)
{
	CUdeviceptr address = 0;

	check_ok(cuMemAllocFromPoolAsync(&address, size, pool, stream));
	check(address);
	return address;
}

static uint64_t number(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	cuuint64_t value = 12345;

	check_ok(cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

static void set_number(CUmemoryPool pool, CUmemPool_attribute attribute, uint64_t value)
{
	check_ok(cuMemPoolSetAttribute(pool, attribute, &value));
}

static void set_flag(CUmemoryPool pool, CUmemPool_attribute attribute, int value)
{
	int found = 2;

	check_ok(cuMemPoolSetAttribute(pool, attribute, &value));
	check_ok(cuMemPoolGetAttribute(pool, attribute, &found));
	check_eq(found, value);
}

static uint64_t reserved(CUmemoryPool pool)
{
	return number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
}

static uint64_t used(CUmemoryPool pool)
{
	return number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
}

static void fill(const struct fixture *fixture, CUdeviceptr address, unsigned int value,
	CUstream stream)
{
	check_ok(launch_fill(
		fixture_function(fixture, "fill"), address, value, N_WORDS, stream));
}

static void check_words(CUdeviceptr address, unsigned int value)
{
	unsigned int *words = calloc(N_WORDS, sizeof(*words));

	check(words);
	check_ok(cuMemcpyDtoH(words, address, N_WORDS * sizeof(*words)));
	for (size_t i = 0; i < N_WORDS; i++)
		if (words[i] != value)
			test_fail(__FILE__, __LINE__, "word %zu is %u", i, words[i]);
	free(words);
}

/* What follows in the stream waits until open_gate(). */
static uint32_t *close_gate(CUstream stream)
{
	uint32_t *gate;

	check_ok(cuMemHostAlloc((void **)&gate, sizeof(*gate), 0));
	*gate = 0;
	check_ok(cuStreamWaitValue32(
		stream, (CUdeviceptr)(uintptr_t)gate, 1, CU_STREAM_WAIT_VALUE_GEQ));
	return gate;
}

static void open_gate(uint32_t *gate)
{
	__atomic_store_n(gate, 1, __ATOMIC_RELEASE);
}

TEST(memory_is_used_in_the_order_of_its_stream)
{
	struct fixture fixture = begin();
	CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
	CUdeviceptr a = take(MIB, stream), b = take(MIB, stream);

	check(a + MIB <= b || b + MIB <= a);
	fill(&fixture, a, 7, stream);
	check_ok(cuMemcpyDtoDAsync(b, a, MIB, stream));
	check_ok(cuMemFreeAsync(a, stream));
	check_ok(cuStreamSynchronize(stream));
	check_words(b, 7);
	check_ok(cuMemFreeAsync(b, stream));
	check_cu(cuMemFreeAsync(b, stream), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuStreamSynchronize(stream));
}

/* As the programming guide shows it, and cuSPARSE does. */
TEST(memory_of_no_pool_is_freed_in_the_order_of_a_stream)
{
	struct fixture fixture = begin();
	CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
	CUdeviceptr plain, b = take(MIB, stream);
	size_t before, after, total;

	check_ok(cuMemGetInfo(&before, &total));
	check_ok(cuMemAlloc(&plain, 64 * MIB));
	fill(&fixture, plain, 9, stream);
	check_ok(cuMemcpyDtoDAsync(b, plain, MIB, stream));
	check_cu(cuMemFreeAsync(plain + 512, stream), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemFreeAsync(plain, stream));
	check_ok(cuStreamSynchronize(stream));
	check_words(b, 9);
	check_ok(cuMemGetInfo(&after, &total));
	check_eq(after, before);
	check_cu(cuMemFreeAsync(plain, stream), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemFree(plain), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemFreeAsync(0, stream));
}

TEST(a_freed_block_is_used_again_in_its_stream_without_a_wait)
{
	struct fixture fixture = begin();
	CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
	CUdeviceptr first = take(MIB, stream), second;
	uint32_t *gate = close_gate(stream);

	fill(&fixture, first, 1, stream);
	check_ok(cuMemFreeAsync(first, stream));
	second = take(MIB, stream);
	check_eq(second, first);
	fill(&fixture, second, 2, stream);
	check_cu(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	open_gate(gate);
	check_ok(cuStreamSynchronize(stream));
	check_words(second, 2);
	check_ok(cuMemFreeAsync(second, stream));
}

TEST(another_stream_waits_for_the_block_it_gets)
{
	struct fixture fixture = begin();
	CUstream a = stream_new(CU_STREAM_NON_BLOCKING);
	CUstream b = stream_new(CU_STREAM_NON_BLOCKING);
	CUmemoryPool pool = pool_new(2 * MIB);
	CUdeviceptr first = take_from(pool, MIB + MIB / 2, a), second;
	uint32_t *gate = close_gate(a);

	fill(&fixture, first, 1, a);
	check_ok(cuMemFreeAsync(first, a));
	second = take_from(pool, MIB + MIB / 2, b);
	check_eq(second, first);
	fill(&fixture, second, 2, b);
	check_cu(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	open_gate(gate);
	check_ok(cuStreamSynchronize(b));
	check_words(second, 2);
	check_ok(cuMemFreeAsync(second, b));
	check_ok(cuMemPoolDestroy(pool));
}

TEST(without_internal_dependencies_a_pool_grows)
{
	struct fixture fixture = begin();
	CUstream a = stream_new(CU_STREAM_NON_BLOCKING);
	CUstream b = stream_new(CU_STREAM_NON_BLOCKING);
	CUmemoryPool pool = pool_new(0);
	CUdeviceptr first, second;
	uint32_t *gate;

	set_flag(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
	set_flag(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 0);
	first = take_from(pool, 32 * MIB, a);
	gate = close_gate(a);
	fill(&fixture, first, 1, a);
	check_ok(cuMemFreeAsync(first, a));
	second = take_from(pool, 32 * MIB, b);
	check(second != first);
	check_eq(reserved(pool), 64 * MIB);
	fill(&fixture, second, 2, b);
	check_ok(cuStreamSynchronize(b));
	check_words(second, 2);
	open_gate(gate);
	check_ok(cuStreamSynchronize(a));
	/* What is complete is used again, unless that is forbidden, too. */
	set_number(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
	first = take_from(pool, 32 * MIB, a);
	check_ok(cuMemFreeAsync(first, a));
	check_ok(cuStreamSynchronize(a));
	check_eq(take_from(pool, 32 * MIB, b), first);
	check_ok(cuMemPoolDestroy(pool));
}

static CUmemoryPool pool_of_events(void)
{
	CUmemoryPool pool = pool_new(0);

	set_flag(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
	set_flag(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
	return pool;
}

static void order(CUstream stream, CUevent event, CUstream after)
{
	check_ok(cuEventRecord(event, after));
	check_ok(cuStreamWaitEvent(stream, event, 0));
}

TEST(a_block_is_used_again_after_the_events_of_the_program)
{
	struct fixture fixture = begin();
	CUstream a = stream_new(CU_STREAM_NON_BLOCKING);
	CUstream b = stream_new(CU_STREAM_NON_BLOCKING);
	CUstream c = stream_new(CU_STREAM_NON_BLOCKING);
	CUmemoryPool pool = pool_of_events();
	CUdeviceptr first = take_from(pool, 32 * MIB, a), second;
	CUevent event, next;
	uint32_t *gate;

	check_ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	check_ok(cuEventCreate(&next, CU_EVENT_DEFAULT));
	gate = close_gate(a);
	fill(&fixture, first, 1, a);
	check_ok(cuMemFreeAsync(first, a));
	order(b, event, a);
	/* In the order of a stream that waits for the one that waits. */
	order(c, next, b);
	second = take_from(pool, 32 * MIB, c);
	check_eq(second, first);
	check_eq(reserved(pool), 32 * MIB);
	fill(&fixture, second, 2, c);
	check_cu(cuStreamQuery(c), CUDA_ERROR_NOT_READY);
	open_gate(gate);
	check_ok(cuStreamSynchronize(c));
	check_words(second, 2);
	check_ok(cuMemFreeAsync(second, c));
	/* Nothing is forbidden to the stream that waits for itself. */
	check_eq(take_from(pool, 32 * MIB, c), first);
	check_ok(cuMemPoolDestroy(pool));
}

TEST(a_block_is_not_used_after_other_events)
{
	struct fixture fixture = begin();
	CUstream a = stream_new(CU_STREAM_NON_BLOCKING);
	CUstream b = stream_new(CU_STREAM_NON_BLOCKING);
	CUstream c = stream_new(CU_STREAM_NON_BLOCKING);
	CUmemoryPool pool = pool_of_events();
	CUdeviceptr first = take_from(pool, 32 * MIB, a), early;
	CUevent event;
	uint32_t *gate;

	check_ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	early = take_from(pool, 32 * MIB, a);
	check_ok(cuMemFreeAsync(early, a));
	/* In front of the work, and of the free. */
	order(b, event, a);
	gate = close_gate(a);
	fill(&fixture, first, 1, a);
	check_ok(cuMemFreeAsync(first, a));
	check_eq(take_from(pool, 32 * MIB, b), early);
	check(take_from(pool, 32 * MIB, b) != first);
	/* Recorded behind the free, and then elsewhere before the wait. */
	check_ok(cuEventRecord(event, a));
	order(b, event, c);
	check(take_from(pool, 32 * MIB, b) != first);
	check_eq(reserved(pool), 4 * 32 * MIB);
	/* A pool that does not follow events. */
	set_flag(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 0);
	order(b, event, a);
	check(take_from(pool, 32 * MIB, b) != first);
	set_flag(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 1);
	check_eq(take_from(pool, 32 * MIB, b), first);
	open_gate(gate);
	check_ok(cuCtxSynchronize());
}

/* A stream of the same handle knows nothing of what an earlier one waited for. */
TEST(a_new_stream_has_waited_for_nothing)
{
	struct fixture fixture = begin();
	CUstream a = stream_new(CU_STREAM_NON_BLOCKING);
	CUstream b = stream_new(CU_STREAM_NON_BLOCKING);
	CUmemoryPool pool = pool_of_events();
	CUdeviceptr first = take_from(pool, 32 * MIB, a);
	uint32_t *gate;
	CUevent event;

	check_ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	gate = close_gate(a);
	fill(&fixture, first, 1, a);
	check_ok(cuMemFreeAsync(first, a));
	order(b, event, a);
	check_ok(cuStreamDestroy(b));
	b = stream_new(CU_STREAM_NON_BLOCKING);
	check(take_from(pool, 32 * MIB, b) != first);
	/* Nor does an event. */
	check_ok(cuEventDestroy(event));
	check_ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	check_ok(cuStreamWaitEvent(b, event, 0));
	check(take_from(pool, 32 * MIB, b) != first);
	open_gate(gate);
	check_ok(cuCtxSynchronize());
}

TEST(the_default_stream_orders_what_blocking_streams_do_with_a_block)
{
	struct fixture fixture = begin();
	CUstream a = stream_new(CU_STREAM_DEFAULT), b = stream_new(CU_STREAM_DEFAULT);
	CUdeviceptr first = take(MIB, a), second;
	uint32_t *gate = close_gate(a);

	fill(&fixture, first, 1, a);
	check_ok(cuMemFreeAsync(first, NULL));
	second = take(MIB, NULL);
	check_eq(second, first);
	fill(&fixture, second, 2, b);
	check_cu(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	open_gate(gate);
	check_ok(cuStreamSynchronize(b));
	check_words(second, 2);
	check_ok(cuMemFree(second));
}

TEST(unused_memory_is_given_back_at_a_wait)
{
	struct fixture fixture = begin();
	CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
	CUmemoryPool pool = pool_new(0);
	size_t before, without, total;
	CUdeviceptr address;

	check_ok(cuMemGetInfo(&before, &total));
	address = take_from(pool, 48 * MIB, stream);
	fill(&fixture, address, 3, stream);
	check_ok(cuStreamSynchronize(stream));
	check_eq(reserved(pool), 48 * MIB);
	check_eq(used(pool), 48 * MIB);
	check_ok(cuMemGetInfo(&without, &total));
	check(without <= before - 48 * MIB);
	check_ok(cuMemFreeAsync(address, stream));
	check_eq(used(pool), 0);
	check_eq(reserved(pool), 48 * MIB);
	check_ok(cuStreamSynchronize(stream));
	check_eq(reserved(pool), 0);
	check_ok(cuMemGetInfo(&without, &total));
	check_eq(without, before);
	check_eq(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 48 * MIB);
	check_eq(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 48 * MIB);
	set_number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0);
	set_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0);
	check_eq(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
	check_eq(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 0);
	check_ok(cuMemPoolDestroy(pool));
}

TEST(a_threshold_keeps_memory_until_it_is_trimmed)
{
	struct fixture fixture = begin();
	CUmemoryPool pool = pool_new(0);
	CUdeviceptr address;

	set_number(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 32 * MIB);
	check_eq(number(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 32 * MIB);
	address = take_from(pool, MIB, NULL);
	fill(&fixture, address, 4, NULL);
	check_ok(cuMemFreeAsync(address, NULL));
	check_ok(cuCtxSynchronize());
	check_eq(reserved(pool), 32 * MIB);
	check_ok(cuMemPoolTrimTo(pool, 32 * MIB));
	check_eq(reserved(pool), 32 * MIB);
	check_ok(cuMemPoolTrimTo(pool, 0));
	check_eq(reserved(pool), 0);
	/* What is in use stays. */
	set_number(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0);
	address = take_from(pool, 40 * MIB, NULL);
	check_ok(cuMemFreeAsync(take_from(pool, 36 * MIB, NULL), NULL));
	check_ok(cuStreamSynchronize(NULL));
	check_eq(reserved(pool), 40 * MIB);
	check_ok(cuMemsetD8(address, 1, 40 * MIB));
	check_ok(cuMemFree(address));
	check_ok(cuMemPoolDestroy(pool));
}

TEST(a_destroyed_pool_lives_as_long_as_its_blocks)
{
	struct fixture fixture = begin();
	CUmemoryPool pool = pool_new(0), next;
	CUdeviceptr address = take_from(pool, MIB, NULL), other;

	check_ok(cuMemPoolDestroy(pool));
	check_cu(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuMemAllocFromPoolAsync(&other, MIB, pool, NULL),
		CUDA_ERROR_INVALID_VALUE);
	fill(&fixture, address, 5, NULL);
	check_words(address, 5);
	check_ok(cuMemFreeAsync(address, NULL));
	check_ok(cuCtxSynchronize());
	next = pool_new(0);
	check(next != pool);
	check_eq(reserved(next), 0);
	check_ok(cuMemPoolDestroy(next));
}

TEST(streams_allocate_from_the_current_pool_of_their_device)
{
	CUmemLocation location = here;
	CUmemoryPool normal = NULL, pool, found = NULL;
	CUdeviceptr address;

	begin();
	check_ok(cuDeviceGetDefaultMemPool(&normal, 0));
	check_ok(cuDeviceGetMemPool(&found, 0));
	check(normal && found == normal);
	check_cu(cuMemPoolDestroy(normal), CUDA_ERROR_INVALID_VALUE);
	pool = pool_new(0);
	check_ok(cuDeviceSetMemPool(0, pool));
	check_ok(cuDeviceGetMemPool(&found, 0));
	check(found == pool);
	address = take(MIB, NULL);
	check_eq(used(pool), MIB);
	check_eq(used(normal), 0);
	check_ok(cuMemFreeAsync(address, NULL));
	check_ok(cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, normal));
	check_ok(cuMemGetMemPool(&found, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
	check(found == normal);
	check_ok(cuDeviceSetMemPool(0, pool));
	check_ok(cuMemPoolDestroy(pool));
	check_ok(
		cuMemGetDefaultMemPool(&found, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
	check(found == normal);
	check_ok(cuDeviceGetMemPool(&found, 0));
	check(found == normal);
}

TEST(a_pointer_tells_its_pool_and_its_block)
{
	CUmemoryPool pool, found = NULL;
	CUdeviceptr a, b, base = 0;
	size_t size = 0;
	int ordinal = -1;
	unsigned int kind = 0;

	begin();
	pool = pool_new(0);
	a = take_from(pool, 3 * MIB, NULL);
	b = take_from(pool, 1000, NULL);
	check_ok(cuPointerGetAttribute(
		&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a + 17));
	check(found == pool);
	check_ok(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, b));
	check_eq(base, b);
	check_ok(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, b));
	check_eq(kind, CU_MEMORYTYPE_DEVICE);
	check_ok(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, b));
	check_eq(ordinal, 0);
	check_ok(cuMemGetAddressRange(&base, &size, a + MIB));
	check_eq(base, a);
	check_eq(size, 3 * MIB);
	check_ok(cuMemFreeAsync(a, NULL));
	check_cu(cuMemGetAddressRange(&base, &size, a), CUDA_ERROR_NOT_FOUND);
	check_cu(cuMemUnmap(a, 3 * MIB), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemFree(b));
	check_ok(cuMemPoolDestroy(pool));
}

TEST(a_pool_has_its_limit_and_recovers_from_it)
{
	CUmemoryPool pool;
	CUdeviceptr a, b;

	begin();
	pool = pool_new(8 * MIB);
	a = take_from(pool, 5 * MIB, NULL);
	check_cu(cuMemAllocFromPoolAsync(&b, 5 * MIB, pool, NULL),
		CUDA_ERROR_OUT_OF_MEMORY);
	check_cu(cuMemAllocFromPoolAsync(&b, SIZE_MAX, pool, NULL),
		CUDA_ERROR_OUT_OF_MEMORY);
	check_ok(cuMemFreeAsync(a, NULL));
	a = take_from(pool, 5 * MIB, NULL);
	check_ok(cuMemsetD8(a, 9, 5 * MIB));
	check_ok(cuMemFreeAsync(a, NULL));
	check_ok(cuMemPoolDestroy(pool));
}

TEST(memory_of_other_pools_is_collected_before_it_is_short)
{
	CUmemoryPool first, second;
	size_t free_size, total;
	CUdeviceptr address;
	CUstream stream;

	begin();
	stream = stream_new(CU_STREAM_NON_BLOCKING);
	first = pool_new(0);
	second = pool_new(0);
	set_number(first, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
	check_ok(cuMemGetInfo(&free_size, &total));
	/* Nearly all: once in one pool, and then in the other. */
	free_size -= free_size / 8;
	check_ok(cuMemFreeAsync(take_from(first, free_size, stream), stream));
	check(reserved(first) >= free_size);
	address = take_from(second, free_size, NULL);
	check_eq(reserved(first), 0);
	check_ok(cuMemsetD8(address, 1, MIB));
	check_ok(cuMemFree(address));
	check_ok(cuMemPoolDestroy(first));
	check_ok(cuMemPoolDestroy(second));
}

TEST(blocks_of_a_destroyed_stream_are_used_again)
{
	struct fixture fixture = begin();
	CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
	CUmemoryPool pool = pool_new(8 * MIB);
	CUdeviceptr address = take_from(pool, 8 * MIB, stream);

	fill(&fixture, address, 1, stream);
	check_ok(cuMemFreeAsync(address, stream));
	check_ok(cuStreamDestroy(stream));
	check_eq(take_from(pool, 8 * MIB, NULL), address);
	check_ok(cuMemFree(address));
	check_ok(cuMemPoolDestroy(pool));
}

TEST(access_is_that_of_the_own_device)
{
	const CUmemAccessDesc none = { here, CU_MEM_ACCESS_FLAGS_PROT_NONE };
	const CUmemAccessDesc all = { here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	CUmemLocation location = here;
	CUmemoryPool pool;

	begin();
	pool = pool_new(0);
	check_ok(cuMemPoolGetAccess(&flags, pool, &location));
	check_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	check_ok(cuMemPoolSetAccess(pool, &all, 1));
	check_cu(cuMemPoolSetAccess(pool, &none, 1), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemPoolDestroy(pool));
}

TEST(a_reset_context_frees_its_blocks)
{
	CUdeviceptr address;
	CUmemoryPool pool;
	CUcontext context;

	begin();
	pool = pool_new(0);
	address = take_from(pool, MIB, NULL);
	check_ok(cuDevicePrimaryCtxReset(0));
	check_ok(cuDevicePrimaryCtxRetain(&context, 0));
	check_ok(cuCtxSetCurrent(context));
	check_eq(used(pool), 0);
	check_cu(cuMemFreeAsync(address, NULL), CUDA_ERROR_INVALID_VALUE);
	check_ok(cuMemPoolDestroy(pool));
}

enum { THREADS = 4, ROUNDS = 60, BLOCKS = 6 };

struct user {
	const struct fixture *fixture;
	CUmemoryPool pool;
	unsigned int number;
};

/* Each block is filled twice, and read after its stream alone was waited for: another
 * thread that had the same memory would be seen. */
static void *use_pool(void *data)
{
	const struct user *user = data;
	CUfunction fill;
	CUstream stream;

	check_ok(cuCtxSetCurrent(user->fixture->context));
	fill = fixture_function(user->fixture, "fill");
	stream = stream_new(CU_STREAM_NON_BLOCKING);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		CUdeviceptr all[BLOCKS];

		for (unsigned int j = 0; j < BLOCKS; j++) {
			all[j] = take_from(user->pool, 4096 << j, stream);
			check_ok(launch_fill(fill, all[j], 0, 1024 << j, stream));
			check_ok(launch_fill(
				fill, all[j], user->number + j, 1024 << j, stream));
		}
		check_ok(cuStreamSynchronize(stream));
		for (unsigned int j = 0; j < BLOCKS; j++) {
			check_eq(device_word(all[j]), user->number + j);
			check_eq(device_word(all[j] + (4096 << j) - 4), user->number + j);
			check_ok(cuMemFreeAsync(all[j], stream));
		}
	}
	check_ok(cuStreamDestroy(stream));
	return NULL;
}

TEST(threads_share_a_pool)
{
	struct fixture fixture = begin();
	struct user users[THREADS];
	pthread_t threads[THREADS];
	CUmemoryPool pool = pool_new(0);

	for (unsigned int i = 0; i < THREADS; i++) {
		users[i] = (struct user){ &fixture, pool, 100 * (i + 1) };
		check_eq(pthread_create(&threads[i], NULL, use_pool, &users[i]), 0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		check_eq(pthread_join(threads[i], NULL), 0);
	check_eq(used(pool), 0);
	check_ok(cuCtxSynchronize());
	check_ok(cuMemPoolTrimTo(pool, 0));
	check_eq(reserved(pool), 0);
	check_ok(cuMemPoolDestroy(pool));
}
