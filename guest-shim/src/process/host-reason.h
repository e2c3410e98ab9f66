/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reasons of the host: the sentence for a call that failed there
 */

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

/* Whether the sentence is worth fetching. @kind: enum vgpu_reply_reason */
bool shim_host_reason_is_wanted(CUresult result, uint32_t kind);

/* Says why a call failed on the host. @text: the sentence as the host sent it */
void shim_host_reason_tell(
	uint16_t id, CUresult result, uint32_t kind, const ProtobufCBinaryData *text);
