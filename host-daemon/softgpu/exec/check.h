/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Check: handlers of kernels that are watched
 */

#include "exec/warp.h"

/* Returns: a handler that watches, then runs the kernel's own one; NULL: there is nothing
 * to watch. */
insn_fn softgpu_checked_handler(enum op op);
