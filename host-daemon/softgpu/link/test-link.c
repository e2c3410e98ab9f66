/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the linker
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"

#include "link/link.h"
#include "test.h"

#define HEAD ".version 6.0\n.target sm_30\n.address_size 64\n"

static struct ptx_error error;

/* Links texts up to NULL. Returns: what link_finish() or link_check() does. */
static int join(struct ptx_module **modulep, const char *const *texts)
{
	_vgpu_cleanup_(link_freep) struct link *link = link_new();
	_vgpu_cleanup_(vgpu_freep) char *text = NULL;
	size_t size;
	int r;

	for (; *texts; texts++)
		check_eq(link_add(link, *texts, strlen(*texts), 121, &error), 0);
	r = link_finish(link, &text, &size, &error);
	if (r)
		return r;
	check_eq(size, strlen(text));
	r = ptx_module_new(modulep, text, size, 121, &error);
	if (r)
		test_fail(__FILE__, __LINE__, "line %u: %s", error.line, error.message);
	return link_check(*modulep, &error);
}

#define JOIN(_modulep, ...) join(_modulep, (const char *const[]){ __VA_ARGS__, NULL })

TEST(declarations_of_one_module_are_defined_by_another)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *m = NULL;
	uint32_t f;

	check_eq(JOIN(&m,
			 HEAD ".extern .func f ();\n.extern .global .u32 v;\n"
			      ".visible .entry k () { .reg .u32 %r; call f, ();\n"
			      "ld.global.u32 %r, [v]; ret; }\n",
			 ".version 7.1\n.target sm_50\n.address_size 64\n"
			 ".visible .global .u32 v = 7;\n"
			 ".visible .func f () { ret; }\n"),
		0);
	f = ptx_module_find_function(m, "f");
	check(f != PTX_INDEX_NONE && m->functions[f].is_defined);
	check_eq(m->variables[ptx_module_find_variable(m, "v")].init[0], 7);
	check_eq(m->version, 71);
	check_eq(m->target, 50);
}

TEST(undefined_symbols_are_named_if_used)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *m = NULL, *n = NULL;
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *o = NULL, *q = NULL;
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *s = NULL;

	check_eq(JOIN(&m, HEAD ".extern .func nowhere ();\n"
			       ".visible .entry k () { call nowhere, (); ret; }\n"),
		PTX_E_INVALID);
	check(strstr(error.message, "nowhere"));
	check_eq(JOIN(&n, HEAD ".extern .global .u32 lost;\n"
			       ".global .u64 p = lost;\n"),
		PTX_E_INVALID);
	check(strstr(error.message, "lost"));
	/* Through functions, and by their addresses. */
	check_eq(JOIN(&q, HEAD ".extern .func afar ();\n"
			       ".func far () { call afar, (); ret; }\n"
			       ".func near () { .reg .u64 %r; mov.u64 %r, far; ret; }\n"
			       ".visible .entry k () { call near, (); ret; }\n"),
		PTX_E_INVALID);
	check(strstr(error.message, "afar"));
	check_eq(JOIN(&s, HEAD ".extern .func beyond ();\n"
			       ".func f () { call beyond, (); ret; }\n"
			       ".global .u64 p = f;\n"),
		PTX_E_INVALID);
	check(strstr(error.message, "beyond"));
	check_eq(JOIN(&o,
			 HEAD ".extern .func nothing ();\n"
			      ".visible .func idle () { call nothing, (); ret; }\n",
			 HEAD ".extern .func unused ();\n.extern .global .u32 v;\n"
			      ".extern .shared .u32 s[];\n"
			      ".visible .entry k () { .reg .u32 %r;\n"
			      "ld.shared.u32 %r, [s]; ret; }\n"),
		0);
}

TEST(a_name_defined_twice_is_refused)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *m = NULL;
	const char *function = HEAD ".visible .func twice () { ret; }\n";
	const char *variable = HEAD ".visible .global .u32 again;\n";

	check_eq(JOIN(&m, function, function), PTX_E_INVALID);
	check(strstr(error.message, "twice"));
	check_eq(JOIN(&m, variable, variable), PTX_E_INVALID);
	check(strstr(error.message, "again"));
}

TEST(a_weak_definition_gives_way)
{
	const char *weak = HEAD ".weak .func f () { trap; ret; }\n"
				".weak .global .u32 v = 1;\n";
	const char *strong = HEAD ".visible .func f () { ret; }\n"
				  ".visible .global .u32 v = 2;\n";

	for (int i = 0; i < 3; i++) {
		_vgpu_cleanup_(ptx_module_freep) struct ptx_module *m = NULL;
		uint32_t f;

		check_eq(JOIN(&m, i == 1 ? strong : weak, i == 0 ? strong : weak), 0);
		f = ptx_module_find_function(m, "f");
		check_eq(m->functions[f].linkage,
			i == 2 ? PTX_LINKAGE_WEAK : PTX_LINKAGE_VISIBLE);
		check_eq(m->variables[ptx_module_find_variable(m, "v")].init[0],
			i == 2 ? 1 : 2);
	}
}

TEST(the_largest_of_common_variables_is_used)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *m = NULL;

	check_eq(JOIN(&m, HEAD ".common .global .u32 c[2];\n",
			 HEAD ".common .global .u32 c[8];\n",
			 HEAD ".common .global .u32 c[4];\n"),
		0);
	check_eq(m->variables[ptx_module_find_variable(m, "c")].size, 32);
}

TEST(names_of_a_modules_own_do_not_meet)
{
	_vgpu_cleanup_(ptx_module_freep) struct ptx_module *m = NULL;
	/* The variable is named as an opcode, as a label and as a register are. */
	const char *first = HEAD ".global .u32 exit = 1, max = 1;\n"
				 ".global .u64 table[2] = { exit, max };\n"
				 ".visible .entry a () { .reg .u32 %r; .reg .pred %p;\n"
				 "ld.global.u32 %r, [exit];\n"
				 "max.u32 %r, %r, 1;\n"
				 "setp.eq.u32 %p, %r, 0;\n"
				 "@%p exit;\n"
				 "{ exit; }\n"
				 "exit: bra exit; }\n";
	const char *second = HEAD ".global .u32 exit = 2;\n"
				  ".func max () { .reg .v2 .u32 exit; .reg .u32 x;\n"
				  "mov.u32 x, 1; mov.v2.u32 exit, {x, x}; ret; }\n"
				  ".visible .entry b () { .reg .u32 %r;\n"
				  "ld.global.u32 %r, [exit]; call max, (); exit; }\n";
	uint32_t sum = 0;

	check_eq(JOIN(&m, first, second), 0);
	for (uint32_t i = 0; i < m->n_variables; i++)
		if (!strncmp(m->variables[i].name, "exit", 4))
			sum += m->variables[i].init[0];
	check_eq(sum, 3);
	check(ptx_module_find_function(m, "a") != PTX_INDEX_NONE);
	check(ptx_module_find_function(m, "b") != PTX_INDEX_NONE);
}

TEST(bad_text_is_refused_when_it_is_added)
{
	_vgpu_cleanup_(link_freep) struct link *link = link_new();
	const char *bad = HEAD ".visible .entry k () { add.u32 %r, ; }\n";
	const char *narrow = ".version 6.0\n.target sm_30\n.address_size 32\n";
	_vgpu_cleanup_(vgpu_freep) char *text = NULL;
	size_t size;

	check_eq(link_finish(link, &text, &size, &error), PTX_E_INVALID);
	check_eq(link_add(link, bad, strlen(bad), 121, &error), PTX_E_INVALID);
	check_eq(error.line, 4);
	check_eq(link_add(link, "?", 1, 121, &error), PTX_E_INVALID);
	check_eq(link_add(link, HEAD, strlen(HEAD), 121, &error), 0);
	check_eq(link_add(link, narrow, strlen(narrow), 121, &error), 0);
	check_eq(link_finish(link, &text, &size, &error), PTX_E_INVALID);
}

/* As many as fit: to try one after the other would take days. */
TEST(the_way_names_are_kept_apart_cannot_be_taken_away)
{
	enum { N = 1u << 20 };
	const char *second = HEAD ".global .u32 own = 2;\n";
	_vgpu_cleanup_(link_freep) struct link *link = link_new();
	_vgpu_cleanup_(vgpu_freep) char *first = malloc(14 * N + 200);
	_vgpu_cleanup_(vgpu_freep) char *text = NULL;
	char *at = first;
	size_t size;

	check(first);
	at += sprintf(at, HEAD ".global .u32 own = 1;\n//");
	for (unsigned int i = 0; i < N; i++)
		at += sprintf(at, "$link%u$", i);
	check_eq(link_add(link, first, (size_t)(at - first), 121, &error), 0);
	check_eq(link_add(link, second, strlen(second), 121, &error), 0);
	check_eq(link_finish(link, &text, &size, &error), 0);
	check(strstr(text, "own$link1048576$1 = 2"));
}
