/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of module-scope PTX: head, variables, initialisers, functions
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"

#include "ptx/module.h"
#include "test.h"

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"

static struct ptx_module *parse(const char *text)
{
	struct ptx_module *module = NULL;
	struct ptx_error error;
	int r;

	r = ptx_module_new(&module, text, strlen(text), 121, &error);
	if (r)
		test_fail(__FILE__, __LINE__, "line %u: %s", error.line, error.message);
	return module;
}

static const struct ptx_variable *variable(
	const struct ptx_module *module, const char *name)
{
	uint32_t index = ptx_module_find_variable(module, name);

	check(index != PTX_INDEX_NONE);
	check_str(module->variables[index].name, name);
	return &module->variables[index];
}

static const struct ptx_function *function(
	const struct ptx_module *module, const char *name)
{
	uint32_t index = ptx_module_find_function(module, name);

	check(index != PTX_INDEX_NONE);
	check_str(module->functions[index].name, name);
	return &module->functions[index];
}

TEST(head_is_read)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *m =
		parse("// a comment\n\n" HEAD);

	check_eq(m->version, 90);
	check_eq(m->target, 90);
	check_eq(m->target_kind, 0);
	check_eq(m->address_size, 64);
}

TEST(target_options_of_old_compilers_are_ignored)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *m =
		parse(".version 1.4\n.target sm_13, map_f64_to_f32\n"
		      "@@DWARF .section .debug_info\n.file 1 \"a.cu\"\n");

	check_eq(m->version, 14);
	check_eq(m->target, 13);
	check_eq(m->address_size, 32);
}

TEST(architecture_specific_target_needs_that_device)
{
	static const char text[] = ".version 9.0\n.target sm_121a\n";
	static const char family[] = ".version 9.0\n.target sm_120f\n";
	struct ptx_error error;
	struct ptx_module *m;

	check_eq(ptx_module_new(&m, text, sizeof(text), 121, &error), 0);
	check_eq(m->target_kind, 'a');
	ptx_module_free(m);
	check_eq(ptx_module_new(&m, text, sizeof(text), 122, &error), PTX_E_TARGET);
	check_eq(ptx_module_new(&m, family, sizeof(family), 121, &error), 0);
	ptx_module_free(m);
	check_eq(ptx_module_new(&m, family, sizeof(family), 130, &error), PTX_E_TARGET);
}

TEST(text_after_a_nul_is_ignored)
{
	static const char text[] = HEAD "\0 not PTX";
	struct ptx_error error;
	struct ptx_module *m;

	check_eq(ptx_module_new(&m, text, sizeof(text), 121, &error), 0);
	ptx_module_free(m);
}

TEST(text_needs_no_nul)
{
	char *text = strdup(HEAD);
	struct ptx_error error;
	struct ptx_module *m;

	check_eq(ptx_module_new(&m, text, strlen(HEAD) - 1, 121, &error), 0);
	free(text);
	check_eq(m->address_size, 64);
	ptx_module_free(m);
}

TEST(variables_have_space_size_and_alignment)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *m =
		parse(HEAD ".visible .global .align 16 .b8 a[10];\n"
			   ".const .f32 b[2][3];\n"
			   ".extern .shared .align 8 .b8 dyn[];\n"
			   ".shared .u64 s;\n"
			   ".global .attribute(.managed) .u32 mg;\n"
			   ".global .v4 .f32 vec, other;\n"
			   ".weak .global .u16 w;\n");
	const struct ptx_variable *v = variable(m, "a");

	check_eq(v->space, PTX_SPACE_GLOBAL);
	check_eq(v->linkage, PTX_LINKAGE_VISIBLE);
	check_eq(v->size, 10);
	check_eq(v->align, 16);
	check(!v->init);
	v = variable(m, "b");
	check_eq(v->space, PTX_SPACE_CONST);
	check_eq(v->size, 24);
	check_eq(v->align, 4);
	v = variable(m, "dyn");
	check(v->unsized);
	check_eq(v->linkage, PTX_LINKAGE_EXTERN);
	check_eq(v->size, 0);
	check_eq(variable(m, "s")->space, PTX_SPACE_SHARED);
	check(variable(m, "mg")->managed);
	check(!variable(m, "a")->managed);
	v = variable(m, "vec");
	check_eq(v->size, 16);
	check_eq(v->align, 16);
	check_eq(variable(m, "other")->size, 16);
	check_eq(variable(m, "w")->linkage, PTX_LINKAGE_WEAK);
	check_eq(ptx_module_find_variable(m, "none"), PTX_INDEX_NONE);
}

static void check_u32s(const struct ptx_variable *v, const uint32_t *values, uint32_t n)
{
	check_eq(v->init_size, n * 4);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t value;

		memcpy(&value, v->init + i * 4, 4);
		check_eq(value, values[i]);
	}
}

TEST(initialisers_become_bytes)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *m = parse(
		HEAD ".global .u32 a = 5;\n"
		     ".global .u32 b[4] = {1, -2, 0x10};\n"
		     ".global .f32 c[3] = {0f3F800000, 0d4000000000000000, -1.5};\n"
		     ".global .f64 d = 0f3F800000;\n"
		     ".global .b8 e[4] = {104, 0xFFFFFFFF, 010, 0b11};\n"
		     ".global .u32 f[] = {(1 + 2) * 3, 7 % 4 << 2, ~0 & 0xff | 256};\n"
		     ".global .u32 g[2][2] = {{1}, {2, 3}};\n"
		     ".global .v2 .u32 h[2] = {{1, 2}, {3, 4}};\n");

	check_u32s(variable(m, "a"), (uint32_t[]){ 5 }, 1);
	check_u32s(variable(m, "b"), (uint32_t[]){ 1, -2u, 16 }, 3);
	check_eq(variable(m, "b")->size, 16);
	check_u32s(
		variable(m, "c"), (uint32_t[]){ 0x3f800000, 0x40000000, 0xbfc00000 }, 3);
	check(*(const double *)variable(m, "d")->init == 1.0);
	check(!memcmp(variable(m, "e")->init, "h\xff\x08\x03", 4));
	check_u32s(variable(m, "f"), (uint32_t[]){ 9, 12, 511 }, 3);
	check_eq(variable(m, "f")->size, 12);
	check(!variable(m, "f")->unsized);
	check_u32s(variable(m, "g"), (uint32_t[]){ 1, 0, 2, 3 }, 4);
	check_u32s(variable(m, "h"), (uint32_t[]){ 1, 2, 3, 4 }, 4);
}

TEST(initialisers_with_addresses_become_relocations)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *m =
		parse(HEAD ".func f();\n"
			   ".global .u32 x[4];\n"
			   ".global .u64 t[4] = {x, f, generic(x)+8, x-4};\n"
			   ".global .b8 u[8] = {1, 0xFF(x), 0xFF00(x), "
			   "0xFF000000000000(generic(x)+1)};\n");
	const struct ptx_variable *v = variable(m, "t");
	const struct ptx_reloc *reloc = &m->relocs[v->first_reloc];

	check_eq(v->n_relocs, 4);
	check_eq(reloc[0].symbol, PTX_SYMBOL_VARIABLE);
	check_str(m->variables[reloc[0].index].name, "x");
	check_eq(reloc[0].size, 8);
	check(!reloc[0].generic);
	check_eq(reloc[1].symbol, PTX_SYMBOL_FUNCTION);
	check_eq(reloc[1].offset, 8);
	check(reloc[2].generic);
	check_eq(reloc[2].addend, 8);
	check_eq(reloc[3].addend, -4);
	v = variable(m, "u");
	reloc = &m->relocs[v->first_reloc];
	check_eq(v->n_relocs, 3);
	check_eq(v->init[0], 1);
	check_eq(reloc[0].offset, 1);
	check_eq(reloc[0].size, 1);
	check_eq(reloc[1].shift, 8);
	check_eq(reloc[2].shift, 48);
	check_eq(reloc[2].addend, 1);
	check(reloc[2].generic);
}

TEST(entry_has_params_and_directives)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *m =
		parse(HEAD ".visible .entry k(\n"
			   "\t.param .u32 n,\n"
			   "\t.param .u64 .ptr .global .align 4 p,\n"
			   "\t.param .align 8 .b8 s[24],\n"
			   "\t.param .u8 c)\n"
			   ".maxntid 256, 2\n.minnctapersm 2\n.reqntid 8\n.maxnreg 64\n"
			   ".pragma \"nounroll\";\n{ ret; }\n");
	const struct ptx_function *f = function(m, "k");

	check(f->is_entry && f->is_defined);
	check_eq(f->linkage, PTX_LINKAGE_VISIBLE);
	check_eq(f->line, 4);
	check_eq(f->n_params, 4);
	check_str(f->params[1].name, "p");
	check_eq(f->params[1].offset, 8);
	check_eq(f->params[1].align, 8);
	check_eq(f->params[2].offset, 16);
	check_eq(f->params[2].size, 24);
	check_eq(f->params[2].count, 24);
	check_eq(f->params[3].offset, 40);
	check_eq(f->params_size, 41);
	check_eq(f->maxntid[0], 256);
	check_eq(f->maxntid[1], 2);
	check_eq(f->maxntid[2], 1);
	check_eq(f->reqntid[0], 8);
	check_eq(f->reqntid[1], 1);
	check_eq(f->minnctapersm, 2);
	check_eq(f->maxnreg, 64);
	check(!f->body);
}

TEST(declaration_and_definition_are_one_function)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *m =
		parse(HEAD ".func (.param .b32 r) f (.param .b32 a);\n"
			   ".extern .func g .noreturn;\n"
			   ".visible .func (.param .b32 r) f (.param .b32 a) { ret; }\n"
			   ".func (.param .b32 r) f (.param .b32 a);\n"
			   ".alias also, f;\n");
	const struct ptx_function *f = function(m, "f");

	check_eq(m->n_functions, 2);
	check(f->is_defined && !f->is_entry);
	check_eq(f->n_returns, 1);
	check_eq(f->returns_size, 4);
	check(function(m, "g")->is_noreturn);
	check(!function(m, "g")->is_defined);
	check_eq(ptx_module_find_function(m, "also"), ptx_module_find_function(m, "f"));
}

TEST(body_is_skipped_with_strings_and_comments)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *m =
		parse(HEAD ".entry a { .pragma \"}\"; // }\n/* } */ { } ret; }\n"
			   ".entry b { ret; }\n"
			   ".section .debug_str { x: .b8 1 { } }\n"
			   ".global .u32 after;\n");

	check_eq(m->n_functions, 2);
	check(variable(m, "after"));
}

static void fails(const char *text, int condition, uint32_t line, const char *words)
{
	struct ptx_module *m = NULL;
	struct ptx_error error;
	int r = ptx_module_new(&m, text, strlen(text), 121, &error);

	if (r != condition || error.line != line || !strstr(error.message, words))
		test_fail(__FILE__, __LINE__,
			"\"%.400s\": %d, line %u, \"%s\"; not %d, line %u, \"%s\"", text,
			r, error.line, error.message, condition, line, words);
	check(!m);
}

TEST(bad_heads_are_refused)
{
	fails("", PTX_E_INVALID, 1, "does not start with .version");
	fails("hello", PTX_E_INVALID, 1, "does not start with .version");
	fails(".version 9\n", PTX_E_INVALID, 1, "two numbers");
	fails(".version 9.2\n.target sm_90\n", PTX_E_VERSION, 1, "9.2 is newer than 9.1");
	fails(".version 10.0\n.target sm_90\n", PTX_E_VERSION, 1, "newer");
	fails(".version 9.0\n.entry k { }\n", PTX_E_INVALID, 2, ".target is missing");
	fails(".version 9.0\n.target debug\n", PTX_E_INVALID, 3, "names no sm_");
	fails(".version 9.0\n.target sm_9x\n", PTX_E_INVALID, 2, "no target");
	fails(".version 9.0\n\n.target sm_130\n", PTX_E_TARGET, 3, "12.1");
	fails(".version 9.0\n.target sm_90\n.address_size 16\n", PTX_E_INVALID, 4,
		"neither 32 nor 64");
	fails("/* no end", PTX_E_INVALID, 1, "comment does not end");
}

TEST(bad_declarations_are_refused)
{
	fails(HEAD "x", PTX_E_INVALID, 4, "a directive is missing");
	fails(HEAD ".global .u32 a;\n.global .u32 a;", PTX_E_INVALID, 5, "twice");
	fails(HEAD ".func a;\n.global .u32 a;", PTX_E_INVALID, 5, "twice");
	fails(HEAD ".entry a {}\n.entry a {}", PTX_E_INVALID, 5, "twice");
	fails(HEAD ".entry a {}\n.func a {}", PTX_E_INVALID, 5, "twice");
	fails(HEAD ".global .u32 a", PTX_E_INVALID, 4, "';' is missing");
	fails(HEAD ".global a;", PTX_E_INVALID, 4, "without a type");
	fails(HEAD ".u32 a;", PTX_E_INVALID, 4, "without a state space");
	fails(HEAD ".global .u32 .f32 a;", PTX_E_INVALID, 4, "second type");
	fails(HEAD ".global .foo .f32 a;", PTX_E_INVALID, 4, ".foo does not belong");
	fails(HEAD ".global .align 3 .u32 a;", PTX_E_INVALID, 4, "power of two");
	fails(HEAD ".global .align 0 .u32 a;", PTX_E_INVALID, 4, "power of two");
	fails(HEAD ".global .pred a;", PTX_E_INVALID, 4, "predicate in memory");
	fails(HEAD ".param .u32 a;", PTX_E_INVALID, 4, "belong to functions");
	fails(HEAD ".reg .u32 a<1025>;", PTX_E_INVALID, 4, "registers outside");
	fails(HEAD ".func f;\n.global .u32 f;", PTX_E_INVALID, 5, "twice");
	fails(HEAD ".global .u32 f;\n.func f;", PTX_E_INVALID, 5, "twice");
	fails(HEAD ".global .u32 a<4>;", PTX_E_INVALID, 4, "for registers");
	fails(HEAD ".global .u8 a[2][];", PTX_E_INVALID, 4, "first dimension");
	fails(HEAD ".global .u8 a[1/0];", PTX_E_INVALID, 4, "division by zero");
	fails(HEAD ".global .u8 a[1][1][1][1][1][1][1][1][1];", PTX_E_INVALID, 4,
		"dimensions");
	fails(HEAD ".func f (.param .u32 a {", PTX_E_INVALID, 4, "')' is missing");
	fails(HEAD ".func f (.global .u32 a);", PTX_E_INVALID, 4, "neither");
	fails(HEAD ".entry (.param .u32 r) f;", PTX_E_INVALID, 4, "returns nothing");
	fails(HEAD ".entry f .maxfoo 3 {}", PTX_E_INVALID, 4, ".maxfoo");
	fails(HEAD ".entry f {", PTX_E_INVALID, 4, "'}' is missing");
	fails(HEAD ".file 1 \"x\"\n.global .u32 \x80;", PTX_E_INVALID, 5, "character");
	fails(HEAD ".alias a, b;", PTX_E_INVALID, 4, "two functions");
}

TEST(bad_initialisers_are_refused)
{
	fails(HEAD ".global .u32 a = b;", PTX_E_INVALID, 4, "\"b\" is not declared");
	fails(HEAD ".global .u32 a[2] = {1, 2, 3};", PTX_E_INVALID, 4, "more init");
	fails(HEAD ".global .u32 a[2] = {{1}};", PTX_E_INVALID, 4, "braces deeper");
	fails(HEAD ".global .u32 a[2][2] = {{1, 2, 3}};", PTX_E_INVALID, 4, "more init");
	fails(HEAD ".global .u32 a[2] = {1", PTX_E_INVALID, 4, "'}' is missing");
	fails(HEAD ".global .u32 a = (1;", PTX_E_INVALID, 4, "')' is missing");
	fails(HEAD ".global .u32 a = 0x;", PTX_E_INVALID, 4, "malformed number");
	fails(HEAD ".global .u32 a = 0f3F8;", PTX_E_INVALID, 4, "8 or 16 digits");
	fails(HEAD ".global .u32 a = 99999999999999999999;", PTX_E_INVALID, 4, "64 bits");
	fails(HEAD ".shared .u32 a = 1;", PTX_E_INVALID, 4, "only .global");
	fails(HEAD ".global .u32 x; .global .u64 a = 0x7F(x);", PTX_E_INVALID, 4,
		"whole bytes");
	fails(HEAD ".global .u32 x; .global .u8 a = 0xFFFF(x);", PTX_E_INVALID, 4,
		"does not fit");
}

TEST(limits_hold_before_memory_is_spent)
{
	fails(HEAD ".global .u64 a[0x10000000];", PTX_E_INVALID, 4, "limit is");
	fails(HEAD ".global .u8 a[0x20000000][4];", PTX_E_INVALID, 4, "more than");
	fails(HEAD ".entry f (.param .b8 a[32765]) {}", PTX_E_INVALID, 4, "32764 bytes");
	fails(HEAD ".entry f (.param .b8 a[32760], .param .u64 b) {}", PTX_E_INVALID, 4,
		"32764 bytes");
	fails(HEAD ".global .b8 a[][0x4000000] = {{}, {}, {1}};", PTX_E_INVALID, 4,
		"initialisers of more");
}

TEST(addresses_in_initialisers_have_a_limit)
{
	char *text = malloc(8 << 20), *end = text;

	end += sprintf(end, HEAD ".func f; .global .u64 a[] = {");
	for (unsigned int i = 0; i <= PTX_RELOCS_MAX; i++)
		end += sprintf(end, "f,");
	strcpy(end, "f};");
	fails(text, PTX_E_INVALID, 4, "addresses in initialisers");
	free(text);
}

TEST(deeply_nested_constant_needs_no_stack)
{
	size_t head = strlen(HEAD ".global .u32 a = "), n = 1 << 20;
	char *text = malloc(head + n + 1);

	memcpy(text, HEAD ".global .u32 a = ", head);
	memset(text + head, '(', n);
	text[head + n] = '\0';
	fails(text, PTX_E_INVALID, 4, "nested too deeply");
	free(text);
}

TEST(long_identifier_is_refused)
{
	char *text = malloc(PTX_NAME_SIZE_MAX + 100);
	size_t head = strlen(HEAD ".func ");

	memcpy(text, HEAD ".func ", head);
	memset(text + head, 'a', PTX_NAME_SIZE_MAX + 1);
	strcpy(text + head + PTX_NAME_SIZE_MAX + 1, ";");
	fails(text, PTX_E_INVALID, 4, "too long");
	free(text);
}

TEST(conditions_stand_for_cuda_errors)
{
	check_eq(ptx_result(PTX_E_INVALID), 218);
	check_eq(ptx_result(PTX_E_VERSION), 222);
	check_eq(ptx_result(PTX_E_TARGET), 209);
}
