/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory that is away for a while
 */

#include "vgpu/error.h"
#include "worker/base/session.h"
#include "worker/memory/allocation.h"
#include "worker/memory/mover.h"
#include "worker/memory/virtual-away.h"
#include "worker/memory/virtual.h"

static bool is_of_device(const struct range *range)
{
	return range->kind == RANGE_MAPPED && !allocation_of(range)->arena_address;
}

/* Whether it is one mapping of memory that nobody else uses. */
static bool is_alone(const struct range *range)
{
	const struct allocation *allocation = allocation_of(range);

	return allocation->n_mappings == 1 && range->size == allocation->size &&
	       !allocation->is_import && !allocation->share.cookie;
}

/* The rights of all devices, with which the memory is mapped again. */
static void read_access(
	struct session *session, struct allocation *allocation, uint64_t address)
{
	for (CUdevice i = 0; i < session->n_devices; i++) {
		const CUmemLocation location = { CU_MEM_LOCATION_TYPE_DEVICE, i };
		unsigned long long flags = 0;

		session->driver->table.cuMemGetAccess(&flags, &location, address);
		allocation->backing.access[i] = (uint8_t)flags;
	}
}

static int list_mapping(struct session *session, const struct range *range,
	uint64_t devices, struct mover_list *list)
{
	struct allocation *allocation = allocation_of(range);

	if (!is_alone(range) || !(devices >> allocation->device & 1))
		return 0;
	read_access(session, allocation, range->start);
	/* Else it cannot be copied. */
	if (allocation->backing.access[allocation->device] !=
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return 0;
	allocation->backing.is_mapped = true;
	return mover_list_add(list, &(struct mover_piece){
					    .address = range->start,
					    .size = range->size,
					    .id = allocation->id,
					    .is_of_vm = true,
				    });
}

int virtual_list(struct session *session, uint64_t devices, struct mover_list *list)
{
	struct range range;
	int r = 0;

	if (!session->driver->table.cuMemGetAccess)
		return 0;
	pthread_mutex_lock(&session->virtual->lock);
	for (uint64_t at = 0; !r && ranges_find(&session->ranges, at, &range);
		at = range.start + range.size)
		if (is_of_device(&range))
			r = list_mapping(session, &range, devices, list);
	pthread_mutex_unlock(&session->virtual->lock);
	return r ? vgpu_error_trace(r) : 0;
}

/* With the lock. Return: the memory of a piece, or NULL if it is mapped there no more. */
static struct allocation *find_piece(
	struct session *session, const struct mover_piece *piece)
{
	struct allocation *allocation;
	struct range range;

	if (!ranges_find(&session->ranges, piece->address, &range) ||
		range.start != piece->address || !is_of_device(&range))
		return NULL;
	allocation = allocation_of(&range);
	return allocation->id == piece->id ? allocation : NULL;
}

bool virtual_has(
	struct session *session, const struct mover_piece *piece, CUdevice *devicep)
{
	const struct allocation *allocation;

	pthread_mutex_lock(&session->virtual->lock);
	allocation = find_piece(session, piece);
	if (allocation)
		*devicep = allocation->device;
	pthread_mutex_unlock(&session->virtual->lock);
	return allocation;
}

static CUresult move(struct session *session, const struct mover_piece *piece,
	CUresult (*step)(const struct vgpu_driver *driver, struct backing *backing,
		const struct backing_place *place))
{
	CUresult result = CUDA_SUCCESS;
	struct allocation *allocation;

	pthread_mutex_lock(&session->virtual->lock);
	allocation = find_piece(session, piece);
	if (allocation)
		result = step(&session->driver->table, &allocation->backing,
			&(struct backing_place){
				.address = piece->address,
				.size = piece->size,
				.prop = allocation_properties(allocation),
			});
	if (step == backing_drop && allocation && !allocation->backing.is_mapped)
		result = CUDA_SUCCESS;
	pthread_mutex_unlock(&session->virtual->lock);
	return result;
}

CUresult virtual_drop(struct session *session, const struct mover_piece *piece)
{
	return move(session, piece, backing_drop);
}

CUresult virtual_make(struct session *session, const struct mover_piece *piece)
{
	return move(session, piece, backing_make);
}
