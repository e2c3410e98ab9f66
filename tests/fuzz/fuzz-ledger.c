/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the books of broker and keeper
 *
 * The same stage as that of the target control, with a keeper that is honest: after each
 * step what is written down of extents, slots, images and workers has to agree, and
 * within its limits; after the end of all sessions nothing is left of it.
 */

#include "stage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	stage_play(data, size, STAGE_HONEST);
	return 0;
}
