/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Loads: what modules, libraries and links have in common on their way to the host
 *
 *	shim_load_new()		options, and where results of the compiler go
 *	shim_image_measure()	or another way to fill load.image
 *	shim_load_upload()	images and room for the logs are in the arena
 *	shim_load_bytes()	the block that travels
 *	shim_load_again()	the host did not have an image that was only named
 *	shim_load_finish()	results are where the program wants them
 */

#include <protobuf-c/protobuf-c.h>

#include "vgpu/cleanup.h"
#include "vgpu/load.h"

#include "code/image.h"
#include "code/jit.h"

struct shim_load {
	struct vgpu_load wire;
	struct shim_image image;
	struct shim_jit jit;
	uint8_t *arena; /* once uploaded: logs, images, and other buffers */
	uint8_t *room;
	/* The identity of the image, and whether its digest may be written to the
	 * file. */
	struct shim_digest_key key;
	bool is_identified;
	bool is_settled;
};

/* The image of a load: memory of the program, or a file that was read. */
struct shim_load_source {
	const void *image;
	const struct shim_image_file *file; /* or NULL */
};

CUresult shim_load_new(struct shim_load **loadp, const CUjit_option *options,
	void **values, unsigned int n);
struct shim_load *shim_load_free(struct shim_load *load);

/* @room: bytes of arena for the host to write to, 0 for none: load.room */
CUresult shim_load_upload(struct shim_load *load, uint64_t room);

/* All of it for an image that says itself how long it is. One that the host has by
 * all that is known is only named. */
CUresult shim_load_image(struct shim_load **loadp, const struct shim_load_source *source,
	const CUjit_option *options, void **values, unsigned int n);

ProtobufCBinaryData shim_load_bytes(struct shim_load *load);

/*
 * Whether the call has to be made once more, now with the image.
 *
 * @resultp:	of the call; where there is no room for the image it becomes that
 */
bool shim_load_again(
	struct shim_load *load, const ProtobufCBinaryData *bytes, CUresult *resultp);

/* @jit: the options whose results these are; for a link, those of its creation */
void shim_load_finish(const struct shim_load *load, const struct shim_jit *jit,
	const ProtobufCBinaryData *result);

VGPU_DEFINE_CLEANUP(struct shim_load *, shim_load_free);
