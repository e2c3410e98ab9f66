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
	"  pause VM           keep the devices from it\n"
	"  resume VM          give it its device time again\n"
	"  attach DOMAIN      give a domain of libvirt a device\n"
	"  detach DOMAIN      take it away\n"
	"  hook DOMAIN OPERATION  what libvirt calls when a domain starts and ends\n"
	"  doctor             look for what this host or a guest lacks\n"
	"  logs VM            the lines of the log about one\n"
	"  log-level LEVEL    change the level of the log\n"
	"  record VM          write all calls of a process to a file\n"
	"  stats VM           how long calls took\n"
	"  top [VM]           who uses the devices, again and again\n"
	"  trace VM           write what its processes do to a file\n"
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
	"is wrong, nothing was changed; 7 it is done, but the guest has not greeted "
	"within\n"
	"the time of --wait.\n";

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
	{ "pause", " [--persistent] VM",
		"Stops the kernels of a virtual machine: the same as set VM paused=yes. "
		"Its\n"
		"programs wait, and go on after 'vgpuctl resume VM'.\n"
		"\n"
		"      --persistent  also in its file, vm.d/VM.conf\n",
		1, 1, ctl_pause },
	{ "resume", " [--persistent] VM",
		"Has the kernels of a virtual machine run again: the same as set VM\n"
		"paused=no.\n"
		"\n"
		"      --persistent  also in its file, vm.d/VM.conf\n",
		1, 1, ctl_resume },
	{ "attach",
		" [--vram SIZE] [--size SIZE] [--config] [--wait SECONDS] "
		"[--connect URI] DOMAIN",
		"Gives a domain of libvirt a device: adds a virtual machine of its name "
		"to\n"
		"vgpud, with a file vm.d/DOMAIN.conf, and the device to the domain, as "
		"it is\n"
		"defined and as it runs. What is there already stays as it is.\n"
		"\n"
		"      --vram SIZE    limit of its device memory (default: none)\n"
		"      --size SIZE    its shared memory (default: 4G)\n"
		"      --config       not in the running domain, from its next start on\n"
		"      --wait SECONDS  how long to wait until the guest of a running "
		"domain has\n"
		"                     greeted, 0: not at all (default: " CTL_WAIT ")\n"
		"      --connect URI  of libvirt\n",
		1, 1, ctl_attach },
	{ "detach", " [--connect URI] DOMAIN",
		"Takes the device away again, with the file and the virtual machine. "
		"What is\n"
		"gone already is left out.\n"
		"\n"
		"      --connect URI  of libvirt\n",
		1, 1, ctl_detach },
	{ "hook", " DOMAIN OPERATION [WORD...]",
		"What libvirt calls as a hook of QEMU, with the domain's XML on "
		"standard input:\n"
		"for 'prepare' it gives a domain with a device of vgpud a virtual "
		"machine there,\n"
		"and for 'release' it removes that again. Other operations do "
		"nothing.\n",
		2, -1, ctl_hook },
	{ "doctor", " [--guest [VM]]",
		"Looks at this host and its vgpud, changes nothing, and prints for each\n"
		"subject ok, WARN or FAIL and what to do. The status is 1 if anything "
		"fails.\n"
		"\n"
		"      --guest VM     look at a virtual machine, as its host sees it\n"
		"      --guest        in a virtual machine: run vgpu-doctor, which looks "
		"at it\n",
		0, 1, ctl_doctor },
	{ "logs", " VM",
		"Prints the lines of vgpud's log about a virtual machine: of its "
		"log-file,\n"
		"or of the journal.\n",
		1, 1, ctl_logs },
	{ "log-level", " none|error|warning|info|debug",
		"Changes the level of the running vgpud's log until it reads its files\n"
		"again.\n",
		1, 1, ctl_log_level },
	{ "record",
		" --output FILE [--process PID] [--command NAME] [--seconds SECONDS]\n"
		"       [--size SIZE] VM",
		"Waits for the next process of a virtual machine that uses the device, "
		"and writes\n"
		"all its calls, with the memory that they read, to a file. vgpu-replay "
		"runs them\n"
		"again. The file has the data of that process.\n"
		"\n"
		"  -o, --output FILE  which is written\n"
		"      --process PID  wait for this process of the guest\n"
		"      --command NAME  wait for a process of this name\n"
		"      --seconds SECONDS  how long (default: to the end of the process)\n"
		"      --size SIZE    of the file at most (default: " CTL_RECORD ")\n",
		1, 1, ctl_record },
	{ "stats", " [--process PID] [--call NAME] [--sort COLUMN] VM",
		"Shows for each call of a virtual machine how often it was made and how "
		"long it\n"
		"took in the workers: half of them at most P50, and so on. Calls of "
		"processes\n"
		"that have ended count, too.\n"
		"\n"
		"      --process PID  only of this process of the guest, which runs\n"
		"      --call NAME    only calls whose name begins so\n"
		"      --sort COLUMN  time, count, p50, p90, p99, max or name\n",
		1, 1, ctl_stats },
	{ "top", " [--once] [--interval SECONDS] [--sort COLUMN] [VM]",
		"Shows who uses the devices: each virtual machine and each process, "
		"with what\n"
		"it does in a second. Keys: q quits, s sorts by the next column, i "
		"hides\n"
		"processes that do nothing, m hides the machines, p the processes.\n"
		"\n"
		"      --once         print it once; --json does, too\n"
		"      --interval SECONDS  between two looks (default: " CTL_INTERVAL
		")\n"
		"      --sort COLUMN  busy, launches, copies, memory, host or name\n",
		0, 1, ctl_top },
	{ "trace", " --output FILE [--seconds SECONDS] [--merge FILE] VM",
		"Records what the processes of a virtual machine do: their calls, by "
		"whom and\n"
		"when each was run, and what softgpu does. The file is for "
		"ui.perfetto.dev\n"
		"and for chrome://tracing.\n"
		"\n"
		"  -o, --output FILE  which is written\n"
		"      --merge FILE   also show the calls in this file, which a program "
		"in "
		"the\n"
		"                     machine writes with VGPU_TRACE\n"
		"      --seconds SECONDS  how long (default: " CTL_TRACE ")\n",
		1, 1, ctl_trace },
	{ "version", "", "Prints the versions of vgpuctl and vgpud, and your rights.\n",
		0, 0, ctl_version },
};

enum {
	OPTION_CALL = 256,
	OPTION_COMMAND,
	OPTION_CONFIG,
	OPTION_CONNECT,
	OPTION_GUEST,
	OPTION_INTERVAL,
	OPTION_JSON,
	OPTION_MERGE,
	OPTION_ONCE,
	OPTION_PERSISTENT,
	OPTION_PROCESS,
	OPTION_SECONDS,
	OPTION_SIZE,
	OPTION_SOCKET,
	OPTION_SORT,
	OPTION_VRAM,
	OPTION_WAIT,
};

static const struct option long_options[] = {
	{ "call", required_argument, NULL, OPTION_CALL },
	{ "command", required_argument, NULL, OPTION_COMMAND },
	{ "config", no_argument, NULL, OPTION_CONFIG },
	{ "connect", required_argument, NULL, OPTION_CONNECT },
	{ "guest", no_argument, NULL, OPTION_GUEST },
	{ "help", no_argument, NULL, 'h' },
	{ "interval", required_argument, NULL, OPTION_INTERVAL },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "merge", required_argument, NULL, OPTION_MERGE },
	{ "once", no_argument, NULL, OPTION_ONCE },
	{ "output", required_argument, NULL, 'o' },
	{ "persistent", no_argument, NULL, OPTION_PERSISTENT },
	{ "process", required_argument, NULL, OPTION_PROCESS },
	{ "seconds", required_argument, NULL, OPTION_SECONDS },
	{ "size", required_argument, NULL, OPTION_SIZE },
	{ "socket", required_argument, NULL, OPTION_SOCKET },
	{ "sort", required_argument, NULL, OPTION_SORT },
	{ "version", no_argument, NULL, 'V' },
	{ "vram", required_argument, NULL, OPTION_VRAM },
	{ "wait", required_argument, NULL, OPTION_WAIT },
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

/* Return: an option that the verb does not have, or NULL. */
static const char *find_alien(
	const struct ctl_verb *verb, const struct ctl_options *options)
{
	const bool is_attach = verb->run == ctl_attach, is_top = verb->run == ctl_top;
	const bool is_stats = verb->run == ctl_stats;
	const bool is_set =
		verb->run == ctl_set || verb->run == ctl_pause || verb->run == ctl_resume;
	const bool is_record = verb->run == ctl_record;
	const struct {
		const char *name;
		bool is_given, is_known;
	} given[] = {
		{ "call", options->call, is_stats },
		{ "command", options->command, is_record },
		{ "config", options->is_config_only, is_attach },
		{ "connect", options->uri, is_attach || verb->run == ctl_detach },
		{ "guest", options->is_guest, verb->run == ctl_doctor },
		{ "interval", options->interval, is_top },
		{ "merge", options->merge, verb->run == ctl_trace },
		{ "once", options->is_once, is_top },
		{ "output", options->output, verb->run == ctl_trace || is_record },
		{ "persistent", options->is_persistent, is_set },
		{ "process", options->process, is_stats || is_record },
		{ "seconds", options->seconds, verb->run == ctl_trace || is_record },
		{ "size", options->size, is_attach || is_record },
		{ "sort", options->sort, is_top || is_stats },
		{ "vram", options->vram, is_attach },
		{ "wait", options->wait, is_attach },
	};

	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++)
		if (given[i].is_given && !given[i].is_known)
			return given[i].name;
	return NULL;
}

static int run(const struct ctl_verb *verb, const struct ctl_options *options,
	int n_arguments, char **arguments)
{
	const char *alien = find_alien(verb, options);
	int n_max = verb->n_max;

	if (alien) {
		ctl_fail(CTL_USAGE, "%s has no --%s", verb->name, alien);
		return usage(verb);
	}
	if (n_arguments < verb->n_min) {
		ctl_fail(CTL_USAGE, "%s needs%s", verb->name, verb->synopsis);
		return usage(verb);
	}
	/* Only with that option the verb has an argument. */
	if (verb->run == ctl_doctor && !options->is_guest)
		n_max = 0;
	if (n_max >= 0 && n_arguments > n_max) {
		ctl_fail(CTL_USAGE, "unexpected argument '%s'", arguments[n_max]);
		return usage(verb);
	}
	return (int)verb->run(options, arguments);
}

/* Return: false for one that prints or is unknown. */
static bool take_option(struct ctl_options *options, int option)
{
	switch (option) {
	case OPTION_CALL:
		options->call = optarg;
		return true;
	case OPTION_COMMAND:
		options->command = optarg;
		return true;
	case OPTION_CONFIG:
		options->is_config_only = true;
		return true;
	case OPTION_CONNECT:
		options->uri = optarg;
		return true;
	case OPTION_GUEST:
		options->is_guest = true;
		return true;
	case OPTION_INTERVAL:
		options->interval = optarg;
		return true;
	case OPTION_JSON:
		options->is_json = true;
		return true;
	case OPTION_MERGE:
		options->merge = optarg;
		return true;
	case OPTION_ONCE:
		options->is_once = true;
		return true;
	case 'o':
		options->output = optarg;
		return true;
	case OPTION_PERSISTENT:
		options->is_persistent = true;
		return true;
	case OPTION_PROCESS:
		options->process = optarg;
		return true;
	case OPTION_SECONDS:
		options->seconds = optarg;
		return true;
	case OPTION_SIZE:
		options->size = optarg;
		return true;
	case OPTION_SOCKET:
		options->socket = optarg;
		return true;
	case OPTION_SORT:
		options->sort = optarg;
		return true;
	case OPTION_VRAM:
		options->vram = optarg;
		return true;
	case OPTION_WAIT:
		options->wait = optarg;
		return true;
	default:
		return false;
	}
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
	while ((option = getopt_long(argc, argv, "hVo:", long_options, NULL)) != -1) {
		if (option == 'h') {
			wants_help = true;
		} else if (option == 'V') {
			puts("vgpuctl " VGPUD_VERSION);
			return output_end(CTL_OK);
		} else if (!take_option(&options, option)) {
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
