/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lane streams: each guest thread's own default streams
 */

#include "vgpu/cuda.h"

struct call;
struct context;
struct lane;
struct stream;

/* The own stream of a call's lane in its context, made on first use. */
CUresult lane_stream(struct call *call, struct stream **streamp);

/* A context died: its streams are gone with it. */
void lane_forget_context(struct lane *lane, const struct context *context);
