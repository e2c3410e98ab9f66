/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lane streams: the per-thread default streams of each guest thread
 */

#include "vgpu/cuda.h"

struct call;
struct context;
struct lane;
struct stream;

/* The per-thread default stream of the call's lane and context, created at the first
 * use. */
CUresult lane_stream(struct call *call, struct stream **streamp);

/* A context was destroyed, and its streams with it. */
void lane_forget_context(struct lane *lane, const struct context *context);
