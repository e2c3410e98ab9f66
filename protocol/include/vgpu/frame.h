/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Frame: one call on the submission ring
 *
 * A fixed header, then the packed protobuf message of the call. Frames start at multiples
 * of VGPU_FRAME_ALIGN and never straddle the ring's end: a frame with call VGPU_CALL_PAD,
 * whose body is ignored, fills the rest of a lap.
 */

#include <assert.h>
#include <stdint.h>

#define VGPU_FRAME_ALIGN 16u

/* Whole frame with header. The largest body is a launch with 32 764 bytes of kernel
 * parameters (the CUDA limit); a quarter of the ring leaves room for others. */
#define VGPU_FRAME_MAX (64u << 10)

/* No call: fills the ring up to its end. */
#define VGPU_CALL_PAD 0u

enum {
	/* The caller waits on its slot: exactly one reply will be written. */
	VGPU_FRAME_REPLY = 1u << 0,
	_VGPU_FRAME_FLAGS = VGPU_FRAME_REPLY,
};

struct vgpu_frame {
	uint32_t size;	   /* header and body, before padding to VGPU_FRAME_ALIGN */
	uint16_t call;	   /* call id from the API description */
	uint16_t flags;	   /* VGPU_FRAME_* */
	uint32_t lane;	   /* reply slot of the calling thread, identifies the thread */
	uint32_t sequence; /* of this call on its lane; echoed in the reply slot */
	uint8_t body[];
};

static_assert(sizeof(struct vgpu_frame) == 16, "fixed size");

/* Returns: the space a frame of that size takes on the ring. */
static inline uint32_t vgpu_frame_padded(uint32_t size)
{
	return (size + VGPU_FRAME_ALIGN - 1) & ~(VGPU_FRAME_ALIGN - 1);
}
