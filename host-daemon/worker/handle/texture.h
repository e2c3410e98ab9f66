/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Texture and surface objects, as the worker keeps them
 */

#include "worker/base/objects.h"

struct texture {
	struct object object; /* driver: the number itself */
	uint64_t resource;    /* handle of the array that it is over, or 0 */
};
