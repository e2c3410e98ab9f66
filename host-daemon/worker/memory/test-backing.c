/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backing: memory that is taken away and made again, while any call of the driver fails
 */

#include "test.h"
#include "worker/memory/backing.h"

#define ADDRESS 0x550000000000ull
#define SIZE (2ull << 20)

enum { CREATE, MAP, ACCESS, UNMAP, RELEASE, N_CALLS };

/* The driver's state, and how many calls of a kind succeed before some fail. */
static struct {
	uint64_t n_created;
	uint32_t n_memories;
	bool is_mapped;
	bool is_open;
	CUmemGenericAllocationHandle mapped;
	uint32_t n_bad[N_CALLS];
} state;

static CUresult answer(int call)
{
	if (!state.n_bad[call])
		return CUDA_SUCCESS;
	state.n_bad[call]--;
	return call == CREATE ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
}

static CUresult create(CUmemGenericAllocationHandle *memory, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUresult result = answer(CREATE);

	check_eq(size, SIZE);
	check_eq(prop->location.id, 1);
	if (result != CUDA_SUCCESS)
		return result;
	*memory = ++state.n_created;
	state.n_memories++;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUmemGenericAllocationHandle memory)
{
	CUresult result = answer(RELEASE);

	check_eq(memory, state.n_created);
	if (result == CUDA_SUCCESS)
		state.n_memories--;
	return result;
}

static CUresult map(CUdeviceptr address, size_t size, size_t offset,
	CUmemGenericAllocationHandle memory, unsigned long long flags)
{
	CUresult result = answer(MAP);

	check_eq(address, ADDRESS);
	check(!state.is_mapped && !offset);
	if (result != CUDA_SUCCESS)
		return result;
	state.is_mapped = true;
	state.is_open = false;
	state.mapped = memory;
	return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr address, size_t size)
{
	CUresult result = answer(UNMAP);

	check(state.is_mapped);
	if (result == CUDA_SUCCESS)
		state.is_mapped = false;
	return result;
}

static CUresult set_access(
	CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t n)
{
	CUresult result = answer(ACCESS);

	check(state.is_mapped);
	check_eq(n, 2);
	check_eq(access[0].location.id, 1);
	check_eq(access[0].flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	check_eq(access[1].location.id, 63);
	check_eq(access[1].flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
	state.is_open = result == CUDA_SUCCESS;
	return result;
}

static const struct vgpu_driver driver = {
	.cuMemCreate = create,
	.cuMemRelease = destroy,
	.cuMemMap = map,
	.cuMemUnmap = unmap,
	.cuMemSetAccess = set_access,
};

static const struct backing_place place = {
	.address = ADDRESS,
	.size = SIZE,
	.prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
	},
};

static struct backing backing;

static void begin(void)
{
	state.n_created = state.n_memories = 0;
	state.is_mapped = state.is_open = false;
	for (int i = 0; i < N_CALLS; i++)
		state.n_bad[i] = 0;
	backing = (struct backing){};
	backing.access[1] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	backing.access[63] = CU_MEM_ACCESS_FLAGS_PROT_READ;
}

static void check_there(void)
{
	check(backing.is_mapped && backing.has_memory);
	check(state.is_mapped && state.is_open);
	check_eq(state.mapped, backing.memory);
	check_eq(state.n_memories, 1);
}

static void check_gone(void)
{
	check(!backing.is_mapped && !backing.has_memory);
	check(!state.is_mapped);
	check_eq(state.n_memories, 0);
}

static void make(void)
{
	check_eq(backing_make(&driver, &backing, &place), CUDA_SUCCESS);
	check_there();
}

static void drop(void)
{
	check_eq(backing_drop(&driver, &backing, &place), CUDA_SUCCESS);
	check_gone();
}

TEST(memory_goes_and_comes_back)
{
	begin();
	make();
	make();
	check_eq(state.n_created, 1);
	drop();
	drop();
	make();
	check_eq(state.n_created, 2);
	drop();
}

TEST(a_failure_to_make_it_leaves_nothing)
{
	const CUresult results[] = {
		CUDA_ERROR_OUT_OF_MEMORY,
		CUDA_ERROR_INVALID_VALUE,
		CUDA_ERROR_INVALID_VALUE,
	};

	for (int call = CREATE; call <= ACCESS; call++) {
		begin();
		state.n_bad[call] = 1;
		check_eq(backing_make(&driver, &backing, &place), results[call]);
		check_gone();
		make();
		drop();
	}
}

TEST(memory_that_is_neither_mapped_nor_released_is_used_later)
{
	begin();
	state.n_bad[MAP] = state.n_bad[RELEASE] = 1;
	check(backing_make(&driver, &backing, &place) != CUDA_SUCCESS);
	check(!backing.is_mapped && backing.has_memory);
	make();
	check_eq(state.n_created, 1);
	drop();
}

TEST(what_cannot_be_unmapped_stays)
{
	begin();
	make();
	state.n_bad[UNMAP] = 1;
	check_eq(backing_drop(&driver, &backing, &place), CUDA_ERROR_INVALID_VALUE);
	check_there();
	drop();
}

TEST(what_cannot_be_released_is_mapped_again)
{
	begin();
	make();
	state.n_bad[RELEASE] = 1;
	check_eq(backing_drop(&driver, &backing, &place), CUDA_ERROR_INVALID_VALUE);
	check_there();
	check_eq(state.n_created, 1);
	drop();
}

TEST(what_can_be_neither_is_kept_without_a_mapping)
{
	const int calls[] = { MAP, ACCESS };

	for (int i = 0; i < 2; i++) {
		begin();
		make();
		state.n_bad[RELEASE] = state.n_bad[calls[i]] = 1;
		check_eq(backing_drop(&driver, &backing, &place),
			CUDA_ERROR_INVALID_VALUE);
		check(!backing.is_mapped && backing.has_memory && !state.is_mapped);
		make();
		check_eq(state.n_created, 1);
		drop();
	}
}
