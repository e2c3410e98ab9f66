/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The body of a frame, copied out of shared memory
 *
 * A separate file because a fuzz target is built with a faulty one.
 */

#include <stdint.h>
#include <string.h>

#include "vgpu/frame.h"

/* The header was copied from the same place and checked; that copy alone counts. */
static inline void vgpu_frame_copy_body(struct vgpu_frame *frame, const uint8_t *source)
{
	memcpy(frame->body, source + sizeof(*frame), frame->size - sizeof(*frame));
}
