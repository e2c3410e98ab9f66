/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: the table of one instruction set
 */

#include "exec/warp.h"

#define DECLARE(_name, ...)                                                              \
	const struct insn *HANDLER_NAME(_name)(                                          \
		struct warp * w, const struct insn *ip, uint32_t mask);

#define ENTRY(_name, ...) [OP_##_name] = HANDLER_NAME(_name),

#define DECLARE_BRANCH(_name, ...) DECLARE(_name##_BRA)
#define ENTRY_BRANCH(_name, ...) ENTRY(_name##_BRA)

#define ALL_OPS(X)                                                                       \
	SOFTGPU_OPS_UNARY(X)                                                             \
	SOFTGPU_OPS_BINARY(X)                                                            \
	SOFTGPU_OPS_TERNARY(X)                                                           \
	SOFTGPU_OPS_COMPARE(X)                                                           \
	SOFTGPU_OPS_OTHER(X)

#define TABLE_PASTE_(_isa) softgpu_handlers_##_isa
#define TABLE_PASTE(_isa) TABLE_PASTE_(_isa)

ALL_OPS(DECLARE)
SOFTGPU_OPS_COMPARE(DECLARE_BRANCH)

const insn_fn TABLE_PASTE(
	SOFTGPU_ISA)[_OP_N] = { ALL_OPS(ENTRY) SOFTGPU_OPS_COMPARE(ENTRY_BRANCH) };
