/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Texture and surface objects: the worker's entries
 */

#include "worker/base/objects.h"

struct texture {
	struct object object; /* driver: the number itself */
	uint64_t resource;    /* handle of its array, or 0 */
};
