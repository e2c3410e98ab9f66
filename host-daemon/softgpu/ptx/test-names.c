/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the symbol table and of the vocabulary's tables
 */

#include <stdio.h>
#include <string.h>

#include "ptx/modifier.h"
#include "ptx/module.h"
#include "ptx/names.h"
#include "test.h"

static uint32_t find(const struct ptx_names *names, const char *text, uint32_t space)
{
	return ptx_names_find(names, text, strlen(text), space);
}

static void add(struct ptx_names *names, const char *text, uint32_t space, uint32_t index)
{
	struct ptx_name name = {
		.text = text, .size = strlen(text), .space = space, .index = index
	};

	check_eq(ptx_names_add(names, &name), 0);
}

TEST(newest_of_equal_names_is_found_until_it_is_cut)
{
	struct ptx_names *names = ptx_names_new();

	add(names, "a", 0, 1);
	add(names, "a", 1, 2);
	add(names, "a", 0, 3);
	check_eq(ptx_names_at(names, find(names, "a", 0) - 1)->index, 3);
	check_eq(ptx_names_at(names, find(names, "a", 1) - 1)->index, 2);
	check_eq(find(names, "b", 0), 0);
	check_eq(find(names, "", 0), 0);
	ptx_names_cut(names, 2);
	check_eq(ptx_names_at(names, find(names, "a", 0) - 1)->index, 1);
	ptx_names_cut(names, 0);
	check_eq(find(names, "a", 0), 0);
	ptx_names_free(names);
}

TEST(thousands_of_names_survive_growth_and_cuts)
{
	static char texts[5000][16];
	struct ptx_names *names = ptx_names_new();

	for (uint32_t i = 0; i < 5000; i++) {
		snprintf(texts[i], sizeof(texts[i]), "name%u", i / 2);
		add(names, texts[i], 0, i);
	}
	for (uint32_t i = 0; i < 5000; i++)
		check_eq(find(names, texts[i], 0) - 1, i | 1);
	ptx_names_cut(names, 2501);
	check_eq(ptx_names_count(names), 2501);
	check_eq(find(names, texts[2500], 0) - 1, 2500);
	check_eq(find(names, texts[2502], 0), 0);
	ptx_names_free(names);
}

TEST(every_opcode_is_found_under_its_name)
{
	const char *name;
	uint16_t op;

	for (unsigned int i = PTX_OP_UNSUPPORTED + 1; i < _PTX_OP_N; i++) {
		name = ptx_op_name(i);
		check_eq(ptx_opcode_find(name, strlen(name), &op), PTX_OPCODE_DECODED);
		check_eq(op, i);
		check_eq(ptx_opcode_find(name, strlen(name) - 1, &op) ==
					 PTX_OPCODE_DECODED &&
				 op == i,
			false);
	}
	check_eq(ptx_opcode_find("wmma", 4, &op), PTX_OPCODE_UNSUPPORTED);
	check_eq(ptx_opcode_find("frobnicate", 10, &op), PTX_OPCODE_UNKNOWN);
	check_eq(ptx_opcode_find("zzz", 3, &op), PTX_OPCODE_UNKNOWN);
}

TEST(every_type_is_found_under_its_name)
{
	for (unsigned int i = PTX_TYPE_B8; i <= PTX_TYPE_PRED; i++) {
		struct ptx_instr instr = { .op = PTX_OP_MOV };
		const char *name = ptx_type_name(i);

		check_eq(ptx_modifier_apply(&instr, name, strlen(name)), PTX_MODIFIER_OK);
		check_eq(instr.n_types, 1);
		check_eq(instr.types[0], i);
		check(ptx_type_size(i) > 0);
	}
}

static enum ptx_modifier_result apply(struct ptx_instr *instr, const char *text)
{
	return ptx_modifier_apply(instr, text, strlen(text));
}

TEST(modifier_table_is_sorted)
{
	check(ptx_modifiers_are_sorted());
}

TEST(one_spelling_means_what_its_opcode_takes)
{
	struct ptx_instr setp = { .op = PTX_OP_SETP }, atom = { .op = PTX_OP_ATOM };
	struct ptx_instr mul = { .op = PTX_OP_MUL }, shf = { .op = PTX_OP_SHF };

	check_eq(apply(&setp, "and"), PTX_MODIFIER_OK);
	check_eq(setp.bool_op, PTX_BOOL_AND);
	check_eq(setp.atom, PTX_ATOM_NONE);
	check_eq(apply(&setp, "lo"), PTX_MODIFIER_OK);
	check_eq(setp.cmp, PTX_CMP_LO);
	check_eq(apply(&atom, "and"), PTX_MODIFIER_OK);
	check_eq(atom.atom, PTX_ATOM_AND);
	check_eq(atom.bool_op, PTX_BOOL_NONE);
	check_eq(apply(&atom, "add"), PTX_MODIFIER_REPEATED);
	check_eq(apply(&mul, "lo"), PTX_MODIFIER_OK);
	check_eq(mul.mul, PTX_MUL_LO);
	check_eq(apply(&mul, "lt"), PTX_MODIFIER_UNKNOWN);
	check_eq(apply(&shf, "wrap"), PTX_MODIFIER_OK);
	check_eq(shf.wrap, PTX_WRAP_WRAP);
}
