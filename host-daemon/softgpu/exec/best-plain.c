/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of handlers, where there is one set only
 */

#include "exec/warp.h"

bool softgpu_uses_512;

enum machine softgpu_machine(void)
{
	return MACHINE_BASE;
}

const insn_fn *softgpu_handlers_for(enum machine machine, const char **namep)
{
	*namep = "any processor";
	return softgpu_handlers_base;
}
