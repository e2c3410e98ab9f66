/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of handlers, where there is one set only
 */

#include "exec/warp.h"

bool softgpu_machine_has_v3(void)
{
	return false;
}

const insn_fn *softgpu_handlers_for(bool has_v3, const char **namep)
{
	*namep = "any processor";
	return softgpu_handlers_base;
}
