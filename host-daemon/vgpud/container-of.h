/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * container_of(): the structure of which a member is part
 *
 * Callbacks get a pointer to a member: a source or a timer of the loop, a wipe.
 */

#include <stddef.h>

#define container_of(_pointer, _type, _member)                                           \
	((_type *)((char *)(_pointer)-offsetof(_type, _member)))
