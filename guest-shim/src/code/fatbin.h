/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fat binary: one container, reduced to what the devices can use
 *
 * A container has the same code for many processors, compiled and as PTX. Code for
 * processors that are not present is not sent: in most libraries that is the larger part.
 * Contents that cannot be parsed are sent unchanged, and so is a container of which
 * nothing would be left, so that the host reports the error.
 */

#include <stdint.h>

#include "vgpu/handle.h"

/* The processors that code is for; none: unknown. */
struct shim_processors {
	uint32_t n;
	struct {
		uint32_t major, minor;
	} capabilities[VGPU_DEVICES_MAX];
};

struct shim_fatbin {
	const uint8_t *bytes;
	uint64_t size; /* as its header says */
	const struct shim_processors *processors;
};

/* Bytes of the container without what no device can use. */
uint64_t shim_fatbin_usable_size(const struct shim_fatbin *fatbin);

/* Writes it so; never more than @size bytes, which is what was measured. */
void shim_fatbin_copy_usable(
	const struct shim_fatbin *fatbin, uint8_t *to, uint64_t size);
