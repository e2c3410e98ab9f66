/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies: what others need of them
 */

#include <stdint.h>

#include "vgpu/cuda.h"

struct call;

/* The stream of a copy; without a valid one, the copy's block is returned. */
CUresult copy_stream(struct call *call, uint64_t handle, uint32_t word, uint64_t value,
	void **streamp);

/*
 * Writes the word after a copy, also after one that was refused: the guest waits for it.
 * If the guest gets the refusal in a reply it does not wait, and may use block and word
 * on another stream before this one would write.
 */
CUresult copy_finish(struct call *call, CUstream stream, uint32_t word, uint64_t value,
	CUresult result);

/* A call that is not handled, because its context is gone: for a copy without a reply,
 * the guest's staging block is returned. */
void copy_give_back(struct call *call);
