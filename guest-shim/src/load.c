/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads: what modules, libraries and links have in common on their way to the host
 */

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "load.h"

#define ALIGNMENT 64ull

CUresult shim_load_new(struct shim_load **loadp, const CUjit_option *options,
	void **values, unsigned int n)
{
	_vgpu_cleanup_(shim_load_freep) struct shim_load *load = calloc(1, sizeof(*load));
	CUresult result;

	if (!load)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = shim_jit_prepare(&load->jit, options, values, n, &load->wire);
	if (result != CUDA_SUCCESS)
		return result;
	*loadp = load;
	load = NULL;
	return CUDA_SUCCESS;
}

struct shim_load *shim_load_free(struct shim_load *load)
{
	if (!load)
		return NULL;
	if (load->arena)
		shim_arena_free(load->arena);
	free(load);
	return NULL;
}

static uint64_t padded(uint64_t size)
{
	return (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

CUresult shim_load_upload(struct shim_load *load, uint64_t room)
{
	uint64_t logs = padded((uint64_t)load->wire.info_size + load->wire.error_size);
	const struct shim_image *image = &load->image;
	uint64_t total = 0;
	uint8_t *place;

	for (uint32_t i = 0; i < image->n_parts; i++)
		total += padded(image->parts[i].size);
	if (total > SHIM_IMAGE_SIZE_MAX)
		return CUDA_ERROR_INVALID_IMAGE;
	total += logs + room;
	if (!total)
		return CUDA_SUCCESS;
	load->arena = place = shim_arena_alloc(total);
	if (!place)
		return CUDA_ERROR_OUT_OF_MEMORY;
	load->wire.log_address = (uint64_t)(uintptr_t)place;
	place += logs;
	for (uint32_t i = 0; i < image->n_parts; i++) {
		memcpy(place, image->parts[i].data, image->parts[i].size);
		load->wire.images[i] = (struct vgpu_load_image){
			.address = (uint64_t)(uintptr_t)place,
			.size = image->parts[i].size,
		};
		place += padded(image->parts[i].size);
	}
	load->wire.n_images = image->n_parts;
	load->room = place;
	return CUDA_SUCCESS;
}

CUresult shim_load_image(struct shim_load **loadp, const void *image,
	const CUjit_option *options, void **values, unsigned int n)
{
	_vgpu_cleanup_(shim_load_freep) struct shim_load *load = NULL;
	CUresult result;

	result = shim_load_new(&load, options, values, n);
	if (result == CUDA_SUCCESS)
		result = shim_image_measure(image, &load->image);
	if (result == CUDA_SUCCESS)
		result = shim_load_upload(load, 0);
	if (result != CUDA_SUCCESS)
		return result;
	*loadp = load;
	load = NULL;
	return CUDA_SUCCESS;
}

ProtobufCBinaryData shim_load_bytes(struct shim_load *load)
{
	return (ProtobufCBinaryData){ sizeof(load->wire), (uint8_t *)&load->wire };
}

void shim_load_finish(const struct shim_load *load, const struct shim_jit *jit,
	const ProtobufCBinaryData *result)
{
	struct vgpu_load_result values = {};

	if (result->len == sizeof(values))
		memcpy(&values, result->data, sizeof(values));
	shim_jit_finish(jit, &load->wire, &values, (const char *)load->arena);
}
