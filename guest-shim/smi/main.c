/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-smi: shows what NVML says about the devices
 */

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "smi/csv.h"
#include "smi/field.h"
#include "smi/library.h"
#include "smi/show.h"

/* As nvmlReturn_t: the exit status of a command that makes no sense. */
#define EXIT_USAGE NVML_ERROR_INVALID_ARGUMENT
#define EXIT_OUTPUT 255
#define INTERVAL_DEFAULT_MS 5000u
/* A day: longer intervals are a mistake. */
#define INTERVAL_MAX_MS 86400000u

enum mode {
	MODE_TABLE,
	MODE_LIST,
	MODE_REPORT,
	MODE_CSV,
	MODE_JSON,
	MODE_PMON,
	MODE_DMON
};

static struct {
	enum mode mode;
	const char *devices;
	const char *file;
	const char *query;
	const char *format;
	bool of_processes;
	unsigned int sections;
	unsigned int interval_ms; /* 0: once */
	unsigned int n_rounds;	  /* 0: without end */
} options = { .sections = ~0u };

static struct smi_csv csv;

static const char help[] =
	"usage: vgpu-smi [OPTION...]\n"
	"       vgpu-smi pmon|dmon [-i LIST] [-d SECONDS] [-c N] [-f FILE]\n"
	"\n"
	"Shows the GPUs of this machine, by the libnvidia-ml.so.1 of the loader.\n"
	"Without options: a table of the devices and of their processes.\n"
	"\n"
	"  -L, --list-gpus             a line for each device\n"
	"  -q, --query                 all that is known of each device\n"
	"  -d, --display=LIST          of that, these sections: MEMORY, UTILIZATION, "
	"ECC,\n"
	"                              TEMPERATURE, POWER, CLOCK, COMPUTE, PIDS,\n"
	"                              PERFORMANCE, PAGE_RETIREMENT, ROW_REMAPPER,\n"
	"                              ACCOUNTING, ENCODER_STATS, GENERAL\n"
	"      --query-gpu=LIST        these values of each device (--help-query-gpu)\n"
	"      --query-compute-apps=LIST\n"
	"                              these of each process "
	"(--help-query-compute-apps)\n"
	"      --format=csv[,noheader][,nounits]\n"
	"                              their form; needed with them\n"
	"      --json                  all values of all devices as one JSON object\n"
	"  -i, --id=LIST               only these devices: indices, UUIDs, PCI bus ids\n"
	"  -f, --filename=FILE         write there\n"
	"  -l, --loop[=SECONDS]        again and again, every 5 seconds by default\n"
	"      --loop-ms=N, -lms=N     the same in milliseconds\n"
	"  -c, --count=N               stop after so many rounds\n"
	"  pmon, dmon                  a line a second for each process, for each "
	"device\n"
	"  -h, --help, --version\n"
	"\n"
	"exit status: 0, or the number of NVML's return code: 2 wrong usage or no such\n"
	"device, 9 no driver or no host, 12 no libnvidia-ml.so.1, 15 the device is\n"
	"lost, ...; 255 any other error\n";

__attribute__((__noreturn__, __format__(__printf__, 1, 2))) static void refuse(
	const char *format, ...)
{
	va_list ap;

	fputs("vgpu-smi: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputs("\nvgpu-smi --help has the options\n", stderr);
	exit(EXIT_USAGE);
}

static unsigned int parse_number(const char *text, unsigned int factor)
{
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || !number ||
		number > INTERVAL_MAX_MS / factor)
		refuse("%s is no number from 1 to %u", text, INTERVAL_MAX_MS / factor);
	return (unsigned int)number * factor;
}

/* -lms and -lms=N are one word each, as those of nvidia-smi are. */
static bool take_loop_ms(char **word, char **value)
{
	if (!strcmp(*word, "-lms")) {
		if (!*value)
			refuse("-lms needs a number");
		options.interval_ms = parse_number(*value, 1);
		return true;
	}
	if (!strncmp(*word, "-lms=", 5))
		options.interval_ms = parse_number(*word + 5, 1);
	else
		return false;
	*value = NULL;
	return true;
}

/* Takes those out of the list of arguments. Returns: how many are left. */
static int take_odd_arguments(int argc, char **argv)
{
	int n = 1;

	for (int i = 1; i < argc; i++) {
		char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (take_loop_ms(&argv[i], &value))
			i += value != NULL;
		else
			argv[n++] = argv[i];
	}
	argv[n] = NULL;
	return n;
}

enum {
	OPTION_QUERY_GPU = 256,
	OPTION_QUERY_APPS,
	OPTION_FORMAT,
	OPTION_JSON,
	OPTION_LOOP_MS,
	OPTION_HELP_GPU,
	OPTION_HELP_APPS,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{ "list-gpus", no_argument, NULL, 'L' },
	{ "query", no_argument, NULL, 'q' },
	{ "display", required_argument, NULL, 'd' },
	{ "query-gpu", required_argument, NULL, OPTION_QUERY_GPU },
	{ "query-compute-apps", required_argument, NULL, OPTION_QUERY_APPS },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "id", required_argument, NULL, 'i' },
	{ "filename", required_argument, NULL, 'f' },
	{ "loop", optional_argument, NULL, 'l' },
	{ "loop-ms", required_argument, NULL, OPTION_LOOP_MS },
	{ "count", required_argument, NULL, 'c' },
	{ "help", no_argument, NULL, 'h' },
	{ "help-query-gpu", no_argument, NULL, OPTION_HELP_GPU },
	{ "help-query-compute-apps", no_argument, NULL, OPTION_HELP_APPS },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{},
};

static bool is_monitor(void)
{
	return options.mode == MODE_PMON || options.mode == MODE_DMON;
}

static void take_interval(int argc, char **argv)
{
	const char *text = optarg;

	/* -l 5, where the number is a word of its own. */
	if (!text && optind < argc && argv[optind][0] >= '0' && argv[optind][0] <= '9')
		text = argv[optind++];
	options.interval_ms = text ? parse_number(text, 1000) : INTERVAL_DEFAULT_MS;
}

static void take_display(void)
{
	if (is_monitor()) {
		options.interval_ms = parse_number(optarg, 1000);
		return;
	}
	options.sections = smi_show_parse_sections(optarg);
	if (!options.sections)
		refuse("%s: there is no such section", optarg);
}

static void take_query(bool of_processes)
{
	char *unknown = smi_csv_init(&csv, of_processes, optarg);

	if (unknown)
		refuse("'%s' is no value that can be asked for", unknown);
	options.mode = MODE_CSV;
}

static void end_with(void (*print)(FILE *out, bool of_processes), bool of_processes)
{
	print(stdout, of_processes);
	exit(0);
}

static void take_option(int option, int argc, char **argv)
{
	switch (option) {
	case 'L':
		options.mode = MODE_LIST;
		break;
	case 'q':
		options.mode = MODE_REPORT;
		break;
	case 'd':
		take_display();
		break;
	case OPTION_QUERY_GPU:
	case OPTION_QUERY_APPS:
		take_query(option == OPTION_QUERY_APPS);
		break;
	case OPTION_FORMAT:
		options.format = optarg;
		break;
	case OPTION_JSON:
		options.mode = MODE_JSON;
		break;
	case 'i':
		options.devices = optarg;
		break;
	case 'f':
		options.file = optarg;
		break;
	case 'l':
		take_interval(argc, argv);
		break;
	case OPTION_LOOP_MS:
		options.interval_ms = parse_number(optarg, 1);
		break;
	case 'c':
		options.n_rounds = parse_number(optarg, 1);
		break;
	case 'h':
		fputs(help, stdout);
		exit(0);
	case OPTION_HELP_GPU:
	case OPTION_HELP_APPS:
		end_with(smi_csv_help, option == OPTION_HELP_APPS);
		break;
	case OPTION_VERSION:
		puts("vgpu-smi " VGPU_VERSION);
		exit(0);
	default:
		refuse("an option is unknown or lacks its value");
	}
}

static void parse(int argc, char **argv)
{
	int option;

	argc = take_odd_arguments(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "pmon"))
		options.mode = MODE_PMON;
	else if (argc > 1 && !strcmp(argv[1], "dmon"))
		options.mode = MODE_DMON;
	if (is_monitor()) {
		options.interval_ms = 1000;
		optind = 2;
	}
	while ((option = getopt_long(argc, argv, "Lqd:i:f:l::c:h", long_options, NULL)) !=
		-1)
		take_option(option, argc, argv);
	if (optind < argc)
		refuse("%s: there is no such command", argv[optind]);
	if ((options.mode == MODE_CSV) != (options.format != NULL))
		refuse("--query-gpu or --query-compute-apps, and --format, need each "
		       "other");
	if (options.format && !smi_csv_set_format(&csv, options.format))
		refuse("%s: the format is csv, with noheader and nounits if wanted",
			options.format);
	if (!options.interval_ms)
		options.n_rounds = 1;
}

static void show(FILE *out, const struct smi_devices *devices, unsigned int round)
{
	switch (options.mode) {
	case MODE_TABLE:
		smi_show_table(out, devices);
		break;
	case MODE_LIST:
		smi_show_list(out, devices);
		break;
	case MODE_REPORT:
		smi_show_report(out, devices, options.sections);
		break;
	case MODE_CSV:
		if (!round)
			smi_csv_show_header(out, &csv);
		smi_csv_show(out, &csv, devices);
		break;
	case MODE_JSON:
		smi_show_json(out, devices);
		break;
	case MODE_PMON:
		smi_show_processes(out, devices, round);
		break;
	case MODE_DMON:
		smi_show_devices(out, devices, round);
		break;
	}
}

static void nap(void)
{
	struct timespec pause = {
		.tv_sec = options.interval_ms / 1000,
		.tv_nsec = (long)(options.interval_ms % 1000) * 1000000,
	};

	while (nanosleep(&pause, &pause) && errno == EINTR) {
	}
}

/* A device that is lost meanwhile is one that the last round shows as such. */
static nvmlReturn_t is_answering(const struct smi_devices *devices)
{
	nvmlReturn_t result = NVML_SUCCESS;

	for (unsigned int i = 0; i < devices->n && result == NVML_SUCCESS; i++) {
		char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];

		result = SMI_CALL(nvmlDeviceGetName, devices->all[i], name, sizeof(name));
	}
	return result;
}

static int run(FILE *out)
{
	struct smi_devices devices;
	nvmlReturn_t result = smi_library_open();

	if (result == NVML_SUCCESS)
		result = smi_devices_find(&devices, options.devices);
	for (unsigned int round = 0;
		result == NVML_SUCCESS && (!options.n_rounds || round < options.n_rounds);
		round++) {
		if (round)
			nap();
		show(out, &devices, round);
		if (fflush(out)) {
			fprintf(stderr, "vgpu-smi: the output: %s\n", strerror(errno));
			return EXIT_OUTPUT;
		}
		if (round + 1 == options.n_rounds)
			result = is_answering(&devices);
	}
	smi_library_close();
	if (result != NVML_SUCCESS)
		fprintf(stderr, "vgpu-smi: %s (%d)\n", smi_library_explain(result),
			(int)result);
	return smi_library_status(result);
}

int main(int argc, char **argv)
{
	FILE *out = stdout;

	parse(argc, argv);
	if (options.file)
		out = fopen(options.file, "we");
	if (!out) {
		fprintf(stderr, "vgpu-smi: %s: %s\n", options.file, strerror(errno));
		return EXIT_OUTPUT;
	}
	return run(out);
}
