/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory of the guest, on a driver that only counts
 */

#include "fixture.h"
#include "test.h"
#include "worker/base/ranges.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/virtual.h"

#define UNIT (2ull << 20)

static struct fixture fixture;

/* The driver's state. */
static struct {
	CUdeviceptr next; /* address */
	int n_reserved;
	int n_memories;
	int n_mapped; /* units */
	int n_calls;
	CUresult result; /* of the next call */
	/* What is registered outside of the arena. */
	int n_registered;
	uint64_t registered;
} driver;

static CUresult answer(void)
{
	CUresult result = driver.result;

	driver.result = CUDA_SUCCESS;
	driver.n_calls++;
	return result;
}

static CUresult reserve(CUdeviceptr *address, size_t size, size_t alignment,
	CUdeviceptr wanted, unsigned long long flags)
{
	CUresult result = answer();

	*address = driver.next;
	driver.next += result ? 0 : size;
	driver.n_reserved += !result;
	return result;
}

static CUresult unreserve(CUdeviceptr address, size_t size)
{
	driver.n_reserved--;
	return answer();
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUresult result = answer();

	*handle = 77;
	driver.n_memories += !result;
	return result;
}

static CUresult destroy(CUmemGenericAllocationHandle handle)
{
	check_eq(handle, 77);
	driver.n_memories--;
	return answer();
}

static CUresult map(CUdeviceptr address, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	CUresult result = answer();

	check_eq(handle, 77);
	driver.n_mapped += result ? 0 : (int)(size / UNIT);
	return result;
}

static CUresult unmap(CUdeviceptr address, size_t size)
{
	CUresult result = answer();

	driver.n_mapped -= result ? 0 : (int)(size / UNIT);
	return result;
}

static CUresult set_access(
	CUdeviceptr address, size_t size, const CUmemAccessDesc *descs, size_t n)
{
	return answer();
}

static CUresult granularity(size_t *size, const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags option)
{
	check_eq(prop->location.type, CU_MEM_LOCATION_TYPE_DEVICE);
	*size = UNIT;
	return CUDA_SUCCESS;
}

static bool is_of_reservation(const void *memory)
{
	return (uintptr_t)memory >= fixture.window.base + FIXTURE_SHM_SIZE;
}

static CUresult enroll(void *memory, size_t size, unsigned int flags)
{
	CUresult result = CUDA_SUCCESS;

	if (!is_of_reservation(memory))
		return CUDA_SUCCESS;
	result = answer();
	driver.registered = (uintptr_t)memory;
	driver.n_registered += !result;
	return result;
}

static CUresult dismiss(void *memory)
{
	driver.n_registered -= is_of_reservation(memory);
	return CUDA_SUCCESS;
}

static void begin(void)
{
	struct vgpu_driver *table = &fixture.driver.table;

	fixture_init(&fixture);
	table->cuMemAddressReserve = reserve;
	table->cuMemAddressFree = unreserve;
	table->cuMemCreate = create;
	table->cuMemRelease = destroy;
	table->cuMemMap = map;
	table->cuMemUnmap = unmap;
	table->cuMemSetAccess = set_access;
	table->cuMemGetAllocationGranularity = granularity;
	table->cuMemHostRegister_v2 = enroll;
	table->cuMemHostUnregister = dismiss;
	driver.next = fixture.window.base + FIXTURE_SHM_SIZE;
}

static CUresult run(uint32_t call, const ProtobufCMessage *request)
{
	check_eq(fixture_call(&fixture, 0, call, VGPU_FRAME_REPLY, request), 0);
	return fixture.result;
}

static const void *reply(const ProtobufCMessageDescriptor *descriptor)
{
	const void *message = protobuf_c_message_unpack(
		descriptor, NULL, fixture.reply_size, fixture.reply);

	check(message);
	return message;
}

static uint64_t must_reserve(uint64_t size)
{
	Vgpu__CuMemAddressReserveRequest request =
		VGPU__CU_MEM_ADDRESS_RESERVE_REQUEST__INIT;
	Vgpu__CuMemAddressReserveReply *got;
	uint64_t address;

	request.size = size;
	check_eq(run(VGPU_CALL_cuMemAddressReserve, &request.base), CUDA_SUCCESS);
	got = (void *)reply(&vgpu__cu_mem_address_reserve_reply__descriptor);
	address = got->ptr;
	protobuf_c_message_free_unpacked(&got->base, NULL);
	return address;
}

static CUresult release_range(uint64_t address, uint64_t size)
{
	Vgpu__CuMemAddressFreeRequest request = VGPU__CU_MEM_ADDRESS_FREE_REQUEST__INIT;

	request.ptr = address;
	request.size = size;
	return run(VGPU_CALL_cuMemAddressFree, &request.base);
}

static CUresult make_memory(uint64_t size, uint64_t *handlep)
{
	Vgpu__CuMemCreateRequest request = VGPU__CU_MEM_CREATE_REQUEST__INIT;
	Vgpu__CuMemCreateReply *got;

	request.size = size;
	if (run(VGPU_CALL_cuMemCreate, &request.base) != CUDA_SUCCESS)
		return fixture.result;
	got = (void *)reply(&vgpu__cu_mem_create_reply__descriptor);
	*handlep = got->handle;
	protobuf_c_message_free_unpacked(&got->base, NULL);
	return CUDA_SUCCESS;
}

static CUresult release_memory(uint64_t handle)
{
	Vgpu__CuMemReleaseRequest request = VGPU__CU_MEM_RELEASE_REQUEST__INIT;

	request.handle = handle;
	return run(VGPU_CALL_cuMemRelease, &request.base);
}

static CUresult map_memory(uint64_t address, uint64_t size, uint64_t handle)
{
	Vgpu__CuMemMapRequest request = VGPU__CU_MEM_MAP_REQUEST__INIT;

	request.ptr = address;
	request.size = size;
	request.handle = handle;
	return run(VGPU_CALL_cuMemMap, &request.base);
}

static CUresult unmap_memory(uint64_t address, uint64_t size)
{
	Vgpu__CuMemUnmapRequest request = VGPU__CU_MEM_UNMAP_REQUEST__INIT;

	request.ptr = address;
	request.size = size;
	return run(VGPU_CALL_cuMemUnmap, &request.base);
}

static CUresult set_rights(uint64_t address, uint64_t size, const void *rights, size_t n)
{
	Vgpu__CuMemSetAccessRequest request = VGPU__CU_MEM_SET_ACCESS_REQUEST__INIT;

	request.ptr = address;
	request.size = size;
	request.rights.data = (uint8_t *)rights;
	request.rights.len = n;
	return run(VGPU_CALL_cuMemSetAccess, &request.base);
}

static CUresult retain(uint64_t address, uint64_t *handlep)
{
	Vgpu__CuMemRetainAllocationHandleRequest request =
		VGPU__CU_MEM_RETAIN_ALLOCATION_HANDLE_REQUEST__INIT;
	Vgpu__CuMemRetainAllocationHandleReply *got;

	request.ptr = address;
	if (run(VGPU_CALL_cuMemRetainAllocationHandle, &request.base) != CUDA_SUCCESS)
		return fixture.result;
	got = (void *)reply(&vgpu__cu_mem_retain_allocation_handle_reply__descriptor);
	*handlep = got->handle;
	protobuf_c_message_free_unpacked(&got->base, NULL);
	return CUDA_SUCCESS;
}

TEST(only_addresses_that_the_guest_reserved_reach_the_driver)
{
	const uint64_t right[1] = { 3ull << 32 };
	uint64_t address, handle = 0;
	int n_calls;

	begin();
	address = must_reserve(2 * UNIT);
	check_eq(make_memory(UNIT, &handle), CUDA_SUCCESS);
	n_calls = driver.n_calls;
	check_eq(map_memory(address - UNIT, UNIT, handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(map_memory(address + UNIT, 2 * UNIT, handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(map_memory(fixture.arena, UNIT, handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(map_memory(address, -UNIT, handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(map_memory(address, 0, handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(unmap_memory(address, UNIT), CUDA_ERROR_INVALID_VALUE);
	check_eq(unmap_memory(address, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(set_rights(address, UNIT, right, 8), CUDA_ERROR_INVALID_VALUE);
	check_eq(release_range(address + UNIT, UNIT), CUDA_ERROR_INVALID_VALUE);
	check_eq(release_range(address, UNIT), CUDA_ERROR_INVALID_VALUE);
	check_eq(release_range(fixture.arena, UNIT), CUDA_ERROR_INVALID_VALUE);
	check_eq(driver.n_calls, n_calls);
	check_eq(release_memory(handle), CUDA_SUCCESS);
	check_eq(release_range(address, 2 * UNIT), CUDA_SUCCESS);
	check_eq(driver.n_reserved, 0);
	fixture_deinit(&fixture);
}

TEST(whole_mappings_are_unmapped_and_given_rights)
{
	const uint64_t right[2] = { 3ull << 32, 3ull << 32 | 99 };
	uint64_t address, handle = 0;
	int n_calls;

	begin();
	address = must_reserve(4 * UNIT);
	check_eq(make_memory(2 * UNIT, &handle), CUDA_SUCCESS);
	check_eq(map_memory(address, 2 * UNIT, handle), CUDA_SUCCESS);
	check_eq(map_memory(address + 2 * UNIT, UNIT, handle), CUDA_SUCCESS);
	check(ranges_cover(&fixture.session.ranges, address, 3 * UNIT));
	n_calls = driver.n_calls;
	check_eq(release_range(address, 4 * UNIT), CUDA_ERROR_INVALID_VALUE);
	check_eq(unmap_memory(address, UNIT), CUDA_ERROR_INVALID_VALUE);
	check_eq(unmap_memory(address + UNIT, 2 * UNIT), CUDA_ERROR_INVALID_VALUE);
	check_eq(unmap_memory(address, 4 * UNIT), CUDA_ERROR_INVALID_VALUE);
	check_eq(set_rights(address, UNIT, right, 8), CUDA_ERROR_INVALID_VALUE);
	check_eq(set_rights(address, 3 * UNIT, right, 7), CUDA_ERROR_INVALID_VALUE);
	check_eq(set_rights(address, 3 * UNIT, right, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(set_rights(address, 3 * UNIT, right, 16), CUDA_ERROR_INVALID_DEVICE);
	check_eq(driver.n_calls, n_calls);
	check_eq(set_rights(address, 3 * UNIT, right, 8), CUDA_SUCCESS);
	check_eq(unmap_memory(address, 3 * UNIT), CUDA_SUCCESS);
	check(!ranges_cover(&fixture.session.ranges, address, 1));
	check_eq(driver.n_mapped, 0);
	check_eq(release_memory(handle), CUDA_SUCCESS);
	fixture_deinit(&fixture);
}

TEST(memory_is_charged_once_until_nothing_keeps_it)
{
	uint64_t address, handle = 0, again = 0;

	begin();
	fixture_limit_memory(&fixture, 3 * UNIT);
	address = must_reserve(4 * UNIT);
	check_eq(make_memory(2 * UNIT, &handle), CUDA_SUCCESS);
	check_eq(fixture.stats.device_memory, 2 * UNIT);
	check_eq(make_memory(2 * UNIT, &again), CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(driver.n_memories, 1);
	check_eq(map_memory(address, 2 * UNIT, handle), CUDA_SUCCESS);
	check_eq(map_memory(address + 2 * UNIT, 2 * UNIT, handle), CUDA_SUCCESS);
	check_eq(fixture.stats.device_memory, 2 * UNIT);
	check_eq(release_memory(handle), CUDA_SUCCESS);
	check_eq(release_memory(handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(map_memory(address, UNIT, handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(driver.n_memories, 1);

	check_eq(retain(address + 3 * UNIT, &again), CUDA_SUCCESS);
	check(again != handle);
	check_eq(unmap_memory(address, 2 * UNIT), CUDA_SUCCESS);
	check_eq(retain(address, &handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(unmap_memory(address + 2 * UNIT, 2 * UNIT), CUDA_SUCCESS);
	check_eq(fixture.stats.device_memory, 2 * UNIT);
	check_eq(release_memory(again), CUDA_SUCCESS);
	check_eq(fixture.stats.device_memory, 0);
	check_eq(driver.n_memories, 0);
	fixture_deinit(&fixture);
}

TEST(handles_are_counted)
{
	uint64_t address, handle = 0, again = 0;

	begin();
	address = must_reserve(UNIT);
	check_eq(make_memory(UNIT, &handle), CUDA_SUCCESS);
	check_eq(map_memory(address, UNIT, handle), CUDA_SUCCESS);
	check_eq(retain(address + 5, &again), CUDA_SUCCESS);
	check_eq(again, handle);
	check_eq(unmap_memory(address, UNIT), CUDA_SUCCESS);
	check_eq(release_memory(handle), CUDA_SUCCESS);
	check_eq(driver.n_memories, 1);
	check_eq(release_memory(handle), CUDA_SUCCESS);
	check_eq(driver.n_memories, 0);
	check_eq(release_memory(handle), CUDA_ERROR_INVALID_VALUE);
	fixture_deinit(&fixture);
}

TEST(handles_of_other_kinds_are_refused)
{
	uint64_t address;

	begin();
	address = must_reserve(UNIT);
	check_eq(map_memory(address, UNIT, 0), CUDA_ERROR_INVALID_VALUE);
	check_eq(map_memory(address, UNIT, 77), CUDA_ERROR_INVALID_VALUE);
	check_eq(map_memory(address, UNIT, fixture.context), CUDA_ERROR_INVALID_VALUE);
	check_eq(release_memory(fixture.context), CUDA_ERROR_INVALID_VALUE);
	check_eq(release_memory(UINT64_MAX), CUDA_ERROR_INVALID_VALUE);
	fixture_deinit(&fixture);
}

TEST(what_the_driver_refuses_leaves_nothing)
{
	uint64_t address, handle = 0;

	begin();
	address = must_reserve(UNIT);
	driver.result = CUDA_ERROR_OUT_OF_MEMORY;
	check_eq(make_memory(UNIT, &handle), CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(fixture.stats.device_memory, 0);
	check_eq(make_memory(UNIT, &handle), CUDA_SUCCESS);
	driver.result = CUDA_ERROR_INVALID_VALUE;
	check_eq(map_memory(address, UNIT, handle), CUDA_ERROR_INVALID_VALUE);
	check(!ranges_cover(&fixture.session.ranges, address, 1));
	check_eq(map_memory(address, UNIT, handle), CUDA_SUCCESS);
	driver.result = CUDA_ERROR_UNKNOWN;
	check_eq(unmap_memory(address, UNIT), CUDA_ERROR_UNKNOWN);
	check(ranges_cover(&fixture.session.ranges, address, UNIT));
	check_eq(unmap_memory(address, UNIT), CUDA_SUCCESS);
	check_eq(release_memory(handle), CUDA_SUCCESS);
	check_eq(driver.n_memories, 0);
	fixture_deinit(&fixture);
}

TEST(a_driver_without_virtual_memory_is_not_called)
{
	Vgpu__CuMemAddressReserveRequest request =
		VGPU__CU_MEM_ADDRESS_RESERVE_REQUEST__INIT;
	uint64_t handle = 0;

	fixture_init(&fixture);
	request.size = UNIT;
	check_eq(run(VGPU_CALL_cuMemAddressReserve, &request.base),
		CUDA_ERROR_NOT_SUPPORTED);
	check_eq(make_memory(UNIT, &handle), CUDA_ERROR_NOT_SUPPORTED);
	check_eq(map_memory(0, UNIT, 1), CUDA_ERROR_NOT_SUPPORTED);
	check_eq(unmap_memory(0, UNIT), CUDA_ERROR_NOT_SUPPORTED);
	check_eq(release_memory(1), CUDA_ERROR_NOT_SUPPORTED);
	check_eq(release_range(0, UNIT), CUDA_ERROR_NOT_SUPPORTED);
	check_eq(retain(0, &handle), CUDA_ERROR_NOT_SUPPORTED);
	check_eq(set_rights(0, UNIT, &handle, 8), CUDA_ERROR_NOT_SUPPORTED);
	fixture_deinit(&fixture);
}

/*
 * Memory on the host
 */

static CUresult make_host_memory(uint64_t size, uint64_t arena, uint64_t *handlep)
{
	Vgpu__CuMemCreateRequest request = VGPU__CU_MEM_CREATE_REQUEST__INIT;
	Vgpu__CuMemCreateReply *got;

	request.size = size;
	request.device = -1;
	request.arena_address = arena;
	if (run(VGPU_CALL_cuMemCreate, &request.base) != CUDA_SUCCESS)
		return fixture.result;
	got = (void *)reply(&vgpu__cu_mem_create_reply__descriptor);
	*handlep = got->handle;
	protobuf_c_message_free_unpacked(&got->base, NULL);
	return CUDA_SUCCESS;
}

/* Of the guest's processors, or of a device: read and write, or nothing. */
static CUresult open_to(int32_t who, uint64_t address, uint64_t size, bool is_open)
{
	const struct vgpu_right right = { who, is_open ? 3 : 0 };

	return set_rights(address, size, &right, sizeof(right));
}

static uint64_t access_of(uint64_t address, int32_t who)
{
	Vgpu__CuMemGetAccessRequest request = VGPU__CU_MEM_GET_ACCESS_REQUEST__INIT;
	Vgpu__CuMemGetAccessReply *got;
	uint64_t flags;

	request.ptr = address;
	request.device = who;
	check_eq(run(VGPU_CALL_cuMemGetAccess, &request.base), CUDA_SUCCESS);
	got = (void *)reply(&vgpu__cu_mem_get_access_reply__descriptor);
	flags = got->flags;
	protobuf_c_message_free_unpacked(&got->base, NULL);
	return flags;
}

static uint32_t *at(uint64_t address)
{
	return (uint32_t *)(uintptr_t)address;
}

/* The first call in a context registers the arena. */
static void begin_context(void)
{
	Vgpu__CuCtxSynchronizeRequest request = VGPU__CU_CTX_SYNCHRONIZE_REQUEST__INIT;

	fixture_enter(&fixture, 0);
	check_eq(run(VGPU_CALL_cuCtxSynchronize, &request.base), CUDA_SUCCESS);
}

TEST(only_the_sessions_own_arena_is_memory_on_the_host)
{
	uint64_t handle = 0;

	begin();
	check_eq(make_host_memory(UNIT, fixture.arena - UNIT, &handle),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(make_host_memory(UNIT, fixture.window.base, &handle),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(make_host_memory(UNIT, fixture.arena + 1, &handle),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(make_host_memory((FIXTURE_N_EXTENTS + 1) * UNIT, fixture.arena, &handle),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(make_host_memory(
			 UNIT, fixture.arena + FIXTURE_N_EXTENTS * UNIT - 4096, &handle),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(make_host_memory(-UNIT, fixture.arena, &handle),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(make_host_memory(UNIT, -UNIT, &handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(make_host_memory(0, fixture.arena, &handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(
		make_host_memory(4096, fixture.arena, &handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(make_host_memory(FIXTURE_N_EXTENTS * UNIT, fixture.arena, &handle),
		CUDA_SUCCESS);
	check_eq(release_memory(handle), CUDA_SUCCESS);
	check_eq(release_memory(handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(fixture.stats.device_memory, 0);
	fixture_deinit(&fixture);
}

TEST(memory_on_the_host_is_at_both_addresses_and_registered_while_open)
{
	uint64_t address, handle = 0;

	begin();
	begin_context();
	address = must_reserve(4 * UNIT);
	check_eq(make_host_memory(2 * UNIT, fixture.arena + UNIT, &handle), CUDA_SUCCESS);
	check_eq(map_memory(address + UNIT, 2 * UNIT, handle), CUDA_SUCCESS);
	check(ranges_cover(&fixture.session.ranges, address + UNIT, 2 * UNIT));
	check_eq(map_memory(address + UNIT, UNIT, handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(map_memory(address, 3 * UNIT, handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(map_memory(address, 2 * UNIT, handle), CUDA_ERROR_INVALID_VALUE);
	check_eq(map_memory(address, 4096, handle), CUDA_ERROR_INVALID_VALUE);
	*at(fixture.arena + UNIT + 40) = 7;
	check_eq(*at(address + UNIT + 40), 7);
	check_eq(driver.n_registered, 0);
	check_eq(access_of(address + UNIT, 0), 0);

	check_eq(open_to(-1, address + UNIT, 2 * UNIT, true), CUDA_SUCCESS);
	check_eq(driver.n_registered, 0);
	check_eq(access_of(address + UNIT, -1), 3);
	check_eq(open_to(0, address + UNIT, 2 * UNIT, true), CUDA_SUCCESS);
	check_eq(driver.n_registered, 1);
	check_eq(driver.registered, address + UNIT);
	check_eq(access_of(address + 3 * UNIT - 1, 0), 3);
	check_eq(open_to(0, address + UNIT, 2 * UNIT, true), CUDA_SUCCESS);
	check_eq(driver.n_registered, 1);
	check_eq(open_to(0, address + UNIT, 2 * UNIT, false), CUDA_SUCCESS);
	check_eq(driver.n_registered, 0);
	check_eq(open_to(-2, address + UNIT, 2 * UNIT, true), CUDA_ERROR_INVALID_DEVICE);
	check_eq(open_to(0, address + UNIT, UNIT, true), CUDA_ERROR_INVALID_VALUE);

	check_eq(open_to(0, address + UNIT, 2 * UNIT, true), CUDA_SUCCESS);
	check_eq(release_memory(handle), CUDA_SUCCESS);
	check_eq(*at(address + UNIT + 40), 7);
	check_eq(unmap_memory(address + UNIT, 2 * UNIT), CUDA_SUCCESS);
	check_eq(driver.n_registered, 0);
	/* Ordinary memory, which the driver may use. */
	check_eq(*at(address + UNIT + 40), 0);
	check_eq(*at(fixture.arena + UNIT + 40), 7);
	check_eq(release_range(address, 4 * UNIT), CUDA_SUCCESS);
	check_eq(driver.n_memories, 0);
	check_eq(driver.n_mapped, 0);
	fixture_deinit(&fixture);
}

TEST(rights_begin_with_the_first_context)
{
	uint64_t address, handle = 0;

	begin();
	address = must_reserve(UNIT);
	check_eq(make_host_memory(UNIT, fixture.arena, &handle), CUDA_SUCCESS);
	check_eq(map_memory(address, UNIT, handle), CUDA_SUCCESS);
	check_eq(open_to(0, address, UNIT, true), CUDA_SUCCESS);
	check_eq(driver.n_registered, 0);
	begin_context();
	check_eq(driver.n_registered, 1);
	check_eq(unmap_memory(address, UNIT), CUDA_SUCCESS);
	check_eq(driver.n_registered, 0);
	check_eq(release_memory(handle), CUDA_SUCCESS);
	fixture_deinit(&fixture);
}

TEST(a_refused_registration_gives_no_access)
{
	uint64_t address, handle = 0;

	begin();
	begin_context();
	address = must_reserve(UNIT);
	check_eq(make_host_memory(UNIT, fixture.arena, &handle), CUDA_SUCCESS);
	check_eq(map_memory(address, UNIT, handle), CUDA_SUCCESS);
	driver.result = CUDA_ERROR_OUT_OF_MEMORY;
	check_eq(open_to(0, address, UNIT, true), CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(access_of(address, 0), 0);
	check_eq(driver.n_registered, 0);
	check_eq(open_to(0, address, UNIT, true), CUDA_SUCCESS);
	check_eq(driver.n_registered, 1);
	check_eq(unmap_memory(address, UNIT), CUDA_SUCCESS);
	check_eq(release_memory(handle), CUDA_SUCCESS);
	fixture_deinit(&fixture);
}

TEST(memory_of_both_kinds_is_unmapped_piece_by_piece)
{
	uint64_t address, here = 0, there = 0;

	begin();
	begin_context();
	address = must_reserve(3 * UNIT);
	check_eq(make_host_memory(UNIT, fixture.arena, &here), CUDA_SUCCESS);
	check_eq(make_memory(UNIT, &there), CUDA_SUCCESS);
	check_eq(map_memory(address, UNIT, here), CUDA_SUCCESS);
	check_eq(map_memory(address + UNIT, UNIT, there), CUDA_SUCCESS);
	check_eq(map_memory(address + 2 * UNIT, UNIT, here), CUDA_SUCCESS);
	check_eq(open_to(-1, address, 3 * UNIT, true), CUDA_ERROR_INVALID_VALUE);
	check_eq(open_to(-1, address + UNIT, UNIT, true), CUDA_ERROR_INVALID_VALUE);
	check_eq(open_to(0, address, 3 * UNIT, true), CUDA_SUCCESS);
	check_eq(driver.n_registered, 2);
	check_eq(unmap_memory(address, 3 * UNIT), CUDA_SUCCESS);
	check_eq(driver.n_registered, 0);
	check_eq(driver.n_mapped, 0);
	check(!ranges_cover(&fixture.session.ranges, address, 1));
	check_eq(release_memory(here), CUDA_SUCCESS);
	check_eq(release_memory(there), CUDA_SUCCESS);
	check_eq(driver.n_memories, 0);
	fixture_deinit(&fixture);
}

TEST(pieces_on_the_host_are_limited)
{
	static uint64_t handles[VIRTUAL_HOST_MAX];
	uint64_t last = 0;

	begin();
	for (uint32_t i = 0; i < VIRTUAL_HOST_MAX; i++)
		check_eq(
			make_host_memory(UNIT, fixture.arena, &handles[i]), CUDA_SUCCESS);
	check_eq(make_host_memory(UNIT, fixture.arena, &last), CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(release_memory(handles[7]), CUDA_SUCCESS);
	check_eq(make_host_memory(UNIT, fixture.arena, &handles[7]), CUDA_SUCCESS);
	for (uint32_t i = 0; i < VIRTUAL_HOST_MAX; i++)
		check_eq(release_memory(handles[i]), CUDA_SUCCESS);
	fixture_deinit(&fixture);
}
