/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owners: the extents of a VM, and the copy of their table that its kernel reads
 *
 * The host's own table is in the ledger. The copy in the shared memory is for a guest
 * whose kernel keeps its processes apart: it maps an extent only for the channel that the
 * copy names. The host never reads it.
 */

#include "broker/owners.h"
#include "broker/vm.h"

/* Partner: the guest kernel's loads, after it learned of the grant, which is announced
 * later by a release store or a message. */
static void publish(struct vm *vm, uint32_t first, uint32_t n_extents)
{
	uint8_t *copy = vm->map + VGPU_OWNERS_OFF;

	if (vm->gone)
		return;
	for (uint32_t i = first; i < first + n_extents; i++)
		__atomic_store_n(&copy[i], vm->extents.owners[i], __ATOMIC_RELAXED);
}

int owners_own(struct channel *channel, uint32_t first, uint32_t n_extents)
{
	struct vm *vm = channel->vm;
	int r = extent_own(&vm->extents, channel->index, first, n_extents);

	if (!r)
		publish(vm, first, n_extents);
	return r;
}

int owners_take(struct channel *channel, uint32_t n_extents, uint32_t *firstp)
{
	struct vm *vm = channel->vm;
	int r = extent_take(&vm->extents, channel->index, n_extents, firstp);

	if (!r)
		publish(vm, *firstp, n_extents);
	return r;
}

int owners_give(struct channel *channel, uint32_t first, uint32_t n_extents)
{
	struct vm *vm = channel->vm;
	int r = extent_give(&vm->extents, channel->index, first, n_extents);

	if (!r)
		publish(vm, first, n_extents);
	return r;
}

void owners_publish(struct vm *vm)
{
	publish(vm, 0, vm->extents.n_extents);
}
