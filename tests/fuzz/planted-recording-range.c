/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planted bug: recorded memory and pieces of images may end behind their limit
 *
 * Built before host-daemon/control/recording.c, whose functions it replaces, into the
 * target that must find it.
 */

#include "control/recording.h"
#include "vgpu/checked.h"

/* Where it begins is checked. */
#define vgpu_range_within(_start, _size, _base, _limit)                                  \
	((void)(_size), (vgpu_range_within)(_start, 0, _base, _limit))
#include "control/recording.c"
