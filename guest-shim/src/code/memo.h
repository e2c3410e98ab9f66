/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memo: answers of the host that stay true
 *
 * Which calls have such, and for how long, the description says (remembers=, forgets=).
 * An answer is found by the call, the context it was asked in and all of the request.
 * Errors are never remembered.
 */

#include "process/call.h"

/*
 * As shim_call_sync(), for a call that remembers=. Where the same was answered before
 * no message is sent; what comes before any check of arguments comes before that too.
 */
CUresult shim_memo_call(struct shim_call *call, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, const ProtobufCMessage **replyp);

/*
 * Something changed: what is remembered as VGPU_REMEMBERS_* may be true no longer.
 * Called after the host has changed it, whether that succeeded or not.
 */
void shim_memo_forget(unsigned int what);

/* All that lives in a context is gone. */
void shim_memo_forget_context(void);
