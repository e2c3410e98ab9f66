/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Generated code: the interface between it and the worker
 *
 * This is the complete interface (g-dispatch*.c, g-attributes.c). Generated code decodes
 * the message of a call, resolves its handles, checks its ranges, calls the driver or a
 * hand-written handler, and packs the reply. It accesses state only through functions of
 * these headers.
 */

#include <stdbool.h>

#include "vgpu/cuda.h"
#include "worker/base/call.h"
#include "worker/base/object-handles.h"
#include "worker/handle/call-finish.h"
#include "worker/memory/access.h"

/*
 * Runs one call (generated: a table of all remoted calls).
 *
 * Return: 0 if the call was executed, whatever the driver's result; CALL_E_VIOLATION if
 * the guest broke the protocol and the session must end: no such call, or a message that
 * does not unpack.
 */
int dispatch_call(struct call *call);

/*
 * The value of a device attribute for guests, if the description replaces the driver's
 * (generated).
 *
 * Return: false if *valuep was not set.
 */
bool attribute_answer(CUdevice_attribute attribute, int *valuep);
