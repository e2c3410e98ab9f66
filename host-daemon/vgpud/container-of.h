/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The structure that a member is part of
 *
 * Callbacks get a pointer to a member: a source or a timer of the loop, a wipe.
 */

#include <stddef.h>

#define container_of(_pointer, _type, _member)                                           \
	((_type *)((char *)(_pointer)-offsetof(_type, _member)))
