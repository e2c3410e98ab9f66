/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the command line of ptxas
 */

#include <string.h>

#include "test.h"
#include "tool/ptxas-options.h"

#define PARSE(_options, _word, ...)                                                      \
	parse(_options, _word, (char *[]){ "ptxas", __VA_ARGS__, NULL })

static const char *parse(struct ptxas_options *options, const char **wordp, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	return ptxas_options_parse(options, argc, argv, wordp);
}

TEST(command_line_of_triton_is_accepted)
{
	struct ptxas_options o;
	const char *word;

	check(!PARSE(&o, &word, "-lineinfo", "-suppress-debug-info", "--fmad=false", "-v",
		"--opt-level", "0", "--regAllocOptLevel=2", "--gpu-name=sm_121a",
		"/tmp/a.ptx", "-o", "/tmp/a.ptx.o"));
	check_str(o.input, "/tmp/a.ptx");
	check_str(o.output, "/tmp/a.ptx.o");
	check_str(o.gpu_name, "sm_121a");
	check_eq(o.arch, 121);
	check(o.verbose && !o.quiet && !o.strict);
}

TEST(values_follow_in_each_way)
{
	struct ptxas_options o;
	const char *word;

	check(!PARSE(&o, &word, "a", "-arch", "sm_90", "-O3", "-O", "2", "-m=64", "-w"));
	check_eq(o.arch, 90);
	check(o.quiet);
	check(!PARSE(&o, &word, "a", "-arch=compute_75", "--output-file=b"));
	check_eq(o.arch, 75);
	check_str(o.output, "b");
	/* As nvcc calls it. */
	check(!PARSE(&o, &word, "-arch=sm_90", "-m64", "a"));
	check_str(o.input, "a");
	check(PARSE(&o, &word, "-m64x", "a"));
}

TEST(defaults_are_those_of_ptxas)
{
	struct ptxas_options o;
	const char *word;

	check(!PARSE(&o, &word, "a.ptx"));
	check_str(o.output, "elf.o");
	check_eq(o.arch, 75);
	check(!PARSE(&o, &word, "-ias", ".version 9.0"));
	check_str(o.text, ".version 9.0");
	check(!o.input);
}

TEST(help_and_version_need_no_file)
{
	struct ptxas_options o;
	const char *word;

	check(!PARSE(&o, &word, "--version") && o.version);
	check(!PARSE(&o, &word, "-V") && o.version);
	check(!PARSE(&o, &word, "-h") && o.help);
}

TEST(wrong_words_are_named)
{
	struct ptxas_options o;
	const char *word;

	check_str(PARSE(&o, &word, "a", "--foo"), "Unknown option");
	check_str(word, "--foo");
	check_str(PARSE(&o, &word, "a", "-o"), "Argument expected after");
	check_str(PARSE(&o, &word, "a", "-v=1"), "No argument expected by");
	check_str(PARSE(&o, &word, "a", "b"), "More than one input file");
	check_str(word, "b");
	check_str(PARSE(&o, &word, "-v"), "No input file");
	check_str(PARSE(&o, &word, "a", "-"), "Unknown option");
	check_str(PARSE(&o, &word, "a", "--"), "Unknown option");
}

TEST(wrong_architectures_are_named)
{
	static char *const names[] = { "sm_", "sm_9x", "sm_122", "sm_1", "sm_75a",
		"sm_-90", "sm_+90", "gfx90", "sm_99999999999999999999", "" };
	struct ptxas_options o;
	const char *word;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		check_str(PARSE(&o, &word, "a", "-arch", names[i]),
			"No known architecture is");
		check_str(word, names[i]);
	}
}
