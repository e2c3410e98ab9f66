/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads: the common part of modules, libraries and links
 */

#include <string.h>

#include "worker/base/call.h"
#include "worker/base/reason.h"
#include "worker/code/images.h"
#include "worker/code/jit.h"
#include "worker/code/load.h"

bool load_copy(const ProtobufCBinaryData *bytes, struct vgpu_load *wire)
{
	memset(wire, 0, sizeof(*wire));
	if (bytes->len < offsetof(struct vgpu_load, more) || bytes->len > sizeof(*wire))
		return false;
	memcpy(wire, bytes->data, bytes->len);
	return wire->n_images <= VGPU_LOAD_IMAGES_MAX &&
	       bytes->len == vgpu_load_size(wire);
}

CUresult load_begin(
	struct call *call, const ProtobufCBinaryData *bytes, struct load **loadp)
{
	struct load *load = *loadp = call_alloc(call, sizeof(*load));
	CUresult result;

	if (!load)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!load_copy(bytes, &load->wire))
		return CUDA_ERROR_INVALID_VALUE;
	result = images_take(call, &load->images, &load->wire);
	if (result == CUDA_SUCCESS)
		result = jit_init(&load->jit, call->session, &load->wire);
	/* The reason is reported also to a guest that wants no log. */
	if (result == CUDA_SUCCESS && !load->wire.error_size)
		jit_add_error_log(&load->jit, load->reason, sizeof(load->reason));
	return result;
}

/* The compiler's message, unless softgpu or this worker has a more specific one. */
static void say_reason(const struct load *load)
{
	const struct jit *jit = &load->jit;

	reason_from_log(load->reason, strnlen(load->reason, sizeof(load->reason)));
	if (jit->error_size)
		reason_from_log(jit->logs + jit->info_size,
			strnlen(jit->logs + jit->info_size, jit->error_size));
}

/* The digest that the guest needs for its next process. */
static void report_image(const struct images *images, struct vgpu_load_result *result)
{
	if (images->is_absent)
		result->flags |= VGPU_LOAD_ABSENT;
	if (!images->is_taken)
		return;
	result->flags |= VGPU_LOAD_HAS_DIGEST;
	if (images->is_silent)
		result->flags |= VGPU_LOAD_IS_SILENT;
	memcpy(result->digest, images->digest, sizeof(result->digest));
}

CUresult load_end(struct call *call, struct load *load, CUresult result,
	ProtobufCBinaryData *resultp)
{
	if (!load)
		return result;
	if (result != CUDA_SUCCESS)
		say_reason(load);
	/* Then the guest sends it. */
	call->is_lookup = load->images.is_absent;
	jit_report(call, &load->jit, &load->wire, &load->result);
	report_image(&load->images, &load->result);
	*resultp = (ProtobufCBinaryData){
		sizeof(load->result),
		(uint8_t *)&load->result,
	};
	jit_deinit(&load->jit, call->session);
	images_release(call, &load->images);
	return result;
}
