/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sandbox filter: the system calls of a worker, and which of their arguments may be what
 */

#include "worker/run/sandbox.h"

/* Loads the filter of that profile for all threads, for good. Returns: 0 or -errno. */
int sandbox_filter_load(enum sandbox_profile profile);
