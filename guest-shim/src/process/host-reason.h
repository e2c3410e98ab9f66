/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reasons of the host: the sentence for a call that failed there
 */

#include <stdint.h>

#include "vgpu/cuda.h"

struct shim_thread;

/*
 * Says why a call failed on the host, which it is asked for. Keeps the reply in the
 * thread's arena.
 *
 * @kind:	enum vgpu_reply_reason, from the reply's slot
 */
void shim_reason_tell_call(
	struct shim_thread *thread, uint16_t id, CUresult result, uint32_t kind);
