/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Variables of modules and libraries, as look-ups return them
 */

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

struct call;
struct lookup;
struct object;

/* The fields that the replies of all look-ups have. */
struct variable_reply {
	uint64_t *dptr;
	uint64_t *bytes;
	uint32_t *first_extent;
	uint32_t *n_extents;
	ProtobufCBinaryData *pieces;
};

#define VARIABLE_REPLY(_reply)                                                           \
	(&(struct variable_reply){                                                       \
		.dptr = &(_reply)->dptr,                                                 \
		.bytes = &(_reply)->bytes,                                               \
		.first_extent = &(_reply)->first_extent,                                 \
		.n_extents = &(_reply)->n_extents,                                       \
		.pieces = &(_reply)->pieces,                                             \
	})

/*
 * Lets the guest access a variable: on the device, or, if it is managed, in the arena,
 * where softgpu has placed it and other drivers' are mirrored.
 *
 * @lookup:	that found it, and has not ended
 * @parent:	the module or library
 * @is_managed:	of those for which the driver has to be asked, false
 */
CUresult variable_publish(struct call *call, const struct lookup *lookup,
	const struct object *parent, CUdeviceptr address, size_t size, bool is_managed,
	const struct variable_reply *reply);
