/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linker: is everything there that is referred to?
 *
 * What is only declared does no harm. So all bodies are read, and what their operands and
 * the initialisers name must be defined, or be one of the functions that a device has by
 * itself.
 */

#include <stdio.h>
#include <string.h>

#include "exec/engine.h"
#include "link/link.h"

static int fail(struct ptx_error *error, const char *name, const char *user)
{
	error->line = 0;
	snprintf(error->message, sizeof(error->message),
		"undefined reference to \"%.100s\" in \"%.100s\"", name, user);
	return PTX_E_INVALID;
}

static int check_symbol(const struct ptx_module *module, uint8_t symbol, uint32_t index,
	const char *user, struct ptx_error *error)
{
	const struct ptx_function *function;
	const struct ptx_variable *variable;

	if (symbol == PTX_SYMBOL_VARIABLE) {
		variable = &module->variables[index];
		/* Dynamic shared memory has no definition. */
		if (variable->linkage != PTX_LINKAGE_EXTERN ||
			variable->space == PTX_SPACE_SHARED)
			return 0;
		return fail(error, variable->name, user);
	}
	if (symbol != PTX_SYMBOL_FUNCTION)
		return 0;
	function = &module->functions[index];
	/* Declared before it was an alias, it is found under its name only. */
	if (function->is_defined || softgpu_has_function(function->name))
		return 0;
	index = ptx_module_find_function(module, function->name);
	return index != PTX_INDEX_NONE && module->functions[index].is_defined
		       ? 0
		       : fail(error, function->name, user);
}

static int check_body(const struct ptx_module *module,
	const struct ptx_function *function, struct ptx_error *error)
{
	const struct ptx_body *body = function->body;
	int r = 0;

	for (uint32_t i = 0; i < body->n_operands && !r; i++) {
		const struct ptx_operand *operand = &body->operands[i];

		if (operand->kind == PTX_OPERAND_SYMBOL ||
			operand->kind == PTX_OPERAND_ADDRESS_SYMBOL)
			r = check_symbol(module, operand->symbol, operand->index,
				function->name, error);
	}
	return r;
}

int link_check(struct ptx_module *module, struct ptx_error *error)
{
	int r = 0;

	*error = (struct ptx_error){};
	for (uint32_t i = 0; i < module->n_functions && !r; i++) {
		if (!module->functions[i].is_defined)
			continue;
		r = ptx_function_parse(module, i, error);
		if (!r)
			r = check_body(module, &module->functions[i], error);
		ptx_function_drop(module, i);
	}
	for (uint32_t i = 0; i < module->n_variables && !r; i++) {
		const struct ptx_variable *variable = &module->variables[i];

		for (uint32_t j = 0; j < variable->n_relocs && !r; j++) {
			const struct ptx_reloc *reloc =
				&module->relocs[variable->first_reloc + j];

			r = check_symbol(module, reloc->symbol, reloc->index,
				variable->name, error);
		}
	}
	return r;
}
