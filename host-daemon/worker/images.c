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
#include "worker/rate.h"
#include "worker/session.h"

#define WRAPPER_MAGIC 0x466243b1u
#define WRAPPER_PRELINKED 2u

/* Behind each image: the end of a text, and what a parser may look ahead at. */
#define TRAILER 64u
#define ALIGNMENT 64u

static CUresult total_size(struct call *call, const uint64_t *addresses, size_t n,
	const uint64_t *sizes, uint64_t *totalp)
{
	uint64_t total = 0, padded;
	size_t i;

	for (i = 0; i < n; i++) {
		if (!sizes[i] || sizes[i] > IMAGES_SIZE_MAX ||
			!arena_covers(call->session, addresses[i], sizes[i]))
			return CUDA_ERROR_INVALID_VALUE;
		if (!vgpu_align_u64(sizes[i] + TRAILER, ALIGNMENT, &padded) ||
			!vgpu_add_u64(total, padded, &total) || total > IMAGES_SIZE_MAX)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*totalp = total;
	return CUDA_SUCCESS;
}

static bool charge(struct session *session, uint64_t size)
{
	if (__atomic_add_fetch(&session->image_bytes, size, __ATOMIC_RELAXED) <=
		IMAGES_SESSION_MAX)
		return true;
	__atomic_fetch_sub(&session->image_bytes, size, __ATOMIC_RELAXED);
	return false;
}

/* What is loaded already stays so until it is unloaded: say which setting it was. */
static CUresult refuse(const struct session *session)
{
	static struct rate rate;

	if (rate_allows(&rate))
		vgpu_log_warning("VM %s: a process has loaded all the code it may; "
				 "image-memory = sets how much.",
			session->vm);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult images_take(struct call *call, struct images *images, const uint64_t *addresses,
	size_t n_addresses, const uint64_t *sizes, size_t n_sizes)
{
	uint64_t total, offset = 0;
	CUresult result;
	size_t i;

	memset(images, 0, sizeof(*images));
	if (!n_addresses || n_addresses != n_sizes || n_addresses > IMAGES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	result = total_size(call, addresses, n_addresses, sizes, &total);
	if (result != CUDA_SUCCESS)
		return result;
	if (!charge(call->session, total))
		return CUDA_ERROR_OUT_OF_MEMORY;
	images->size = total;
	if (!object_totals_charge(&call->session->totals, total))
		return refuse(call->session);
	images->held = total;
	images->copy = aligned_alloc(ALIGNMENT, total);
	if (!images->copy)
		return CUDA_ERROR_OUT_OF_MEMORY;

	for (i = 0; i < n_addresses; i++) {
		uint64_t padded =
			(sizes[i] + TRAILER + ALIGNMENT - 1) & -(uint64_t)ALIGNMENT;

		memcpy(images->copy + offset, (const void *)(uintptr_t)addresses[i],
			sizes[i]);
		memset(images->copy + offset + sizes[i], 0, padded - sizes[i]);
		/* Checked in the copy: the guest may change its own meanwhile. */
		if (!image_is_contained(images->copy + offset, sizes[i]))
			return CUDA_ERROR_INVALID_IMAGE;
		print_note_code(call->session, images->copy + offset, sizes[i]);
		images->containers[i] = images->copy + offset;
		offset += padded;
	}
	images->code = images->containers[0];
	if (n_addresses == 1)
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

/* Options whose value is a number; others point into the guest's memory. */
static bool is_plain(int32_t option)
{
	switch (option) {
	case CU_JIT_MAX_REGISTERS:
	case CU_JIT_THREADS_PER_BLOCK:
	case CU_JIT_WALL_TIME:
	case CU_JIT_OPTIMIZATION_LEVEL:
	case CU_JIT_TARGET_FROM_CUCONTEXT:
	case CU_JIT_TARGET:
	case CU_JIT_FALLBACK_STRATEGY:
	case CU_JIT_GENERATE_DEBUG_INFO:
	case CU_JIT_LOG_VERBOSE:
	case CU_JIT_GENERATE_LINE_INFO:
	case CU_JIT_CACHE_MODE:
	case CU_JIT_FAST_COMPILE:
		return true;
	default:
		return false;
	}
}

static void add_option(struct images *images, CUjit_option option, void *value)
{
	images->options[images->n_options] = option;
	images->values[images->n_options++] = value;
}

CUresult images_take_options(struct images *images, const int32_t *options,
	size_t n_options, const uint64_t *values, size_t n_values)
{
	bool wants_info = false, wants_error = false;
	size_t i;

	if (n_options != n_values || n_options > IMAGES_OPTIONS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < n_options; i++) {
		switch (options[i]) {
		case CU_JIT_INFO_LOG_BUFFER:
		case CU_JIT_ERROR_LOG_BUFFER:
			break;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
			wants_info = true;
			break;
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			wants_error = true;
			break;
		default:
			if (!is_plain(options[i]))
				return CUDA_ERROR_NOT_SUPPORTED;
			add_option(images, options[i], (void *)(uintptr_t)values[i]);
		}
	}
	if (wants_info) {
		add_option(images, CU_JIT_INFO_LOG_BUFFER, images->info_log);
		add_option(images, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
			(void *)(uintptr_t)IMAGES_LOG_SIZE);
	}
	if (wants_error) {
		add_option(images, CU_JIT_ERROR_LOG_BUFFER, images->error_log);
		add_option(images, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
			(void *)(uintptr_t)IMAGES_LOG_SIZE);
	}
	return CUDA_SUCCESS;
}

float images_wall_time(const struct images *images)
{
	unsigned int i;
	float time = 0;

	for (i = 0; i < images->n_options; i++)
		if (images->options[i] == CU_JIT_WALL_TIME)
			memcpy(&time, &images->values[i], sizeof(time));
	return time;
}

ProtobufCBinaryData images_log(const char *log)
{
	return (ProtobufCBinaryData){ strnlen(log, IMAGES_LOG_SIZE), (uint8_t *)log };
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
	__atomic_fetch_sub(&call->session->image_bytes, images->size, __ATOMIC_RELAXED);
	images->size = 0;
	object_totals_refund(&call->session->totals, images->held);
	images->held = 0;
}
