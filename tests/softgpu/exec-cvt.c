/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions: every form of cvt over edge values, against numbers that conversions.py
 * has computed without rounding
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec-harness.h"
#include "test.h"

#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *
#define CASES_MAX 512
#define FORMS_MIN 870 /* so that a file that is cut short does not pass */

struct form {
	char text[64];
	unsigned int to, from, n_sources; /* to and from in bits */
	unsigned int n;
	struct {
		uint64_t a, b, want;
		bool any_nan;
	} cases[CASES_MAX];
};

static char line[256];

static bool read_case(struct form *form)
{
	unsigned int i = form->n, fields = form->n_sources;
	char want[32], *at = line;

	form->cases[i].a = strtoull(at, &at, 16);
	form->cases[i].b = fields == 2 ? strtoull(at, &at, 16) : 0;
	if (sscanf(at, " %31s", want) != 1)
		return false;
	form->cases[i].any_nan = !strcmp(want, "nan");
	form->cases[i].want = strtoull(want, NULL, 16);
	form->n++;
	return true;
}

/* Leaves the next form's first line in `line`. Returns: whether there was a form. */
static bool read_form(FILE *file, struct form *form)
{
	if (strncmp(line, "form ", 5) && !fgets(line, sizeof(line), file))
		return false;
	form->n = 0;
	check_eq(sscanf(line, "form %63s %u %u %u", form->text, &form->to, &form->from,
			 &form->n_sources),
		4);
	while (fgets(line, sizeof(line), file) && strncmp(line, "form ", 5)) {
		check(form->n < CASES_MAX);
		check(read_case(form));
	}
	if (feof(file))
		line[0] = 0;
	check(form->n > 0);
	return true;
}

/* Registers of 8 bits are those of pairs of 4 alone. */
static unsigned int width(const struct form *form, unsigned int bits)
{
	return bits < 16 && !strstr(form->text, "e2m1x2") ? 16 : bits;
}

/* Integers come out in registers of at least 32 bits, which the result has to fill. */
static unsigned int width_of_result(const struct form *form)
{
	const char *type = strchr(form->text, '.');

	for (const char *next = type; next; next = strchr(next + 1, '.'))
		if (strchr(next + 1, '.'))
			type = next;
	return (type[1] == 's' || (type[1] == 'u' && type[2] != 'e')) && form->to < 32
		       ? 32
		       : form->to;
}

static void write_kernel(const struct form *form, char *ptx, size_t size)
{
	unsigned int from = width(form, form->from), to = width_of_result(form);

	snprintf(ptx, size,
		".version 9.0\n.target sm_120\n.address_size 64\n"
		".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n) {\n"
		".reg .b%u %%a, %%b; .reg .b%u %%d; .reg .b64 %%rd<9>;\n"
		".reg .b32 %%r<4>; .reg .pred %%p;\n"
		"ld.param.u64 %%rd1, [in]; ld.param.u64 %%rd2, [out];\n"
		"ld.param.u32 %%r1, [n]; mov.u32 %%r2, %%tid.x;\n"
		"setp.ge.u32 %%p, %%r2, %%r1; @%%p exit;\n"
		"mul.wide.u32 %%rd3, %%r2, 32; add.u64 %%rd1, %%rd1, %%rd3;\n"
		"mul.wide.u32 %%rd3, %%r2, 8; add.u64 %%rd2, %%rd2, %%rd3;\n"
		"ld.global.b%u %%a, [%%rd1]; ld.global.b%u %%b, [%%rd1+8];\n"
		"%s %%d, %%a%s;\nst.global.b%u [%%rd2], %%d; ret; }\n",
		from, to, from, from, form->text, form->n_sources == 2 ? ", %b" : "", to);
}

static bool is_nan(uint64_t bits, unsigned int size)
{
	if (size == 64)
		return (bits & INT64_MAX) > UINT64_C(0x7ff0000000000000);
	return (bits & 0x7fffffff) > 0x7f800000;
}

static void run_form(const struct form *form)
{
	char ptx[2048];
	CLEAN_RIG rig = NULL;
	uint64_t *out;
	struct {
		void *in;
		uint64_t *out;
		uint32_t n;
	} params;

	write_kernel(form, ptx, sizeof(ptx));
	rig = rig_new(ptx);
	params.in = rig_alloc(rig, sizeof(form->cases));
	params.out = out = rig_alloc(rig, CASES_MAX * 8);
	params.n = form->n;
	memcpy(params.in, form->cases, sizeof(form->cases));
	rig_launch(rig, "k", 1, CASES_MAX, &params, sizeof(params));
	for (unsigned int i = 0; i < form->n; i++) {
		if (form->cases[i].any_nan ? is_nan(out[i], form->to)
					   : out[i] == form->cases[i].want)
			continue;
		test_fail(__FILE__, __LINE__, "%s of %llx %llx gives %llx, not %llx%s",
			form->text, (long long)form->cases[i].a,
			(long long)form->cases[i].b, (long long)out[i],
			(long long)form->cases[i].want,
			form->cases[i].any_nan ? " (any NaN)" : "");
	}
}

TEST(every_form_of_cvt_gives_what_rational_numbers_give)
{
	static struct form form;
	FILE *file = fopen(getenv("CONVERSIONS"), "r");
	unsigned int n = 0;

	check(file);
	while (read_form(file, &form)) {
		run_form(&form);
		n++;
	}
	check(n >= FORMS_MIN);
	fclose(file);
}
