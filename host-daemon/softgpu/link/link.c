/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linker: several PTX modules become one
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"

#include "link/link.h"
#include "link/text.h"
#include "ptx/arena.h"
#include "ptx/names.h"

/* Separates a name from the number of its module. */
#define SEPARATOR "$link"

struct link {
	struct ptx_module **modules;
	uint32_t n_modules;
	uint64_t text_size;
};

/* One symbol of one module, found by name in the table of all. */
enum rank {
	RANK_LOCAL,    /* the module's own */
	RANK_DECLARED, /* defined elsewhere */
	RANK_WEAK,
	RANK_STRONG,
};

struct link *link_new(void)
{
	return calloc(1, sizeof(struct link));
}

struct link *link_free(struct link *link)
{
	if (!link)
		return NULL;
	for (uint32_t i = 0; i < link->n_modules; i++)
		ptx_module_free(link->modules[i]);
	free(link->modules);
	free(link);
	return NULL;
}

static int fail(
	struct ptx_error *error, uint32_t line, const char *what, const char *name)
{
	error->line = line;
	snprintf(error->message, sizeof(error->message), "%s: %.160s", what, name);
	return PTX_E_INVALID;
}

/* Bodies that are no PTX are found now, as a compiler would. */
static int check_bodies(struct ptx_module *module, struct ptx_error *error)
{
	int r = 0;

	for (uint32_t i = 0; i < module->n_functions && !r; i++) {
		if (!module->functions[i].is_defined)
			continue;
		r = ptx_function_parse(module, i, error);
		ptx_function_drop(module, i);
	}
	return r;
}

int link_add(struct link *link, const char *text, size_t size, unsigned int cc,
	struct ptx_error *error)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *module = NULL;
	struct ptx_module **modules;
	int r;

	if (link->n_modules == LINK_MODULES_MAX)
		return fail(error, 0, "too many modules", "the limit is 4096");
	if (link->text_size + size > PTX_TEXT_SIZE_MAX)
		return fail(error, 0, "too much text", "the limit is 64 MiB");
	r = ptx_module_new(&module, text, size, cc, error);
	if (!r)
		r = check_bodies(module, error);
	if (r)
		return r;
	if (module->n_registers && link->n_modules)
		return fail(error, 0, "registers outside of functions",
			"such a module is not linked with others");
	modules = realloc(link->modules, (link->n_modules + 1) * sizeof(*modules));
	if (!modules)
		return vgpu_error_origin(-ENOMEM);
	link->modules = modules;
	modules[link->n_modules++] = module;
	link->text_size += size;
	module = NULL;
	return 0;
}

/*
 * Names
 */

static enum rank rank_of(uint8_t linkage, bool is_defined)
{
	if (!is_defined || linkage == PTX_LINKAGE_EXTERN)
		return RANK_DECLARED;
	if (linkage == PTX_LINKAGE_WEAK || linkage == PTX_LINKAGE_COMMON)
		return RANK_WEAK;
	return linkage == PTX_LINKAGE_NONE ? RANK_LOCAL : RANK_STRONG;
}

static enum rank function_rank(const struct ptx_function *function)
{
	/* Programs ask for entries by name, whatever they were written as. */
	if (function->is_entry && function->is_defined &&
		function->linkage == PTX_LINKAGE_NONE)
		return RANK_STRONG;
	return rank_of(function->linkage, function->is_defined);
}

static enum rank variable_rank(const struct ptx_variable *variable)
{
	return rank_of(variable->linkage, true);
}

/* index: of the module; type: its rank */
static int note(
	struct ptx_names *names, const char *text, uint32_t module, enum rank rank)
{
	struct ptx_name name = {
		.text = text,
		.size = strlen(text),
		.index = module,
		.type = rank,
	};

	return ptx_names_add(names, &name);
}

static int note_module(
	struct ptx_names *names, const struct ptx_module *module, uint32_t number)
{
	int r = 0;

	for (uint32_t i = 0; i < module->n_functions && !r; i++)
		r = note(names, module->functions[i].name, number,
			function_rank(&module->functions[i]));
	for (uint32_t i = 0; i < module->n_variables && !r; i++)
		r = note(names, module->variables[i].name, number,
			variable_rank(&module->variables[i]));
	return r;
}

/* Return: whether another module has the name, too. */
static bool is_shared(const struct ptx_names *names, const char *text, uint32_t module)
{
	uint32_t at = ptx_names_find(names, text, strlen(text), 0);

	for (; at; at = ptx_names_find_older(names, at - 1))
		if (ptx_names_at(names, at - 1)->index != module)
			return true;
	return false;
}

/* Return: 0, or that two modules define the name for all. */
static int check_duplicates(
	const struct ptx_names *names, const char *text, struct ptx_error *error)
{
	uint32_t at = ptx_names_find(names, text, strlen(text), 0), n = 0;

	for (; at; at = ptx_names_find_older(names, at - 1))
		n += ptx_names_at(names, at - 1)->type == RANK_STRONG;
	return n > 1 ? fail(error, 0, "defined in more than one module", text) : 0;
}

static int check_module(const struct ptx_names *names, const struct ptx_module *module,
	struct ptx_error *error)
{
	int r = 0;

	for (uint32_t i = 0; i < module->n_functions && !r; i++)
		if (function_rank(&module->functions[i]) == RANK_STRONG)
			r = check_duplicates(names, module->functions[i].name, error);
	for (uint32_t i = 0; i < module->n_variables && !r; i++)
		if (variable_rank(&module->variables[i]) == RANK_STRONG)
			r = check_duplicates(names, module->variables[i].name, error);
	return r;
}

/*
 * The text
 */

/* The newest version and the highest target: what each module needs, all have. */
static bool add_head(const struct link *link, struct text *text)
{
	const struct ptx_module *target = link->modules[0];
	uint32_t version = 0;
	char head[160];

	for (uint32_t i = 0; i < link->n_modules; i++) {
		const struct ptx_module *module = link->modules[i];

		if (module->version > version)
			version = module->version;
		if (module->target > target->target ||
			(module->target == target->target && module->target_kind))
			target = module;
	}
	snprintf(head, sizeof(head),
		PTX_LINKED_MARK ".version %u.%u\n.target sm_%u%.1s\n.address_size %u\n",
		version / 10, version % 10, target->target, &target->target_kind,
		target->address_size);
	return text_add(text, head, strlen(head));
}

static int add_module(const struct link *link, uint32_t number,
	const struct ptx_names *names, const char *separator, struct text *text)
{
	const struct ptx_module *module = link->modules[number];
	_vgpu_cleanup_(vgpu_freep) bool *functions =
		calloc(module->n_functions + 1, sizeof(bool));
	_vgpu_cleanup_(vgpu_freep) bool *variables =
		calloc(module->n_variables + 1, sizeof(bool));
	char suffix[48];
	const struct text_renames renames = {
		.functions = functions,
		.variables = variables,
		.suffix = suffix,
	};

	if (!functions || !variables)
		return vgpu_error_origin(-ENOMEM);
	snprintf(suffix, sizeof(suffix), "%s%u", separator, number);
	for (uint32_t i = 0; i < module->n_functions; i++)
		functions[i] = function_rank(&module->functions[i]) == RANK_LOCAL &&
			       is_shared(names, module->functions[i].name, number);
	for (uint32_t i = 0; i < module->n_variables; i++)
		variables[i] = variable_rank(&module->variables[i]) == RANK_LOCAL &&
			       is_shared(names, module->variables[i].name, number);
	return text_add_module(text, module, &renames) ? 0 : vgpu_error_origin(-ENOMEM);
}

/* Return: the place after the next SEPARATOR of a text, or NULL. */
static const char *next_separator(const char *text)
{
	while ((text = strchr(text, *SEPARATOR))) {
		if (!strncmp(text, SEPARATOR, strlen(SEPARATOR)))
			return text + strlen(SEPARATOR);
		text++;
	}
	return NULL;
}

static uint32_t count_separators(const char *text)
{
	uint32_t n = 0;

	while ((text = next_separator(text)))
		n++;
	return n;
}

/* Records which numbers below @n follow one. */
static void note_separators(const char *text, bool *taken, uint32_t n)
{
	unsigned long number;
	char *end;

	while ((text = next_separator(text))) {
		if (*text < '0' || *text > '9')
			continue;
		number = strtoul(text, &end, 10);
		if (number < n && *end == '$')
			taken[number] = true;
	}
}

/*
 * A suffix that occurs in no text, so that new names are unique: with one more number
 * than there are occurrences of the separator, one is free.
 */
static int choose_separator(const struct link *link, char separator[24])
{
	_vgpu_cleanup_(vgpu_freep) bool *taken = NULL;
	uint32_t n = 1, number = 0;

	for (uint32_t i = 0; i < link->n_modules; i++)
		n += count_separators(link->modules[i]->text);
	taken = calloc(n, sizeof(*taken));
	if (!taken)
		return vgpu_error_origin(-ENOMEM);
	for (uint32_t i = 0; i < link->n_modules; i++)
		note_separators(link->modules[i]->text, taken, n);
	while (taken[number])
		number++;
	snprintf(separator, 24, SEPARATOR "%u$", number);
	return 0;
}

static int join(struct link *link, const struct ptx_names *names, struct text *text,
	struct ptx_error *error)
{
	char separator[24];
	int r;

	r = choose_separator(link, separator);
	if (r)
		return r;
	if (!add_head(link, text))
		return vgpu_error_origin(-ENOMEM);
	for (uint32_t i = 0; i < link->n_modules && !r; i++) {
		if (link->modules[i]->address_size != link->modules[0]->address_size)
			return fail(error, 0, "modules of different address sizes",
				"32 and 64 bits");
		r = check_module(names, link->modules[i], error);
		if (!r)
			r = add_module(link, i, names, separator, text);
	}
	return r;
}

int link_finish(struct link *link, char **textp, size_t *sizep, struct ptx_error *error)
{
	_vgpu_cleanup_(ptx_names_freep) struct ptx_names *names = ptx_names_new();
	struct text text = {};
	int r = 0;

	*error = (struct ptx_error){};
	if (!names)
		return vgpu_error_origin(-ENOMEM);
	if (!link->n_modules)
		return fail(error, 0, "nothing to link", "no module was added");
	for (uint32_t i = 0; i < link->n_modules && !r; i++)
		r = note_module(names, link->modules[i], i);
	if (!r)
		r = join(link, names, &text, error);
	if (r) {
		free(text.bytes);
		return r;
	}
	*textp = text.bytes;
	*sizep = text.size;
	return 0;
}
