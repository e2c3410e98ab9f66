/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding as text
 */

#include <stdlib.h>

#include "tool/finding.h"

/* Names come from the file: only printable characters reach a terminal. */
static void print_safely(const char *text, FILE *out)
{
	for (; *text; text++)
		fputc(*text >= ' ' && *text <= '~' ? *text : '?', out);
}

static void print_target(uint32_t arch, char suffix, FILE *out)
{
	fprintf(out, "sm_%u", arch);
	if (suffix)
		fputc(suffix, out);
}

static void print_entries(const struct finding *finding, FILE *out)
{
	for (uint32_t i = 0; i < finding->n_entries; i++) {
		const struct finding_entry *entry = &finding->entries[i];

		fprintf(out, "%s", i ? ", " : ": ");
		if (entry->kind == FATBIN_KIND_PTX)
			fprintf(out, "PTX %u.%u for ", entry->version / 10,
				entry->version % 10);
		else if (entry->is_standin)
			fprintf(out, "stand-in with PTX for ");
		else if (entry->kind == FATBIN_KIND_CUBIN)
			fprintf(out, "machine code for ");
		else
			fprintf(out, "kind %u for ", entry->kind);
		print_target(entry->arch, entry->suffix, out);
	}
}

static void print_image(const struct finding *finding, FILE *out)
{
	static const char *const kinds[] = {
		[FINDING_PTX] = "PTX",
		[FINDING_CONTAINER] = "fat binary",
		[FINDING_CUBIN] = "cubin",
		[FINDING_STANDIN] = "stand-in for a cubin, with PTX",
		[FINDING_OTHER] = "neither PTX nor a fat binary nor a cubin",
	};

	fprintf(out, "%s", kinds[finding->kind]);
	if (*finding->where) {
		fprintf(out, " at ");
		print_safely(finding->where, out);
	}
	print_entries(finding, out);
	if (finding->kind == FINDING_CUBIN && *finding->machine_code)
		fprintf(out, ": %s", finding->machine_code);
	fputc('\n', out);
}

static void print_kernel(const struct report_kernel *kernel, FILE *out)
{
	fprintf(out, "  kernel ");
	print_safely(kernel->name, out);
	if (!kernel->result) {
		fprintf(out,
			": runs; %u registers, %u bytes shared, %u local, %u "
			"parameters\n",
			kernel->n_registers, kernel->shared_size, kernel->local_size,
			kernel->params_size);
		return;
	}
	fprintf(out, ": does not run (CUDA error %d)\n", kernel->result);
	for (uint32_t i = 0; i < kernel->n_refusals; i++) {
		if (kernel->refusals[i].line)
			fprintf(out, "    line %u: ", kernel->refusals[i].line);
		else
			fprintf(out, "    ");
		print_safely(kernel->refusals[i].text, out);
		fputc('\n', out);
	}
	if (kernel->n_refusals == REPORT_REFUSALS_MAX)
		fprintf(out, "    and perhaps others\n");
}

static void print_report(const struct report *report, FILE *out)
{
	if (report->result) {
		fprintf(out, "  the PTX is refused (CUDA error %d): ", report->result);
		if (report->error.line)
			fprintf(out, "line %u: ", report->error.line);
		print_safely(report->error.message, out);
		fputc('\n', out);
		return;
	}
	fprintf(out, "  PTX %u.%u for ", report->version / 10, report->version % 10);
	print_target(report->target, report->target_kind, out);
	fprintf(out, ", %llu bytes of global and %llu of constant variables\n",
		(unsigned long long)report->global_size,
		(unsigned long long)report->const_size);
	for (uint32_t i = 0; i < report->n_kernels; i++)
		print_kernel(&report->kernels[i], out);
}

void finding_print(const struct finding *finding, FILE *out)
{
	print_image(finding, out);
	if (finding->report)
		print_report(finding->report, out);
	else if (finding->result == 209)
		fprintf(out, "  no PTX that this device can run: softgpu runs no machine "
			     "code\n");
	else if (finding->result == 222)
		fprintf(out, "  its PTX is newer than PTX ISA %u.%u\n",
			PTX_VERSION_MAX / 10, PTX_VERSION_MAX % 10);
	else
		fprintf(out, "  the image is damaged (CUDA error %d)\n", finding->result);
}
