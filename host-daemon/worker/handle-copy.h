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

/* A call that no handler will see, because its context is gone: if it is a copy nobody
 * waits for, the guest gets its staging block back. */
void copy_give_back(struct call *call);
