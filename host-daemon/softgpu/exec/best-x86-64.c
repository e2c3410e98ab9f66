/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of handlers, on x86-64: AVX2 and FMA where the machine has them
 */

#include "exec/warp.h"

extern const insn_fn softgpu_handlers_v3[_OP_N];

bool softgpu_uses_512;

enum machine softgpu_machine(void)
{
	if (!__builtin_cpu_supports("x86-64-v3"))
		return MACHINE_BASE;
	return __builtin_cpu_supports("avx512f") ? MACHINE_512 : MACHINE_V3;
}

const insn_fn *softgpu_handlers_for(enum machine machine, const char **namep)
{
	static const char *const names[] = { "x86-64", "x86-64-v3",
		"x86-64-v3 with vectors of 512 bits" };

	/* Partner: the handlers of products. */
	__atomic_store_n(&softgpu_uses_512, machine == MACHINE_512, __ATOMIC_RELAXED);
	*namep = names[machine];
	return machine == MACHINE_BASE ? softgpu_handlers_base : softgpu_handlers_v3;
}
