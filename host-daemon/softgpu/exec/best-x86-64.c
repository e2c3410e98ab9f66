/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best handlers, on x86-64: AVX2 and FMA where the machine has them
 */

#include "exec/warp.h"

extern const insn_fn softgpu_handlers_v3[_OP_N];

const insn_fn *softgpu_handlers_best(void)
{
	return __builtin_cpu_supports("x86-64-v3") ? softgpu_handlers_v3
						   : softgpu_handlers_base;
}
