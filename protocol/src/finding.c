/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings: what a program that looks for mistakes says about each subject
 *
 * Texts contain names of files, values of the environment and sentences of other
 * programs: what a terminal would obey, and what is not UTF-8, is replaced when it is
 * printed.
 */

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/finding.h"

void vgpu_findings_add(struct vgpu_findings *findings, enum vgpu_finding_level level,
	const char *subject, const char *advice, const char *format, ...)
{
	struct vgpu_finding *finding = &findings->list[findings->n];
	va_list ap;

	if (level > findings->worst)
		findings->worst = level;
	if (findings->n == VGPU_FINDINGS_MAX) {
		findings->n_left_out++;
		return;
	}
	va_start(ap, format);
	if (vasprintf(&finding->text, format, ap) < 0)
		finding->text = NULL;
	va_end(ap);
	finding->level = level;
	finding->subject = subject;
	finding->advice = advice ? strdup(advice) : NULL;
	findings->n++;
}

void vgpu_findings_deinit(struct vgpu_findings *findings)
{
	while (findings->n) {
		findings->n--;
		free(findings->list[findings->n].text);
		free(findings->list[findings->n].advice);
	}
}

/* Return: the length of the UTF-8 character there, which is none of control; 0: none. */
static size_t measure(const unsigned char *at)
{
	const unsigned int lead = *at;
	const size_t n = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	uint32_t code = n == 1 ? lead : lead & (0x7fu >> n);

	if (lead < 0x20 || lead == 0x7f || (lead >= 0x80 && lead < 0xc2) || lead > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[i] & 0x3f);
	}
	/* Longer than needed, surrogates, the second control set, beyond Unicode. */
	if ((n == 2 && code < 0xa0) || (n == 3 && code < 0x800) ||
		(n == 4 && (code < 0x10000 || code > 0x10ffff)) ||
		(code >= 0xd800 && code < 0xe000))
		return 0;
	return n;
}

static void print_text(const char *text, FILE *out, const char *escaped)
{
	const unsigned char *at = (const unsigned char *)(text ? text : "");

	while (*at) {
		const size_t n = measure(at);

		if (!n) {
			fputc('?', out);
			at++;
			continue;
		}
		if (strchr(escaped, *at))
			fputc('\\', out);
		fwrite(at, 1, n, out);
		at += n;
	}
}

void vgpu_findings_print(const struct vgpu_findings *findings, FILE *out)
{
	static const char *const levels[_VGPU_FINDING_LEVEL_N] = { "ok  ", "WARN",
		"FAIL" };

	for (size_t i = 0; i < findings->n; i++) {
		const struct vgpu_finding *finding = &findings->list[i];

		fprintf(out, "%s  %s: ", levels[finding->level], finding->subject);
		print_text(finding->text, out, "");
		if (finding->advice) {
			fputs("\n      ", out);
			print_text(finding->advice, out, "");
		}
		fputc('\n', out);
	}
	if (findings->n_left_out)
		fprintf(out, "%s  and %zu more\n", levels[findings->worst],
			findings->n_left_out);
}

static void print_member(const char *name, const char *text, FILE *out)
{
	fprintf(out, "\n      \"%s\": ", name);
	if (!text) {
		fputs("null", out);
		return;
	}
	fputc('"', out);
	print_text(text, out, "\"\\");
	fputc('"', out);
}

void vgpu_findings_print_json(const struct vgpu_findings *findings, FILE *out)
{
	static const char *const levels[_VGPU_FINDING_LEVEL_N] = { "ok", "warn", "fail" };

	fprintf(out, "{\n  \"level\": \"%s\",\n  \"left_out\": %zu,\n  \"findings\": [",
		levels[findings->worst], findings->n_left_out);
	for (size_t i = 0; i < findings->n; i++) {
		const struct vgpu_finding *finding = &findings->list[i];

		fputs(i ? ",\n    {" : "\n    {", out);
		print_member("level", levels[finding->level], out);
		fputc(',', out);
		print_member("subject", finding->subject, out);
		fputc(',', out);
		print_member("text", finding->text ? finding->text : "", out);
		fputc(',', out);
		print_member("advice", finding->advice, out);
		fputs("\n    }", out);
	}
	fputs(findings->n ? "\n  ]\n}\n" : "]\n}\n", out);
}
