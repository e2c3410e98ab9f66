/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: code on its way to the driver
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/checked.h"
#include "vgpu/log.h"
#include "worker/call.h"
#include "worker/image-check.h"
#include "worker/images.h"
#include "vgpu/rate.h"
#include "worker/session.h"

#define WRAPPER_MAGIC 0x466243b1u
#define WRAPPER_PRELINKED 2u

/* Behind each image: the end of a text, and what a parser may look ahead at. */
#define TRAILER 64u
#define ALIGNMENT 64u

static CUresult total_size(
	struct call *call, const struct vgpu_load *load, uint64_t *totalp)
{
	uint64_t total = 0, padded;

	for (uint32_t i = 0; i < load->n_images; i++) {
		const struct vgpu_load_image *image = &load->images[i];

		if (!image->size || image->size > IMAGES_SIZE_MAX ||
			!arena_covers(call->session, image->address, image->size))
			return CUDA_ERROR_INVALID_VALUE;
		if (!vgpu_align_u64(image->size + TRAILER, ALIGNMENT, &padded) ||
			!vgpu_add_u64(total, padded, &total) || total > IMAGES_SIZE_MAX)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*totalp = total;
	return CUDA_SUCCESS;
}

bool images_charge(struct session *session, uint64_t size)
{
	if (__atomic_add_fetch(&session->image_bytes, size, __ATOMIC_RELAXED) <=
		IMAGES_SESSION_MAX)
		return true;
	images_refund(session, size);
	return false;
}

void images_refund(struct session *session, uint64_t size)
{
	__atomic_fetch_sub(&session->image_bytes, size, __ATOMIC_RELAXED);
}

CUresult images_hold(struct session *session, uint64_t size)
{
	static struct rate rate;

	if (object_totals_charge(&session->totals, size))
		return CUDA_SUCCESS;
	/* What is loaded already stays so until it is unloaded: say which setting it
	 * was. */
	if (rate_allows(&rate))
		vgpu_log_warning("VM %s: a process has loaded all the code it may; "
				 "image-memory = sets how much.",
			session->vm);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Copies one image to a place of the copy. Return: bytes that it takes there, or 0 for
 * one that leads out of its own. */
static uint64_t copy_image(uint8_t *to, const struct vgpu_load_image *image)
{
	uint64_t padded = (image->size + TRAILER + ALIGNMENT - 1) & -(uint64_t)ALIGNMENT;

	memcpy(to, (const void *)(uintptr_t)image->address, image->size);
	memset(to + image->size, 0, padded - image->size);
	/* Checked in the copy: the guest may change its own meanwhile. */
	return image_is_contained(to, image->size) ? padded : 0;
}

CUresult images_take(
	struct call *call, struct images *images, const struct vgpu_load *load)
{
	uint64_t total, taken, offset = 0;
	CUresult result;

	memset(images, 0, sizeof(*images));
	if (!load->n_images || load->n_images > VGPU_LOAD_IMAGES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	result = total_size(call, load, &total);
	if (result != CUDA_SUCCESS)
		return result;
	if (!images_charge(call->session, total))
		return CUDA_ERROR_OUT_OF_MEMORY;
	images->size = total;
	result = images_hold(call->session, total);
	if (result != CUDA_SUCCESS)
		return result;
	images->held = total;
	images->copy = aligned_alloc(ALIGNMENT, total);
	if (!images->copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < load->n_images; i++) {
		images->containers[i] = images->copy + offset;
		taken = copy_image(images->copy + offset, &load->images[i]);
		if (!taken)
			return CUDA_ERROR_INVALID_IMAGE;
		print_note_code(
			call->session, images->copy + offset, load->images[i].size);
		offset += taken;
	}
	images->code = images->containers[0];
	if (load->n_images == 1)
		return CUDA_SUCCESS;

	/* The first is the linked result, the others are what it was linked from; the
	 * array ends with NULL because one place of it is always left. */
	images->wrapper = (struct images_wrapper){
		.magic = WRAPPER_MAGIC,
		.version = WRAPPER_PRELINKED,
		.data = images->containers[0],
		.prelinked = &images->containers[1],
	};
	images->code = &images->wrapper;
	return CUDA_SUCCESS;
}

void images_keep(struct call *call, struct images *images, enum vgpu_handle_kind kind,
	uint64_t handle)
{
	struct object *object;

	if (object_entry(call, kind, handle, &object) != CUDA_SUCCESS)
		return;
	__atomic_store_n(&object->image_bytes, images->held, __ATOMIC_RELAXED);
	images->held = 0;
}

void images_release(struct call *call, struct images *images)
{
	free(images->copy);
	images->copy = NULL;
	images_refund(call->session, images->size);
	images->size = 0;
	object_totals_refund(&call->session->totals, images->held);
	images->held = 0;
}
