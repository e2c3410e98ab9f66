/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mirrors: bytes that guest and device change in turn
 *
 * The driver's managed memory and the guest's copy are memory of this process; the run
 * from which copies are taken is there already.
 */

#include <string.h>
#include <sys/mman.h>

#include "fixture.h"
#include "test.h"
#include "worker/base/call.h"
#include "worker/base/lookup.h"
#include "worker/memory/arena.h"
#include "worker/memory/managed.h"
#include "worker/memory/mirror.h"

#define PAGE VGPU_MIRROR_PAGE
#define N_PAGES 16u

static struct fixture fixture;
static struct call call;
static struct lookup lookup;
static uint8_t *own;   /* what the driver has */
static uint8_t *arena; /* what the guest has */
static int concurrent_access;
static uint64_t freed; /* of which the driver no longer knows */
static struct session before;
static struct context other_context;
static uint64_t arena_base;

static CUresult get_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	check_eq(attribute, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
	*value = concurrent_access;
	return CUDA_SUCCESS;
}

static CUresult get_pointer_attribute(
	void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
	check_eq(attribute, CU_POINTER_ATTRIBUTE_IS_MANAGED);
	*(unsigned int *)data = address != freed;
	return CUDA_SUCCESS;
}

static CUresult get_current(CUcontext *context)
{
	*context = NULL;
	return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext context)
{
	check(!context);
	return CUDA_SUCCESS;
}

static void *pages(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	check(memory != MAP_FAILED);
	return memory;
}

static void begin(void)
{
	struct session *session = &fixture.session;

	fixture_init(&fixture);
	fixture.driver.table.cuDeviceGetAttribute = get_attribute;
	fixture.driver.table.cuPointerGetAttribute = get_pointer_attribute;
	fixture.driver.table.cuCtxGetCurrent = get_current;
	fixture.driver.table.cuCtxSetCurrent = set_current;
	own = pages(N_PAGES * PAGE);
	arena = pages(VGPU_EXTENT_SIZE);
	before = *session;
	arena_base = session->arena->base;
	session->home = NULL;
	session->window.base = (uintptr_t)arena;
	session->arena->base = (uintptr_t)arena;
	session->managed->runs[0] = (struct managed_run){ .n_extents = 1 };
	session->managed->n_runs = session->managed->n_registered = 1;
	call.session = session;
	lookup = (struct lookup){};
	concurrent_access = 1;
}

static void end(void)
{
	struct session *session = &fixture.session;

	session->home = before.home;
	session->window = before.window;
	session->arena->base = arena_base;
	session->managed->n_runs = session->managed->n_registered = 0;
	fixture_deinit(&fixture);
}

/* Returns: the guest's copy of a byte of the driver's. */
static uint8_t *copy(const struct vgpu_mirror_piece *piece, const uint8_t *byte)
{
	uint64_t offset = (uintptr_t)byte - piece->address;

	check(offset < piece->size);
	return arena + piece->offset + offset;
}

static struct vgpu_mirror_piece add(uint8_t *variable, uint64_t size)
{
	struct vgpu_mirror_piece found[VGPU_MIRROR_PIECES_MAX];
	uint32_t n;

	check_eq(mirror_add(&call, &lookup, (uintptr_t)variable, size, found, &n),
		CUDA_SUCCESS);
	check_eq(n, 1);
	return found[0];
}

TEST(what_either_side_changes_the_other_finds)
{
	struct vgpu_mirror_piece piece;
	uint8_t *variable, *guest;

	begin();
	variable = own + PAGE - 4;
	memcpy(variable, "12345678", 8);
	piece = add(variable, 8);
	check_eq(piece.address, (uintptr_t)own);
	check_eq(piece.size, 2 * PAGE);
	guest = copy(&piece, variable);
	check(!memcmp(guest, "12345678", 8));
	guest[1] = 'g';
	mirror_push(call.session);
	check(!memcmp(variable, "1g345678", 8));
	variable[6] = 'd';
	mirror_pull(call.session);
	check(!memcmp(guest, "1g3456d8", 8));
	/* Both at once, in different bytes. */
	guest[0] = 'G';
	variable[7] = 'D';
	mirror_push(call.session);
	mirror_pull(call.session);
	check(!memcmp(guest, "Gg3456dD", 8) && !memcmp(variable, guest, 8));
	/* What is beside the variable is not its. */
	guest[8] = 'x';
	variable[-1] = 'y';
	mirror_push(call.session);
	mirror_pull(call.session);
	check_eq(variable[8], 0);
	check_eq(guest[-1], 0);
	end();
}

TEST(variables_share_the_pages_that_they_share)
{
	struct vgpu_mirror_piece first, second, found[VGPU_MIRROR_PIECES_MAX];
	uint32_t n;

	begin();
	first = add(own + PAGE + 16, 16);
	second = add(own + PAGE + 64, 16);
	check(!memcmp(&first, &second, sizeof(first)));
	/* It begins in the page before, and ends in the one behind. */
	check_eq(mirror_add(&call, &lookup, (uintptr_t)own + 100, 2 * PAGE, found, &n),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(mirror_add(&call, &lookup, (uintptr_t)own + PAGE + 128, PAGE, found, &n),
		CUDA_SUCCESS);
	check_eq(n, 2);
	check(!memcmp(&found[0], &first, sizeof(first)));
	check_eq(found[1].address, (uintptr_t)own + 2 * PAGE);
	check_eq(found[1].size, PAGE);
	/* One that is known already. */
	check_eq(mirror_add(&call, &lookup, (uintptr_t)own + PAGE + 64, 16, found, &n),
		CUDA_SUCCESS);
	check_eq(n, 1);
	check_eq(mirror_add(&call, &lookup, (uintptr_t)own + PAGE + 64, 17, found, &n),
		CUDA_ERROR_INVALID_VALUE);
	check(mirror_covers(call.session, (uintptr_t)own + PAGE + 64, 16));
	check(!mirror_covers(call.session, (uintptr_t)own + PAGE + 64, 17));
	check(!mirror_covers(call.session, (uintptr_t)own + PAGE + 32, 1));
	end();
}

TEST(freed_variables_are_not_accessed)
{
	struct vgpu_mirror_piece piece;
	uint8_t *guest;
	bool is_held;

	begin();
	is_held = mirror_before_context(call.session, &other_context);
	check(!is_held);
	mirror_after_context(call.session, is_held);
	piece = add(own, 8);
	add(own + 2 * PAGE, 8);
	guest = copy(&piece, own);
	freed = (uintptr_t)own;
	is_held = mirror_before_context(call.session, &other_context);
	check(is_held);
	mirror_after_context(call.session, is_held);
	check(!mirror_covers(call.session, (uintptr_t)own, 1));
	check(mirror_covers(call.session, (uintptr_t)own + 2 * PAGE, 1));
	check(!mprotect(own, PAGE, PROT_NONE));
	guest[0] = 1;
	mirror_push(call.session);
	mirror_pull(call.session);
	/* Another variable takes its place: the guest has the pages still. */
	check(!mprotect(own, PAGE, PROT_READ | PROT_WRITE));
	freed = 0;
	own[3] = 33;
	check_eq(add(own, 16).offset, piece.offset);
	check_eq(guest[0], 0);
	check_eq(guest[3], 33);
	end();
}

TEST(variables_go_with_what_they_are_part_of)
{
	static struct context context;
	const int module = 0, second = 0, library = 0;
	bool is_held;

	begin();
	lookup.parent = &module;
	lookup.owner = &context;
	add(own, 8);
	add(own + 64, 8);
	lookup.parent = &second;
	add(own + PAGE, 8);
	lookup.parent = &library;
	lookup.owner = NULL;
	add(own + 2 * PAGE, 8);
	/* The driver is not asked: it may have given the memory to the next module. */
	mirror_forget(call.session, &module);
	check(!mirror_covers(call.session, (uintptr_t)own, 1));
	check(!mirror_covers(call.session, (uintptr_t)own + 64, 1));
	check(mirror_covers(call.session, (uintptr_t)own + PAGE, 1));
	is_held = mirror_before_context(call.session, &context);
	mirror_after_context(call.session, is_held);
	check(!mirror_covers(call.session, (uintptr_t)own + PAGE, 1));
	check(mirror_covers(call.session, (uintptr_t)own + 2 * PAGE, 1));
	mirror_forget(call.session, &library);
	check(!mirror_is_any(call.session));
	end();
}

TEST(there_is_a_limit_and_a_condition)
{
	struct vgpu_mirror_piece found[VGPU_MIRROR_PIECES_MAX];
	uint32_t n;

	begin();
	check_eq(mirror_add(&call, &lookup, (uintptr_t)own, 0, found, &n),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(mirror_add(&call, &lookup, UINT64_MAX, 2, found, &n),
		CUDA_ERROR_INVALID_VALUE);
	check_eq(mirror_add(
			 &call, &lookup, (uintptr_t)own, MIRROR_BYTES_MAX + 1, found, &n),
		CUDA_ERROR_OUT_OF_MEMORY);
	for (uint32_t i = 0; i < MIRROR_VARIABLES_MAX; i++)
		add(own + i * 8, 8);
	check_eq(mirror_add(&call, &lookup, (uintptr_t)own + MIRROR_VARIABLES_MAX * 8, 8,
			 found, &n),
		CUDA_ERROR_OUT_OF_MEMORY);
	concurrent_access = 0;
	check_eq(mirror_add(&call, &lookup, (uintptr_t)own, 8, found, &n),
		CUDA_ERROR_NOT_SUPPORTED);
	end();
}
