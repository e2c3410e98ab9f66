/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reasons of the host: the sentence for a call that failed there
 */

#include <string.h>

#include "vgpu/g-driver.pb-c.h"
#include "vgpu/reason.h"
#include "vgpu/ring-layout.h"

#include "process/call.h"
#include "process/host-reason.h"
#include "wire/reason.h"

/* Fetches the host's sentence. Return: its size, 0 where there is none. */
static size_t fetch(char text[VGPU_REASON_TEXT_MAX + 1])
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuReasonFetch);
	Vgpu__VgpuReasonFetchRequest request = VGPU__VGPU_REASON_FETCH_REQUEST__INIT;
	const ProtobufCBinaryData *bytes;
	const ProtobufCMessage *reply;
	size_t size;

	if (shim_call_sync(&call, &request.base,
		    &vgpu__vgpu_reason_fetch_reply__descriptor, &reply) != CUDA_SUCCESS)
		return 0;
	bytes = &((const Vgpu__VgpuReasonFetchReply *)reply)->text;
	size = bytes->len < VGPU_REASON_TEXT_MAX ? bytes->len : VGPU_REASON_TEXT_MAX;
	memcpy(text, bytes->data, size);
	size = vgpu_reason_clean(text, size);
	text[size] = '\0';
	return size;
}

/* Calls of the protocol itself, which stand for several calls of a program. */
static const char *name_of(uint16_t id)
{
	const char *name = vgpu_call_name(id);

	return strncmp(name, "vgpu", 4) ? name : "a use of code";
}

void shim_reason_tell_call(
	struct shim_thread *thread, uint16_t id, CUresult result, uint32_t kind)
{
	char text[VGPU_REASON_TEXT_MAX + 1];
	uint32_t kept = thread->arena_kept;

	if (kind >= _VGPU_REPLY_REASON_N || !shim_reason_is_wanted(result, kind))
		return;
	/* The caller is yet to read its reply. */
	thread->arena_kept = thread->arena_used;
	if (fetch(text))
		shim_reason_tell_host(name_of(id), result, kind, text);
	thread->arena_kept = kept;
}
