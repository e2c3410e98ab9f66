/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Loads: the common part of modules, libraries and links
 *
 *	load_begin()	copies the block and the images, prepares the options
 *	...		the driver reads load.images and load.jit
 *	load_end()	puts logs and results into the reply, frees the copies
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
	char reason[VGPU_REASON_TEXT_MAX]; /* the error log, if the guest wants none */
};

/* Copies the block. Return: false if its size is wrong. */
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
