/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Check: handlers of kernels that are watched
 */

#include "exec/warp.h"

/* Returns: a handler that watches, then runs the kernel's own one; NULL: there is nothing
 * to watch. */
insn_fn softgpu_checked_handler(enum op op);

/*
 * For handlers, if the kernel is watched or not: the lane's copy reads or writes shared
 * memory at a generic address, which exists.
 *
 * Return: whether the kernel goes on; else the finding is the warp's fault.
 */
bool softgpu_check_copy(struct warp *w, const struct insn *ip, uint32_t lane,
	uint64_t address, uint32_t size, bool writes);
