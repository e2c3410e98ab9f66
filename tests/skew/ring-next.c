/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of a later release's guest library, which has one more field in each request
 */

#define vgpu_ring_reserve reserve_known
#define vgpu_ring_commit commit_known
/* The file itself, with two functions under other names. */
#include "../../protocol/src/ring.c"
#undef vgpu_ring_reserve
#undef vgpu_ring_commit

#include "later-field.h"

struct vgpu_frame *vgpu_ring_reserve(struct vgpu_ring_producer *producer, uint32_t size);
void vgpu_ring_commit(struct vgpu_ring_producer *producer, uint32_t size);

/* The room of the frame in hand; under the lock of the callers. */
static uint32_t room;

struct vgpu_frame *vgpu_ring_reserve(struct vgpu_ring_producer *producer, uint32_t size)
{
	room = size + LATER_FIELD_SIZE;
	if (room > VGPU_FRAME_MAX)
		room = size;
	return reserve_known(producer, room);
}

void vgpu_ring_commit(struct vgpu_ring_producer *producer, uint32_t size)
{
	struct vgpu_frame *frame =
		(struct vgpu_frame *)(producer->data + (producer->tail & RING_MASK));

	if (size + LATER_FIELD_SIZE <= room) {
		later_field_put((uint8_t *)frame + size);
		size += LATER_FIELD_SIZE;
		frame->size = size;
	}
	commit_known(producer, size);
}
