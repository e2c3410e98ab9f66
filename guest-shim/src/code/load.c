/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads: what modules, libraries and links have in common on their way to the host
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/log.h"

#include "code/load.h"
#include "memory/arena.h"
#include "process/environment.h"
#include "wire/reason.h"

#define ALIGNMENT 64ull

CUresult shim_load_new(struct shim_load **loadp, const CUjit_option *options,
	void **values, unsigned int n)
{
	_vgpu_cleanup_(shim_load_freep) struct shim_load *load = calloc(1, sizeof(*load));
	CUresult result;

	if (!load)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = shim_jit_prepare(&load->jit, options, values, n, &load->wire);
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		shim_reason_tell(SHIM_REASON_OPTION,
			"a load of code fails with CUDA_ERROR_NOT_SUPPORTED (801): "
			"options "
			"of the compiler that name symbols, kernels or variables are not "
			"remoted");
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
	if (!place) {
		shim_reason_tell(SHIM_REASON_LOAD_ROOM,
			"a load of code fails with CUDA_ERROR_OUT_OF_MEMORY (2): the "
			"shared "
			"memory has no %llu KiB in a row for it: free pinned memory, or "
			"raise size = of this virtual machine in vgpud.conf on the host",
			(unsigned long long)total >> 10);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	load->wire.log_address = (uint64_t)(uintptr_t)place;
	place += logs;
	for (uint32_t i = 0; i < image->n_parts; i++) {
		shim_image_copy_part(&image->parts[i], place);
		*vgpu_load_image_at(&load->wire, i) = (struct vgpu_load_image){
			.address = (uint64_t)(uintptr_t)place,
			.size = image->parts[i].size,
		};
		place += padded(image->parts[i].size);
	}
	load->wire.n_images = image->n_parts;
	load->room = place;
	return CUDA_SUCCESS;
}

/* Names the image by the digest that an earlier process received. */
static CUresult name_image(struct shim_load *load, const struct shim_digest *known)
{
	const uint32_t n_parts = load->image.n_parts;
	CUresult result;

	/* Room for the logs is all that is needed. */
	load->image.n_parts = 0;
	result = shim_load_upload(load, 0);
	load->image.n_parts = n_parts;
	for (uint32_t i = 0; i < n_parts; i++)
		vgpu_load_image_at(&load->wire, i)->size = load->image.parts[i].size;
	load->wire.n_images = n_parts;
	memcpy(load->wire.digest, known->bytes, sizeof(load->wire.digest));
	load->wire.flags |= VGPU_LOAD_BY_DIGEST;
	if (known->is_silent)
		load->wire.flags |= VGPU_LOAD_SILENT;
	return result;
}

static CUresult provide_image(struct shim_load *load)
{
	struct shim_digest known;

	load->is_identified =
		shim_environment.remembers_images &&
		shim_image_identify(&load->image, &load->key, &load->is_settled);
	if (load->is_identified && shim_digests_find(&load->key, &known))
		return name_image(load, &known);
	return shim_load_upload(load, 0);
}

CUresult shim_load_image(struct shim_load **loadp, const struct shim_load_source *source,
	const CUjit_option *options, void **values, unsigned int n)
{
	_vgpu_cleanup_(shim_load_freep) struct shim_load *load = NULL;
	CUresult result;

	result = shim_load_new(&load, options, values, n);
	if (result != CUDA_SUCCESS)
		return result;
	load->image.file = source->file;
	result = shim_image_measure(source->image, &load->image);
	if (result == CUDA_ERROR_INVALID_IMAGE)
		shim_reason_tell(SHIM_REASON_LOAD,
			"a load of code fails with CUDA_ERROR_INVALID_IMAGE (200): what "
			"the "
			"program loads is no fat binary, cubin or PTX, or a damaged one");
	if (result == CUDA_SUCCESS)
		result = provide_image(load);
	if (result != CUDA_SUCCESS)
		return result;
	*loadp = load;
	load = NULL;
	return CUDA_SUCCESS;
}

ProtobufCBinaryData shim_load_bytes(struct shim_load *load)
{
	return (ProtobufCBinaryData){ vgpu_load_size(&load->wire),
		(uint8_t *)&load->wire };
}

static struct vgpu_load_result result_of(const ProtobufCBinaryData *bytes)
{
	struct vgpu_load_result result = {};

	if (bytes->len == sizeof(result))
		memcpy(&result, bytes->data, sizeof(result));
	return result;
}

bool shim_load_again(
	struct shim_load *load, const ProtobufCBinaryData *bytes, CUresult *resultp)
{
	const struct vgpu_load_result result = result_of(bytes);
	CUresult uploaded;

	if (!(load->wire.flags & VGPU_LOAD_BY_DIGEST) ||
		!(result.flags & VGPU_LOAD_ABSENT))
		return false;
	load->wire.flags &= ~(VGPU_LOAD_BY_DIGEST | VGPU_LOAD_SILENT);
	if (load->arena)
		shim_arena_free(load->arena);
	load->arena = NULL;
	uploaded = shim_load_upload(load, 0);
	if (uploaded != CUDA_SUCCESS)
		*resultp = uploaded;
	return uploaded == CUDA_SUCCESS;
}

/* For the next process; also what is known already, if it is another digest now. */
static void remember(const struct shim_load *load, const struct vgpu_load_result *result)
{
	const bool was_named = load->wire.flags & VGPU_LOAD_BY_DIGEST;
	struct shim_digest digest = {
		.is_silent = result->flags & VGPU_LOAD_IS_SILENT,
	};
	const bool is_news = !was_named ||
			     (digest.is_silent && !(load->wire.flags & VGPU_LOAD_SILENT));

	vgpu_log_debug("code of %llu bytes was %s",
		(unsigned long long)load->wire.first[0].size,
		was_named ? "there already" : "sent");
	if (!load->is_identified || !load->is_settled || !is_news ||
		!(result->flags & VGPU_LOAD_HAS_DIGEST))
		return;
	memcpy(digest.bytes, result->digest, sizeof(digest.bytes));
	shim_digests_remember(&load->key, &digest);
}

void shim_load_finish(const struct shim_load *load, const struct shim_jit *jit,
	const ProtobufCBinaryData *result)
{
	const struct vgpu_load_result values = result_of(result);

	if (load->wire.n_images)
		remember(load, &values);
	shim_jit_finish(jit, &load->wire, &values, (const char *)load->arena);
}
