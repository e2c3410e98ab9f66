/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpuctl: shows and changes what vgpud does
 */

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/output.h"
#include "vgpu/log.h"

static const char help[] =
	"Usage: vgpuctl [OPTION]... VERB [OPTION]... [ARGUMENT]...\n"
	"Shows and changes what vgpud does.\n"
	"\n"
	"  list               the virtual machines and their use\n"
	"  show VM            one of them: its settings and processes\n"
	"  set VM KEY=VALUE...    change settings of one\n"
	"  logs VM            the lines of the log about one\n"
	"  log-level LEVEL    change the level of the log\n"
	"  version            of vgpuctl and vgpud\n"
	"\n"
	"      --socket PATH  where vgpud serves (default " CTL_SOCKET ")\n"
	"      --json         print JSON\n"
	"  -h, --help         print this, or the help of a verb, and exit\n"
	"  -V, --version      print the version and exit\n"
	"\n"
	"Exit status: 0 done; 1 it failed; 2 wrong command line; 3 vgpud cannot be\n"
	"reached; 4 you may not; 5 there is no such virtual machine; 6 a value or a "
	"file\n"
	"is wrong, nothing was changed.\n";

static const struct ctl_verb verbs[] = {
	{ "list", "", "Lists the virtual machines of vgpud and their use.\n", 0, 0,
		ctl_list },
	{ "show", " VM", "Shows use, settings and processes of a virtual machine.\n", 1,
		1, ctl_show },
	{ "set", " [--persistent] VM KEY=VALUE...",
		"Changes settings in the running vgpud, all or none; without a value: "
		"to\n"
		"the default. 'vgpuctl show VM' marks those that can change.\n"
		"\n"
		"      --persistent  also in the file of the virtual machine, "
		"vm.d/VM.conf;\n"
		"                    without it, until vgpud reads its files again\n",
		2, -1, ctl_set },
	{ "logs", " VM",
		"Prints the lines of vgpud's log about a virtual machine: of its "
		"log-file,\n"
		"or of the journal.\n",
		1, 1, ctl_logs },
	{ "log-level", " none|error|warning|info|debug",
		"Changes the level of the running vgpud's log until it reads its files\n"
		"again.\n",
		1, 1, ctl_log_level },
	{ "version", "", "Prints the versions of vgpuctl and vgpud, and your rights.\n",
		0, 0, ctl_version },
};

enum {
	OPTION_JSON = 256,
	OPTION_PERSISTENT,
	OPTION_SOCKET,
};

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "persistent", no_argument, NULL, OPTION_PERSISTENT },
	{ "socket", required_argument, NULL, OPTION_SOCKET },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static const struct ctl_verb *find_verb(const char *name)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

static int usage(const struct ctl_verb *verb)
{
	fprintf(stderr, "Try 'vgpuctl %s%s--help'.\n", verb ? verb->name : "",
		verb ? " " : "");
	return CTL_USAGE;
}

static int print_help(const struct ctl_verb *verb)
{
	if (!verb)
		fputs(help, stdout);
	else
		printf("Usage: vgpuctl [--socket PATH] [--json] %s%s\n%s", verb->name,
			verb->synopsis, verb->help);
	return output_end(CTL_OK);
}

static int run(const struct ctl_verb *verb, const struct ctl_options *options,
	int n_arguments, char **arguments)
{
	if (options->is_persistent && verb->run != ctl_set) {
		ctl_fail(CTL_USAGE, "%s has no --persistent", verb->name);
		return usage(verb);
	}
	if (n_arguments < verb->n_min) {
		ctl_fail(CTL_USAGE, "%s needs%s", verb->name, verb->synopsis);
		return usage(verb);
	}
	if (verb->n_max >= 0 && n_arguments > verb->n_max) {
		ctl_fail(CTL_USAGE, "unexpected argument '%s'", arguments[verb->n_max]);
		return usage(verb);
	}
	return (int)verb->run(options, arguments);
}

/* Options may be before the verb, behind it, and behind its arguments. */
int main(int argc, char **argv)
{
	struct ctl_options options = { .socket = CTL_SOCKET };
	const struct ctl_verb *verb;
	bool wants_help = false;
	int option;

	vgpu_log_init("vgpuctl", VGPU_LOG_NONE);
	signal(SIGPIPE, SIG_IGN);
	while ((option = getopt_long(argc, argv, "hV", long_options, NULL)) != -1) {
		switch (option) {
		case 'h':
			wants_help = true;
			break;
		case 'V':
			puts("vgpuctl " VGPUD_VERSION);
			return output_end(CTL_OK);
		case OPTION_JSON:
			options.is_json = true;
			break;
		case OPTION_PERSISTENT:
			options.is_persistent = true;
			break;
		case OPTION_SOCKET:
			options.socket = optarg;
			break;
		default:
			return usage(NULL);
		}
	}
	if (optind == argc)
		return wants_help ? print_help(NULL) : usage(NULL);
	verb = find_verb(argv[optind]);
	if (!verb) {
		ctl_fail(CTL_USAGE, "unexpected argument '%s'", argv[optind]);
		return usage(NULL);
	}
	if (wants_help)
		return print_help(verb);
	return run(verb, &options, argc - optind - 1, argv + optind + 1);
}
