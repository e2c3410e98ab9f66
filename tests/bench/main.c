/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-bench
 *
 * The limits of the machine are measured in the same run as the stack, because a figure
 * without its limit says nothing. Each driver gets a vgpud of its own, and each set of
 * calls a process of its own, since a library never lets go of a process; results come
 * back through a pipe.
 */

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define COLD_SAMPLES 5u

static const char help[] =
	"usage: vgpu-bench [OPTION...]\n"
	"\n"
	"Measures what the stack adds to CUDA calls, with private daemons: every call\n"
	"goes through the guest library, a socket channel, vgpud and a worker. The\n"
	"machine's own limits are measured in the same run.\n"
	"\n"
	"  --driver NAME     null, soft, nvidia or a path; may be given more than once\n"
	"                    (default: null, soft, and nvidia where it works)\n"
	"  --only PREFIX     only measurements whose name begins so\n"
	"  --quick           few and short samples\n"
	"  --cpus GUEST,HOST processors to use (default: the first two allowed)\n"
	"  --json[=FILE]     JSON on standard output, or in FILE beside the table\n"
	"  --help\n"
	"\n"
	"exit status: 0, 1 a measurement failed, 125 wrong command line\n";

struct drivers {
	const char *name[8];
	unsigned int n;
};

static struct bench_result results[BENCH_RESULTS_MAX];
static size_t n_results;

static void take_results(int fd)
{
	struct bench_result result;

	while (read(fd, &result, sizeof(result)) == sizeof(result))
		if (n_results < BENCH_RESULTS_MAX)
			results[n_results++] = result;
	close(fd);
}

static int measure(struct bench_sink *sink, enum bench_part part, const char *path)
{
	bench_pin(sink->options->guest_cpu);
	if (part != BENCH_LIMITS)
		return bench_calls(sink, path, part) < 0;
	bench_limits(sink);
	return 0;
}

/* Measures in a process of its own. Returns: 0, or -1 if that ended badly. */
static int measure_apart(const struct bench_options *options, enum bench_part part,
	const char *driver, const char *path)
{
	struct bench_sink sink = { .driver = driver, .options = options };
	int fds[2], status;
	pid_t pid;

	if (pipe(fds) < 0)
		return -1;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		close(fds[0]);
		sink.fd = fds[1];
		/* Not _exit(): the library says goodbye to its host in a destructor. */
		exit(measure(&sink, part, path));
	}
	close(fds[1]);
	take_results(fds[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "vgpu-bench: measuring %s failed\n", driver);
		return -1;
	}
	return 0;
}

/* Each cold figure needs a process and a daemon that have not pinned anything yet. */
static int measure_cold(const struct bench_options *options, const char *driver)
{
	struct bench_sink sink = { .driver = driver, .options = options };
	struct bench_samples samples = {};
	struct bench_host host;
	size_t first = n_results;
	int fds[2];
	int r = 0;

	for (unsigned int i = 0; !r && i < (options->quick ? 1 : COLD_SAMPLES); i++) {
		r = bench_host_start(&host, driver, options->host_cpu);
		if (!r) {
			setenv("VGPU_SOCKET", host.socket, 1);
			r = measure_apart(
				options, BENCH_FIRST_USE, driver, BENCH_LIBCUDA);
		}
		bench_host_stop(&host);
	}
	for (size_t i = first; i < n_results; i++)
		bench_sample(&samples, results[i].median);
	n_results = first;
	if (pipe(fds) < 0)
		return -1;
	sink.fd = fds[1];
	bench_report(&sink, "pin_1gib_cold", "ns", &samples);
	close(fds[1]);
	take_results(fds[0]);
	return r;
}

static int measure_driver(const struct bench_options *options, const char *driver)
{
	struct bench_host host;
	int r;

	fprintf(stderr, "vgpu-bench: driver %s\n", driver);
	r = bench_host_start(&host, driver, options->host_cpu);
	if (!r) {
		setenv("VGPU_SOCKET", host.socket, 1);
		r = measure_apart(options, BENCH_EVERYTHING, driver, BENCH_LIBCUDA);
	}
	bench_host_stop(&host);
	if (!r && bench_wanted(options, "pin_1gib_cold"))
		r = measure_cold(options, driver);
	return r;
}

/* The same calls without us, as far as the driver can be had in this process. */
static int measure_direct(const struct bench_options *options, const char *driver)
{
	if (!strcmp(driver, "null"))
		return measure_apart(options, BENCH_CALLS, "null-direct", BENCH_NULL);
	if (!strcmp(driver, "nvidia"))
		return measure_apart(
			options, BENCH_EVERYTHING, "nvidia-direct", "libcuda.so.1");
	return 0;
}

/* Whether NVIDIA's driver is installed here and works; asked in a process that ends. */
static bool has_nvidia(void)
{
	int status = 1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
		int (*init)(unsigned int) = library ? dlsym(library, "cuInit") : NULL;

		unsetenv("VGPU_SOCKET");
		_exit(!init || init(0));
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

static void choose_cpus(struct bench_options *options)
{
	int found[2] = { 0, 0 }, n = 0;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			found[n++] = cpu;
	options->guest_cpu = found[0];
	options->host_cpu = n == 2 ? found[1] : found[0];
}

static int usage(const char *what)
{
	fprintf(stderr, "vgpu-bench: %s\n%s", what, help);
	return 125;
}

/* Returns: 0, or the status to exit with, or -1 to exit with 0. */
static int parse(int argc, char **argv, struct bench_options *options,
	struct drivers *drivers, const char **jsonp)
{
	static const struct option names[] = {
		{ "driver", required_argument, NULL, 'd' },
		{ "only", required_argument, NULL, 'o' },
		{ "quick", no_argument, NULL, 'q' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "json", optional_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	char end;
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'd' && drivers->n < sizeof(drivers->name) / sizeof(char *))
			drivers->name[drivers->n++] = optarg;
		else if (c == 'o')
			options->only = optarg;
		else if (c == 'q')
			options->quick = true;
		else if (c == 'j')
			*jsonp = optarg ? optarg : "-";
		else if (c == 'h') {
			fputs(help, stdout);
			return -1;
		} else if (c != 'c' || sscanf(optarg, "%d,%d%c", &options->guest_cpu,
					       &options->host_cpu, &end) != 2)
			return usage("wrong command line");
	}
	return optind < argc ? usage("what is left is not an option") : 0;
}

static int write_results(const struct bench_options *options, const char *json)
{
	FILE *file;

	if (!json || strcmp(json, "-"))
		bench_print_table(stdout, results, n_results);
	if (!json)
		return 0;
	file = strcmp(json, "-") ? fopen(json, "we") : stdout;
	if (!file) {
		fprintf(stderr, "vgpu-bench: %s: %s\n", json, strerror(errno));
		return 1;
	}
	bench_print_json(file, options, results, n_results);
	return fflush(file) ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct bench_options options = {};
	struct drivers drivers = {};
	const char *json = NULL;
	int r, failed = 0;

	choose_cpus(&options);
	r = parse(argc, argv, &options, &drivers, &json);
	if (r)
		return r < 0 ? 0 : r;
	if (!drivers.n) {
		drivers.name[drivers.n++] = "null";
		drivers.name[drivers.n++] = "soft";
		if (has_nvidia())
			drivers.name[drivers.n++] = "nvidia";
		else
			fprintf(stderr, "vgpu-bench: no NVIDIA driver works here\n");
	}
	if (options.guest_cpu == options.host_cpu)
		fprintf(stderr, "vgpu-bench: one processor for both sides\n");
	failed |= measure_apart(&options, BENCH_LIMITS, "machine", NULL) < 0;
	for (unsigned int i = 0; i < drivers.n; i++) {
		failed |= measure_direct(&options, drivers.name[i]) < 0;
		failed |= measure_driver(&options, drivers.name[i]) < 0;
	}
	return write_results(&options, json) || failed;
}
