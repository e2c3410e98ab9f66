/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linker: whether every reference is defined
 *
 * An unused declaration is not an error, nor is one that no kernel can reach: the library
 * that nvcc puts into relocatable programs refers to functions that only NVIDIA's driver
 * has. So bodies are read from the entries on, and symbols in their operands and in
 * initialisers of variables must be defined, or be built-in functions of a device.
 * Functions of NVIDIA's driver for kernels that launch others may be missing: a kernel
 * that calls one is refused when it is launched, the others run.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"

#include "exec/engine.h"
#include "link/link.h"

static int fail(struct ptx_error *error, const char *name, const char *user)
{
	error->line = 0;
	snprintf(error->message, sizeof(error->message),
		"undefined reference to \"%.100s\" in \"%.100s\"", name, user);
	return PTX_E_INVALID;
}

/* Functions that are reached, each once; those up to `next` have been read. */
struct walk {
	struct ptx_module *module;
	struct ptx_error *error;
	bool *is_reached;
	uint32_t *functions;
	uint32_t n;
	uint32_t next;
};

static void reach(struct walk *walk, uint32_t function)
{
	if (walk->is_reached[function])
		return;
	walk->is_reached[function] = true;
	walk->functions[walk->n++] = function;
}

static int check_function(struct walk *walk, uint32_t index, const char *user)
{
	const struct ptx_module *module = walk->module;
	const char *name = module->functions[index].name;

	/* Declared before it was an alias, it is found under its name only. */
	if (!module->functions[index].is_defined)
		index = ptx_module_find_function(module, name);
	if (index != PTX_INDEX_NONE && module->functions[index].is_defined)
		reach(walk, index);
	else if (!softgpu_has_function(name) && !softgpu_is_device_runtime(name))
		return fail(walk->error, name, user);
	return 0;
}

static int check_symbol(
	struct walk *walk, uint8_t symbol, uint32_t index, const char *user)
{
	const struct ptx_variable *variable;

	if (symbol == PTX_SYMBOL_FUNCTION)
		return check_function(walk, index, user);
	if (symbol != PTX_SYMBOL_VARIABLE)
		return 0;
	variable = &walk->module->variables[index];
	/* Dynamic shared memory has no definition. */
	if (variable->linkage != PTX_LINKAGE_EXTERN ||
		variable->space == PTX_SPACE_SHARED)
		return 0;
	return fail(walk->error, variable->name, user);
}

static int check_body(struct walk *walk, const struct ptx_function *function)
{
	const struct ptx_body *body = function->body;
	int r = 0;

	for (uint32_t i = 0; i < body->n_operands && !r; i++) {
		const struct ptx_operand *operand = &body->operands[i];

		if (operand->kind == PTX_OPERAND_SYMBOL ||
			operand->kind == PTX_OPERAND_ADDRESS_SYMBOL)
			r = check_symbol(
				walk, operand->symbol, operand->index, function->name);
	}
	return r;
}

static int check_variables(struct walk *walk)
{
	const struct ptx_module *module = walk->module;
	int r = 0;

	for (uint32_t i = 0; i < module->n_variables && !r; i++) {
		const struct ptx_variable *variable = &module->variables[i];

		for (uint32_t j = 0; j < variable->n_relocs && !r; j++) {
			const struct ptx_reloc *reloc =
				&module->relocs[variable->first_reloc + j];

			r = check_symbol(
				walk, reloc->symbol, reloc->index, variable->name);
		}
	}
	return r;
}

int link_check(struct ptx_module *module, struct ptx_error *error)
{
	_vgpu_cleanup_(vgpu_freep) bool *is_reached =
		calloc(module->n_functions + 1, sizeof(*is_reached));
	_vgpu_cleanup_(vgpu_freep) uint32_t *functions =
		calloc(module->n_functions + 1, sizeof(*functions));
	struct walk walk = {
		.module = module,
		.error = error,
		.is_reached = is_reached,
		.functions = functions,
	};
	int r;

	*error = (struct ptx_error){};
	if (!is_reached || !functions)
		return vgpu_error_origin(-ENOMEM);
	for (uint32_t i = 0; i < module->n_functions; i++)
		if (module->functions[i].is_entry && module->functions[i].is_defined)
			reach(&walk, i);
	r = check_variables(&walk);
	while (!r && walk.next < walk.n) {
		uint32_t i = functions[walk.next++];

		r = ptx_function_parse(module, i, error);
		if (!r)
			r = check_body(&walk, &module->functions[i]);
		ptx_function_drop(module, i);
	}
	return r;
}
