/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX parser: a module's directives
 *
 * One pass over the text. Names must be declared before they are used, as PTX
 * demands; the bodies skipped here see all names of the module later.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/parser.h"

#define MODULE_REGISTERS_MAX 1024u /* 84 in what NVIDIA's compiler of 2009 wrote */

static int define(struct ptx_parser *p, const struct ptx_token *name, uint8_t symbol,
	uint32_t index)
{
	struct ptx_name entry = {
		.text = name->text,
		.size = name->size,
		.kind = symbol,
		.index = index,
	};

	return ptx_names_add(p->module->names, &entry);
}

static const struct ptx_name *find(struct ptx_parser *p, const struct ptx_token *name)
{
	uint32_t at = ptx_names_find(p->module->names, name->text, name->size, 0);

	return at ? ptx_names_at(p->module->names, at - 1) : NULL;
}

static int fail_duplicate(struct ptx_parser *p, const struct ptx_token *name)
{
	return ptx_fail_at(p, PTX_E_INVALID, name->line, "\"%.*s\" is declared twice",
		PTX_SHOWN(name));
}

/*
 * The head of the text
 */

/* The lexer takes 9.0 for a floating-point number: the digits are what counts. */
static int parse_version(struct ptx_parser *p)
{
	struct ptx_module *module = p->module;
	unsigned int major, minor;
	char digits[16] = "", *end;

	while (p->token.kind != PTX_TOKEN_END &&
		!ptx_token_is(&p->token, PTX_TOKEN_DOT, "version")) {
		bool taken;
		int r = ptx_skip_directive(p, &taken);

		if (r)
			return r;
		if (!taken)
			return ptx_fail(p, "the text does not start with .version");
	}
	if (p->token.kind == PTX_TOKEN_END)
		return ptx_fail(p, "the text does not start with .version");
	ptx_next(p);
	if (p->token.kind != PTX_TOKEN_F64 || p->token.size >= sizeof(digits))
		return ptx_fail(p, ".version needs two numbers");
	memcpy(digits, p->token.text, p->token.size);
	major = strtoul(digits, &end, 10);
	if (*end != '.')
		return ptx_fail(p, ".version needs two numbers");
	minor = strtoul(end + 1, &end, 10);
	if (*end || minor > 9 || major > 99)
		return ptx_fail(p, ".version needs two numbers");
	module->version = major * 10 + minor;
	if (module->version > PTX_VERSION_MAX)
		return ptx_fail_at(p, PTX_E_VERSION, p->token.line,
			"PTX ISA %u.%u is newer than %u.%u", major, minor,
			PTX_VERSION_MAX / 10, PTX_VERSION_MAX % 10);
	ptx_next(p);
	return 0;
}

/* sm_90, sm_90a, sm_100f; other words of .target are options without effect. */
static int parse_architecture(struct ptx_parser *p, unsigned int cc)
{
	const char *s = p->token.text + 3, *end = p->token.text + p->token.size;
	struct ptx_module *module = p->module;
	unsigned int target = 0;
	bool fits;

	for (; s < end && *s >= '0' && *s <= '9' && target < 10000; s++)
		target = target * 10 + (*s - '0');
	module->target_kind = s < end ? *s++ : 0;
	if (s != end || !target ||
		(module->target_kind && module->target_kind != 'a' &&
			module->target_kind != 'f'))
		return ptx_fail(p, "\"%.*s\" is no target", PTX_SHOWN(&p->token));
	module->target = target;
	fits = target <= cc;
	if (module->target_kind == 'a')
		fits = target == cc;
	else if (module->target_kind == 'f')
		fits = fits && target / 10 == cc / 10;
	if (!fits)
		return ptx_fail_at(p, PTX_E_TARGET, p->token.line,
			"the target %.*s is not for a device of capability %u.%u",
			PTX_SHOWN(&p->token), cc / 10, cc % 10);
	return 0;
}

static int parse_target(struct ptx_parser *p, unsigned int cc)
{
	bool first = true;
	int r;

	if (!ptx_token_is(&p->token, PTX_TOKEN_DOT, "target"))
		return ptx_fail(p, ".target is missing behind .version");
	do {
		ptx_next(p);
		if (p->token.kind != PTX_TOKEN_NAME)
			return ptx_fail(p, ".target needs names");
		if (p->token.size > 3 && !memcmp(p->token.text, "sm_", 3)) {
			r = parse_architecture(p, cc);
			if (r)
				return r;
			first = false;
		}
		ptx_next(p);
	} while (p->token.kind == ',');
	return first ? ptx_fail(p, ".target names no sm_") : 0;
}

static int parse_address_size(struct ptx_parser *p)
{
	uint64_t size;
	int r;

	ptx_next(p);
	r = ptx_parse_count(p, 64, "the address size", &size);
	if (r)
		return r;
	if (size != 32 && size != 64)
		return ptx_fail(p, "the address size is neither 32 nor 64");
	p->module->address_size = size;
	return 0;
}

/*
 * Variables
 */

/* Return: whether a linkage gives way to another definition of the name. */
static bool is_weak(const struct ptx_parser *p, uint8_t linkage)
{
	return p->module->is_linked &&
	       (linkage == PTX_LINKAGE_WEAK || linkage == PTX_LINKAGE_COMMON);
}

/* Of two definitions in a linked text: the strong one; of common ones the larger, which
 * all of them are meant to be; else the first. */
static bool replaces_variable(const struct ptx_parser *p,
	const struct ptx_variable *known, const struct ptx_variable *found)
{
	if (known->linkage == PTX_LINKAGE_EXTERN)
		return found->linkage != PTX_LINKAGE_EXTERN;
	if (found->linkage == PTX_LINKAGE_EXTERN || !is_weak(p, known->linkage))
		return false;
	if (!is_weak(p, found->linkage))
		return true;
	return known->linkage == PTX_LINKAGE_COMMON &&
	       (found->linkage == PTX_LINKAGE_WEAK || found->size > known->size);
}

/* An extern declaration and a definition of the same name are one variable. */
static int add_variable(struct ptx_parser *p, const struct ptx_declaration *d,
	const struct ptx_variable *variable)
{
	const struct ptx_name *known = find(p, &d->name);
	struct ptx_variable *slot;

	if (known && known->kind != PTX_SYMBOL_VARIABLE)
		return fail_duplicate(p, &d->name);
	if (known) {
		slot = (struct ptx_variable *)p->variables.items + known->index;
		if (slot->space != d->space ||
			(slot->linkage != PTX_LINKAGE_EXTERN &&
				d->linkage != PTX_LINKAGE_EXTERN &&
				!is_weak(p, slot->linkage) && !is_weak(p, d->linkage)))
			return fail_duplicate(p, &d->name);
		if (replaces_variable(p, slot, variable))
			*slot = *variable;
		return 0;
	}
	if (p->variables.n == PTX_VARIABLES_MAX)
		return ptx_fail(p, "more than %u variables", PTX_VARIABLES_MAX);
	slot = ptx_array_push(&p->variables, 1, sizeof(*slot));
	if (!slot)
		return vgpu_error_origin(-ENOMEM);
	*slot = *variable;
	return define(p, &d->name, PTX_SYMBOL_VARIABLE, p->variables.n - 1);
}

static int parse_variable(struct ptx_parser *p, struct ptx_declaration *d)
{
	struct ptx_variable variable;
	int r;

	r = ptx_parse_declarator(p, d);
	if (r)
		return r;
	r = ptx_make_variable(p, d, &variable);
	if (r)
		return r;
	if (ptx_take(p, '=')) {
		r = ptx_parse_initialiser(p, d, &variable);
		if (r)
			return r;
	}
	return add_variable(p, d, &variable);
}

/* PTX 1.x has registers outside of functions: every body starts with them. */
static int add_register(struct ptx_parser *p, struct ptx_declaration *d)
{
	struct ptx_declaration *slot;
	int r;

	r = ptx_parse_declarator(p, d);
	if (r)
		return r;
	p->n_registers += d->count * d->vector;
	if (p->n_registers > MODULE_REGISTERS_MAX ||
		p->registers.n == MODULE_REGISTERS_MAX)
		return ptx_fail(p, "more than %u registers outside of functions",
			MODULE_REGISTERS_MAX);
	slot = ptx_array_push(&p->registers, 1, sizeof(*slot));
	if (!slot)
		return vgpu_error_origin(-ENOMEM);
	*slot = *d;
	return 0;
}

static int parse_variables(struct ptx_parser *p, uint8_t linkage)
{
	struct ptx_declaration d = { .linkage = linkage };
	int r;

	r = ptx_parse_declaration_head(p, &d);
	if (r)
		return r;
	if (d.space == PTX_SPACE_PARAM)
		return ptx_fail(p, "parameters belong to functions");
	do {
		if (d.space == PTX_SPACE_REG)
			r = add_register(p, &d);
		else
			r = parse_variable(p, &d);
		if (r)
			return r;
	} while (ptx_take(p, ','));
	return ptx_expect(p, ';');
}

/*
 * Functions
 */

static int parse_dimensions(struct ptx_parser *p, uint32_t dimensions[3])
{
	uint64_t value;
	int r;

	dimensions[0] = dimensions[1] = dimensions[2] = 1;
	for (unsigned int i = 0; i < 3; i++) {
		r = ptx_parse_count(p, UINT32_MAX, "a dimension", &value);
		if (r)
			return r;
		dimensions[i] = value;
		if (i == 2 || !ptx_take(p, ','))
			break;
	}
	return 0;
}

static int parse_number(struct ptx_parser *p, uint32_t *numberp)
{
	uint64_t value;
	int r = ptx_parse_count(p, UINT32_MAX, "the number of a directive", &value);

	if (!r)
		*numberp = value;
	return r;
}

/* One performance directive. *takenp: there was one. */
static int parse_function_directive(
	struct ptx_parser *p, struct ptx_function *function, bool *takenp)
{
	uint32_t unused, *number = &unused, *dimensions = NULL;
	const struct ptx_token *token = &p->token;
	bool is_word = false;
	int r;

	r = ptx_skip_directive(p, takenp);
	if (r || *takenp || token->kind != PTX_TOKEN_DOT)
		return r;
	*takenp = true;
	if (ptx_token_is(token, PTX_TOKEN_DOT, "maxntid"))
		dimensions = function->maxntid;
	else if (ptx_token_is(token, PTX_TOKEN_DOT, "reqntid"))
		dimensions = function->reqntid;
	else if (ptx_token_is(token, PTX_TOKEN_DOT, "reqnctapercluster"))
		dimensions = function->reqnctapercluster;
	else if (ptx_token_is(token, PTX_TOKEN_DOT, "minnctapersm"))
		number = &function->minnctapersm;
	else if (ptx_token_is(token, PTX_TOKEN_DOT, "maxnreg"))
		number = &function->maxnreg;
	else if (ptx_token_is(token, PTX_TOKEN_DOT, "noreturn"))
		is_word = function->is_noreturn = true;
	else if (ptx_token_is(token, PTX_TOKEN_DOT, "explicitcluster"))
		is_word = function->is_cluster_explicit = true;
	else if (ptx_token_is(token, PTX_TOKEN_DOT, "blocksareclusters"))
		is_word = function->blocks_are_clusters = true;
	else if (ptx_token_is(token, PTX_TOKEN_DOT, "maxclusterrank"))
		number = &function->maxclusterrank;
	else if (!ptx_token_is(token, PTX_TOKEN_DOT, "maxnctapersm") &&
		 !ptx_token_is(token, PTX_TOKEN_DOT, "abi_preserve") &&
		 !ptx_token_is(token, PTX_TOKEN_DOT, "abi_preserve_control"))
		return ptx_fail(
			p, ".%.*s does not belong to a function", PTX_SHOWN(token));
	ptx_next(p);
	if (is_word)
		return 0;
	return dimensions ? parse_dimensions(p, dimensions) : parse_number(p, number);
}

static int parse_function_directives(struct ptx_parser *p, struct ptx_function *function)
{
	bool taken;
	int r;

	do
		r = parse_function_directive(p, function, &taken);
	while (!r && taken);
	return r;
}

/* `(returns) name (params) directives`, after .func or .entry. */
static int parse_signature(
	struct ptx_parser *p, struct ptx_function *function, struct ptx_token *name)
{
	struct ptx_declaration ignored = {};
	int r;

	if (ptx_token_is(&p->token, PTX_TOKEN_DOT, "attribute")) {
		/* it is taken as the head of a declaration without a space would be */
		ignored.space = PTX_SPACE_PARAM;
		ignored.type = PTX_TYPE_B8;
		r = ptx_parse_declaration_head(p, &ignored);
		if (r)
			return r;
	}
	if (p->token.kind == '(') {
		if (function->is_entry)
			return ptx_fail(p, "an entry returns nothing");
		r = ptx_parse_params(p, &function->returns, &function->n_returns,
			&function->returns_size);
		if (r)
			return r;
	}
	r = ptx_expect_name(p, name);
	if (r)
		return r;
	r = parse_function_directives(p, function);
	if (r)
		return r;
	if (p->token.kind == '(') {
		r = ptx_parse_params(p, &function->params, &function->n_params,
			&function->params_size);
		if (r)
			return r;
	}
	return parse_function_directives(p, function);
}

/* Declarations and the definition of the same name are one function. */
static int add_function(struct ptx_parser *p, const struct ptx_token *name,
	const struct ptx_function *function)
{
	const struct ptx_name *known = find(p, name);
	struct ptx_function *slot;

	if (known && known->kind != PTX_SYMBOL_FUNCTION)
		return fail_duplicate(p, name);
	if (known) {
		slot = (struct ptx_function *)p->functions.items + known->index;
		if (slot->is_entry != function->is_entry ||
			(slot->is_defined && function->is_defined &&
				!is_weak(p, slot->linkage) &&
				!is_weak(p, function->linkage)))
			return fail_duplicate(p, name);
		if (!slot->is_defined ||
			(function->is_defined && !is_weak(p, function->linkage)))
			*slot = *function;
		return 0;
	}
	if (p->functions.n == PTX_FUNCTIONS_MAX)
		return ptx_fail(p, "more than %u functions", PTX_FUNCTIONS_MAX);
	slot = ptx_array_push(&p->functions, 1, sizeof(*slot));
	if (!slot)
		return vgpu_error_origin(-ENOMEM);
	*slot = *function;
	return define(p, name, PTX_SYMBOL_FUNCTION, p->functions.n - 1);
}

static int parse_function(struct ptx_parser *p, uint8_t linkage)
{
	struct ptx_function function = { .linkage = linkage, .line = p->token.line };
	struct ptx_token name;
	int r;

	function.is_entry = ptx_token_is(&p->token, PTX_TOKEN_DOT, "entry");
	ptx_next(p);
	r = parse_signature(p, &function, &name);
	if (r)
		return r;
	function.name = ptx_arena_string(p->arena, name.text, name.size);
	if (!function.name)
		return vgpu_error_origin(-ENOMEM);
	if (p->token.kind == '{') {
		function.is_defined = true;
		function.body_off = p->token.text - p->module->text;
		function.body_line = p->token.line;
		r = ptx_skip_body(p, &name);
	} else {
		r = ptx_expect(p, ';');
	}
	return r ? r : add_function(p, &name, &function);
}

/* `.alias name, other;` */
static int parse_alias(struct ptx_parser *p)
{
	const struct ptx_name *known, *target;
	struct ptx_token name, other;
	int r;

	ptx_next(p);
	r = ptx_expect_name(p, &name);
	if (!r)
		r = ptx_expect(p, ',');
	if (!r)
		r = ptx_expect_name(p, &other);
	if (!r)
		r = ptx_expect(p, ';');
	if (r)
		return r;
	known = find(p, &name);
	target = find(p, &other);
	if (!target || target->kind != PTX_SYMBOL_FUNCTION ||
		(known && known->kind != PTX_SYMBOL_FUNCTION))
		return ptx_fail_at(
			p, PTX_E_INVALID, name.line, "an alias needs two functions");
	if (ptx_names_count(p->module->names) == PTX_FUNCTIONS_MAX + PTX_VARIABLES_MAX)
		return ptx_fail(p, "too many names");
	return define(p, &name, PTX_SYMBOL_FUNCTION, target->index);
}

/*
 * The module
 */

static uint8_t parse_linkage(struct ptx_parser *p)
{
	static const char *const names[] = {
		[PTX_LINKAGE_VISIBLE] = "visible",
		[PTX_LINKAGE_EXTERN] = "extern",
		[PTX_LINKAGE_WEAK] = "weak",
		[PTX_LINKAGE_COMMON] = "common",
	};

	for (unsigned int i = PTX_LINKAGE_VISIBLE; i <= PTX_LINKAGE_COMMON; i++) {
		if (ptx_token_is(&p->token, PTX_TOKEN_DOT, names[i])) {
			ptx_next(p);
			return i;
		}
	}
	return PTX_LINKAGE_NONE;
}

static int parse_directive(struct ptx_parser *p)
{
	uint8_t linkage;
	bool taken;
	int r;

	r = ptx_skip_directive(p, &taken);
	if (r || taken || ptx_take(p, ';'))
		return r;
	if (ptx_token_is(&p->token, PTX_TOKEN_DOT, "address_size"))
		return parse_address_size(p);
	if (ptx_token_is(&p->token, PTX_TOKEN_DOT, "alias"))
		return parse_alias(p);
	linkage = parse_linkage(p);
	if (ptx_token_is(&p->token, PTX_TOKEN_DOT, "func") ||
		ptx_token_is(&p->token, PTX_TOKEN_DOT, "entry"))
		return parse_function(p, linkage);
	if (p->token.kind != PTX_TOKEN_DOT)
		return ptx_fail(p, "a directive is missing before \"%.*s\"",
			PTX_SHOWN(&p->token));
	return parse_variables(p, linkage);
}

static int parse_module(struct ptx_parser *p, unsigned int cc)
{
	int r;

	r = parse_version(p);
	if (r)
		return r;
	r = parse_target(p, cc);
	if (r)
		return r;
	/* The text of a directive follows the point. */
	p->module->head_size = (size_t)(p->token.text - p->module->text) -
			       (p->token.kind == PTX_TOKEN_DOT);
	while (p->token.kind != PTX_TOKEN_END) {
		r = parse_directive(p);
		if (r)
			return r;
	}
	return 0;
}

static int keep_arrays(struct ptx_parser *p)
{
	struct ptx_module *module = p->module;
	int r;

	r = ptx_array_keep(&p->functions, sizeof(struct ptx_function), p->arena,
		(void **)&module->functions, &module->n_functions);
	if (!r)
		r = ptx_array_keep(&p->variables, sizeof(struct ptx_variable), p->arena,
			(void **)&module->variables, &module->n_variables);
	if (!r)
		r = ptx_array_keep(&p->relocs, sizeof(struct ptx_reloc), p->arena,
			(void **)&module->relocs, &module->n_relocs);
	if (!r)
		r = ptx_array_keep(&p->registers, sizeof(struct ptx_declaration),
			p->arena, (void **)&module->registers, &module->n_registers);
	if (!r)
		r = ptx_array_keep(&p->inside, sizeof(struct ptx_inside), p->arena,
			(void **)&module->inside, &module->n_inside);
	return r;
}

static int read_module(
	struct ptx_module *module, unsigned int cc, struct ptx_error *error)
{
	struct ptx_parser p = {
		.module = module,
		.lexer = { .pos = module->text, .line = 1 },
		.error = error,
		.arena = module->arena,
	};
	int r;

	ptx_next(&p);
	r = parse_module(&p, cc);
	if (!r)
		r = keep_arrays(&p);
	ptx_array_deinit(&p.functions);
	ptx_array_deinit(&p.variables);
	ptx_array_deinit(&p.relocs);
	ptx_array_deinit(&p.registers);
	ptx_array_deinit(&p.inside);
	ptx_names_free(p.inside_names);
	return r;
}

static struct ptx_module *module_alloc(const char *text, size_t size)
{
	struct ptx_module *module = calloc(1, sizeof(*module));

	if (!module)
		return NULL;
	module->arena = ptx_arena_new();
	module->names = ptx_names_new();
	module->text = malloc(size + 1);
	if (!module->arena || !module->names || !module->text)
		return ptx_module_free(module);
	memcpy(module->text, text, size);
	module->text[size] = '\0';
	module->text_size = size;
	module->is_linked =
		!strncmp(module->text, PTX_LINKED_MARK, sizeof(PTX_LINKED_MARK) - 1);
	module->address_size = 32; /* PTX's default */
	return module;
}

int ptx_module_new(struct ptx_module **modulep, const char *text, size_t size,
	unsigned int cc, struct ptx_error *error)
{
	struct ptx_module *module;
	int r;

	*error = (struct ptx_error){};
	size = strnlen(text, size);
	if (size > PTX_TEXT_SIZE_MAX) {
		snprintf(error->message, sizeof(error->message),
			"a text of %zu bytes, the limit is %u", size, PTX_TEXT_SIZE_MAX);
		return PTX_E_INVALID;
	}
	module = module_alloc(text, size);
	if (!module)
		return vgpu_error_origin(-ENOMEM);
	r = read_module(module, cc, error);
	if (r) {
		ptx_module_free(module);
		return r;
	}
	*modulep = module;
	return 0;
}

struct ptx_module *ptx_module_free(struct ptx_module *module)
{
	if (!module)
		return NULL;
	for (uint32_t i = 0; i < module->n_functions; i++)
		ptx_function_drop(module, i);
	ptx_names_free(module->names);
	ptx_arena_free(module->arena);
	free(module->text);
	free(module);
	return NULL;
}

static uint32_t find_symbol(
	const struct ptx_module *module, const char *name, uint32_t symbol)
{
	uint32_t at = ptx_names_find(module->names, name, strlen(name), 0);
	const struct ptx_name *entry = at ? ptx_names_at(module->names, at - 1) : NULL;

	return entry && entry->kind == symbol ? entry->index : PTX_INDEX_NONE;
}

uint32_t ptx_module_find_function(const struct ptx_module *module, const char *name)
{
	return find_symbol(module, name, PTX_SYMBOL_FUNCTION);
}

uint32_t ptx_module_find_variable(const struct ptx_module *module, const char *name)
{
	return find_symbol(module, name, PTX_SYMBOL_VARIABLE);
}

int ptx_result(int condition)
{
	switch (condition) {
	case PTX_E_VERSION:
		return 222; /* CUDA_ERROR_UNSUPPORTED_PTX_VERSION */
	case PTX_E_TARGET:
		return 209; /* CUDA_ERROR_NO_BINARY_FOR_GPU */
	default:
		return 218; /* CUDA_ERROR_INVALID_PTX */
	}
}
