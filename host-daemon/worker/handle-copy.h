/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies: what others need of them
 */

#include <stdint.h>

#include "worker/dispatch.h"

/* One side of a copy: rows that begin `pitch` bytes apart, `rows` of them a layer. */
struct copy_side {
	uint64_t address;
	uint64_t pitch;
	uint64_t rows;
};

/* Whether such a box on that side lies within one allocation of the guest. */
CUresult copy_check_side(struct call *call, const struct copy_side *side, uint64_t width,
	uint64_t height, uint64_t depth);

/* The stream of a copy; where there is none, the copy's block is given back. */
CUresult copy_stream(struct call *call, uint64_t handle, uint32_t word, uint64_t value,
	void **streamp);

/*
 * Writes the word behind a copy, also one that was refused: the guest waits for it. One
 * that is told of the refusal waits for nothing, and may use block and word again on
 * another stream before this one would come to write.
 */
CUresult copy_finish(struct call *call, CUstream stream, uint32_t word, uint64_t value,
	CUresult result);

/* A call that no handler will see, because its context is gone: if it is a copy nobody
 * waits for, the guest gets its staging block back. */
void copy_give_back(struct call *call);
