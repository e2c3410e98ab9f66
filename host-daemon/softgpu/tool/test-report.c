/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of reports on PTX
 */

#include <string.h>

#include "vgpu/cleanup.h"

#include "test.h"
#include "tool/report.h"

#define HEADER ".version 9.0\n.target sm_90\n.address_size 64\n"
#define CLEAN_REPORT _vgpu_cleanup_(report_freep) struct report *

static struct report *report_on(const char *text)
{
	struct report *report;

	check(!report_new(&report, text, strlen(text), 121));
	return report;
}

TEST(kernel_that_runs_has_its_sizes)
{
	CLEAN_REPORT report = report_on(
		HEADER ".global .u32 a[3]; .const .u64 b;\n"
		       ".entry k(.param .u64 p, .param .u32 q) {\n"
		       ".shared .b8 s[100]; .local .b8 l[20]; .reg .b32 %r<3>;\n"
		       "mov.u32 %r1, l; st.local.u32 [%r1], 1;\n"
		       "mov.u32 %r2, s; st.shared.u32 [%r2], 1; bar.sync 0; ret; }\n");

	check_eq(report->result, 0);
	check_eq(report->version, 90);
	check_eq(report->target, 90);
	check_eq(report->global_size, 12);
	check_eq(report->const_size, 8);
	check_eq(report->n_kernels, 1);
	check_eq(report->n_running, 1);
	check_str(report->kernels[0].name, "k");
	check_eq(report->kernels[0].result, 0);
	check_eq(report->kernels[0].shared_size, 100);
	check_eq(report->kernels[0].local_size, 32);
	check_eq(report->kernels[0].params_size, 12);
	check(report->kernels[0].uses_barriers);
	check(report->kernels[0].n_registers > 0);
}

#define REFUSED "tcgen05.wait::ld.sync.aligned;\n"

TEST(each_refused_instruction_has_its_line)
{
	CLEAN_REPORT report = report_on(
		HEADER ".entry k() {\n" REFUSED "bar.sync 0;\n" REFUSED "ret;\n}\n"
		       ".entry m() { ret; }\n");

	check_eq(report->n_kernels, 2);
	check_eq(report->n_running, 1);
	check_eq(report->kernels[0].result, 801);
	check_eq(report->kernels[0].n_refusals, 2);
	check_eq(report->kernels[0].refusals[0].line, 5);
	check_eq(report->kernels[0].refusals[1].line, 7);
	check(strstr(report->kernels[0].refusals[1].text, "tcgen05.wait"));
	check_eq(report->kernels[1].n_refusals, 0);
}

/* What was taken out of one kernel is there again for the next. */
TEST(function_that_two_kernels_call_is_refused_in_both)
{
	CLEAN_REPORT report = report_on(
		HEADER ".func f() {\n" REFUSED "ret; }\n"
		       ".entry k() { call f; ret; }\n.entry m() { call f; ret; }\n");

	check_eq(report->n_running, 0);
	for (unsigned int i = 0; i < 2; i++) {
		check_eq(report->kernels[i].n_refusals, 1);
		check_eq(report->kernels[i].refusals[0].line, 5);
	}
}

TEST(refusals_have_a_limit)
{
	static char text[16384] = HEADER ".entry k() {\n";
	CLEAN_REPORT report = NULL;

	for (unsigned int i = 0; i < 2 * REPORT_REFUSALS_MAX; i++)
		strcat(text, REFUSED);
	strcat(text, "ret; }\n");
	report = report_on(text);
	check_eq(report->kernels[0].n_refusals, REPORT_REFUSALS_MAX);
}

/* A reason that is no instruction's ends the search. */
TEST(kernel_that_is_too_large_has_one_reason)
{
	CLEAN_REPORT report =
		report_on(HEADER ".shared .b8 a[200000];\n"
				 ".shared .b8 b[200000];\n"
				 ".entry k() { .reg .b32 %r<2>;\n"
				 "mov.u32 %r0, a; mov.u32 %r1, b; ret; }\n");

	check_eq(report->n_running, 0);
	check(report->kernels[0].n_refusals >= 1);
	check(strstr(report->kernels[0].refusals[0].text, "shared"));
}

TEST(text_that_is_refused_has_its_error)
{
	CLEAN_REPORT newer = report_on(".version 99.0\n.target sm_90\n");
	CLEAN_REPORT other = report_on(".version 9.0\n.target sm_130\n");
	CLEAN_REPORT broken = report_on(HEADER ".entry k() {\n nonsense;\n}\n");

	check_eq(newer->result, 222);
	check_eq(other->result, 209);
	check_eq(broken->result, 218);
	check_eq(broken->error.line, 5);
	check_eq(broken->n_kernels, 0);
}

TEST(text_without_kernels_has_none)
{
	CLEAN_REPORT report = report_on(HEADER ".func f() { ret; }\n");

	check_eq(report->result, 0);
	check_eq(report->n_kernels, 0);
}
