/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Destruction and reset of contexts, with all objects in them
 */

#include <stdint.h>

#include "vgpu/cuda.h"

struct context;
struct session;

/* Destroys the driver's object of a primary context; its entry and handle remain. */
CUresult context_reset(struct session *session, struct context *context);

/* Destroys a context of cuCtxCreate. */
CUresult context_destroy(struct session *session, uint64_t handle);
