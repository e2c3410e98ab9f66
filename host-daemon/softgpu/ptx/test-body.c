/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of function bodies: instructions, scopes, labels, limits
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"

#include "ptx/module.h"
#include "test.h"

/* Line 3 is the first of the statements. */
#define HEAD ".version 9.0\n.target sm_90\n"
#define REGS                                                                             \
	".reg .pred %p<8>; .reg .b16 %rs<8>; .reg .b32 %r<20>; .reg .b64 %rd<8>;"        \
	".reg .f32 %f<8>; .reg .f64 %fd<8>;"
#define BODY(_statements)                                                                \
	HEAD ".global .u32 g; .func callee(.param .b32 x);"                              \
	     ".entry k(.param .u32 n, .param .u64 ptr) {" REGS "\n" _statements "\n}"

struct parsed {
	struct ptx_module *module;
	const struct ptx_body *body;
};

static void parsed_free(struct parsed *parsed)
{
	ptx_module_free(parsed->module);
}

static struct parsed parse(const char *text)
{
	struct parsed parsed = {};
	struct ptx_error error;
	uint32_t k;
	int r;

	r = ptx_module_new(&parsed.module, text, strlen(text), 121, &error);
	if (!r) {
		k = ptx_module_find_function(parsed.module, "k");
		r = ptx_function_parse(parsed.module, k, &error);
		parsed.body = parsed.module->functions[k].body;
	}
	if (r)
		test_fail(__FILE__, __LINE__, "line %u: %s", error.line, error.message);
	return parsed;
}

static const struct ptx_instr *instr_at(const struct parsed *parsed, uint32_t i)
{
	check(i < parsed->body->n_instrs);
	return &parsed->body->instrs[i];
}

static const struct ptx_operand *operand(
	const struct parsed *parsed, uint32_t i, unsigned int n)
{
	const struct ptx_instr *instr = instr_at(parsed, i);

	check(n < instr->n_operands);
	return ptx_instr_operand(parsed->body, instr, n);
}

#define PARSE(_statements)                                                               \
	_vgpu_cleanup_(parsed_free) struct parsed p = parse(BODY(_statements))

TEST(instruction_carries_its_modifiers)
{
	PARSE("add.rn.ftz.sat.f32 %f1, %f2, 0f3F800000;\n@!%p1 mul.wide.u32 %rd1, %r1, "
	      "4;\n"
	      "ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {%r1, %r2}, [%rd1+-8];");
	const struct ptx_instr *i = instr_at(&p, 0);

	check_eq(p.body->n_instrs, 3);
	check_eq(i->op, PTX_OP_ADD);
	check_str(ptx_instr_name(p.body, i), "add.rn.ftz.sat.f32");
	check_eq(i->line, 4);
	check_eq(i->n_types, 1);
	check_eq(i->types[0], PTX_TYPE_F32);
	check_eq(i->round, PTX_ROUND_RN);
	check_eq(i->flags, PTX_FLAG_FTZ | PTX_FLAG_SAT);
	check_eq(i->guard, PTX_INDEX_NONE);
	check_eq(operand(&p, 0, 1)->kind, PTX_OPERAND_REG);
	check_eq(operand(&p, 0, 2)->kind, PTX_OPERAND_F32);
	check_eq(operand(&p, 0, 2)->imm, 0x3f800000);
	i = instr_at(&p, 1);
	check_eq(i->mul, PTX_MUL_WIDE);
	check_eq(p.body->registers[i->guard], PTX_TYPE_PRED);
	check(i->guard_negated);
	check_eq(operand(&p, 1, 2)->imm, 4);
	i = instr_at(&p, 2);
	check_eq(i->vector, 2);
	check_eq(i->spaces[0], PTX_SPACE_GLOBAL);
	check(i->flags & PTX_FLAG_NC);
	check_eq(operand(&p, 2, 0)->kind, PTX_OPERAND_VECTOR);
	check_eq(operand(&p, 2, 0)->count, 2);
	check_eq(operand(&p, 2, 1)->kind, PTX_OPERAND_ADDRESS_REG);
	check_eq(operand(&p, 2, 1)->imm, -8);
	check_eq(p.body->operands[operand(&p, 2, 0)->index].index,
		operand(&p, 1, 1)->index);
}

TEST(registers_are_numbered_as_they_are_mentioned)
{
	PARSE("add.s32 %r19, %r3, %r19;\nmov.f64 %fd0, %fd7;");

	check_eq(p.body->n_registers, 4);
	check_eq(operand(&p, 0, 0)->index, operand(&p, 0, 2)->index);
	check_eq(p.body->registers[operand(&p, 0, 1)->index], PTX_TYPE_B32);
	check_eq(p.body->registers[operand(&p, 1, 1)->index], PTX_TYPE_F64);
}

TEST(scopes_shadow_and_end)
{
	PARSE("mov.b32 %r1, 1;\n{ .reg .b64 %r<2>; mov.b64 %r1, 2; mov.b32 %r2, 3;\n"
	      "{ .reg .f32 %r1; mov.f32 %r1, 0f00000000; } }\nmov.b32 %r1, 4;\n"
	      ".reg .b32 %r1<3>; mov.b32 %r12, 5; mov.b32 %r13, 6;");
	uint32_t outer = operand(&p, 0, 0)->index;

	check_eq(p.body->registers[operand(&p, 1, 0)->index], PTX_TYPE_B64);
	check_eq(p.body->registers[operand(&p, 2, 0)->index], PTX_TYPE_B32);
	check_eq(p.body->registers[operand(&p, 3, 0)->index], PTX_TYPE_F32);
	check_eq(operand(&p, 4, 0)->index, outer);
	check_eq(p.body->n_registers, 6);
}

TEST(labels_resolve_forward_and_by_scope)
{
	PARSE("bra END;\nL: { bra L; L: bra.uni L; }\n{ bra L; }\nEND:");
	const uint32_t *labels = p.body->labels;

	check_eq(p.body->n_instrs, 4);
	check_eq(p.body->n_labels, 3);
	check_eq(labels[operand(&p, 0, 0)->index], 4);
	check_eq(labels[operand(&p, 1, 0)->index], 2);
	check_eq(labels[operand(&p, 2, 0)->index], 2);
	check_eq(labels[operand(&p, 3, 0)->index], 1);
	check(instr_at(&p, 2)->flags & PTX_FLAG_UNI);
}

TEST(symbols_name_params_variables_and_locals)
{
	PARSE(".local .align 16 .b8 depot[40]; .shared .u32 sm[4]; .shared .u64 sd;\n"
	      "ld.param.u32 %r1, [n];\nld.param.u64 %rd1, [ptr+0];\nmov.u64 %rd2, "
	      "depot;\n"
	      "st.shared.u32 [sm+12], %r1;\nmov.u64 %rd3, g+4;\nld.global.u32 %r2, [g];\n"
	      "mov.u64 %rd4, callee;");
	const struct ptx_operand *o = operand(&p, 0, 1);

	check_eq(o->kind, PTX_OPERAND_ADDRESS_SYMBOL);
	check_eq(o->symbol, PTX_SYMBOL_PARAM);
	check_eq(o->index, 0);
	check_eq(operand(&p, 1, 1)->index, 1);
	o = operand(&p, 2, 1);
	check_eq(o->kind, PTX_OPERAND_SYMBOL);
	check_eq(o->symbol, PTX_SYMBOL_LOCAL);
	check_eq(o->index, 0);
	check_eq(p.body->local_size, 40);
	check_eq(p.body->local_align, 16);
	o = operand(&p, 3, 0);
	check_eq(o->symbol, PTX_SYMBOL_LOCAL);
	check_eq(o->imm, 12);
	check_eq(p.body->variables[2].offset, 16);
	check_eq(p.body->shared_size, 24);
	check_eq(p.body->shared_align, 8);
	o = operand(&p, 4, 1);
	check_eq(o->symbol, PTX_SYMBOL_VARIABLE);
	check_eq(o->imm, 4);
	check_eq(operand(&p, 6, 1)->symbol, PTX_SYMBOL_FUNCTION);
}

TEST(a_count_makes_several_variables)
{
	PARSE("{ .param .u64 %P<3>; st.param.u64 [%P0], %rd1;\n"
	      "st.param.u64 [%P2], %rd1; }\n"
	      "{ .param .b32 %P0; st.param.b32 [%P0], %r1; }");

	check_eq(p.body->n_variables, 4);
	check_str(p.body->variables[2].name, "%P2");
	check_eq(p.body->variables[2].size, 8);
	check_eq(p.body->variables[2].offset, 16);
	check_eq(operand(&p, 1, 0)->index, 2);
	check_eq(operand(&p, 2, 0)->index, 3);
}

TEST(special_registers_and_constants_are_operands)
{
	PARSE("mov.u32 %r1, %tid.x;\nmov.u32 %r1, %nctaid.z;\nmov.b32 %r1, %envreg31;\n"
	      "mov.u64 %rd1, %clock64;\nmov.u32 %r1, WARP_SZ;\nmov.u32 %r1, "
	      "%lanemask_lt;\n"
	      "mov.b32 %r1, -5;\nmov.f32 %f1, 1.5;\nmov.u32 %r1, (1<<4)|3;\n"
	      "mov.f64 %fd1, -0d3FF0000000000000;");

	check_eq(operand(&p, 0, 1)->kind, PTX_OPERAND_SREG);
	check_eq(operand(&p, 0, 1)->index, PTX_SREG_TID_X);
	check_eq(operand(&p, 1, 1)->index, PTX_SREG_NCTAID_Z);
	check_eq(operand(&p, 2, 1)->index, PTX_SREG_ENVREG);
	check_eq(operand(&p, 2, 1)->imm, 31);
	check_eq(operand(&p, 3, 1)->index, PTX_SREG_CLOCK64);
	check_eq(ptx_sreg_type(PTX_SREG_CLOCK64), PTX_TYPE_U64);
	check_eq(operand(&p, 4, 1)->imm, 32);
	check_eq(operand(&p, 5, 1)->index, PTX_SREG_LANEMASK_LT);
	check_eq(operand(&p, 6, 1)->imm, -5);
	check_eq(operand(&p, 7, 1)->kind, PTX_OPERAND_F64);
	check_eq(ptx_operand_bits(operand(&p, 7, 1), PTX_TYPE_F32), 0x3fc00000);
	check_eq(operand(&p, 8, 1)->imm, 19);
	check_eq(operand(&p, 9, 1)->imm, (int64_t)0xbff0000000000000);
}

TEST(left_out_operands_have_kind_none)
{
	PARSE("setp.lt.and.f32 %p1|%p2, %f1, %f2, !%p3;\nsetp.eq.s32 %p1, %r1, 0;\n"
	      "shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;\nshfl.up.b32 %r1, %r2, 1, 0;\n"
	      "ld.v4.f32 {%f1, _, %f2, _}, [%rd1];\natom.cas.b32 %r1, [%rd1], %r2, %r3;\n"
	      "atom.global.gpu.acq_rel.add.u32 _, [%rd1], 1;\nvote.sync.ballot.b32 %r1, "
	      "!%p1, -1;");

	check_eq(instr_at(&p, 0)->n_operands, 5);
	check_eq(operand(&p, 0, 1)->kind, PTX_OPERAND_REG);
	check(operand(&p, 0, 4)->negated);
	check_eq(instr_at(&p, 0)->cmp, PTX_CMP_LT);
	check_eq(instr_at(&p, 0)->bool_op, PTX_BOOL_AND);
	check_eq(instr_at(&p, 1)->n_operands, 5);
	check_eq(operand(&p, 1, 1)->kind, PTX_OPERAND_NONE);
	check_eq(operand(&p, 1, 4)->kind, PTX_OPERAND_NONE);
	check_eq(instr_at(&p, 2)->mode, PTX_MODE_SHFL_BFLY);
	check(instr_at(&p, 2)->flags & PTX_FLAG_SYNC);
	check_eq(operand(&p, 2, 5)->imm, -1);
	check_eq(operand(&p, 3, 5)->kind, PTX_OPERAND_NONE);
	check_eq(p.body->operands[operand(&p, 4, 0)->index + 1].kind, PTX_OPERAND_NONE);
	check_eq(instr_at(&p, 5)->atom, PTX_ATOM_CAS);
	check_eq(operand(&p, 5, 3)->kind, PTX_OPERAND_REG);
	check_eq(operand(&p, 6, 0)->kind, PTX_OPERAND_NONE);
	check_eq(operand(&p, 6, 3)->kind, PTX_OPERAND_NONE);
	check_eq(instr_at(&p, 6)->sem, PTX_SEM_ACQ_REL);
	check_eq(instr_at(&p, 6)->scope, PTX_SCOPE_GPU);
	check_eq(instr_at(&p, 7)->mode, PTX_MODE_BALLOT);
	check(operand(&p, 7, 1)->negated);
}

TEST(barriers_have_one_shape)
{
	PARSE("bar.sync 0;\nbar.sync 1, 64;\nbarrier.sync.aligned %r1, %r2;\n"
	      "bar.arrive 2, 32;\nbar.red.popc.u32 %r1, 0, %p1;\n"
	      "barrier.cta.red.and.pred %p1, 0, 64, !%p2;\nbar.warp.sync -1;");

	check_eq(instr_at(&p, 0)->mode, PTX_MODE_BAR_SYNC);
	check_eq(instr_at(&p, 0)->n_operands, 4);
	check_eq(operand(&p, 0, 0)->kind, PTX_OPERAND_NONE);
	check_eq(operand(&p, 0, 1)->imm, 0);
	check_eq(operand(&p, 0, 2)->kind, PTX_OPERAND_NONE);
	check_eq(operand(&p, 1, 2)->imm, 64);
	check_eq(instr_at(&p, 2)->op, PTX_OP_BARRIER);
	check(instr_at(&p, 2)->flags & PTX_FLAG_ALIGNED);
	check_eq(instr_at(&p, 3)->mode, PTX_MODE_BAR_ARRIVE);
	check_eq(instr_at(&p, 4)->mode, PTX_MODE_BAR_RED);
	check_eq(instr_at(&p, 4)->atom, PTX_ATOM_POPC);
	check_eq(operand(&p, 4, 0)->kind, PTX_OPERAND_REG);
	check_eq(operand(&p, 4, 2)->kind, PTX_OPERAND_NONE);
	check_eq(operand(&p, 4, 3)->kind, PTX_OPERAND_REG);
	check_eq(instr_at(&p, 5)->atom, PTX_ATOM_AND);
	check_eq(operand(&p, 5, 2)->imm, 64);
	check(operand(&p, 5, 3)->negated);
	check_eq(instr_at(&p, 6)->mode, PTX_MODE_BAR_WARP_SYNC);
	check_eq(operand(&p, 6, 1)->imm, -1);
}

TEST(calls_have_four_operands)
{
	PARSE("{ .param .b32 a; .param .align 8 .b8 s[16]; .param .b32 ret;\n"
	      "st.param.b32 [a+0], %r1;\ncall.uni (ret), callee, (a, s);\n"
	      "proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _);\n"
	      "call (ret), %rd1, (a, s), proto;\ncall callee;\n"
	      "to: .calltargets callee; call (ret), %rd1, (a), to; }");
	const struct ptx_operand *o = operand(&p, 1, 2);

	check_eq(p.body->param_size, 28);
	check_eq(p.body->param_align, 8);
	check_eq(instr_at(&p, 1)->n_operands, 4);
	check_eq(operand(&p, 1, 0)->count, 1);
	check_eq(operand(&p, 1, 1)->symbol, PTX_SYMBOL_FUNCTION);
	check_eq(o->kind, PTX_OPERAND_VECTOR);
	check_eq(o->count, 2);
	check_eq(p.body->operands[o->index + 1].kind, PTX_OPERAND_SYMBOL);
	check_eq(p.body->operands[o->index + 1].symbol, PTX_SYMBOL_LOCAL);
	check_eq(operand(&p, 1, 3)->kind, PTX_OPERAND_NONE);
	check_eq(operand(&p, 2, 1)->kind, PTX_OPERAND_REG);
	check_eq(operand(&p, 2, 3)->kind, PTX_OPERAND_PROTOTYPE);
	check_eq(p.body->prototypes[0].n_params, 2);
	check_eq(p.body->prototypes[0].params_size, 16);
	check_eq(operand(&p, 3, 2)->kind, PTX_OPERAND_NONE);
	check_eq(operand(&p, 4, 3)->kind, PTX_OPERAND_PROTOTYPE);
	check_eq(p.body->prototypes[1].n_params, 1);
	check_eq(p.body->prototypes[1].n_returns, 0);
}

TEST(elements_of_variables_have_two_operands)
{
	PARSE(".shared .v2 .f32 s[4]; .local .u16 m[3];\n"
	      "ld.shared.f32 %f1, s[2];\nld.local.u16 %rs1, m[%r1+5];\n"
	      "mov.u32 %r2, s[%r3];\nld.shared.f32 %f1, [s+4];");
	const struct ptx_operand *o = operand(&p, 1, 1);

	check_eq(operand(&p, 0, 1)->kind, PTX_OPERAND_ADDRESS_SYMBOL);
	check_eq(operand(&p, 0, 1)->imm, 16);
	check_eq(o->kind, PTX_OPERAND_ADDRESS_ELEMENT);
	check_eq(o->count, 2);
	check_eq(p.body->operands[o->index].kind, PTX_OPERAND_SYMBOL);
	check_eq(p.body->operands[o->index].index, 1);
	check_eq(p.body->operands[o->index + 1].kind, PTX_OPERAND_REG);
	check_eq(p.body->operands[o->index + 1].imm, 5);
	check_eq(operand(&p, 2, 1)->kind, PTX_OPERAND_ELEMENT);
	check_eq(operand(&p, 2, 1)->count, 8);
	check_eq(operand(&p, 3, 1)->imm, 4);
}

TEST(indexed_branch_has_a_table)
{
	PARSE("ts: .branchtargets A, B, A;\nbrx.idx %r1, ts;\nA: ret;\nB: exit;");
	const struct ptx_branch_table *table = &p.body->branch_tables[0];

	check_eq(operand(&p, 0, 1)->kind, PTX_OPERAND_BRANCH_TABLE);
	check_eq(table->count, 3);
	check_eq(p.body->labels[p.body->branch_targets[table->first + 1]], 2);
	check_eq(p.body->branch_targets[table->first],
		p.body->branch_targets[table->first + 2]);
}

TEST(parameters_in_registers_are_registers)
{
	_vgpu_cleanup_(parsed_free) struct parsed p =
		parse(HEAD ".func (.reg .f32 %out) k(.reg .f32 %in, .param .b32 m) {\n"
			   "add.f32 %out, %in, %in; ret; }");
	const struct ptx_function *f = &p.module->functions[0];

	check(f->returns[0].is_register && f->params[0].is_register);
	check(!f->params[1].is_register);
	check_eq(operand(&p, 0, 0)->index, f->returns[0].reg);
	check_eq(operand(&p, 0, 1)->index, f->params[0].reg);
	check_eq(p.body->registers[f->params[0].reg], PTX_TYPE_F32);
}

TEST(registers_of_the_module_are_in_every_body)
{
	_vgpu_cleanup_(parsed_free) struct parsed p = parse(
		HEAD ".reg .f32 %fa<17>, %x;\n"
		     ".entry k { .reg .b32 %x; mov.f32 %fa3, %fa16; mov.b32 %x, 1; }");

	check_eq(p.body->n_registers, 3);
	check_eq(p.body->registers[operand(&p, 0, 1)->index], PTX_TYPE_F32);
	check_eq(p.body->registers[operand(&p, 1, 0)->index], PTX_TYPE_B32);
}

TEST(vector_registers_have_components)
{
	PARSE(".reg .v4 .f32 %v; ld.global.v4.f32 %v, [%rd1];\nadd.f32 %f1, %v.x, %v.w;");
	uint32_t first = operand(&p, 0, 0)->index;

	check_eq(operand(&p, 0, 0)->count, 4);
	check_eq(operand(&p, 1, 1)->index, p.body->operands[first].index);
	check_eq(operand(&p, 1, 2)->index, p.body->operands[first + 3].index);
}

TEST(modifiers_that_are_not_decoded_keep_their_names)
{
	PARSE("mov.u32 %r1, 0;\n"
	      "@%p1 wmma.mma.future.aligned.row.col.m16n16k16.f32 {%f1}, {%r1}, {%r2}, "
	      "{%f2};\n"
	      "add.future.s32 %r1, %r2, %r3;\nbarrier.cluster.future.aligned;\nret;");

	check_eq(p.body->n_instrs, 5);
	check_eq(p.body->first_unsupported, 1);
	check_eq(instr_at(&p, 1)->op, PTX_OP_UNSUPPORTED);
	check_str(ptx_instr_name(p.body, instr_at(&p, 1)),
		"wmma.mma.future.aligned.row.col.m16n16k16.f32");
	check(instr_at(&p, 1)->guard != PTX_INDEX_NONE);
	check_eq(instr_at(&p, 2)->op, PTX_OP_UNSUPPORTED);
	check_eq(instr_at(&p, 3)->op, PTX_OP_UNSUPPORTED);
	check_str(ptx_instr_name(p.body, instr_at(&p, 3)),
		"barrier.cluster.future.aligned");
	check_eq(instr_at(&p, 3)->line, 7);
	check_eq(instr_at(&p, 4)->op, PTX_OP_RET);
}

TEST(matrices_have_a_shape_two_layouts_and_four_types)
{
	PARSE("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.satfinite.s32.s8."
	      "u8."
	      "s32 {%r1, %r2, %r3, %r4}, {%r1, %r2}, {%r3, %r4}, {%r1, %r2, %r3, %r4}, "
	      "%r5, 1;\n"
	      "wmma.load.b.sync.aligned.col.m8n32k16.shared.u8 {%r1, %r2, %r3, %r4}, "
	      "[%rd1], %r5;\n"
	      "ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%r1, %r2}, [%r3];");
	const struct ptx_instr *sparse = instr_at(&p, 0), *load = instr_at(&p, 1);
	const struct ptx_instr *small = instr_at(&p, 2);

	check_eq(sparse->op, PTX_OP_MMA_SP_ORDERED);
	check_eq(sparse->shape, PTX_SHAPE_M16N8K32);
	check_eq(sparse->layouts[0], PTX_LAYOUT_ROW);
	check_eq(sparse->layouts[1], PTX_LAYOUT_COL);
	check_eq(sparse->n_types, 4);
	check_eq(sparse->types[2], PTX_TYPE_U8);
	check(sparse->flags & PTX_FLAG_SATFINITE);
	check_eq(load->op, PTX_OP_WMMA_LOAD);
	check_eq(load->mode, PTX_MODE_MATRIX_B);
	check_eq(load->shape, PTX_SHAPE_M8N32K16);
	check_eq(small->op, PTX_OP_LDMATRIX);
	check_eq(small->shape, PTX_SHAPE_M8N8K0);
	check_eq(small->vector, 2);
	check(small->flags & PTX_FLAG_TRANS);
}

TEST(cache_policies_are_dropped)
{
	PARSE("ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2;\n"
	      "st.global.wb.L2::cache_hint.u32 [%rd1], %r1, %rd2;");

	check_eq(instr_at(&p, 0)->n_operands, 2);
	check_eq(instr_at(&p, 1)->n_operands, 2);
}

TEST(debug_directives_are_skipped)
{
	PARSE(".loc 1 2 3\n.loc\t1 5 1, function_name $L__info, inlined_at 1 3 4\n"
	      "ret;\n.pragma \"nounroll\";");

	check_eq(p.body->n_instrs, 1);
	check_eq(instr_at(&p, 0)->line, 6);
}

TEST(body_can_be_dropped_and_parsed_again)
{
	PARSE("ret;");
	struct ptx_error error;
	uint32_t k = ptx_module_find_function(p.module, "k");

	check_eq(ptx_function_parse(p.module, k, &error), 0);
	check(p.module->functions[k].body == p.body);
	ptx_function_drop(p.module, k);
	check(!p.module->functions[k].body);
	ptx_function_drop(p.module, k);
	check_eq(ptx_function_parse(p.module, k, &error), 0);
	check_eq(p.module->functions[k].body->n_instrs, 1);
	check_eq(ptx_function_parse(
			 p.module, ptx_module_find_function(p.module, "callee"), &error),
		-EINVAL);
}

static void fails_text(const char *text, uint32_t line, const char *words)
{
	struct ptx_module *module = NULL;
	struct ptx_error error;
	uint32_t k;

	if (ptx_module_new(&module, text, strlen(text), 121, &error))
		test_fail(__FILE__, __LINE__, "\"%.400s\": %s", text, error.message);
	k = ptx_module_find_function(module, "k");
	if (ptx_function_parse(module, k, &error) != PTX_E_INVALID ||
		error.line != line || !strstr(error.message, words))
		test_fail(__FILE__, __LINE__,
			"\"%.400s\": line %u, \"%s\"; not line %u, \"%s\"", text,
			error.line, error.message, line, words);
	check(!module->functions[k].body);
	ptx_module_free(module);
}

#define fails(_statements, _line, _words) fails_text(BODY(_statements), _line, _words)

TEST(bad_instructions_are_refused)
{
	fails("ret;\nfrobnicate.u32 %r1;", 5, "\"frobnicate\" is no instruction");
	fails("mov.u32 %r1 %r2;", 4, "',' is missing");
	fails("mov.u32 %r1, %r2", 5, "';' is missing");
	fails("mov.u32 %r1, %r2, %r3;", 4, "';' is missing");
	fails("mov.u32 %r99, 1;", 4, "\"%r99\" is not declared");
	fails("mov.u32 %r01, 1;", 4, "\"%r01\" is not declared");
	fails("mov.u32 %r1, nowhere;", 4, "\"nowhere\" is not declared");
	fails("mov.u32 5, %r1;", 4, "destination register is missing");
	fails("mov.u32 g, %r1;", 4, "destination is no register");
	fails("mov.u32 %tid.x, %r1;", 4, "destination is no register");
	fails("mov.u32 %r1, %tid.q;", 4, "not declared");
	fails("mov.u32 %r1, %envreg32;", 4, "not declared");
	fails("mov %r1, %r2;", 4, "mov has 0 types");
	fails("bar.popc 0;", 4, "no barrier operation");
	fails("@%r1 ret;", 4, "no predicate");
	fails("@nothing ret;", 4, "no register");
	fails("ld.global.u32 %r1, %rd1;", 4, "'[' is missing");
	fails("ld.global.u32 %r1, [%rd1;", 4, "']' is missing");
	fails("ld.global.u32 %r1, [%tid.x];", 4, "cannot be an address");
	fails("ld.v4.f32 {%f1, %f2, %f3, %f4, %f1, %f1, %f1, %f1, %f1}, [%rd1];", 4,
		"vector of more than 8");
	fails("selp.b32 %r1, %r2, %r3, g;", 4, "predicate is missing");
	fails("call g;", 4, "no function");
	fails("call (%r1) callee;", 4, "',' is missing");
	fails("call %rd1, (%r1), nothing;", 4, "no prototype");
	fails("brx.idx %r1, nothing;", 4, "no branch table");
	fails("5;", 4, "an instruction is missing");
	fails("mov.u32 %r1, 0xFF(g);", 4, "initialisers only");
}

TEST(bad_labels_and_declarations_are_refused)
{
	fails("ret;\nbra NOWHERE;", 5, "no label \"NOWHERE\"");
	fails("{ INNER: ret; }\nbra INNER;", 5, "no label \"INNER\"");
	fails("A: ret;\nA: ret;", 5, "label \"A\" is defined twice");
	fails(".reg .u32 %x;\n.reg .u32 %x;", 5, "\"%x\" is declared twice");
	fails(".reg .u32 %r<4>;", 4, "declared twice");
	fails(".reg .u32 n;", 4, "declared twice");
	fails(".reg .u32 %x[3];", 4, "array of registers");
	fails(".tex .u64 x;", 4, "outside of a function");
	fails(".param .u32 q<2>;\nst.param.u32 [q2], %r1;", 5, "q2");
	fails(".param .u32 q<2>[2];", 4, "';' is missing");
	fails(".param .u32 q<65537>;", 4, "more than 65536 variables");
	fails("t: .branchtargets NOWHERE; ret;", 4, "no label");
}

TEST(body_limits_hold)
{
	fails(".reg .b32 %big<1048577>;", 4, "a register count is 1048577");
	fails(".reg .b32 %a<1048570>, %b<1048570>;", 4, "more than 1048576 registers");
	fails(".local .b8 big[524289];", 4, "more than 524288 bytes");
	fails(".shared .b8 big[232449];", 4, "more than 232448 bytes");
	fails(".param .b8 p[524289];", 4, "more than 524288 bytes");
}

TEST(different_spellings_have_a_limit)
{
	char *text = malloc(4 << 20), *end = text;

	end += sprintf(end, HEAD ".entry k {\n");
	for (int i = 0; i < 90000; i++)
		end += sprintf(end, "add.foo%x ;\n", i);
	strcpy(end, "}");
	fails_text(text, 86041, "too many different opcodes");
	free(text);
}

TEST(nesting_has_a_limit)
{
	char text[4096] = HEAD ".entry k {\n";

	for (int i = 0; i < 100; i++)
		strcat(text, "{");
	for (int i = 0; i < 100; i++)
		strcat(text, "}");
	strcat(text, "}");
	fails_text(text, 4, "nested deeper than 64");
}

TEST(spelling_has_a_limit)
{
	char text[4096] = HEAD ".entry k {\n add";

	for (int i = 0; i < 100; i++)
		strcat(text, ".foo");
	strcat(text, " %r1; }");
	fails_text(text, 4, "too many modifiers");
}

/* A million registers of which two are used take the memory of two. */
TEST(unused_registers_cost_nothing_later)
{
	PARSE(".reg .b32 %many<1000000>; add.s32 %many999999, %many0, 1;");

	check_eq(p.body->n_registers, 2);
}

/* The module has created them when their function is read; each name is that of its
 * scope.
 */
TEST(variables_of_the_module_are_found_in_their_scopes)
{
	PARSE(".global .u32 x[2] = {1, 2}; { .const .u32 x = 3;\nld.const.u32 %r1, [x]; "
	      "}\n"
	      "/* .global .u32 y; */ ld.global.u32 %r2, [x+4];\n"
	      "L: .global .u64 z = x; ld.global.u64 %rd1, [z];");
	const struct ptx_module *m = p.module;
	uint32_t inner = operand(&p, 0, 1)->index, outer = operand(&p, 1, 1)->index;
	uint32_t z = operand(&p, 2, 1)->index;

	check_eq(m->n_inside, 3);
	check(inner != outer && inner < m->n_variables && outer < m->n_variables);
	check_eq(m->variables[outer].size, 8);
	check_eq(m->variables[inner].space, PTX_SPACE_CONST);
	check_eq(m->variables[z].n_relocs, 1);
	check_eq(m->relocs[m->variables[z].first_reloc].index, outer);
	check_eq(ptx_module_find_variable(m, "x"), PTX_INDEX_NONE);
}

TEST(bad_variables_of_the_module_are_refused_wherever_they_are)
{
	static const char *const texts[] = {
		".global .u32 x = ;",
		".global .u32 x[];",
		".global x;",
		".global .u32 x = y; .global .u32 y;",
		"{ .global .u32 y; } .global .u64 x = y;",
		".global .u32 x = 1, ;",
		".global .u32 x[2] = {1, 2, 3};",
		".global .u32 x<3>;",
		".const .pred x;",
	};
	char text[256];
	struct ptx_module *module;
	struct ptx_error error;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		snprintf(text, sizeof(text),
			".version 9.0\n.target sm_90\n.entry k() {\n%s\nret; }",
			texts[i]);
		if (ptx_module_new(&module, text, strlen(text), 121, &error) !=
				PTX_E_INVALID ||
			error.line != 4)
			test_fail(__FILE__, __LINE__, "%s: line %u, %s", texts[i],
				error.line, error.message);
	}
	fails(".global .u32 x; .global .u32 x;", 4, "declared twice");
	fails(".shared .u32 x; ld.shared.u32 %r1, x[1;", 4, "");
	fails("ld.shared.u32 %r1, n[1];", 4, "no array");
}
