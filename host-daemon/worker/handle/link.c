/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on links
 *
 * A driver may write to the logs and values of a link's creation at any call on the link,
 * so they live as long as the link. The inputs of a link are charged to the session until
 * the link is destroyed, because a driver keeps them.
 *
 * Two lanes may use one link, and a third may destroy it: the table has one reference,
 * each call in progress has another, and the last one frees. links_lock guards the
 * table's look-up and the counts; link.lock serialises the driver calls.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "g-handlers.h"
#include "vgpu/checked.h"
#include "worker/base/call.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/reason.h"
#include "worker/base/session.h"
#include "worker/code/image-check.h"
#include "worker/code/images.h"
#include "worker/code/jit.h"
#include "worker/code/load.h"
#include "worker/code/printing.h"
#include "worker/memory/arena.h"

struct link {
	uint32_t n_refs;
	pthread_mutex_t lock; /* guards the fields below */
	CUlinkState state;
	struct jit jit;
	uint64_t held;	   /* charged as loaded code */
	const void *image; /* the driver's, once complete */
	size_t size;
	char reason[VGPU_REASON_TEXT_MAX]; /* the error log, if the guest wants none */
};

static pthread_mutex_t links_lock = PTHREAD_MUTEX_INITIALIZER;

static void link_free(struct call *call, struct link *link)
{
	if (link->state)
		call->driver->cuLinkDestroy(link->state);
	jit_deinit(&link->jit, call->session);
	object_totals_refund(&call->session->totals, link->held);
	pthread_mutex_destroy(&link->lock);
	free(link);
}

static CUresult link_enter(struct call *call, uint64_t handle, struct link **linkp)
{
	CUresult result;
	void *link;

	pthread_mutex_lock(&links_lock);
	result = object_get(call, VGPU_HANDLE_LINK, handle, false, &link);
	if (result == CUDA_SUCCESS)
		((struct link *)link)->n_refs++;
	pthread_mutex_unlock(&links_lock);
	if (result != CUDA_SUCCESS)
		return result;
	*linkp = link;
	pthread_mutex_lock(&(*linkp)->lock);
	return CUDA_SUCCESS;
}

static void link_drop(struct call *call, struct link *link)
{
	bool last;

	pthread_mutex_lock(&links_lock);
	last = !--link->n_refs;
	pthread_mutex_unlock(&links_lock);
	if (last)
		link_free(call, link);
}

static void link_leave(struct call *call, struct link *link)
{
	pthread_mutex_unlock(&link->lock);
	link_drop(call, link);
}

static bool can_link(const struct call *call)
{
	return call->driver->cuLinkCreate_v2 && call->driver->cuLinkAddData_v2 &&
	       call->driver->cuLinkComplete && call->driver->cuLinkDestroy;
}

CUresult handle_cuLinkCreate_v2(struct call *call,
	const Vgpu__CuLinkCreateV2Request *request, Vgpu__CuLinkCreateV2Reply *reply)
{
	struct vgpu_load wire;
	struct link *link;
	CUresult result;

	if (!can_link(call))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!load_copy(&request->load, &wire))
		return CUDA_ERROR_INVALID_VALUE;
	link = calloc(1, sizeof(*link));
	if (!link)
		return CUDA_ERROR_OUT_OF_MEMORY;
	link->n_refs = 1;
	pthread_mutex_init(&link->lock, NULL);
	result = jit_init(&link->jit, call->session, &wire);
	if (result == CUDA_SUCCESS && !wire.error_size)
		jit_add_error_log(&link->jit, link->reason, sizeof(link->reason));
	if (result == CUDA_SUCCESS)
		result = call->driver->cuLinkCreate_v2(link->jit.n_options,
			link->jit.options, link->jit.values, &link->state);
	if (result == CUDA_SUCCESS)
		result = object_add(call, VGPU_HANDLE_LINK, link, &reply->state_out);
	if (result != CUDA_SUCCESS)
		link_drop(call, link);
	return result;
}

static void drop_input(struct call *call, void *copy, uint64_t size)
{
	free(copy);
	images_refund(call->session, size);
}

/* A private copy of an input, charged to the loads in progress until it is dropped.
 * Lengths in the input must not exceed its bytes. */
static CUresult copy_input(struct call *call, const struct vgpu_load *load,
	CUjitInputType type, void **copyp)
{
	const struct vgpu_load_image *image = vgpu_load_image(load, 0);
	bool is_sane;
	uint8_t *copy;

	if (load->n_images != 1 || !image->size || image->size > IMAGES_SIZE_MAX ||
		!arena_covers(call->session, image->address, image->size))
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_JIT_INPUT_NVVM)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!images_charge(call->session, image->size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy = malloc(image->size + 1);
	if (!copy) {
		images_refund(call->session, image->size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memcpy(copy, (const void *)(uintptr_t)image->address, image->size);
	copy[image->size] = 0;
	is_sane = type == CU_JIT_INPUT_LIBRARY
			  ? image_archive_is_contained(copy, image->size)
			  : image_is_contained(copy, image->size);
	if (!is_sane) {
		drop_input(call, copy, image->size);
		reason_say(VGPU_REPLY_REASON_LOAD,
			"an input of the link is damaged: what it says it holds reaches "
			"beyond its end");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	printing_note(call->session, copy, image->size);
	*copyp = copy;
	return CUDA_SUCCESS;
}

/* With link.lock. */
static CUresult add_data(struct call *call, struct link *link,
	const Vgpu__CuLinkAddDataV2Request *request, const struct vgpu_load *wire)
{
	uint64_t size = vgpu_load_image(wire, 0)->size;
	struct vgpu_load own = *wire;
	void *copy = NULL;
	CUresult result;
	struct jit jit;

	result = copy_input(call, wire, request->type, &copy);
	if (result != CUDA_SUCCESS)
		return result;
	result = images_hold(call->session, size);
	if (result != CUDA_SUCCESS) {
		drop_input(call, copy, size);
		return result;
	}
	link->held += size;
	/* The logs belong to the link. */
	own.info_size = own.error_size = 0;
	result = jit_init(&jit, call->session, &own);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuLinkAddData_v2(link->state, request->type, copy,
			size, request->name, jit.n_options, jit.options, jit.values);
	jit_deinit(&jit, call->session);
	drop_input(call, copy, size);
	return result;
}

/* With link.lock. The linker's messages about a failed call. */
static void say_reason(struct link *link)
{
	const struct jit *jit = &link->jit;

	reason_from_log(link->reason, strnlen(link->reason, sizeof(link->reason)));
	if (jit->error_size)
		reason_from_log(jit->logs + jit->info_size,
			strnlen(jit->logs + jit->info_size, jit->error_size));
	link->reason[0] = '\0';
}

/* Puts the compiler's messages so far into the reply. */
static CUresult link_report(struct call *call, const struct link *link,
	const struct vgpu_load *wire, ProtobufCBinaryData *resultp)
{
	struct vgpu_load_result *result = call_alloc(call, sizeof(*result));

	if (!result)
		return CUDA_ERROR_OUT_OF_MEMORY;
	jit_report(call, &link->jit, wire, result);
	*resultp = (ProtobufCBinaryData){ sizeof(*result), (uint8_t *)result };
	return CUDA_SUCCESS;
}

CUresult handle_cuLinkAddData_v2(struct call *call,
	const Vgpu__CuLinkAddDataV2Request *request, Vgpu__CuLinkAddDataV2Reply *reply)
{
	struct vgpu_load wire;
	struct link *link;
	CUresult result;

	if (!load_copy(&request->load, &wire) || request->type < 0 ||
		request->type >= CU_JIT_NUM_INPUT_TYPES)
		return CUDA_ERROR_INVALID_VALUE;
	result = link_enter(call, request->state, &link);
	if (result != CUDA_SUCCESS)
		return result;
	result = add_data(call, link, request, &wire);
	if (result != CUDA_SUCCESS)
		say_reason(link);
	if (link_report(call, link, &wire, &reply->load_result) != CUDA_SUCCESS)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	link_leave(call, link);
	return result;
}

/* With link.lock. A link is completed once; later requests fetch pieces of the same
 * image. */
static CUresult complete(struct call *call, struct link *link)
{
	CUresult result;
	size_t size = 0;
	void *image;

	if (link->image)
		return CUDA_SUCCESS;
	result = call->driver->cuLinkComplete(link->state, &image, &size);
	if (result != CUDA_SUCCESS)
		return result;
	if (!image || !size || size > IMAGES_SIZE_MAX)
		return CUDA_ERROR_INVALID_IMAGE;
	link->image = image;
	link->size = size;
	return CUDA_SUCCESS;
}

/* With link.lock. Copies the piece that begins at an offset into the arena. */
static CUresult copy_piece(struct call *call, const struct link *link,
	const Vgpu__CuLinkCompleteRequest *request)
{
	uint64_t n;

	if (request->offset > link->size)
		return CUDA_ERROR_INVALID_VALUE;
	n = link->size - request->offset;
	if (n > request->room)
		n = request->room;
	if (!n)
		return CUDA_SUCCESS;
	if (!arena_covers(call->session, request->destination, n))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy((void *)(uintptr_t)request->destination,
		(const uint8_t *)link->image + request->offset, n);
	return CUDA_SUCCESS;
}

CUresult handle_cuLinkComplete(struct call *call,
	const Vgpu__CuLinkCompleteRequest *request, Vgpu__CuLinkCompleteReply *reply)
{
	struct vgpu_load wire;
	struct link *link;
	CUresult result;

	if (!load_copy(&request->load, &wire))
		return CUDA_ERROR_INVALID_VALUE;
	result = link_enter(call, request->state, &link);
	if (result != CUDA_SUCCESS)
		return result;
	result = complete(call, link);
	if (result != CUDA_SUCCESS)
		say_reason(link);
	if (result == CUDA_SUCCESS)
		result = copy_piece(call, link, request);
	reply->size_out = link->size;
	if (link_report(call, link, &wire, &reply->load_result) != CUDA_SUCCESS)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	link_leave(call, link);
	return result;
}

CUresult handle_cuLinkDestroy(struct call *call,
	const Vgpu__CuLinkDestroyRequest *request, Vgpu__CuLinkDestroyReply *reply)
{
	CUresult result;
	void *link;

	pthread_mutex_lock(&links_lock);
	result = object_take(call, VGPU_HANDLE_LINK, request->state, &link);
	pthread_mutex_unlock(&links_lock);
	if (result == CUDA_SUCCESS)
		link_drop(call, link);
	return result;
}
