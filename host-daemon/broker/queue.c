/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue: how much of a session's ring waits for its worker
 */

#include "broker/channel.h"
#include "broker/queue.h"
#include "broker/vm.h"
#include "vgpu/ring-layout.h"

uint32_t queue_bytes(uint64_t tail, uint64_t head)
{
	const uint64_t n = tail - head;

	return n < VGPU_RING_SIZE ? (uint32_t)n : VGPU_RING_SIZE;
}

bool queue_read(const struct channel *channel, uint32_t *bytesp)
{
	const struct vm *vm = channel->vm;
	const struct vgpu_channel_control *control;
	uint64_t head;

	if (vm->gone)
		return false;
	control = (const struct vgpu_channel_control *)(const void
			*)((const uint8_t *)vm->map +
			   layout_area_off(&vm->layout, channel->index));
	/* The head first: an honest tail is never behind it then. Partners: the worker's
	 * and the guest's release stores. */
	head = __atomic_load_n(&control->head, __ATOMIC_ACQUIRE);
	*bytesp = queue_bytes(__atomic_load_n(&control->tail, __ATOMIC_ACQUIRE), head);
	return true;
}
