/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the PTX parser
 *
 * The input is a PTX text. For any input the parser ends, and an accepted module meets
 * the guarantees of ptx/module.h on which all later stages rely: each index is followed
 * here as the lowering would.
 */

#include <stdlib.h>

#include "ptx/module.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void promise(bool kept)
{
	if (!kept)
		abort();
}

static void check_symbol(const struct ptx_module *module,
	const struct ptx_function *function, const struct ptx_operand *operand)
{
	switch (operand->symbol) {
	case PTX_SYMBOL_VARIABLE:
		promise(operand->index < module->n_variables);
		break;
	case PTX_SYMBOL_FUNCTION:
		promise(operand->index < module->n_functions);
		break;
	case PTX_SYMBOL_LOCAL:
		promise(operand->index < function->body->n_variables);
		break;
	case PTX_SYMBOL_PARAM:
		promise(operand->index < function->n_params);
		break;
	case PTX_SYMBOL_RETURN:
		promise(operand->index < function->n_returns);
		break;
	default:
		abort();
	}
}

/* Of a variable that has elements: a symbol and a register. */
static void check_element(const struct ptx_module *module,
	const struct ptx_function *function, const struct ptx_operand *operand)
{
	const struct ptx_operand *parts;

	promise(operand->count && operand->index < function->body->n_operands - 1);
	parts = &function->body->operands[operand->index];
	promise(parts[0].kind == PTX_OPERAND_SYMBOL);
	promise(parts[0].symbol == PTX_SYMBOL_VARIABLE ||
		parts[0].symbol == PTX_SYMBOL_LOCAL);
	check_symbol(module, function, &parts[0]);
	promise(parts[1].kind == PTX_OPERAND_REG);
	promise(parts[1].index < function->body->n_registers);
}

/* Everything but a vector, which may not be nested. */
static void check_operand(const struct ptx_module *module,
	const struct ptx_function *function, const struct ptx_operand *operand)
{
	const struct ptx_body *body = function->body;

	switch (operand->kind) {
	case PTX_OPERAND_REG:
	case PTX_OPERAND_ADDRESS_REG:
		promise(operand->index < body->n_registers);
		break;
	case PTX_OPERAND_SREG:
		promise(operand->index < _PTX_SREG_N);
		break;
	case PTX_OPERAND_SYMBOL:
	case PTX_OPERAND_ADDRESS_SYMBOL:
		check_symbol(module, function, operand);
		break;
	case PTX_OPERAND_ELEMENT:
	case PTX_OPERAND_ADDRESS_ELEMENT:
		check_element(module, function, operand);
		break;
	case PTX_OPERAND_LABEL:
		promise(operand->index < body->n_labels);
		break;
	case PTX_OPERAND_BRANCH_TABLE:
		promise(operand->index < body->n_branch_tables);
		break;
	case PTX_OPERAND_PROTOTYPE:
		promise(operand->index < body->n_prototypes);
		break;
	default:
		promise(operand->kind <= PTX_OPERAND_ADDRESS_INT);
		break;
	}
}

static void check_instr(const struct ptx_module *module,
	const struct ptx_function *function, const struct ptx_instr *instr)
{
	const struct ptx_body *body = function->body;
	const struct ptx_operand *operand;

	promise(instr->op < _PTX_OP_N && instr->n_types <= 3);
	promise(instr->guard == PTX_INDEX_NONE ||
		body->registers[instr->guard] == PTX_TYPE_PRED);
	promise(instr->name < body->names_size);
	promise(instr->first_operand + instr->n_operands <= body->n_operands);
	for (unsigned int i = 0; i < instr->n_operands; i++) {
		operand = ptx_instr_operand(body, instr, i);
		if (operand->kind != PTX_OPERAND_VECTOR) {
			check_operand(module, function, operand);
			continue;
		}
		promise(operand->index + operand->count <= body->n_operands);
		for (uint32_t j = 0; j < operand->count; j++)
			check_operand(
				module, function, &body->operands[operand->index + j]);
	}
}

static void check_body(
	const struct ptx_module *module, const struct ptx_function *function)
{
	const struct ptx_body *body = function->body;

	for (uint32_t i = 0; i < body->n_instrs; i++)
		check_instr(module, function, &body->instrs[i]);
	for (uint32_t i = 0; i < body->n_registers; i++)
		promise(body->registers[i] && body->registers[i] < _PTX_TYPE_N);
	for (uint32_t i = 0; i < body->n_labels; i++)
		promise(body->labels[i] <= body->n_instrs);
	for (uint32_t i = 0; i < body->n_branch_targets; i++)
		promise(body->branch_targets[i] < body->n_labels);
	for (uint32_t i = 0; i < body->n_variables; i++)
		promise(body->variables[i].unsized ||
			body->variables[i].offset % body->variables[i].align == 0);
}

static void check_variables(const struct ptx_module *module)
{
	const struct ptx_variable *variable;
	const struct ptx_reloc *reloc;

	for (uint32_t i = 0; i < module->n_variables; i++) {
		variable = &module->variables[i];
		promise(variable->size <= PTX_VARIABLE_SIZE_MAX);
		promise(variable->init_size <= variable->size);
		promise(variable->align && !(variable->align & (variable->align - 1)));
		for (uint32_t j = 0; j < variable->n_relocs; j++) {
			reloc = &module->relocs[variable->first_reloc + j];
			promise(variable->first_reloc + j < module->n_relocs);
			promise(reloc->offset + reloc->size <= variable->init_size);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ptx_module *module;
	struct ptx_error error;

	if (ptx_module_new(&module, (const char *)data, size, 121, &error))
		return 0;
	check_variables(module);
	for (uint32_t i = 0; i < module->n_functions; i++) {
		if (!module->functions[i].is_defined ||
			ptx_function_parse(module, i, &error))
			continue;
		check_body(module, &module->functions[i]);
		ptx_function_drop(module, i);
	}
	ptx_module_free(module);
	return 0;
}
