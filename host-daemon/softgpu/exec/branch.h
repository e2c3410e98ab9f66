/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Branches, as operations of their own and at the end of comparisons
 */

#include "exec/warp.h"

SCALAR const struct insn *branch(struct warp *w, const struct insn *ip, uint32_t mask)
{
	const struct insn *target = ip + ip->target;

	if (!mask)
		return ip + 1;
	if (mask != w->active)
		return softgpu_warp_split(w, target, mask, ip + 1);
	if (target > ip || --w->budget)
		return target;
	w->event = EVENT_SPENT;
	w->at = target;
	return LEAVE;
}

/* The branch at @ip, unless another group waits there and has to join first. */
SCALAR const struct insn *branch_at(struct warp *w, const struct insn *ip)
{
	if ((uintptr_t)ip >= w->stop)
		return ip;
	return branch(w, ip, w->active & pred_read(w, ip->guard));
}
