/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options: the command line of a worker
 */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/error.h"
#include "worker/run/options.h"

static const char help[] =
	"Usage: vgpu-worker --control FD --stats FD [OPTION]...\n"
	"Replays the CUDA calls of one guest process on a driver. Only vgpud starts it.\n"
	"\n"
	"  --control FD           the control socket to vgpud\n"
	"  --stats FD             file for its counters and the memory of softgpu\n"
	"  --log-level LEVEL      none, error, warning, info (default), debug\n"
	"  --meter yes|no         measure and limit the device time of a driver other "
	"than\n"
	"                         softgpu (default: no)\n"
	"  --sandbox yes|no       enter the sandbox before serving (default: yes)\n"
	"  --uid NUMBER           the user id to take on\n"
	"  --allow-unprivileged yes|no  serve on NVIDIA's driver without --uid\n"
	"                         (default: no)\n"
	"  --outlive yes|no       live on without the process that started it, until\n"
	"                         the control socket ends (default: no)\n"
	"  --driver CHOICE        auto (default), nvidia, soft, null, or the path of a\n"
	"                         libcuda.so.1\n"
	"  --devices LIST         those that it uses, in this order, as in\n"
	"                         CUDA_VISIBLE_DEVICES (default: all)\n"
	"  --softgpu PATH         the library of the software device\n"
	"  --null-driver PATH     the library of the driver that executes nothing\n"
	"  --softgpu-name NAME    name of the software device, its compute capability\n"
	"  --softgpu-cc CC        (such as 12.1), memory and threads\n"
	"  --softgpu-memory BYTES\n"
	"  --softgpu-threads N\n"
	"  --softgpu-timeout MS   time limit of a kernel, 0: none\n"
	"  --softgpu-devices N    number of software devices\n"
	"  --softgpu-schedule long|fair  the order of the warps of a block\n"
	"  --softgpu-check LIST   what kernels are watched for: memory, race,\n"
	"                         uninitialised, fatal; yes: memory\n"
	"  --help                 print this and exit\n"
	"  --version              print the version and exit\n"
	"\n"
	"Exit status: 0 the session has ended; anything else: the worker could not\n"
	"start, or failed; vgpud's log has the reason.\n";

enum {
	OPTION_CONTROL = 256,
	OPTION_STATS,
	OPTION_LOG_LEVEL,
	OPTION_DRIVER,
	OPTION_VISIBLE,
	OPTION_METER,
	OPTION_SANDBOX,
	OPTION_UID,
	OPTION_UNPRIVILEGED,
	OPTION_OUTLIVE,
	OPTION_SOFTGPU,
	OPTION_NULL_DRIVER,
	OPTION_NAME,
	OPTION_CC,
	OPTION_MEMORY,
	OPTION_THREADS,
	OPTION_TIMEOUT,
	OPTION_DEVICES,
	OPTION_SCHEDULE,
	OPTION_CHECK,
	OPTION_HELP,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{ "control", required_argument, NULL, OPTION_CONTROL },
	{ "stats", required_argument, NULL, OPTION_STATS },
	{ "log-level", required_argument, NULL, OPTION_LOG_LEVEL },
	{ "driver", required_argument, NULL, OPTION_DRIVER },
	{ "devices", required_argument, NULL, OPTION_VISIBLE },
	{ "meter", required_argument, NULL, OPTION_METER },
	{ "sandbox", required_argument, NULL, OPTION_SANDBOX },
	{ "uid", required_argument, NULL, OPTION_UID },
	{ "allow-unprivileged", required_argument, NULL, OPTION_UNPRIVILEGED },
	{ "outlive", required_argument, NULL, OPTION_OUTLIVE },
	{ "softgpu", required_argument, NULL, OPTION_SOFTGPU },
	{ "null-driver", required_argument, NULL, OPTION_NULL_DRIVER },
	{ "softgpu-name", required_argument, NULL, OPTION_NAME },
	{ "softgpu-cc", required_argument, NULL, OPTION_CC },
	{ "softgpu-memory", required_argument, NULL, OPTION_MEMORY },
	{ "softgpu-threads", required_argument, NULL, OPTION_THREADS },
	{ "softgpu-timeout", required_argument, NULL, OPTION_TIMEOUT },
	{ "softgpu-devices", required_argument, NULL, OPTION_DEVICES },
	{ "softgpu-schedule", required_argument, NULL, OPTION_SCHEDULE },
	{ "softgpu-check", required_argument, NULL, OPTION_CHECK },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{},
};

static int parse_number(const char *text, uint64_t max, uint64_t *numberp)
{
	char *end;

	errno = 0;
	*numberp = strtoull(text, &end, 10);
	return errno || *end || end == text || *numberp > max ? OPTIONS_E_INVALID : 0;
}

static int parse_u32(const char *text, uint32_t max, uint32_t *numberp)
{
	uint64_t number;
	int r;

	r = parse_number(text, max, &number);
	*numberp = (uint32_t)number;
	return r;
}

/* "12.1" becomes 121. */
static int parse_cc(const char *text, uint32_t *ccp)
{
	unsigned int major, minor;
	char rest;

	if (sscanf(text, "%u.%u%c", &major, &minor, &rest) != 2 || major > 99 ||
		minor > 9)
		return OPTIONS_E_INVALID;
	*ccp = major * 10 + minor;
	return 0;
}

static int parse_yes_no(const char *value, bool *yesp)
{
	*yesp = !strcmp(value, "yes");
	return *yesp || !strcmp(value, "no") ? 0 : OPTIONS_E_INVALID;
}

static int parse_schedule(const char *value, uint32_t *schedulep)
{
	if (!strcmp(value, "long"))
		*schedulep = SOFTGPU_CONFIG_LONG;
	else if (!strcmp(value, "fair"))
		*schedulep = SOFTGPU_CONFIG_FAIR;
	else
		return OPTIONS_E_INVALID;
	return 0;
}

static int parse_softgpu(struct softgpu_config *config, int option, const char *value)
{
	switch (option) {
	case OPTION_VISIBLE:
		config->visible = value;
		return 0;
	case OPTION_NAME:
		config->name = value;
		return 0;
	case OPTION_CC:
		return parse_cc(value, &config->cc);
	case OPTION_MEMORY:
		return parse_number(value, UINT64_MAX, &config->memory);
	case OPTION_THREADS:
		return parse_u32(value, UINT32_MAX, &config->n_threads);
	case OPTION_TIMEOUT:
		return parse_u32(value, UINT32_MAX, &config->timeout_ms);
	case OPTION_DEVICES:
		return parse_u32(value, UINT32_MAX, &config->n_devices);
	case OPTION_SCHEDULE:
		return parse_schedule(value, &config->schedule);
	case OPTION_CHECK:
		config->check = value;
		return 0;
	default:
		return OPTIONS_E_INVALID;
	}
}

static int parse_one(struct options *options, int option, const char *value)
{
	uint32_t number = 0;
	bool yes = false;
	int r;

	switch (option) {
	case OPTION_CONTROL:
		r = parse_u32(value, INT32_MAX, &number);
		options->control = (int)number;
		return r;
	case OPTION_STATS:
		r = parse_u32(value, INT32_MAX, &number);
		options->stats = (int)number;
		return r;
	case OPTION_LOG_LEVEL:
		r = vgpu_log_level_from_string(value);
		options->log_level = r;
		return r < 0 ? OPTIONS_E_INVALID : 0;
	case OPTION_SANDBOX:
		r = parse_yes_no(value, &yes);
		options->sandbox.off = !yes;
		return r;
	case OPTION_METER:
		return parse_yes_no(value, &options->meter);
	case OPTION_UID:
		return parse_u32(value, INT32_MAX, &options->sandbox.uid);
	case OPTION_UNPRIVILEGED:
		return parse_yes_no(value, &options->sandbox.unprivileged);
	case OPTION_OUTLIVE:
		return parse_yes_no(value, &options->sandbox.outlives);
	case OPTION_DRIVER:
		options->driver.choice = value;
		return 0;
	case OPTION_SOFTGPU:
		options->driver.softgpu_path = value;
		return 0;
	case OPTION_NULL_DRIVER:
		options->driver.null_path = value;
		return 0;
	default:
		return parse_softgpu(&options->driver.softgpu, option, value);
	}
}

int options_parse(struct options *options, int argc, char **argv)
{
	int option, r;

	*options = (struct options){
		.control = -1,
		.stats = -1,
		.log_level = VGPU_LOG_INFO,
		.driver = {
			.choice = "auto",
			.softgpu_path = "libvgpu-softgpu.so",
			.null_path = "libvgpu-null.so",
			.softgpu.size = sizeof(options->driver.softgpu),
		},
	};
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == OPTION_HELP)
			return fputs(help, stdout) < 0 ? vgpu_error_origin(-EIO)
						       : OPTIONS_E_HELP;
		if (option == OPTION_VERSION)
			return puts("vgpu-worker " VGPU_VERSION) < 0
				       ? vgpu_error_origin(-EIO)
				       : OPTIONS_E_HELP;
		r = option == '?' ? OPTIONS_E_INVALID
				  : parse_one(options, option, optarg);
		if (!r)
			continue;
		fprintf(stderr,
			"vgpu-worker: this option or its value is not understood: %s\n",
			argv[optind - 1]);
		return r;
	}
	if (optind < argc) {
		fprintf(stderr, "vgpu-worker: unexpected argument '%s'\n", argv[optind]);
		return OPTIONS_E_INVALID;
	}
	if (options->control >= 0 && options->stats >= 0)
		return 0;
	fprintf(stderr, "vgpu-worker is started by vgpud, with --control and --stats.\n");
	return OPTIONS_E_INVALID;
}
