/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pointed: functions that pointers may lead to
 *
 * A pointer to a function comes from an instruction that takes its address, in any
 * function of the module (another kernel may have left it in memory), or from the value
 * that a variable begins with. All others that have the right type are not meant: among
 * them may be what this device cannot run, as in the library that nvcc adds to
 * relocatable programs.
 */

#include <stdlib.h>

#include "lower/lower.h"
#include "vgpu/cleanup.h"

/* A declaration is looked up by its name: it may have an alias. */
static void take_address(const struct ptx_module *module, uint32_t *pointed, uint32_t i)
{
	uint32_t function = i;

	if (!module->functions[i].is_defined)
		function = ptx_module_find_function(module, module->functions[i].name);
	if (function != PTX_INDEX_NONE && module->functions[function].is_defined)
		pointed[i] = function + 1;
}

/* Each symbol of the body, but for those that are called. */
static int look_through(
	const struct ptx_module *module, const struct ptx_body *body, uint32_t *pointed)
{
	_vgpu_cleanup_(vgpu_freep) bool *is_callee =
		calloc((size_t)body->n_operands + 1, sizeof(*is_callee));

	if (!is_callee)
		return SOFTGPU_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < body->n_instrs; i++)
		if (body->instrs[i].op == PTX_OP_CALL && body->instrs[i].n_operands > 1)
			is_callee[body->instrs[i].first_operand + 1] = true;
	for (uint32_t i = 0; i < body->n_operands; i++) {
		const struct ptx_operand *o = &body->operands[i];

		if ((o->kind == PTX_OPERAND_SYMBOL ||
			    o->kind == PTX_OPERAND_ADDRESS_SYMBOL) &&
			o->symbol == PTX_SYMBOL_FUNCTION && !is_callee[i])
			take_address(module, pointed, o->index);
	}
	return 0;
}

/* A body that cannot be parsed takes no addresses: it does not run. */
static int look_everywhere(struct ptx_module *module, uint32_t *pointed)
{
	int r = 0;

	for (uint32_t i = 0; i < module->n_functions && !r; i++) {
		struct ptx_function *function = &module->functions[i];
		bool is_parsed = function->body;
		struct ptx_error error = {};

		if (!function->is_defined)
			continue;
		if (!ptx_function_parse(module, i, &error))
			r = look_through(module, function->body, pointed);
		if (!is_parsed)
			ptx_function_drop(module, i);
	}
	for (uint32_t i = 0; i < module->n_variables; i++) {
		const struct ptx_variable *v = &module->variables[i];

		for (uint32_t k = 0; k < v->n_relocs; k++) {
			const struct ptx_reloc *reloc =
				&module->relocs[v->first_reloc + k];

			if (reloc->symbol == PTX_SYMBOL_FUNCTION)
				take_address(module, pointed, reloc->index);
		}
	}
	return r;
}

const uint32_t *lower_pointed(struct lowering *l)
{
	_vgpu_cleanup_(vgpu_freep) uint32_t *pointed = NULL;

	if (l->cache->pointed)
		return l->cache->pointed;
	pointed = calloc((size_t)l->module->n_functions + 1, sizeof(*pointed));
	if (!pointed || look_everywhere(l->module, pointed))
		return NULL;
	l->cache->pointed = pointed;
	pointed = NULL;
	return l->cache->pointed;
}
