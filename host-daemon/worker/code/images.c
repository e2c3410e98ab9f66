/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: code on its way to the driver
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/checked.h"
#include "vgpu/log.h"
#include "vgpu/rate.h"
#include "worker/base/call.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/reason.h"
#include "worker/base/session.h"
#include "worker/code/code.h"
#include "worker/code/image-check.h"
#include "worker/code/image.h"
#include "worker/code/images.h"
#include "worker/code/printing.h"
#include "worker/memory/arena.h"

static CUresult total_size(
	struct call *call, const struct vgpu_load *load, uint64_t *totalp)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < load->n_images; i++) {
		const struct vgpu_load_image *image = vgpu_load_image(load, i);

		if (!image->size || image->size > IMAGES_SIZE_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		if (!(load->flags & VGPU_LOAD_BY_DIGEST) &&
			!arena_covers(call->session, image->address, image->size))
			return CUDA_ERROR_INVALID_VALUE;
		/* Cannot overflow: an image has at most 1 GiB, and their number is
		 * bounded. */
		total += image_padded(image->size);
	}
	*totalp = total;
	return total <= IMAGES_SIZE_MAX ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
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
	reason_say(VGPU_REPLY_REASON_LOAD,
		"%llu bytes more would pass the %llu bytes of code that a process of "
		"this "
		"VM may have loaded: image-memory = in vgpud.conf on the host sets that",
		(unsigned long long)size,
		(unsigned long long)session->totals.image_bytes_max);
	/* Loaded images stay until they are unloaded: name the setting that limits
	 * them. */
	if (rate_allows(&rate))
		vgpu_log_warning("the process has reached its limit of loaded code; "
				 "image-memory = sets the limit");
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Whether the padding of a container is zero, which terminates text. */
static bool is_padding(const uint8_t *bytes, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		if (bytes[i])
			return false;
	return true;
}

/* Checks each container. */
static CUresult check_containers(
	struct call *call, struct images *images, const struct vgpu_load *load)
{
	const bool is_told =
		load->flags & VGPU_LOAD_BY_DIGEST && load->flags & VGPU_LOAD_SILENT;
	const uint8_t *bytes = images->code->image.bytes;

	images->is_silent = true;
	for (uint32_t i = 0; i < load->n_images; i++) {
		const uint64_t size = vgpu_load_image(load, i)->size,
			       padded = image_padded(size);

		if (!is_padding(bytes + size, padded - size) ||
			!image_is_contained(bytes, size)) {
			reason_say(VGPU_REPLY_REASON_LOAD,
				"the image is damaged: what it says it holds reaches "
				"beyond its end");
			return CUDA_ERROR_INVALID_IMAGE;
		}
		if (!is_told && !printing_note(call->session, bytes, size))
			images->is_silent = false;
		bytes += padded;
	}
	return CUDA_SUCCESS;
}

static CUresult obtain(struct call *call, struct images *images,
	const struct vgpu_load *load, uint64_t size)
{
	struct session *session = call->session;
	CUresult result = CUDA_SUCCESS;
	struct image *image;

	images->code = code_new();
	if (!images->code)
		return CUDA_ERROR_OUT_OF_MEMORY;
	image = &images->code->image;
	if (load->flags & VGPU_LOAD_BY_DIGEST) {
		if (!code_find_image(session, load->digest, size, image))
			result = image_find(image, session, load->digest, size);
		images->is_absent = result == CUDA_ERROR_NOT_FOUND;
		if (result == CUDA_SUCCESS)
			session_count(session, images_found, 1);
		return result;
	}
	session_count(session, images_sent, 1);
	session_count(session, image_bytes, size);
	return image_copy(image, session, load, size);
}

CUresult images_take(
	struct call *call, struct images *images, const struct vgpu_load *load)
{
	uint64_t total;
	CUresult result;

	memset(images, 0, sizeof(*images));
	if (!load->n_images || load->n_images > VGPU_LOAD_IMAGES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	result = total_size(call, load, &total);
	if (result != CUDA_SUCCESS)
		return result;
	if (!images_charge(call->session, total)) {
		reason_say(VGPU_REPLY_REASON_LOAD,
			"a process may have %llu MiB of code under way at once",
			IMAGES_SESSION_MAX >> 20);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	images->size = total;
	result = images_hold(call->session, total);
	if (result != CUDA_SUCCESS)
		return result;
	images->held = total;
	result = obtain(call, images, load, total);
	if (result == CUDA_SUCCESS)
		result = check_containers(call, images, load);
	if (result != CUDA_SUCCESS)
		return result;
	image_share(&images->code->image, call->session);
	code_place(images->code, load);
	images->is_taken = true;
	memcpy(images->digest, images->code->image.digest, sizeof(images->digest));
	return CUDA_SUCCESS;
}

void images_preserve(struct call *call, struct images *images, CUlibrary library)
{
	images->code->held = images->held;
	images->held = 0;
	code_keep(call->session, images->code, library);
	images->code = NULL;
}

void images_keep(struct call *call, struct images *images, enum vgpu_handle_kind kind,
	uint64_t handle)
{
	struct object *object;

	if (object_find(call, kind, handle, &object) != CUDA_SUCCESS)
		return;
	__atomic_store_n(&object->image_bytes, images->held, __ATOMIC_RELAXED);
	images->held = 0;
}

void images_release(struct call *call, struct images *images)
{
	images->code = code_free(call->session, images->code);
	images_refund(call->session, images->size);
	images->size = 0;
	object_totals_refund(&call->session->totals, images->held);
	images->held = 0;
}
