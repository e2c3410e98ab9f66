/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reasons: why a call failed, for the guest that made it
 */

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "worker/base/call.h"
#include "worker/base/lane.h"
#include "worker/base/reason.h"

__thread bool reason_is_said;
static __thread struct reason said;

static void take(enum vgpu_reply_reason kind, const char *text, size_t size)
{
	if (size > sizeof(said.text))
		size = sizeof(said.text);
	memcpy(said.text, text, size);
	said.size = vgpu_reason_clean(said.text, size);
	said.kind = said.size ? kind : VGPU_REPLY_REASON_NONE;
	reason_is_said = true;
}

void reason_say(enum vgpu_reply_reason kind, const char *format, ...)
{
	char text[VGPU_REASON_TEXT_MAX + 1];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (n > 0)
		take(kind, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

void reason_from_driver(void *data, const char *text, size_t size)
{
	take(VGPU_REPLY_REASON_LOAD, text, size);
}

void reason_from_log(const char *text, size_t size)
{
	if (!reason_is_said && size)
		take(VGPU_REPLY_REASON_LOAD, text, size);
}

uint32_t reason_settle(const struct call *call, CUresult result)
{
	struct reason *kept = &call->lane->reason;
	bool is_said = reason_is_said && result != CUDA_SUCCESS;

	reason_is_said = false;
	/* Reasons of calls without a reply are not fetched. */
	if (result == CUDA_SUCCESS || !(call->frame->flags & VGPU_FRAME_REPLY))
		return VGPU_REPLY_REASON_NONE;
	/* The lock: a guest that breaks the rules may request the reason before the
	 * reply. */
	pthread_mutex_lock(&call->lane->lock);
	if (is_said)
		*kept = said;
	else
		kept->kind = kept->size = 0;
	pthread_mutex_unlock(&call->lane->lock);
	return is_said ? said.kind : VGPU_REPLY_REASON_NONE;
}

size_t reason_get(struct lane *lane, char text[VGPU_REASON_TEXT_MAX])
{
	size_t size;

	pthread_mutex_lock(&lane->lock);
	size = lane->reason.size;
	memcpy(text, lane->reason.text, size);
	pthread_mutex_unlock(&lane->lock);
	return size;
}
