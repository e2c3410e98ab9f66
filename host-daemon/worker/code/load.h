/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Loads: what modules, libraries and links have in common
 *
 *	load_begin()	the block is taken over: images are copied, options ready
 *	...		the driver is given load.images and load.jit
 *	load_end()	logs and results are in the reply, copies are freed
 */

#include <protobuf-c/protobuf-c.h>

#include "vgpu/reason.h"
#include "worker/code/images.h"
#include "worker/code/jit.h"

struct load {
	struct vgpu_load wire; /* the private copy */
	struct images images;
	struct jit jit;
	struct vgpu_load_result result;
	char reason[VGPU_REASON_TEXT_MAX]; /* the error log, where the guest wants none */
};

/* Takes the block over. Return: whether it has the size of one. */
bool load_copy(const ProtobufCBinaryData *bytes, struct vgpu_load *wire);

/*
 * Begins a load with at least one image. load_end() has to follow, whatever the result;
 * *loadp is NULL without memory.
 */
CUresult load_begin(
	struct call *call, const ProtobufCBinaryData *bytes, struct load **loadp);

/* Ends it. Return: `result`. */
CUresult load_end(struct call *call, struct load *load, CUresult result,
	ProtobufCBinaryData *resultp);
