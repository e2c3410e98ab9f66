/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits in a ring
 */

#include <stdlib.h>

#include "broker/channel.h"
#include "broker/queue.h"
#include "broker/vm.h"
#include "test.h"
#include "vgpu/ring-layout.h"

TEST(indices_run_over)
{
	check_eq(queue_bytes(0, 0), 0);
	check_eq(queue_bytes(64, 0), 64);
	check_eq(queue_bytes(16, UINT64_MAX - 15), 32);
	check_eq(queue_bytes(VGPU_RING_SIZE, 0), VGPU_RING_SIZE);
}

TEST(indices_that_a_guest_made_up)
{
	check_eq(queue_bytes(0, 64), VGPU_RING_SIZE);
	check_eq(queue_bytes(UINT64_MAX, 0), VGPU_RING_SIZE);
	check_eq(queue_bytes(VGPU_RING_SIZE + 1, 0), VGPU_RING_SIZE);
}

TEST(the_indices_are_those_of_the_channel)
{
	struct vm vm = { .layout.area_off = 4096 };
	struct channel channel = { .vm = &vm, .index = 1 };
	struct vgpu_channel_control *control;
	uint32_t bytes = 0;

	vm.map = calloc(1, 4096 + 2 * VGPU_AREA_SIZE);
	control = (void *)((uint8_t *)vm.map + 4096 + VGPU_AREA_SIZE);
	control->head = 100;
	control->tail = 164;
	check(queue_read(&channel, &bytes));
	check_eq(bytes, 64);
	vm.gone = true;
	check(!queue_read(&channel, &bytes));
	free(vm.map);
}
