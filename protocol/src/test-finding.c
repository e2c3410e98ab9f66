/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings as text and JSON, also of texts that no terminal and no parser should get
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "vgpu/finding.h"

static struct vgpu_findings findings;

static void check_printed(
	void (*print)(const struct vgpu_findings *findings, FILE *out), const char *text)
{
	char *printed;
	size_t size;
	FILE *out = open_memstream(&printed, &size);

	check(out != NULL);
	print(&findings, out);
	check_eq(fclose(out), 0);
	check_str(printed, text);
	free(printed);
}

TEST(text_has_the_advice_below_the_finding)
{
	vgpu_findings_add(&findings, VGPU_FINDING_OK, "disk", NULL, "%d free", 3);
	vgpu_findings_add(&findings, VGPU_FINDING_WARN, "fan", "clean it", "is loud");
	vgpu_findings_add(&findings, VGPU_FINDING_FAIL, "cpu", NULL, "is missing");
	check_eq(findings.worst, VGPU_FINDING_FAIL);
	check_printed(vgpu_findings_print, "ok    disk: 3 free\n"
					   "WARN  fan: is loud\n"
					   "      clean it\n"
					   "FAIL  cpu: is missing\n");
	vgpu_findings_deinit(&findings);
	check_eq(findings.n, 0);
}

TEST(json_has_each_member)
{
	check_printed(vgpu_findings_print_json,
		"{\n  \"level\": \"ok\",\n  \"left_out\": 0,\n  \"findings\": []\n}\n");
	vgpu_findings_add(&findings, VGPU_FINDING_WARN, "fan", NULL, "\"is\" \\loud");
	check_printed(vgpu_findings_print_json,
		"{\n  \"level\": \"warn\",\n  \"left_out\": 0,\n  \"findings\": [\n"
		"    {\n      \"level\": \"warn\",\n      \"subject\": \"fan\",\n"
		"      \"text\": \"\\\"is\\\" \\\\loud\",\n      \"advice\": null\n"
		"    }\n  ]\n}\n");
	vgpu_findings_deinit(&findings);
}

static void check_cleaned(const char *text, const char *cleaned)
{
	char expected[256];

	vgpu_findings_add(&findings, VGPU_FINDING_OK, "x", text, "%s", text);
	snprintf(expected, sizeof(expected), "ok    x: %s\n      %s\n", cleaned, cleaned);
	check_printed(vgpu_findings_print, expected);
	vgpu_findings_deinit(&findings);
}

TEST(what_a_terminal_would_obey_is_replaced)
{
	check_cleaned("a\033[2Jb\nc\rd\177", "a?[2Jb?c?d?");
	check_cleaned("\xc2\x9b[2J", "??[2J");
}

TEST(what_is_not_utf_8_is_replaced)
{
	check_cleaned("g\xc3\xbcnstig \xe2\x82\xac \xf0\x9f\x99\x82",
		"g\xc3\xbcnstig \xe2\x82\xac \xf0\x9f\x99\x82");
	check_cleaned("\xff\xc3", "??");
	check_cleaned("\xc0\xaf\xe0\x80\xaf", "?????");
	check_cleaned("\xed\xa0\x80\xf4\x90\x80\x80", "???????");
	check_cleaned("\xe2\x82", "??");
}

TEST(findings_beyond_the_most_count)
{
	for (int i = 0; i < VGPU_FINDINGS_MAX; i++)
		vgpu_findings_add(&findings, VGPU_FINDING_OK, "x", NULL, "%d", i);
	vgpu_findings_add(&findings, VGPU_FINDING_FAIL, "y", NULL, "lost");
	check_eq(findings.n, VGPU_FINDINGS_MAX);
	check_eq(findings.n_left_out, 1);
	check_eq(findings.worst, VGPU_FINDING_FAIL);
	vgpu_findings_deinit(&findings);
}
