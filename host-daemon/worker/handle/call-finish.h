/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Replies: how a call ends
 */

#include <protobuf-c/protobuf-c.h>

#include "vgpu/cuda.h"

struct call;

/*
 * Ends a call: notes the result and, where a reply was asked for, packs `reply`
 * into the caller's slot and wakes the caller. `reply` may be NULL for calls
 * whose reply is a bare result.
 *
 * Return: 0 (what dispatch_call() returns).
 */
int call_finish(struct call *call, const ProtobufCMessage *reply, CUresult result);
