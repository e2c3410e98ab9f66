/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command line of ptxas
 */

#include <stdlib.h>
#include <string.h>

#include "tool/ptxas-options.h"

/* The lowest and the highest architecture of PTX ISA 9.0 whose text softgpu runs. */
#define ARCH_MIN 10u
#define ARCH_MAX 121u

#define DEFAULT_GPU_NAME "sm_75" /* of ptxas 13.0 */

enum effect {
	NONE,
	OUTPUT,
	GPU_NAME,
	VERBOSE,
	QUIET,
	STRICT,
	TEXT,
	HELP,
	VERSION,
};

struct option {
	const char *name;
	const char *abbreviation;
	bool has_value;
	enum effect effect;
};

/* clang-format off */
static const struct option options_known[] = {
	{ "Ofast-compile", "Ofc", true, NONE },
	{ "allow-expensive-optimizations", "allow-expensive-optimizations", true, NONE },
	{ "compile-as-tools-patch", "astoolspatch", false, NONE },
	{ "compile-only", "c", false, NONE },
	{ "compiler-annotations", "annotate", false, NONE },
	{ "def-load-cache", "dlcm", true, NONE },
	{ "def-store-cache", "dscm", true, NONE },
	{ "device-debug", "g", false, NONE },
	{ "device-function-maxrregcount", "func-maxrregcount", true, NONE },
	{ "device-stack-protector", "device-stack-protector", true, NONE },
	{ "disable-optimizer-constants", "disable-optimizer-consts", false, NONE },
	{ "disable-warnings", "w", false, QUIET },
	{ "dont-merge-basicblocks", "no-bb-merge", false, NONE },
	{ "entry", "e", true, NONE },
	{ "extensible-whole-program", "ewp", false, NONE },
	{ "fmad", "fmad", true, NONE },
	{ "force-load-cache", "flcm", true, NONE },
	{ "force-store-cache", "fscm", true, NONE },
	{ "generate-line-info", "lineinfo", false, NONE },
	{ "gpu-name", "arch", true, GPU_NAME },
	{ "help", "h", false, HELP },
	{ "input-as-string", "ias", true, TEXT },
	{ "legacy-bar-warp-wide-behavior", "legacy-bar-warp-wide-behavior", false, NONE },
	{ "machine", "m", true, NONE },
	{ "make-errors-visible-at-exit", "make-errors-visible-at-exit", false, NONE },
	{ "maxntid", "maxntid", true, NONE },
	{ "maxrregcount", "maxrregcount", true, NONE },
	{ "minnctapersm", "minnctapersm", true, NONE },
	{ "opt-level", "O", true, NONE },
	{ "optimize-float-atomics", "opt-fp-atomics", false, NONE },
	{ "output-file", "o", true, OUTPUT },
	{ "override-directive-values", "override-directive-values", false, NONE },
	{ "position-independent-code", "pic", true, NONE },
	{ "preserve-relocs", "preserve-relocs", false, NONE },
	{ "regAllocOptLevel", "regAllocOptLevel", true, NONE },
	{ "register-usage-level", "regUsageLevel", true, NONE },
	{ "return-at-end", "ret-end", false, NONE },
	{ "sanitize", "sanitize", true, NONE },
	{ "sp-bounds-check", "sp-bounds-check", false, NONE },
	{ "split-compile", "split-compile", true, NONE },
	{ "suppress-async-bulk-multicast-advisory-warning",
		"suppress-async-bulk-multicast-advisory-warning", false, NONE },
	{ "suppress-debug-info", "suppress-debug-info", false, NONE },
	{ "suppress-double-demote-warning", "suppress-double-demote-warning", false,
		NONE },
	{ "suppress-sparse-mma-advisory-info", "suppress-sparse-mma-advisory-info", false,
		NONE },
	{ "suppress-stack-size-warning", "suppress-stack-size-warning", false, NONE },
	{ "verbose", "v", false, VERBOSE },
	{ "version", "V", false, VERSION },
	{ "warn-on-double-precision-use", "warn-double-usage", false, NONE },
	{ "warn-on-local-memory-usage", "warn-lmem-usage", false, NONE },
	{ "warn-on-spills", "warn-spills", false, NONE },
	{ "warning-as-error", "Werror", false, STRICT },
};
/* clang-format on */

/* The number of -O3 or -m64; NULL if there is none. */
static const char *attached_number(const char *word)
{
	const bool is_known = word[0] == 'O' || word[0] == 'm';

	return is_known && word[1] && !word[1 + strspn(word + 1, "0123456789")] ? word + 1
										: NULL;
}

/* The word without dashes; *valuep: what follows '=', or an attached number. */
static const struct option *find(const char *word, const char **valuep)
{
	const char *end = strchr(word, '=');
	const size_t length = end ? (size_t)(end - word) : strlen(word);

	*valuep = end ? end + 1 : NULL;
	for (size_t i = 0; i < sizeof(options_known) / sizeof(*options_known); i++) {
		const struct option *option = &options_known[i];

		if ((strlen(option->name) == length &&
			    !strncmp(word, option->name, length)) ||
			(strlen(option->abbreviation) == length &&
				!strncmp(word, option->abbreviation, length)))
			return option;
	}
	*valuep = attached_number(word);
	return *valuep ? find(word[0] == 'O' ? "O" : "m", &(const char *){ NULL }) : NULL;
}

/* sm_90, sm_90a, sm_100f, compute_75. Returns: whether it is a name that is known. */
static bool parse_gpu_name(struct ptxas_options *options)
{
	const char *name = options->gpu_name;
	char *end;

	if (!strncmp(name, "sm_", 3))
		name += 3;
	else if (!strncmp(name, "compute_", 8))
		name += 8;
	else
		return false;
	if (*name < '1' || *name > '9')
		return false;
	options->arch = strtoul(name, &end, 10);
	if ((*end == 'a' || *end == 'f') && options->arch >= 90)
		end++;
	return !*end && options->arch >= ARCH_MIN && options->arch <= ARCH_MAX;
}

static void apply(
	struct ptxas_options *options, const struct option *option, const char *value)
{
	switch (option->effect) {
	case OUTPUT:
		options->output = value;
		return;
	case GPU_NAME:
		options->gpu_name = value;
		return;
	case TEXT:
		options->text = value;
		return;
	case VERBOSE:
		options->verbose = true;
		return;
	case QUIET:
		options->quiet = true;
		return;
	case STRICT:
		options->strict = true;
		return;
	case HELP:
		options->help = true;
		return;
	case VERSION:
		options->version = true;
		return;
	case NONE:
		return;
	}
}

/* Returns: NULL, or why not; *ip is moved past a value. */
static const char *parse_word(
	struct ptxas_options *options, int argc, char **argv, int *ip)
{
	const char *word = argv[*ip], *value;
	const struct option *option;

	if (word[0] != '-') {
		if (options->input)
			return "More than one input file";
		options->input = word;
		return NULL;
	}
	word += word[1] == '-' ? 2 : 1;
	option = find(word, &value);
	if (!option)
		return "Unknown option";
	if (option->has_value && !value) {
		if (*ip + 1 == argc)
			return "Argument expected after";
		value = argv[++*ip];
	} else if (!option->has_value && value) {
		return "No argument expected by";
	}
	apply(options, option, value);
	return NULL;
}

const char *ptxas_options_parse(
	struct ptxas_options *options, int argc, char **argv, const char **wordp)
{
	const char *reason = NULL;

	*options =
		(struct ptxas_options){ .output = "elf.o", .gpu_name = DEFAULT_GPU_NAME };
	*wordp = "";
	for (int i = 1; i < argc && !reason; i++) {
		*wordp = argv[i];
		reason = parse_word(options, argc, argv, &i);
	}
	if (reason || options->help || options->version)
		return reason;
	*wordp = options->gpu_name;
	if (!parse_gpu_name(options))
		return "No known architecture is";
	*wordp = "";
	return options->input || options->text ? NULL : "No input file";
}
