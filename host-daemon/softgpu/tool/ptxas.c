/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-ptxas: takes the place of ptxas where softgpu runs the code
 *
 * Its messages have the form of those of ptxas, because compilers search them.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/cleanup.h"

#include "fatbin/standin.h"
#include "tool/file.h"
#include "tool/ptxas-options.h"
#include "tool/report.h"

#define EXIT_FATAL 255 /* of ptxas; the clients compare it */

static const char help[] =
	"Usage: vgpu-ptxas [OPTION]... FILE\n"
	"Takes the place of ptxas for softgpu: checks the PTX in FILE and puts it into "
	"an\n"
	"ELF file, which only softgpu can load.\n"
	"\n"
	"      --gpu-name sm_NN   (-arch) the architecture (default: sm_75)\n"
	"      --output-file F    (-o) the file to write (default: elf.o)\n"
	"      --input-as-string TEXT  (-ias) PTX in place of FILE\n"
	"  -v, --verbose          print the sizes of each kernel\n"
	"  -w, --disable-warnings  do not say which kernels softgpu does not run\n"
	"      --warning-as-error  (-Werror) fail if softgpu does not run a kernel\n"
	"  -h, --help             print this and exit\n"
	"  -V, --version          print the version and exit\n"
	"\n"
	"The other options of ptxas 13.0 are accepted and have no effect.\n"
	"Exit status: 0, or 255 if nothing was written.\n";

/* Clients take the version of PTX that they write from the release. */
static const char version[] =
	"Stand-in for ptxas of release 13.0, V13.0.0: keeps PTX for softgpu\n"
	"vgpu-ptxas " VGPU_VERSION "\n";

static int __attribute__((__format__(__printf__, 1, 2))) fatal(const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "ptxas fatal   : ");
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	return EXIT_FATAL;
}

static void print_sizes(const struct report *report, const struct ptxas_options *options)
{
	fprintf(stderr, "ptxas info    : %llu bytes gmem, %llu bytes cmem[3]\n",
		(unsigned long long)report->global_size,
		(unsigned long long)report->const_size);
	for (uint32_t i = 0; i < report->n_kernels; i++) {
		const struct report_kernel *kernel = &report->kernels[i];

		fprintf(stderr,
			"ptxas info    : Compiling entry function '%s' for '%s'\n"
			"ptxas info    : Function properties for %s\n"
			"    %u bytes stack frame, 0 bytes spill stores, 0 bytes spill "
			"loads\n"
			"ptxas info    : Used %u registers, used %u barriers, %u bytes "
			"smem\n",
			kernel->name, options->gpu_name, kernel->name, kernel->local_size,
			kernel->n_registers, kernel->uses_barriers, kernel->shared_size);
	}
}

/* Returns: whether there was anything to warn of. */
static bool print_warnings(const struct report *report, const char *name, bool strict)
{
	bool any = false;

	for (uint32_t i = 0; i < report->n_kernels; i++) {
		const struct report_kernel *kernel = &report->kernels[i];

		for (uint32_t k = 0; k < kernel->n_refusals; k++) {
			fprintf(stderr,
				"ptxas %s, line %u; %s : softgpu does not run %s: %s\n",
				name, kernel->refusals[k].line,
				strict ? "error  " : "warning", kernel->name,
				kernel->refusals[k].text);
			any = true;
		}
	}
	return any;
}

/* The lines of STANDIN_KERNELS. Returns: NULL: no memory. */
static char *describe(const struct report *report)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (uint32_t i = 0; i < report->n_kernels; i++) {
		const struct report_kernel *kernel = &report->kernels[i];

		fprintf(out, "%s registers %u shared %u local %u parameters %u\n",
			kernel->name, kernel->n_registers, kernel->shared_size,
			kernel->local_size, kernel->params_size);
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* A file that is incomplete is removed. */
static int write_file(const char *path, const uint8_t *bytes, size_t size)
{
	FILE *file = fopen(path, "wbe");
	bool failed;

	if (!file)
		return -errno;
	failed = fwrite(bytes, 1, size, file) != size;
	failed |= fclose(file) != 0;
	if (failed) {
		unlink(path);
		return -EIO;
	}
	return 0;
}

static int write_standin(const struct report *report, const char *text, size_t size,
	const struct ptxas_options *options)
{
	_vgpu_cleanup_(vgpu_freep) char *kernels = describe(report);
	_vgpu_cleanup_(vgpu_freep) uint8_t *bytes = NULL;
	size_t bytes_size;
	int r;

	if (!kernels ||
		standin_new(options->arch, text, size, kernels, &bytes, &bytes_size))
		return fatal("Memory allocation failure");
	r = write_file(options->output, bytes, bytes_size);
	if (r)
		return fatal("Output file '%s' could not be written: %s", options->output,
			strerror(-r));
	return EXIT_SUCCESS;
}

static int refuse(const struct report *report, const char *name)
{
	if (report->error.line)
		fprintf(stderr, "ptxas %s, line %u; error   : %s\n", name,
			report->error.line, report->error.message);
	else
		fatal("%s", report->error.message);
	return fatal("Ptx assembly aborted due to errors");
}

static int assemble(const char *text, size_t size, const char *name,
	const struct ptxas_options *options)
{
	_vgpu_cleanup_(report_freep) struct report *report = NULL;

	size = strnlen(text, size);
	if (report_new(&report, text, size, options->arch))
		return fatal("Memory allocation failure");
	if (report->result)
		return refuse(report, name);
	if ((!options->quiet || options->strict) &&
		print_warnings(report, name, options->strict) && options->strict)
		return fatal("Ptx assembly aborted due to errors");
	if (options->verbose)
		print_sizes(report, options);
	return write_standin(report, text, size, options);
}

int main(int argc, char **argv)
{
	struct ptxas_options options;
	_vgpu_cleanup_(vgpu_freep) uint8_t *bytes = NULL;
	const char *reason, *word;
	size_t size;
	int r;

	reason = ptxas_options_parse(&options, argc, argv, &word);
	if (reason)
		return *word ? fatal("%s '%s'", reason, word) : fatal("%s", reason);
	if (options.help || options.version) {
		fputs(options.help ? help : version, stdout);
		return EXIT_SUCCESS;
	}
	if (options.text)
		return assemble(options.text, strlen(options.text), "<string>", &options);
	r = file_read(options.input, &bytes, &size);
	if (r)
		return fatal("Input file '%s' could not be opened: %s", options.input,
			strerror(-r));
	return assemble((const char *)bytes, size, options.input, &options);
}
