/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reasons of the host: the sentence for a call that failed there
 */

#include <string.h>

#include "vgpu/g-calls.h"
#include "vgpu/reason.h"
#include "vgpu/ring-layout.h"

#include "process/host-reason.h"
#include "wire/reason.h"

/* Calls of the protocol itself, each of which serves several calls of a program. */
static const char *name_of(uint16_t id)
{
	const char *name = vgpu_call_name(id);

	return strncmp(name, "vgpu", 4) ? name : "a use of code";
}

bool shim_host_reason_is_wanted(CUresult result, uint32_t kind)
{
	return kind < _VGPU_REPLY_REASON_N && shim_reason_is_wanted(result, kind);
}

void shim_host_reason_tell(
	uint16_t id, CUresult result, uint32_t kind, const ProtobufCBinaryData *text)
{
	char clean[VGPU_REASON_TEXT_MAX + 1];
	size_t size = text->len < VGPU_REASON_TEXT_MAX ? text->len : VGPU_REASON_TEXT_MAX;

	memcpy(clean, text->data, size);
	size = vgpu_reason_clean(clean, size);
	if (!size)
		return;
	clean[size] = '\0';
	shim_reason_tell_host(name_of(id), result, kind, clean);
}
