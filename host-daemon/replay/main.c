/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-replay: runs the calls of a recorded process again
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/flight-text.h"
#include "replay/player.h"
#include "vgpu/cleanup.h"
#include "vgpu/log.h"
#include "vgpud/paths.h"

static const char help[] =
	"Usage: vgpu-replay [OPTION]... FILE\n"
	"Runs the calls of a process again that vgpuctl record has written to a file, "
	"and\n"
	"says where the results differ.\n"
	"\n"
	"      --driver CHOICE  nvidia, soft, null, or the path of a libcuda.so.1 "
	"(default:\n"
	"                       that of the recording)\n"
	"      --softgpu-threads N  threads of softgpu (default: as in the recording)\n"
	"      --allow-unprivileged  use NVIDIA's driver with the rights of this "
	"program\n"
	"      --lines N        differences that are printed (default: 20)\n"
	"      --timeout SECONDS  give up after so long without progress (default: 60)\n"
	"      --json           print JSON\n"
	"  -v, --verbose        print the log of the worker\n"
	"  -h, --help           print this and exit\n"
	"  -V, --version        print the version and exit\n"
	"\n"
	"Exit status: 0 no difference; 1 there are differences; 2 wrong command line; 3 "
	"the\n"
	"file cannot be read; 4 the worker does not start; 5 the worker has ended or "
	"does\n"
	"not go on.\n";

enum replay_status {
	REPLAY_SAME = 0,
	REPLAY_DIFFERS = 1,
	REPLAY_USAGE = 2,
	REPLAY_FILE = 3,
	REPLAY_NO_START = 4,
	REPLAY_ENDED = 5,
};

enum {
	OPTION_DRIVER = 256,
	OPTION_JSON,
	OPTION_LINES,
	OPTION_THREADS,
	OPTION_TIMEOUT,
	OPTION_UNPRIVILEGED,
};

static const struct option long_options[] = {
	{ "allow-unprivileged", no_argument, NULL, OPTION_UNPRIVILEGED },
	{ "driver", required_argument, NULL, OPTION_DRIVER },
	{ "help", no_argument, NULL, 'h' },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "lines", required_argument, NULL, OPTION_LINES },
	{ "softgpu-threads", required_argument, NULL, OPTION_THREADS },
	{ "timeout", required_argument, NULL, OPTION_TIMEOUT },
	{ "verbose", no_argument, NULL, 'v' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static int complain(const char *path, const char *reason)
{
	fprintf(stderr, "vgpu-replay: %s: %s\n", path, reason);
	return REPLAY_FILE;
}

/* Return: false if it is no number from `min` to 86400. */
static bool parse(const char *text, unsigned int min, unsigned int *numberp)
{
	char *rest;
	unsigned long number;

	errno = 0;
	number = strtoul(text, &rest, 10);
	*numberp = (unsigned int)number;
	return !errno && *text >= '0' && *text <= '9' && !*rest && number >= min &&
	       number <= 86400;
}

static int usage(const char *option)
{
	if (option)
		fprintf(stderr, "vgpu-replay: the value of %s is not understood\n",
			option);
	fputs("Try 'vgpu-replay --help'.\n", stderr);
	return REPLAY_USAGE;
}

static int print(const char *text)
{
	return fputs(text, stdout) < 0 || fflush(stdout) ? REPLAY_FILE : REPLAY_SAME;
}

/* Return: -1 to go on, or the status. */
static int take_option(struct replay_options *options, int option)
{
	unsigned int number;

	switch (option) {
	case OPTION_DRIVER:
		options->driver = optarg;
		return -1;
	case OPTION_JSON:
		options->is_json = true;
		return -1;
	case OPTION_LINES:
		return parse(optarg, 0, &options->n_lines) ? -1 : usage("--lines");
	case OPTION_THREADS:
		options->softgpu_threads = optarg;
		return parse(optarg, 1, &number) ? -1 : usage("--softgpu-threads");
	case OPTION_TIMEOUT:
		return parse(optarg, 1, &options->timeout_s) ? -1 : usage("--timeout");
	case OPTION_UNPRIVILEGED:
		options->is_unprivileged = true;
		return -1;
	case 'v':
		options->is_verbose = true;
		return -1;
	case 'h':
		return print(help);
	case 'V':
		return print("vgpu-replay " VGPUD_VERSION "\n");
	default:
		return usage(NULL);
	}
}

static const char *end_word(enum player_end end)
{
	static const char *const words[] = {
		[PLAYER_DONE] = "done",
		[PLAYER_NO_START] = "no-start",
		[PLAYER_DIED] = "worker-ended",
		[PLAYER_STUCK] = "stuck",
		[PLAYER_BROKEN] = "damaged",
		[PLAYER_FAILED] = "failed",
	};

	return words[end];
}

static int status_of(const struct findings *findings, const struct player_result *result)
{
	switch (result->end) {
	case PLAYER_DONE:
		return findings->n_different ? REPLAY_DIFFERS : REPLAY_SAME;
	case PLAYER_BROKEN:
		return REPLAY_FILE;
	case PLAYER_NO_START:
	case PLAYER_FAILED:
		return REPLAY_NO_START;
	default:
		return REPLAY_ENDED;
	}
}

static json_t *number_of(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *faults_json(const struct findings *findings)
{
	json_t *array = json_array();
	char text[32];

	for (uint32_t i = 0; i < findings->n_faults_expected; i++) {
		const struct findings_fault *fault = &findings->faults[i];

		json_array_append_new(array,
			json_pack("{s:o,s:s,s:s,s:b}", "call",
				fault->number ? number_of(fault->number) : json_null(),
				"result", flight_result(fault->expected.result, text),
				"text", fault->expected.text, "same",
				!findings_fault_differs(findings, i)));
	}
	return array;
}

static json_t *open_json(
	const struct findings *findings, const struct player_result *result)
{
	json_t *array = json_array();
	char text[32];

	for (uint32_t i = 0; !result->is_closed && i < result->n_open; i++) {
		const struct player_open *open = &result->open[i];

		json_array_append_new(array,
			json_pack("{s:o,s:s,s:o}", "call", number_of(open->number),
				"name", findings_name(findings, open->number), "result",
				open->returns
					? json_string(flight_result(open->result, text))
					: json_null()));
	}
	return array;
}

static void report_json(const struct recording_header *header,
	const struct findings *findings, const struct player_result *result)
{
	json_t *object = json_pack("{s:s,s:s,s:o,s:s,s:o,s:o,s:o,s:o,s:o,s:b,s:b,s:b}",
		"name", header->assign.guest_comm, "driver", header->driver, "calls",
		number_of(result->n_calls), "end", end_word(result->end), "compared",
		number_of(findings->n_compared), "outputs",
		number_of(findings->n_outputs), "ignored", number_of(findings->n_ignored),
		"differences", number_of(findings->n_different), "first",
		findings->first ? number_of(findings->first) : json_null(), "complete",
		result->is_closed, "uncovered", result->summary.is_uncovered,
		"overlapping", result->summary.is_overlapping);

	json_object_set_new(object, "faults", faults_json(findings));
	json_object_set_new(object, "open", open_json(findings, result));
	if (*result->reason)
		json_object_set_new(object, "reason", json_string(result->reason));
	json_dumpf(object, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(object);
}

/* What the worker was in when it was killed, or the recording stopped. */
static void report_open(
	const struct findings *findings, const struct player_result *result)
{
	char text[32];

	puts("the recording ends before the process did");
	for (uint32_t i = 0; i < result->n_open; i++) {
		const struct player_open *open = &result->open[i];

		printf("call #%" PRIu64 " %s had not returned; ", open->number,
			findings_name(findings, open->number));
		if (open->returns)
			printf("it returns %s now\n", flight_result(open->result, text));
		else
			puts("it does not now");
	}
}

static void report_end(
	const struct findings *findings, const struct player_result *result)
{
	if (!result->is_closed &&
		(result->end == PLAYER_DONE || result->end == PLAYER_DIED))
		report_open(findings, result);
	if (result->end != PLAYER_DONE)
		printf("%s\n", result->reason);
	if (result->end == PLAYER_DIED && WIFSIGNALED(result->status))
		printf("its signal was %d (%s)\n", WTERMSIG(result->status),
			strsignal(WTERMSIG(result->status)));
	if (result->summary.is_uncovered)
		puts("kernels may have read memory of the host that is not recorded");
	if (result->summary.is_overlapping)
		puts("calls of several threads ran at the same time in the recording");
}

static void report(const struct recording_header *header, const struct findings *findings,
	const struct player_result *result)
{
	const struct control_assign *assign = &header->assign;

	if (findings->n_different > findings->n_lines_max)
		printf("and %" PRIu64 " more\n",
			findings->n_different - findings->n_lines_max);
	report_end(findings, result);
	printf("%s, process %u, recorded with %s by release %s: %" PRIu64
	       " calls made, %" PRIu64 " results and %" PRIu64 " copies compared, ",
		assign->guest_comm, assign->guest_pid, header->driver, header->release,
		result->n_calls, findings->n_compared, findings->n_outputs);
	if (findings->n_different)
		printf("%" PRIu64 " differ, first at call #%" PRIu64 "\n",
			findings->n_different, findings->first);
	else
		puts("none differs");
}

static void free_paths(struct config *paths)
{
	free(paths->worker);
	free(paths->sensors);
	free(paths->softgpu);
	free(paths->null_driver);
	free(paths->ctl_socket);
}

static int replay(const char *path, const void *bytes, size_t size,
	const struct replay_options *options)
{
	_vgpu_cleanup_(vgpu_freep) struct findings *findings =
		calloc(1, sizeof(*findings));
	struct player_result result;
	struct recording_header header;
	struct recording recording;
	struct config paths = {};
	int r;

	r = recording_open(&recording, bytes, size, &header);
	if (r == RECORDING_E_CUT)
		return complain(path, "it ends within its header");
	if (r)
		return complain(path, recording.reason);
	if (!findings || paths_complete(&paths)) {
		free_paths(&paths);
		complain(path, "there is no memory");
		return REPLAY_NO_START;
	}
	findings->n_lines_max = options->n_lines;
	findings->is_quiet = options->is_json;
	player_play(&recording, &header, &paths, options, findings, &result);
	free_paths(&paths);
	if (options->is_json)
		report_json(&header, findings, &result);
	else
		report(&header, findings, &result);
	return ferror(stdout) || fflush(stdout) ? REPLAY_FILE
						: status_of(findings, &result);
}

static int open_and_replay(const char *path, const struct replay_options *options)
{
	_vgpu_cleanup_(vgpu_closep) int fd =
		open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat stat;
	void *bytes;
	int status;

	if (fd < 0 || fstat(fd, &stat) < 0)
		return complain(path, strerror(errno));
	if (!S_ISREG(stat.st_mode))
		return complain(path, "it is not a file");
	if (!stat.st_size)
		return complain(path, "it is empty");
	bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return complain(path, strerror(errno));
	status = replay(path, bytes, (size_t)stat.st_size, options);
	munmap(bytes, (size_t)stat.st_size);
	return status;
}

int main(int argc, char **argv)
{
	struct replay_options options = { .timeout_s = 60, .n_lines = 20 };
	int option, status;

	vgpu_log_init("vgpu-replay", VGPU_LOG_WARNING);
	signal(SIGPIPE, SIG_IGN);
	while ((option = getopt_long(argc, argv, "hvV", long_options, NULL)) != -1) {
		status = take_option(&options, option);
		if (status >= 0)
			return status;
	}
	if (optind + 1 != argc) {
		fputs(optind == argc ? "vgpu-replay needs a FILE\n"
				     : "vgpu-replay takes one FILE\n",
			stderr);
		return usage(NULL);
	}
	return open_and_replay(argv[optind], &options);
}
