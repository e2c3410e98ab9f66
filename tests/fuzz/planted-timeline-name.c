/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planted bug: a worker's number of a name may be any
 *
 * Built before host-daemon/ctl/timeline.c, whose functions it replaces, into the target
 * that must find it.
 */

#include "ctl/timeline.h"

#undef TRACE_NAMES
#define TRACE_NAMES 65536u
#include "ctl/timeline.c"
