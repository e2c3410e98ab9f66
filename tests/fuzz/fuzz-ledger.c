/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the accounts of broker and keeper
 *
 * The same stage as for the target control, with an honest keeper: after each step the
 * recorded extents, slots, images and workers have to agree, and be within their limits;
 * after the end of all sessions nothing of it is left.
 */

#include "stage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	stage_play(data, size, STAGE_HONEST);
	return 0;
}
