/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of the entry points of libcuda.so.1 */

#pragma once

#include <string.h>

#include "vgpu/checked.h"
#include "vgpu/cuda.h"
#include "vgpu/g-calls.h"
#include "vgpu/g-driver.pb-c.h"
#include "process/call.h"
#include "process/device.h"
#include "wait/event.h"
#include "g-remote.h"
#include "code/function.h"
#include "code/memo.h"
#include "memory/range.h"

/* The default stream of a program built for one such stream a thread. */
static inline CUstream per_thread(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}
