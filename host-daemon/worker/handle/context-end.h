/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The end of a context, and of all that lives in it
 */

#include <stdint.h>

#include "vgpu/cuda.h"

struct context;
struct session;

/* Ends a primary context of the driver; its entry and handle stay. */
CUresult context_reset(struct session *session, struct context *context);

/* Destroys a context that cuCtxCreate made. */
CUresult context_destroy(struct session *session, uint64_t handle);
