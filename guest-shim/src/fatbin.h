/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fat binary: one container, and what the devices can use of it
 *
 * A container holds the same code for many processors, compiled and as PTX. Code for one
 * that is not there is not sent: a library for all of them is mostly that. What cannot
 * be told is sent as it is, and so is a container of which nothing is left, so that the
 * host says what the program is to hear of it.
 */

#include <stdint.h>

#include "vgpu/handle.h"

/* The kinds of devices that code is for; none: nobody can tell. */
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
