/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement: device memory at addresses that the worker chooses
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vgpu/checked.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "worker/base/ranges.h"
#include "worker/base/session.h"
#include "worker/memory/backing.h"
#include "worker/memory/mover.h"
#include "worker/memory/placement.h"

/* cuMemAlloc guarantees an alignment of 256; kernels run faster with more. */
#define UNIT 512u
#define UNITS_MAX 8192u
/* Gaps of the window that are tried, of which the driver may use the first ones. */
#define RESERVE_TRIES 8u

/* One mapped piece of physical memory, in an unsorted list. */
struct chunk {
	struct chunk *next;
	CUdevice device;
	uint64_t address;
	uint64_t size;
	uint64_t id; /* never used twice */
	struct backing backing;
	bool is_exported; /* other processes may have it mapped */
	/* A slab: how many units each allocation has that starts at a unit, 0 elsewhere,
	 * and which units are taken. */
	uint16_t *lengths;
	uint8_t *taken;
	uint32_t n_taken;
};

struct placement {
	const struct vgpu_driver *driver;
	uint64_t base;
	uint64_t limit;
	uint64_t granularity;
	bool is_exportable;
	pthread_mutex_t lock;
	struct chunk *chunks;
	uint64_t n_created;	 /* chunks so far */
	struct ranges addresses; /* of chunks */
};

static CUmemAllocationProp properties(CUdevice device, bool is_exportable)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = is_exportable
						? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
						: CU_MEM_HANDLE_TYPE_NONE,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device },
	};
}

static bool is_capable(const struct vgpu_driver *driver)
{
	int can = 0;

	return driver->cuMemAddressReserve && driver->cuMemAddressFree &&
	       driver->cuMemCreate && driver->cuMemRelease && driver->cuMemMap &&
	       driver->cuMemUnmap && driver->cuMemSetAccess &&
	       driver->cuMemGetAllocationGranularity && driver->cuDeviceGetAttribute &&
	       driver->cuDeviceGetAttribute(&can,
		       CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
		       0) == CUDA_SUCCESS &&
	       can;
}

/* Whether chunks can be handed to other processes, of all devices. */
static bool is_exportable(const struct vgpu_driver *driver, int n_devices)
{
	const CUdevice_attribute attribute =
		CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
	int can = driver->cuMemExportToShareableHandle != NULL;

	for (int i = 0; i < n_devices && can; i++)
		if (driver->cuDeviceGetAttribute(&can, attribute, i) != CUDA_SUCCESS)
			can = 0;
	return can;
}

struct placement *placement_new(struct session *session)
{
	const struct vgpu_driver *driver = &session->driver->table;
	CUmemAllocationProp prop = properties(0, false);
	struct placement *placement;
	size_t granularity;

	if (!is_capable(driver) ||
		driver->cuMemGetAllocationGranularity(&granularity, &prop,
			CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
		!granularity || granularity / UNIT > UNITS_MAX) {
		vgpu_log_warning("the driver cannot place memory at chosen addresses; "
				 "its own choice may be outside the window");
		return NULL;
	}
	placement = calloc(1, sizeof(*placement));
	if (!placement)
		return NULL;
	placement->driver = driver;
	placement->base = session->window.base + session->shm_size;
	placement->limit = session->window.base + session->window.size;
	placement->granularity = granularity;
	placement->is_exportable = is_exportable(driver, session->n_devices);
	pthread_mutex_init(&placement->lock, NULL);
	ranges_init(&placement->addresses);
	/* The driver makes its own reservation, so these addresses must be unmapped. */
	munmap((void *)(uintptr_t)placement->base, placement->limit - placement->base);
	return placement;
}

struct placement *placement_free(struct placement *placement)
{
	if (!placement)
		return NULL;
	ranges_deinit(&placement->addresses);
	pthread_mutex_destroy(&placement->lock);
	free(placement);
	return NULL;
}

static void chunk_free(struct chunk *chunk)
{
	free(chunk->lengths);
	free(chunk->taken);
	free(chunk);
}

static struct backing_place place_of(
	const struct placement *placement, const struct chunk *chunk)
{
	return (struct backing_place){
		.address = chunk->address,
		.size = chunk->size,
		.prop = properties(chunk->device, placement->is_exportable),
	};
}

/* Maps memory of the device at a reserved address. */
static CUresult map_memory(const struct placement *placement, struct chunk *chunk)
{
	const struct backing_place place = place_of(placement, chunk);

	return backing_make(placement->driver, &chunk->backing, &place);
}

/* Takes it away, if it is there. */
static CUresult unmap_memory(const struct placement *placement, struct chunk *chunk)
{
	const struct backing_place place = place_of(placement, chunk);

	return backing_drop(placement->driver, &chunk->backing, &place);
}

/*
 * Has the driver reserve addresses in the window: those of the hint, or others. An
 * address that the driver uses itself is only known by what it answers: any other in the
 * window will do, and if there is none, the next gap is tried.
 *
 * @hint:	0: none
 */
static CUresult reserve(struct placement *placement, uint64_t size, uint64_t alignment,
	uint64_t hint, uint64_t *addressp)
{
	const struct vgpu_driver *driver = placement->driver;
	uint64_t from = placement->base, wanted = hint;
	CUdeviceptr reserved = 0;
	CUresult result;

	for (uint32_t i = 0; i < RESERVE_TRIES; i++) {
		if (!wanted)
			wanted = ranges_find_gap(&placement->addresses, from,
				placement->limit, size, alignment);
		if (!wanted)
			return CUDA_ERROR_OUT_OF_MEMORY;
		result = driver->cuMemAddressReserve(
			&reserved, size, alignment, wanted, 0);
		if (result != CUDA_SUCCESS)
			return result;
		if (vgpu_range_within(reserved, size, placement->base,
			    placement->limit - placement->base)) {
			*addressp = reserved;
			return CUDA_SUCCESS;
		}
		driver->cuMemAddressFree(reserved, size);
		from = wanted + size;
		wanted = 0;
	}
	vgpu_log_error(
		"the driver reserves %#llx instead of addresses in the window", reserved);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult chunk_map(struct placement *placement, struct chunk *chunk)
{
	struct range range = { .size = chunk->size, .owner = chunk };
	CUresult result;

	result = reserve(
		placement, chunk->size, placement->granularity, 0, &chunk->address);
	if (result != CUDA_SUCCESS)
		return result;
	range.start = chunk->address;
	result = map_memory(placement, chunk);
	if (result == CUDA_SUCCESS && ranges_add(&placement->addresses, &range)) {
		unmap_memory(placement, chunk);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result != CUDA_SUCCESS)
		placement->driver->cuMemAddressFree(chunk->address, chunk->size);
	return result;
}

static CUresult chunk_new(struct placement *placement, CUdevice device, uint64_t size,
	struct chunk **chunkp)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk));
	CUresult result;

	if (!chunk)
		return CUDA_ERROR_OUT_OF_MEMORY;
	chunk->device = device;
	chunk->size = size;
	chunk->id = placement->n_created++;
	chunk->backing.access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	result = chunk_map(placement, chunk);
	if (result != CUDA_SUCCESS) {
		chunk_free(chunk);
		return result;
	}
	chunk->next = placement->chunks;
	placement->chunks = chunk;
	*chunkp = chunk;
	return CUDA_SUCCESS;
}

static CUresult chunk_unmap(struct placement *placement, struct chunk *chunk)
{
	struct chunk **nextp;
	struct range range;
	CUresult result;

	for (nextp = &placement->chunks; *nextp != chunk; nextp = &(*nextp)->next)
		;
	*nextp = chunk->next;
	ranges_remove(&placement->addresses, RANGE_MEMORY, chunk->address, &range);
	result = unmap_memory(placement, chunk);
	if (result == CUDA_SUCCESS)
		result = placement->driver->cuMemAddressFree(chunk->address, chunk->size);
	chunk_free(chunk);
	return result;
}

/* First fit among the units of a slab. Returns: the unit, or UINT32_MAX. */
static uint32_t find_units(const struct chunk *slab, uint32_t n)
{
	uint32_t i, run = 0, n_units = slab->size / UNIT;

	for (i = 0; i < n_units; i++) {
		run = slab->taken[i] ? 0 : run + 1;
		if (run == n)
			return i + 1 - n;
	}
	return UINT32_MAX;
}

static CUresult slab_new(
	struct placement *placement, CUdevice device, struct chunk **slabp)
{
	uint32_t n_units = placement->granularity / UNIT;
	CUresult result;

	result = chunk_new(placement, device, placement->granularity, slabp);
	if (result != CUDA_SUCCESS)
		return result;
	(*slabp)->lengths = calloc(n_units, sizeof(*(*slabp)->lengths));
	(*slabp)->taken = calloc(n_units, sizeof(*(*slabp)->taken));
	if ((*slabp)->lengths && (*slabp)->taken)
		return CUDA_SUCCESS;
	chunk_unmap(placement, *slabp);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult take_units(
	struct placement *placement, CUdevice device, uint64_t size, uint64_t *addressp)
{
	uint32_t n = (size + UNIT - 1) / UNIT, at = UINT32_MAX;
	struct chunk *slab;
	CUresult result;

	for (slab = placement->chunks; slab; slab = slab->next) {
		if (!slab->taken || slab->device != device ||
			slab->size / UNIT - slab->n_taken < n)
			continue;
		at = find_units(slab, n);
		if (at != UINT32_MAX)
			break;
	}
	if (!slab) {
		result = slab_new(placement, device, &slab);
		if (result != CUDA_SUCCESS)
			return result;
		at = 0;
	}
	memset(slab->taken + at, 1, n);
	slab->lengths[at] = n;
	slab->n_taken += n;
	*addressp = slab->address + (uint64_t)at * UNIT;
	return CUDA_SUCCESS;
}

static CUresult take_chunk(
	struct placement *placement, CUdevice device, uint64_t size, uint64_t *addressp)
{
	struct chunk *chunk;
	uint64_t rounded;
	CUresult result;

	if (!vgpu_align_u64(size, placement->granularity, &rounded))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = chunk_new(placement, device, rounded, &chunk);
	if (result == CUDA_SUCCESS)
		*addressp = chunk->address;
	return result;
}

uint64_t placement_unit(const struct placement *placement, uint64_t size)
{
	return size <= placement->granularity / 2 ? UNIT : placement->granularity;
}

CUresult placement_take(
	struct placement *placement, CUdevice device, uint64_t size, uint64_t *addressp)
{
	CUresult result;

	pthread_mutex_lock(&placement->lock);
	if (placement_unit(placement, size) == UNIT)
		result = take_units(placement, device, size, addressp);
	else
		result = take_chunk(placement, device, size, addressp);
	pthread_mutex_unlock(&placement->lock);
	return result;
}

static struct chunk *find_chunk(const struct placement *placement, uint64_t address)
{
	struct chunk *chunk;

	for (chunk = placement->chunks; chunk; chunk = chunk->next)
		if (vgpu_range_within(address, 1, chunk->address, chunk->size))
			break;
	return chunk;
}

CUresult placement_export(struct placement *placement, uint64_t address, uint64_t *basep,
	uint64_t *sizep, int *fdp)
{
	struct chunk *chunk;
	CUresult result;

	if (!placement->is_exportable)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&placement->lock);
	chunk = find_chunk(placement, address);
	result = chunk ? placement->driver->cuMemExportToShareableHandle(fdp,
				 chunk->backing.memory,
				 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)
		       : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS) {
		chunk->is_exported = true;
		*basep = chunk->address;
		*sizep = chunk->size;
	}
	pthread_mutex_unlock(&placement->lock);
	return result;
}

static CUresult release_locked(struct placement *placement, uint64_t address)
{
	struct chunk *chunk = find_chunk(placement, address);
	uint32_t at, n;

	if (!chunk)
		return CUDA_ERROR_INVALID_VALUE;
	if (!chunk->taken)
		return chunk_unmap(placement, chunk);
	at = (address - chunk->address) / UNIT;
	n = chunk->lengths[at];
	memset(chunk->taken + at, 0, n);
	chunk->lengths[at] = 0;
	chunk->n_taken -= n;
	return chunk->n_taken ? CUDA_SUCCESS : chunk_unmap(placement, chunk);
}

CUresult placement_release(struct placement *placement, uint64_t address)
{
	CUresult result;

	pthread_mutex_lock(&placement->lock);
	result = release_locked(placement, address);
	pthread_mutex_unlock(&placement->lock);
	return result;
}

static bool is_free(struct placement *placement, uint64_t address, uint64_t size)
{
	return vgpu_range_within(address, size, placement->base,
		       placement->limit - placement->base) &&
	       ranges_find_gap(&placement->addresses, address, address + size, size, 1) ==
		       address;
}

static CUresult reserve_locked(struct placement *placement, struct range *range,
	uint64_t alignment, uint64_t hint)
{
	CUresult result;

	if (hint % alignment || !is_free(placement, hint, range->size))
		hint = 0;
	result = reserve(placement, range->size, alignment, hint, &range->start);
	if (result != CUDA_SUCCESS)
		return result;
	if (ranges_add(&placement->addresses, range)) {
		placement->driver->cuMemAddressFree(range->start, range->size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

CUresult placement_reserve(struct placement *placement, uint64_t size, uint64_t alignment,
	uint64_t hint, uint64_t *addressp)
{
	struct range range = { .size = size, .kind = RANGE_MAPPED };
	CUresult result;

	if (size % placement->granularity)
		return CUDA_ERROR_INVALID_VALUE;
	if (alignment < placement->granularity)
		alignment = placement->granularity;
	pthread_mutex_lock(&placement->lock);
	result = reserve_locked(placement, &range, alignment, hint);
	pthread_mutex_unlock(&placement->lock);
	*addressp = range.start;
	return result;
}

/* The owner of a reservation that the driver does not have. */
static const char lent;

static CUresult give_up(struct placement *placement, const struct range *range)
{
	if (range->owner != &lent)
		return placement->driver->cuMemAddressFree(range->start, range->size);
	munmap((void *)(uintptr_t)range->start, range->size);
	return CUDA_SUCCESS;
}

CUresult placement_unreserve(struct placement *placement, uint64_t address)
{
	struct range range;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&placement->lock);
	if (!ranges_remove(&placement->addresses, RANGE_MAPPED, address, &range))
		result = give_up(placement, &range);
	pthread_mutex_unlock(&placement->lock);
	return result;
}

/* Has the driver reserve exactly these addresses, or nothing. */
static CUresult reserve_again(struct placement *placement, const struct range *range)
{
	CUdeviceptr reserved;
	CUresult result;

	result = placement->driver->cuMemAddressReserve(
		&reserved, range->size, placement->granularity, range->start, 0);
	if (result != CUDA_SUCCESS || reserved == range->start)
		return result;
	placement->driver->cuMemAddressFree(reserved, range->size);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult take_over(struct placement *placement, const struct range *range)
{
	const int flags =
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
	void *place = (void *)(uintptr_t)range->start;
	void *map;

	if (range->owner != &lent)
		return reserve_again(placement, range);
	map = mmap(place, range->size, PROT_NONE, flags, -1, 0);
	if (map == place)
		return CUDA_SUCCESS;
	if (map != MAP_FAILED)
		munmap(map, range->size);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The addresses change hands; if the new owner cannot have them, the old one takes them
 * again. */
static CUresult lend_locked(
	struct placement *placement, const struct range *range, const void *owner)
{
	struct range next = *range;
	CUresult result;

	next.owner = owner;
	result = give_up(placement, range);
	if (result != CUDA_SUCCESS)
		return result;
	result = take_over(placement, &next);
	if (result != CUDA_SUCCESS) {
		take_over(placement, range);
		return result;
	}
	/* Neither fails: there is room for what was removed. */
	ranges_remove(&placement->addresses, RANGE_MAPPED, range->start, &next);
	next.owner = owner;
	ranges_add(&placement->addresses, &next);
	return CUDA_SUCCESS;
}

CUresult placement_lend(struct placement *placement, uint64_t address, bool is_lent)
{
	const void *owner = is_lent ? &lent : NULL;
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	struct range range;

	pthread_mutex_lock(&placement->lock);
	if (ranges_find(&placement->addresses, address, &range) &&
		range.start == address && range.kind == RANGE_MAPPED)
		result = range.owner == owner ? CUDA_SUCCESS
					      : lend_locked(placement, &range, owner);
	pthread_mutex_unlock(&placement->lock);
	return result;
}

bool placement_is_lent(struct placement *placement, uint64_t address)
{
	struct range range;

	return ranges_find(&placement->addresses, address, &range) &&
	       range.start == address && range.owner == &lent;
}

/*
 * Memory that goes away for a while
 */

/* Of a slab those units that are taken, in runs. */
static int list_slab(const struct chunk *slab, struct mover_list *list)
{
	const uint32_t n_units = slab->size / UNIT;
	struct mover_piece piece = { .id = slab->id };
	int r = 0;

	for (uint32_t i = 0, n; i < n_units && !r; i += n) {
		for (n = 1; i + n < n_units && slab->taken[i + n] == slab->taken[i]; n++)
			;
		piece.address = slab->address + (uint64_t)i * UNIT;
		piece.size = (uint64_t)n * UNIT;
		if (slab->taken[i])
			r = mover_list_add(list, &piece);
	}
	return r;
}

static int list_chunk(const struct chunk *chunk, struct mover_list *list)
{
	if (chunk->taken)
		return list_slab(chunk, list);
	return mover_list_add(list, &(struct mover_piece){
					    .address = chunk->address,
					    .size = chunk->size,
					    .id = chunk->id,
				    });
}

int placement_list(struct placement *placement, uint64_t devices, struct mover_list *list)
{
	const struct chunk *chunk;
	int r = 0;

	pthread_mutex_lock(&placement->lock);
	for (chunk = placement->chunks; chunk && !r; chunk = chunk->next)
		if (chunk->backing.is_mapped && !chunk->is_exported &&
			devices >> chunk->device & 1)
			r = list_chunk(chunk, list);
	pthread_mutex_unlock(&placement->lock);
	return r ? vgpu_error_trace(r) : 0;
}

/* Return: the chunk that a piece is of, or NULL if it was released since then. */
static struct chunk *find_piece(
	const struct placement *placement, const struct mover_piece *piece)
{
	struct chunk *chunk = find_chunk(placement, piece->address);

	return chunk && chunk->id == piece->id ? chunk : NULL;
}

bool placement_has(
	struct placement *placement, const struct mover_piece *piece, CUdevice *devicep)
{
	const struct chunk *chunk;

	pthread_mutex_lock(&placement->lock);
	chunk = find_piece(placement, piece);
	if (chunk)
		*devicep = chunk->device;
	pthread_mutex_unlock(&placement->lock);
	return chunk;
}

CUresult placement_copy(struct placement *placement, const struct mover_piece *piece,
	uint64_t at, void *host, uint64_t size, bool is_out)
{
	const struct vgpu_driver *driver = placement->driver;
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&placement->lock);
	if (find_piece(placement, piece))
		result =
			is_out ? driver->cuMemcpyDtoH_v2(host, piece->address + at, size)
			       : driver->cuMemcpyHtoD_v2(piece->address + at, host, size);
	pthread_mutex_unlock(&placement->lock);
	return result;
}

CUresult placement_drop(struct placement *placement, const struct mover_piece *piece)
{
	CUresult result = CUDA_SUCCESS;
	struct chunk *chunk;

	pthread_mutex_lock(&placement->lock);
	chunk = find_piece(placement, piece);
	if (chunk)
		result = unmap_memory(placement, chunk);
	/* What cannot be released is in use, but no longer needed. */
	if (chunk && !chunk->backing.is_mapped)
		result = CUDA_SUCCESS;
	pthread_mutex_unlock(&placement->lock);
	return result;
}

CUresult placement_make(struct placement *placement, const struct mover_piece *piece)
{
	CUresult result = CUDA_SUCCESS;
	struct chunk *chunk;

	pthread_mutex_lock(&placement->lock);
	chunk = find_piece(placement, piece);
	if (chunk)
		result = map_memory(placement, chunk);
	pthread_mutex_unlock(&placement->lock);
	return result;
}
