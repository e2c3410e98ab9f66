/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-sensors: reads the sensors of the host's devices through NVIDIA's NVML
 *
 * A process of its own, because the library is NVIDIA's: neither a process of vgpud nor a
 * worker with a guest should load it. It gets the rights of a worker on NVIDIA's driver,
 * and ends with vgpud.
 */

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/sensors.h"
#include "vgpu/log.h"
#include "worker/run/sandbox.h"
#include "worker/sensors/measure.h"
#include "worker/sensors/nvml.h"

#define INTERVAL_S 1
/* Measured on after the broker asked for the last time. */
#define WANTED_S 5

#define EXIT_USAGE 125

static const char help[] =
	"Usage: vgpu-sensors --page FD [OPTION]...\n"
	"Reads the sensors of NVIDIA's devices once a second. Only vgpud starts it.\n"
	"\n"
	"  --page FD           where it writes them\n"
	"  --library PATH      the NVML (default: libnvidia-ml.so.1)\n"
	"  --log-level LEVEL   none, error, warning, info (default), debug\n"
	"  --sandbox yes|no    give up all rights that it does not need (default: yes)\n"
	"  --uid NUMBER        the user id to take on\n"
	"  --help              print this and exit\n"
	"  --version           print the version and exit\n"
	"\n"
	"Exit status: 77 there is no NVML here, 125 wrong command line, anything else: "
	"it\n"
	"failed; vgpud's log has the reason.\n";

struct options {
	int page;
	const char *library;
	enum vgpu_log_level log_level;
	struct sandbox_options sandbox;
};

static const struct option long_options[] = {
	{ "page", required_argument, NULL, 'p' },
	{ "library", required_argument, NULL, 'l' },
	{ "log-level", required_argument, NULL, 'v' },
	{ "sandbox", required_argument, NULL, 's' },
	{ "uid", required_argument, NULL, 'u' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{},
};

static unsigned long parse_number(const char *text)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (!*text || *end) {
		fprintf(stderr, "vgpu-sensors: not a number: %s\n", text);
		exit(EXIT_USAGE);
	}
	return number;
}

static enum vgpu_log_level parse_level(const char *text)
{
	const int level = vgpu_log_level_from_string(text);

	if (level < 0) {
		fprintf(stderr, "vgpu-sensors: not a log level: %s\n", text);
		exit(EXIT_USAGE);
	}
	return (enum vgpu_log_level)level;
}

static void parse(struct options *options, int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) >= 0) {
		switch (option) {
		case 'p':
			options->page = (int)parse_number(optarg);
			break;
		case 'l':
			options->library = optarg;
			break;
		case 'v':
			options->log_level = parse_level(optarg);
			break;
		case 's':
			options->sandbox.off = !strcmp(optarg, "no");
			break;
		case 'u':
			options->sandbox.uid = (uid_t)parse_number(optarg);
			break;
		case 'h':
			fputs(help, stdout);
			exit(0);
		case 'V':
			puts("vgpu-sensors (vGPU) " VGPU_VERSION);
			exit(0);
		default:
			exit(EXIT_USAGE);
		}
	}
	if (optind < argc)
		fprintf(stderr, "vgpu-sensors: unexpected argument '%s'\n", argv[optind]);
	else if (options->page < 0)
		fprintf(stderr, "vgpu-sensors: --page is missing (see --help)\n");
	else
		return;
	exit(EXIT_USAGE);
}

static void serve(const struct nvml *nvml, struct sensors_page *page)
{
	static struct sensors_page measured;
	unsigned int n_idle = 0;
	uint32_t wanted = 0, now;

	for (;;) {
		now = __atomic_load_n(&page->wanted, __ATOMIC_RELAXED);
		n_idle = now == wanted ? n_idle + 1 : 0;
		wanted = now;
		if (wanted && n_idle < WANTED_S / INTERVAL_S) {
			measure(nvml, &measured);
			sensors_write(page, &measured);
		}
		sleep(INTERVAL_S);
	}
}

int main(int argc, char **argv)
{
	struct options options = {
		.page = -1,
		.library = "libnvidia-ml.so.1",
		.log_level = VGPU_LOG_INFO,
		/* It serves no guest: as vgpud's user it can do no more than vgpud. */
		.sandbox.unprivileged = true,
	};
	struct driver_options driver = { .choice = "nvidia" };
	struct sensors_page *page;
	struct nvml nvml;

	parse(&options, argc, argv);
	vgpu_log_init("vgpu-sensors", options.log_level);
	if (strchr(options.library, '/'))
		driver.choice = options.library;
	if (sensors_map(&page, options.page) || sandbox_begin(&options.sandbox, &driver))
		return EXIT_FAILURE;
	if (nvml_open(&nvml, options.library))
		return SENSORS_EXIT_ABSENT;
	if (sandbox_enter(&options.sandbox, SANDBOX_DRIVER))
		return EXIT_FAILURE;
	serve(&nvml, page);
}
