/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: what a broker is told by workers and by its keeper
 *
 * Workers say anything in any phase, with any descriptors, while guests write what they
 * like into their channel tables, VMs come and go and the broker is replaced. In some
 * inputs the keeper, too, says anything at any time: the broker may refuse that and end,
 * and may not break.
 */

#include "stage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	stage_play(data, size, STAGE_ANY);
	return 0;
}
