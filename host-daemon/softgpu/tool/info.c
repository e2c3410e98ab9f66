/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-softgpu-info: what the device code of a file needs, and whether softgpu runs it
 */

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/finding.h"

#define EXIT_USAGE 125
#define DEFAULT_CC 121u /* softgpu-cc of vgpud.conf */

static const char help[] =
	"Usage: vgpu-softgpu-info [OPTION]... FILE\n"
	"Prints the device code of FILE and whether softgpu runs it, kernel by kernel.\n"
	"FILE is PTX, a fat binary, a cubin, or an ELF file with fat binaries: a "
	"program,\n"
	"a library or an object file.\n"
	"\n"
	"  -c, --cc N.N   the compute capability of the device (default: 12.1)\n"
	"  -j, --json     print JSON\n"
	"  -h, --help     print this and exit\n"
	"  -V, --version  print the version and exit\n"
	"\n"
	"Exit status:\n"
	"  0    every kernel runs\n"
	"  1    some kernel does not run\n"
	"  2    an image without PTX that the device can run, such as machine code "
	"alone\n"
	"  3    the device code is damaged, or there is none\n"
	"  125  wrong command line, or FILE cannot be read\n";

struct options {
	const char *file;
	unsigned int cc;
	bool json;
};

/* 12.1 or 9.0, one digit after the point. Returns: false for anything else. */
static bool parse_cc(const char *text, unsigned int *ccp)
{
	unsigned int major, minor;
	int n = 0;

	if (sscanf(text, "%2u.%1u%n", &major, &minor, &n) != 2 || text[n] || !major)
		return false;
	*ccp = major * 10 + minor;
	return true;
}

/* Returns: whether the program goes on; else its exit status in *statusp. */
static bool parse(int argc, char **argv, struct options *options, int *statusp)
{
	static const struct option longs[] = {
		{ "cc", required_argument, NULL, 'c' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	int c;

	*statusp = EXIT_USAGE;
	while ((c = getopt_long(argc, argv, "c:jhV", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			if (!parse_cc(optarg, &options->cc)) {
				fprintf(stderr,
					"vgpu-softgpu-info: %s is no compute "
					"capability\n",
					optarg);
				return false;
			}
			break;
		case 'j':
			options->json = true;
			break;
		case 'h':
			*statusp = EXIT_SUCCESS;
			fputs(help, stdout);
			return false;
		case 'V':
			*statusp = EXIT_SUCCESS;
			puts("vgpu-softgpu-info " VGPU_VERSION);
			return false;
		default:
			return false;
		}
	}
	if (optind != argc - 1) {
		fprintf(stderr, "vgpu-softgpu-info: %s; see --help\n",
			optind == argc ? "no file" : "more than one file");
		return false;
	}
	options->file = argv[optind];
	return true;
}

static void begin(const struct options *options)
{
	if (!options->json)
		return;
	printf("{\"file\": ");
	json_string(options->file, stdout);
	printf(", \"cc\": \"%u.%u\", \"images\": [", options->cc / 10, options->cc % 10);
}

struct totals {
	enum verdict verdict; /* the worst of all images */
	unsigned int n_images;
	unsigned int n_kernels;
	unsigned int n_running;
};

static void add(struct totals *totals, const struct finding *finding)
{
	enum verdict verdict = finding_verdict(finding);

	if (verdict > totals->verdict)
		totals->verdict = verdict;
	totals->n_images++;
	if (finding->report) {
		totals->n_kernels += finding->report->n_kernels;
		totals->n_running += finding->report->n_running;
	}
}

static void end(const struct options *options, struct totals *totals)
{
	static const char *const texts[] = {
		[VERDICT_RUNS] = "every kernel runs",
		[VERDICT_PARTLY] = "not every kernel runs",
		[VERDICT_NO_PTX] = "not every image has PTX that the device can run",
		[VERDICT_DAMAGED] = "device code is damaged",
	};
	const char *text = texts[totals->verdict];

	if (!totals->n_images) {
		totals->verdict = VERDICT_DAMAGED;
		text = "there is no device code";
	}
	if (options->json)
		printf("], \"kernels\": %u, \"running\": %u, \"status\": %d, "
		       "\"verdict\": \"%s\"}\n",
			totals->n_kernels, totals->n_running, totals->verdict, text);
	else
		printf("%u images, %u kernels, %u of them run: %s\n", totals->n_images,
			totals->n_kernels, totals->n_running, text);
}

static int examine(struct source *source, const struct options *options)
{
	struct totals totals = { 0 };
	struct source_image image;

	begin(options);
	while (source_next(source, &image)) {
		struct finding finding;
		int r = finding_init(&finding, &image, options->cc);

		if (r) {
			finding_deinit(&finding);
			fprintf(stderr, "vgpu-softgpu-info: %s\n", strerror(-r));
			return EXIT_USAGE;
		}
		if (options->json) {
			printf("%s", totals.n_images ? ",\n" : "\n");
			finding_print_json(&finding, stdout);
		} else {
			finding_print(&finding, stdout);
		}
		add(&totals, &finding);
		finding_deinit(&finding);
	}
	end(options, &totals);
	return totals.verdict;
}

int main(int argc, char **argv)
{
	struct options options = { .cc = DEFAULT_CC };
	struct source source;
	int status, r;

	if (!parse(argc, argv, &options, &status))
		return status;
	r = source_init(&source, options.file);
	if (r) {
		fprintf(stderr, "vgpu-softgpu-info: %s: %s\n", options.file,
			strerror(-r));
		return EXIT_USAGE;
	}
	status = examine(&source, &options);
	source_deinit(&source);
	if (fflush(stdout) || ferror(stdout)) {
		perror("vgpu-softgpu-info");
		return EXIT_USAGE;
	}
	return status;
}
