/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement: memory of a driver that is asked for addresses in the window
 */

#include <string.h>
#include <sys/mman.h>

#include "test.h"
#include "vgpu/checked.h"
#include "worker/base/session.h"
#include "worker/memory/mover.h"
#include "worker/memory/placement.h"

#define GRANULE (2ull << 20)
#define N_PIECES 64u

/* The driver's state: reserved addresses, and which of them have memory. */
static struct piece {
	uint64_t address;
	uint64_t size;
	bool mapped;
	bool accessible;
} pieces[N_PIECES];

static unsigned int n_physical;
static uint64_t moved_by; /* how far from where it was asked the driver reserves */
static CUresult next_create;
static unsigned int handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

static struct piece *find(uint64_t address)
{
	size_t i;

	for (i = 0; i < N_PIECES; i++)
		if (pieces[i].size && pieces[i].address == address)
			return &pieces[i];
	return NULL;
}

static CUresult reserve(CUdeviceptr *address, size_t size, size_t alignment,
	CUdeviceptr wanted, unsigned long long flags)
{
	size_t i;

	for (i = 0; i < N_PIECES; i++)
		check(!pieces[i].size || wanted + size <= pieces[i].address ||
			pieces[i].address + pieces[i].size <= wanted);
	for (i = 0; pieces[i].size; i++)
		check(i + 1 < N_PIECES);
	*address = wanted + moved_by;
	pieces[i] = (struct piece){ .address = *address, .size = size };
	return CUDA_SUCCESS;
}

static CUresult unreserve(CUdeviceptr address, size_t size)
{
	struct piece *piece = find(address);

	check(piece && piece->size == size && !piece->mapped);
	piece->size = 0;
	return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	check_eq(size % GRANULE, 0);
	check_eq(prop->location.type, CU_MEM_LOCATION_TYPE_DEVICE);
	check_eq(prop->requestedHandleTypes, handle_types);
	if (next_create == CUDA_SUCCESS)
		*handle = ++n_physical;
	return next_create;
}

static CUresult destroy(CUmemGenericAllocationHandle handle)
{
	n_physical--;
	return CUDA_SUCCESS;
}

static CUresult map(CUdeviceptr address, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct piece *piece = find(address);

	check(piece && !piece->mapped && piece->size == size && !offset);
	piece->mapped = true;
	return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr address, size_t size)
{
	struct piece *piece = find(address);

	check(piece && piece->mapped && piece->size == size);
	piece->mapped = false;
	return CUDA_SUCCESS;
}

static CUresult set_access(
	CUdeviceptr address, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	find(address)->accessible = true;
	return CUDA_SUCCESS;
}

static CUresult granularity(size_t *size, const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags flags)
{
	*size = GRANULE;
	return CUDA_SUCCESS;
}

static CUresult attribute(int *value, CUdevice_attribute which, CUdevice device)
{
	*value = 1;
	return CUDA_SUCCESS;
}

static CUmemGenericAllocationHandle exported;

static CUresult export_memory(void *handle, CUmemGenericAllocationHandle memory,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	exported = memory;
	*(int *)handle = 77;
	return CUDA_SUCCESS;
}

/* Memory of the device, of which there is this much at the first address copied. */
static uint8_t bytes[4096];
static uint64_t bytes_at;

static CUresult copy_out(void *host, CUdeviceptr from, size_t size)
{
	check(find(from & ~(GRANULE - 1))->mapped);
	memcpy(host, bytes + (from - bytes_at), size);
	return CUDA_SUCCESS;
}

static CUresult copy_in(CUdeviceptr to, const void *host, size_t size)
{
	check(find(to & ~(GRANULE - 1))->mapped);
	memcpy(bytes + (to - bytes_at), host, size);
	return CUDA_SUCCESS;
}

static struct driver driver = {
	.table = {
		.cuMemAddressReserve = reserve,
		.cuMemAddressFree = unreserve,
		.cuMemCreate = create,
		.cuMemRelease = destroy,
		.cuMemMap = map,
		.cuMemUnmap = unmap,
		.cuMemSetAccess = set_access,
		.cuMemGetAllocationGranularity = granularity,
		.cuDeviceGetAttribute = attribute,
		.cuMemExportToShareableHandle = export_memory,
		.cuMemcpyDtoH_v2 = copy_out,
		.cuMemcpyHtoD_v2 = copy_in,
	},
};

static struct session session;

static struct placement *make(void)
{
	session.driver = &driver;
	session.n_devices = 1;
	session.window = (struct vgpu_window){ 0x550000000000ull, 1ull << 32 };
	session.shm_size = 64ull << 20;
	return placement_new(&session);
}

static uint64_t take(struct placement *placement, uint64_t size)
{
	uint64_t address = 0;

	check_eq(placement_take(placement, 0, size, &address), CUDA_SUCCESS);
	check(vgpu_range_within(address, size, session.window.base + session.shm_size,
		session.window.size - session.shm_size));
	return address;
}

static unsigned int n_held(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < N_PIECES; i++)
		n += pieces[i].size && pieces[i].mapped && pieces[i].accessible;
	return n;
}

TEST(large_memory_has_separate_chunks)
{
	struct placement *placement = make();
	uint64_t a, b;

	check(placement);
	a = take(placement, 5 << 20);
	b = take(placement, 2 << 20);
	check(a != b);
	check_eq(n_held(), 2);
	check_eq(placement_release(placement, a), CUDA_SUCCESS);
	check_eq(n_held(), 1);
	check_eq(take(placement, 5 << 20), a);
	check_eq(placement_release(placement, a), CUDA_SUCCESS);
	check_eq(placement_release(placement, b), CUDA_SUCCESS);
	check_eq(n_held(), 0);
	check_eq(n_physical, 0);
	placement_free(placement);
}

TEST(small_memory_shares_a_slab_without_overlap)
{
	struct placement *placement = make();
	uint64_t addresses[1000];
	size_t i, k;

	for (i = 0; i < 1000; i++) {
		addresses[i] = take(placement, 1 + i % 700);
		check_eq(addresses[i] % 512, 0);
		for (k = 0; k < i; k++)
			check(addresses[i] + 1 + i % 700 <= addresses[k] ||
				addresses[k] + 1 + k % 700 <= addresses[i]);
	}
	check_eq(n_held(), 1);
	for (i = 0; i < 1000; i++)
		check_eq(placement_release(placement, addresses[i]), CUDA_SUCCESS);
	check_eq(n_held(), 0);
	placement_free(placement);
}

TEST(a_full_slab_is_followed_by_another)
{
	struct placement *placement = make();
	uint64_t addresses[5];
	size_t i;

	for (i = 0; i < 5; i++)
		addresses[i] = take(placement, 600 << 10);
	check_eq(n_held(), 2);
	for (i = 0; i < 5; i++)
		check_eq(placement_release(placement, addresses[i]), CUDA_SUCCESS);
	check_eq(n_held(), 0);
	placement_free(placement);
}

TEST(memory_is_where_in_the_window_the_driver_reserves)
{
	struct placement *placement = make();
	uint64_t first, second, other;

	check_eq(placement_take(placement, 0, GRANULE, &first), CUDA_SUCCESS);
	moved_by = GRANULE;
	check_eq(placement_take(placement, 0, GRANULE, &second), CUDA_SUCCESS);
	check_eq(second, first + 2 * GRANULE);
	moved_by = 2 * GRANULE;
	check_eq(placement_reserve(placement, GRANULE, 0, 0, &other), CUDA_SUCCESS);
	moved_by = 0;
	check(find(other));
	check_eq(placement_unreserve(placement, other), CUDA_SUCCESS);
	check(!find(other));
	check_eq(placement_release(placement, first), CUDA_SUCCESS);
	check_eq(placement_release(placement, second), CUDA_SUCCESS);
	placement_free(placement);
}

TEST(a_driver_that_reserves_elsewhere_gives_no_memory)
{
	struct placement *placement = make();
	uint64_t address;

	moved_by = 1ull << 46;
	check_eq(placement_take(placement, 0, GRANULE, &address),
		CUDA_ERROR_OUT_OF_MEMORY);
	moved_by = 0;
	check_eq(n_physical, 0);
	check(!find(address));
	placement_free(placement);
}

TEST(failed_allocations_leak_nothing)
{
	struct placement *placement = make();
	uint64_t address = 0;
	size_t i;

	check_eq(placement_take(placement, 0, 1ull << 40, &address),
		CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(placement_take(placement, 0, UINT64_MAX, &address),
		CUDA_ERROR_OUT_OF_MEMORY);
	next_create = CUDA_ERROR_OUT_OF_MEMORY;
	check_eq(placement_take(placement, 0, 100, &address), CUDA_ERROR_OUT_OF_MEMORY);
	next_create = CUDA_SUCCESS;
	for (i = 0; i < N_PIECES; i++)
		check(!pieces[i].size);
	check_eq(placement_release(placement, session.window.base),
		CUDA_ERROR_INVALID_VALUE);
	placement_free(placement);
}

TEST(a_driver_without_such_calls_has_no_placement)
{
	driver.table.cuMemCreate = NULL;
	check(!make());
}

TEST(addresses_of_the_guest_are_reserved_beside_chunks)
{
	struct placement *placement = make();
	uint64_t chunk = take(placement, GRANULE), behind;
	uint64_t address = 0, hinted = 0, other = 0;

	check_eq(placement_reserve(placement, 3 * GRANULE, 0, 0, &address), CUDA_SUCCESS);
	check(address >= chunk + GRANULE || address + 3 * GRANULE <= chunk);
	behind = take(placement, GRANULE);
	check(behind >= address + 3 * GRANULE);
	check_eq(
		placement_reserve(placement, GRANULE, 0, address + 64 * GRANULE, &hinted),
		CUDA_SUCCESS);
	check_eq(hinted, address + 64 * GRANULE);
	/* Taken, not aligned, and outside of the window: elsewhere. */
	check_eq(placement_reserve(placement, GRANULE, 0, hinted, &other), CUDA_SUCCESS);
	check(other != hinted);
	check_eq(placement_reserve(placement, GRANULE, 0, hinted + 4096, &other),
		CUDA_SUCCESS);
	check_eq(other % GRANULE, 0);
	check_eq(placement_reserve(placement, GRANULE, 0, 4 * GRANULE, &other),
		CUDA_SUCCESS);
	check(other >= session.window.base + session.shm_size);
	check_eq(placement_reserve(placement, GRANULE, 16 * GRANULE, 0, &other),
		CUDA_SUCCESS);
	check_eq(other % (16 * GRANULE), 0);
	check_eq(placement_reserve(placement, GRANULE + 1, 0, 0, &other),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(placement_reserve(placement, 1ull << 40, 0, 0, &other),
		CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(placement_unreserve(placement, hinted), CUDA_SUCCESS);
	check(!find(hinted));
	check_eq(placement_unreserve(placement, hinted), CUDA_ERROR_INVALID_VALUE);
	check_eq(placement_unreserve(placement, chunk), CUDA_ERROR_INVALID_VALUE);
	check_eq(placement_release(placement, chunk), CUDA_SUCCESS);
	check_eq(placement_release(placement, behind), CUDA_SUCCESS);
	placement_free(placement);
}

TEST(reserved_addresses_are_lent_to_the_worker_and_given_back)
{
	struct placement *placement = make();
	uint64_t chunk = take(placement, GRANULE), address = 0, other = 0;
	void *map;

	check_eq(placement_reserve(placement, 2 * GRANULE, 0, 0, &address), CUDA_SUCCESS);
	check_eq(placement_lend(placement, chunk, true), CUDA_ERROR_INVALID_VALUE);
	check_eq(placement_lend(placement, address + GRANULE, true),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(placement_lend(placement, address, true), CUDA_SUCCESS);
	check(!find(address));
	check_eq(placement_lend(placement, address, true), CUDA_SUCCESS);
	/* Nobody else gets them: no chunk, no reservation, no mapping of the process. */
	check_eq(placement_reserve(placement, GRANULE, 0, address, &other), CUDA_SUCCESS);
	check(other != address);
	map = mmap((void *)(uintptr_t)address, 4096, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	check(map == MAP_FAILED);
	check_eq(placement_lend(placement, address, false), CUDA_SUCCESS);
	check(find(address));
	check_eq(placement_lend(placement, address, true), CUDA_SUCCESS);
	check_eq(placement_unreserve(placement, address), CUDA_SUCCESS);
	check_eq(placement_unreserve(placement, address), CUDA_ERROR_INVALID_VALUE);

	/* Addresses that the process uses otherwise stay the driver's. */
	check_eq(placement_reserve(placement, 2 * GRANULE, 0, address, &other),
		CUDA_SUCCESS);
	check_eq(other, address);
	map = mmap((void *)(uintptr_t)address, 4096, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	check(map != MAP_FAILED);
	check_eq(placement_lend(placement, address, true), CUDA_ERROR_OUT_OF_MEMORY);
	check(find(address));
	munmap(map, 4096);
	check_eq(placement_unreserve(placement, address), CUDA_SUCCESS);
	check(!find(address));
	check_eq(placement_release(placement, chunk), CUDA_SUCCESS);
	placement_free(placement);
}

TEST(a_driver_that_reserves_elsewhere_gives_no_addresses)
{
	struct placement *placement = make();
	uint64_t address = 0;

	moved_by = 1ull << 46;
	check_eq(placement_reserve(placement, GRANULE, 0, 0, &address),
		CUDA_ERROR_OUT_OF_MEMORY);
	moved_by = 0;
	check_eq(placement_reserve(placement, GRANULE, 0, 0, &address), CUDA_SUCCESS);
	placement_free(placement);
}

TEST(a_chunk_is_exported_whole)
{
	struct placement *placement = make();
	uint64_t large, small, base, size;
	int fd = -1;

	large = take(placement, 5 << 20);
	small = take(placement, 600);
	check_eq(placement_export(placement, large + 9, &base, &size, &fd), CUDA_SUCCESS);
	check(base == large && size == 3 * GRANULE && fd == 77 && exported == 1);
	check_eq(placement_export(placement, small, &base, &size, &fd), CUDA_SUCCESS);
	check(base <= small && size == GRANULE && exported == 2);
	check_eq(placement_export(placement, small + GRANULE, &base, &size, &fd),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(placement_release(placement, large), CUDA_SUCCESS);
	check_eq(placement_release(placement, small), CUDA_SUCCESS);
	placement_free(placement);
	/* A driver that cannot is not asked for memory that could be. */
	driver.table.cuMemExportToShareableHandle = NULL;
	handle_types = CU_MEM_HANDLE_TYPE_NONE;
	placement = make();
	large = take(placement, 5 << 20);
	check_eq(placement_export(placement, large, &base, &size, &fd),
		CUDA_ERROR_NOT_SUPPORTED);
	check_eq(placement_release(placement, large), CUDA_SUCCESS);
	placement_free(placement);
}

static void check_piece(
	const struct mover_list *list, size_t i, uint64_t address, uint64_t size)
{
	check(i < list->n);
	check_eq(list->pieces[i].address, address);
	check_eq(list->pieces[i].size, size);
}

TEST(memory_goes_away_and_comes_back_at_its_addresses)
{
	struct placement *placement = make();
	struct mover_list list = {};
	uint64_t small[4], large;
	uint8_t saved[1024];
	CUdevice device = 7;
	unsigned int n;

	for (size_t i = 0; i < 4; i++)
		small[i] = take(placement, 700);
	large = take(placement, GRANULE + 1);
	check_eq(placement_release(placement, small[1]), CUDA_SUCCESS);
	/* In use are a unit of a slab, two in a row, and a chunk. */
	check_eq(placement_list(placement, 2, &list), 0);
	check_eq(list.n, 0);
	check_eq(placement_list(placement, 1, &list), 0);
	check_eq(list.n, 3);
	check_piece(&list, 0, large, 2 * GRANULE);
	check_piece(&list, 1, small[0], 1024);
	check_piece(&list, 2, small[2], 2048);
	check(list.pieces[1].id == list.pieces[2].id);
	check(list.pieces[0].id != list.pieces[1].id);

	bytes_at = small[0];
	memset(bytes, 5, sizeof(bytes));
	check_eq(placement_copy(placement, &list.pieces[1], 0, saved, 1024, true),
		CUDA_SUCCESS);
	check_eq(placement_drop(placement, &list.pieces[1]), CUDA_SUCCESS);
	check_eq(placement_drop(placement, &list.pieces[0]), CUDA_SUCCESS);
	check_eq(n_held(), 0);
	check_eq(n_physical, 0);
	/* Nobody else gets the addresses, and what is freed then does not come back. */
	n = (unsigned int)(find(large) - pieces);
	check_eq(pieces[n].size, 2 * GRANULE);
	check_eq(placement_release(placement, large), CUDA_SUCCESS);
	check_eq(pieces[n].size, 0);
	check(!placement_has(placement, &list.pieces[0], &device));
	check_eq(placement_make(placement, &list.pieces[0]), CUDA_SUCCESS);
	check_eq(n_physical, 0);

	next_create = CUDA_ERROR_OUT_OF_MEMORY;
	check_eq(placement_make(placement, &list.pieces[1]), CUDA_ERROR_OUT_OF_MEMORY);
	check_eq(n_held(), 0);
	next_create = CUDA_SUCCESS;
	check(placement_has(placement, &list.pieces[2], &device));
	check_eq(device, 0);
	check_eq(placement_make(placement, &list.pieces[1]), CUDA_SUCCESS);
	check_eq(n_held(), 1);
	memset(bytes, 0, sizeof(bytes));
	check_eq(placement_copy(placement, &list.pieces[1], 0, saved, 1024, false),
		CUDA_SUCCESS);
	check_eq(bytes[1023], 5);
	check_eq(bytes[1024], 0);
	/* The slab is as it was. */
	check_eq(take(placement, 700), small[1]);
	for (size_t i = 0; i < 4; i++)
		check_eq(placement_release(placement, small[i]), CUDA_SUCCESS);
	check_eq(n_held(), 0);
	check_eq(n_physical, 0);
	mover_list_deinit(&list);
	placement_free(placement);
}

TEST(addresses_of_others_are_not_those_of_a_piece)
{
	struct placement *placement = make();
	struct mover_list list = {};
	CUdevice device;
	uint64_t address;

	address = take(placement, GRANULE);
	check_eq(placement_list(placement, 1, &list), 0);
	check_eq(placement_drop(placement, &list.pieces[0]), CUDA_SUCCESS);
	check_eq(placement_release(placement, address), CUDA_SUCCESS);
	check_eq(take(placement, GRANULE), address);
	check(!placement_has(placement, &list.pieces[0], &device));
	check_eq(placement_drop(placement, &list.pieces[0]), CUDA_SUCCESS);
	check_eq(n_held(), 1);
	check_eq(placement_release(placement, address), CUDA_SUCCESS);
	mover_list_deinit(&list);
	placement_free(placement);
}

TEST(memory_that_was_exported_stays)
{
	struct placement *placement = make();
	struct mover_list list = {};
	uint64_t a, b, base, size;
	int fd;

	a = take(placement, GRANULE);
	b = take(placement, 100);
	check_eq(placement_export(placement, b, &base, &size, &fd), CUDA_SUCCESS);
	check_eq(placement_list(placement, 1, &list), 0);
	check_eq(list.n, 1);
	check_piece(&list, 0, a, GRANULE);
	check_eq(placement_release(placement, a), CUDA_SUCCESS);
	check_eq(placement_release(placement, b), CUDA_SUCCESS);
	mover_list_deinit(&list);
	placement_free(placement);
}
