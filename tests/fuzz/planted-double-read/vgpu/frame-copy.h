/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A planted bug: a frame's size is read again after it was checked
 *
 * Built instead of protocol/include/vgpu/frame-copy.h into the test of the ring that must
 * notice it, and where the build option planted_bug is double-read.
 */

#include <stdint.h>
#include <string.h>

#include "vgpu/frame.h"

static inline void vgpu_frame_copy_body(struct vgpu_frame *frame, const uint8_t *source)
{
	for (volatile int i = 0; i < 20000; i++)
		; /* as long as a busy machine may take, so that it shows */
	frame->size = ((const volatile struct vgpu_frame *)source)->size;
	memcpy(frame->body, source + sizeof(*frame), frame->size - sizeof(*frame));
}
