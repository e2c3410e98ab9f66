/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best handlers, where there is one set only
 */

#include "exec/warp.h"

const insn_fn *softgpu_handlers_best(void)
{
	return softgpu_handlers_base;
}
