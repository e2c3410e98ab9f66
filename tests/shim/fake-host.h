/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A channel whose host is a thread of the test
 */

#include <stdint.h>

#include "vgpu/ring.h"

/* Opens the channel, and sets up what submission needs. `state` is what shim_statep
 * points to from now on. Frames are for the consumer, which the thread `run` serves. */
void fake_host_start(
	const uint32_t *state, struct vgpu_ring_consumer *consumer, void *(*run)(void *));

/* Returns: how often the host was rung for. */
uint32_t fake_host_n_rings(void);
