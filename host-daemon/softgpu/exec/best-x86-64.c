/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of handlers, on x86-64: AVX2 and FMA where the machine has them
 */

#include "exec/warp.h"

extern const insn_fn softgpu_handlers_v3[_OP_N];

bool softgpu_machine_has_v3(void)
{
	return __builtin_cpu_supports("x86-64-v3");
}

const insn_fn *softgpu_handlers_for(bool has_v3, const char **namep)
{
	*namep = has_v3 ? "x86-64-v3" : "x86-64";
	return has_v3 ? softgpu_handlers_v3 : softgpu_handlers_base;
}
