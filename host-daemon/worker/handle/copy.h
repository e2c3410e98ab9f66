/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies: their interface to other handlers
 */

#include <stdint.h>

#include "vgpu/cuda.h"

struct call;

/* Looks up the stream of a copy; if it is invalid, frees the copy's staging block. */
CUresult copy_stream(struct call *call, uint64_t handle, uint32_t word, uint64_t value,
	void **streamp);

/*
 * Writes the word after a copy, also after a refused one, because the guest waits for it.
 * But if the guest gets the refusal in a reply it does not wait, and may use block and
 * word on another stream before this write.
 */
CUresult copy_finish(struct call *call, CUstream stream, uint32_t word, uint64_t value,
	CUresult result);

/* For a call that is not handled because its context was destroyed: frees the staging
 * block of a copy without a reply. */
void copy_give_back(struct call *call);
