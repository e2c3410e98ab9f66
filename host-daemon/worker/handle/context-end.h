/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Destruction and reset of contexts, with all objects in them
 */

#include <stdint.h>

#include "vgpu/cuda.h"

struct context;
struct runner;
struct session;

/* Destroys the driver's object of a primary context; its entry and handle remain. */
CUresult context_reset(
	struct session *session, struct runner *runner, struct context *context);

/* Destroys a context of cuCtxCreate. */
CUresult context_destroy(struct session *session, uint64_t handle);

/* Waits for the work of a green context, and destroys it and its streams. */
CUresult green_destroy(struct session *session, struct runner *runner, uint64_t handle);
