/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding as JSON
 */

#include "tool/finding.h"

void json_string(const char *text, FILE *out)
{
	fputc('"', out);
	for (; *text; text++) {
		const unsigned char c = *text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < ' ' || c > '~')
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void print_version(const char *name, uint32_t version, FILE *out)
{
	fprintf(out, "\"%s\": \"%u.%u\"", name, version / 10, version % 10);
}

static void print_target(uint32_t arch, char suffix, FILE *out)
{
	char letter[2] = { suffix, 0 };

	fprintf(out, "\"target\": \"sm_%u%s\"", arch, letter);
}

static void print_entries(const struct finding *finding, FILE *out)
{
	fprintf(out, "\"entries\": [");
	for (uint32_t i = 0; i < finding->n_entries; i++) {
		const struct finding_entry *entry = &finding->entries[i];

		fprintf(out, "%s{\"kind\": \"%s\", ", i ? ", " : "",
			entry->kind == FATBIN_KIND_PTX	   ? "ptx"
			: entry->is_standin		   ? "stand-in"
			: entry->kind == FATBIN_KIND_CUBIN ? "machine code"
							   : "other");
		print_target(entry->arch, entry->suffix, out);
		if (entry->kind == FATBIN_KIND_PTX) {
			fprintf(out, ", ");
			print_version("version", entry->version, out);
		}
		fputc('}', out);
	}
	fprintf(out, "], ");
}

static void print_kernel(const struct report_kernel *kernel, FILE *out)
{
	fprintf(out, "{\"name\": ");
	json_string(kernel->name, out);
	fprintf(out, ", \"runs\": %s, \"parameters\": %u",
		kernel->result ? "false" : "true", kernel->params_size);
	if (!kernel->result) {
		fprintf(out,
			", \"registers\": %u, \"shared\": %u, \"local\": %u, "
			"\"max_threads\": %u}",
			kernel->n_registers, kernel->shared_size, kernel->local_size,
			kernel->max_threads);
		return;
	}
	fprintf(out, ", \"error\": %d, \"refused\": [", kernel->result);
	for (uint32_t i = 0; i < kernel->n_refusals; i++) {
		fprintf(out, "%s{\"line\": %u, \"reason\": ", i ? ", " : "",
			kernel->refusals[i].line);
		json_string(kernel->refusals[i].text, out);
		fputc('}', out);
	}
	fprintf(out, "]}");
}

static void print_report(const struct report *report, FILE *out)
{
	fprintf(out, ", \"ptx\": {");
	if (report->result) {
		fprintf(out, "\"error\": %d, \"line\": %u, \"reason\": ", report->result,
			report->error.line);
		json_string(report->error.message, out);
		fputc('}', out);
		return;
	}
	print_version("version", report->version, out);
	fprintf(out, ", ");
	print_target(report->target, report->target_kind, out);
	fprintf(out, ", \"global\": %llu, \"constant\": %llu, \"kernels\": [",
		(unsigned long long)report->global_size,
		(unsigned long long)report->const_size);
	for (uint32_t i = 0; i < report->n_kernels; i++) {
		fprintf(out, "%s", i ? ", " : "");
		print_kernel(&report->kernels[i], out);
	}
	fprintf(out, "]}");
}

void finding_print_json(const struct finding *finding, FILE *out)
{
	static const char *const kinds[] = {
		[FINDING_PTX] = "ptx",
		[FINDING_CONTAINER] = "fat binary",
		[FINDING_CUBIN] = "cubin",
		[FINDING_STANDIN] = "stand-in",
		[FINDING_OTHER] = "other",
	};

	fprintf(out, "{\"kind\": \"%s\", \"where\": ", kinds[finding->kind]);
	json_string(finding->where, out);
	fprintf(out, ", ");
	print_entries(finding, out);
	fprintf(out, "\"machine_code\": ");
	json_string(finding->machine_code, out);
	fprintf(out, ", \"error\": %d", finding->result);
	if (finding->report)
		print_report(finding->report, out);
	fputc('}', out);
}
