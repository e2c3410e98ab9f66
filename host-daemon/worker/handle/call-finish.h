/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The end of a call: its result and reply
 */

#include <protobuf-c/protobuf-c.h>

#include "vgpu/cuda.h"

struct call;

/*
 * Ends a call: notes the result and, if the guest requested a reply, packs `reply` into
 * the caller's slot and wakes the caller. `reply` may be NULL for a bare result.
 *
 * Return: 0, for dispatch_call().
 */
int call_finish(struct call *call, const ProtobufCMessage *reply, CUresult result);

/* Replies to a call that this host does not know, with CUDA_ERROR_NOT_SUPPORTED. Its
 * number indexes no table. */
void call_finish_unknown(struct call *call);
