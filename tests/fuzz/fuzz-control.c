/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: messages of workers and keeper to a broker
 *
 * Workers send any message in any phase, with any descriptors, while guests write
 * arbitrary data into their channel tables, VMs connect and disconnect and the broker is
 * replaced. In some inputs the keeper, too, sends any message at any time: the broker may
 * refuse it and exit, but not crash.
 */

#include "stage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	stage_play(data, size, STAGE_ANY);
	return 0;
}
