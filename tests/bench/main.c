/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-bench
 *
 * The limits of the machine are measured in the same run as the stack, because a figure
 * without its limit has no meaning. Each driver has its own vgpud, and each set of calls
 * its own process, because a library is never unloaded from a process; results are
 * returned through a pipe.
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
	"machine's own limits, and the drivers without the stack, are measured in the\n"
	"same run.\n"
	"\n"
	"  --driver NAME     null, soft, nvidia or a path; may be given more than once\n"
	"                    (default: null, soft, and nvidia where it works)\n"
	"  --only PREFIX     only measurements whose name begins so; may be given more\n"
	"                    than once\n"
	"  --hugepages       vgpud and its workers ask for transparent huge pages\n"
	"  --quick           few and short samples, and no copies of 1 GiB\n"
	"  --cpus GUEST,HOST processors to use (default: the first two allowed)\n"
	"  --verbose         names on standard error as they are measured\n"
	"  --json[=FILE]     JSON on standard output, or in FILE beside the table\n"
	"  --help, --version\n"
	"\n"
	"exit status: 0, 1 a measurement failed, 125 wrong command line\n";

struct drivers {
	const char *name[8];
	unsigned int n;
};

static struct bench_results results;

/* The part that one process measures. */
struct job {
	const char *driver; /* as the rows name it */
	const char *path;   /* of the library */
	const char *remote; /* the driver of a vgpud to start, NULL: none */
	const struct bench_host *host;
	enum bench_part part;
	int (*run)(const struct bench_sink *sink, const struct job *job);
};

static int run_limits(const struct bench_sink *sink, const struct job *job)
{
	bench_round_trips(sink);
	bench_ring(sink);
	bench_memory(sink);
	bench_pages(sink);
	bench_native(sink);
	return 0;
}

static int run_calls(const struct bench_sink *sink, const struct job *job)
{
	return bench_calls(sink, job->path, job->host, job->part);
}

static int run_start(const struct bench_sink *sink, const struct job *job)
{
	return bench_start(sink, job->path, job->remote);
}

/* Returns: 0, or -1 if the process ended badly. */
static int measure_apart(const struct bench_options *options, const struct job *job)
{
	struct bench_sink sink = { .driver = job->driver, .options = options };
	int fds[2], status;
	pid_t pid;

	if (pipe(fds) < 0)
		return -1;
	pid = bench_fork();
	if (!pid) {
		close(fds[0]);
		sink.fd = fds[1];
		bench_pin(options->guest_cpu);
		/* Not _exit(): a destructor of the library closes the session. */
		exit(job->run(&sink, job) ? 1 : 0);
	}
	close(fds[1]);
	bench_take(&results, fds[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "vgpu-bench: measuring %s failed\n", job->driver);
		return -1;
	}
	return 0;
}

/* A part that needs a vgpud, on a separate processor or on the caller's. */
static int measure_remoted(
	const struct bench_options *options, const char *driver, enum bench_part part)
{
	int cpu = part == BENCH_SAME_CORE ? options->guest_cpu : options->host_cpu;
	struct bench_host host;
	struct job job = { .driver = driver,
		.path = BENCH_LIBCUDA,
		.host = &host,
		.part = part,
		.run = run_calls };
	int r = bench_host_start(&host, driver, cpu, 1);

	if (!r)
		r = measure_apart(options, &job);
	bench_host_stop(&host);
	return r;
}

/* Each cold figure needs a process and a daemon that have not pinned anything yet. */
static int measure_cold(const struct bench_options *options, const char *driver)
{
	struct bench_sink sink = { .driver = driver, .options = options };
	struct bench_samples samples = {};
	size_t first = results.n;
	int fds[2];
	int r = 0;

	for (unsigned int i = 0; !r && i < bench_count(&sink, COLD_SAMPLES, 1); i++)
		r = measure_remoted(options, driver, BENCH_FIRST_USE);
	for (size_t i = first; i < results.n; i++)
		bench_sample(&samples, results.result[i].median);
	results.n = first;
	if (pipe(fds) < 0)
		return -1;
	sink.fd = fds[1];
	bench_report(&sink, "pin_1gib_cold", "ns", &samples);
	close(fds[1]);
	bench_take(&results, fds[0]);
	return r;
}

static bool any_wanted(const struct bench_options *options, const char *begin)
{
	for (unsigned int i = 0; i < options->n_only; i++)
		if (!strncmp(options->only[i], begin, strlen(begin)))
			return true;
	return bench_wanted(options, begin);
}

static int measure_driver(const struct bench_options *options, const char *driver)
{
	struct job start = { .driver = driver,
		.path = BENCH_LIBCUDA,
		.remote = driver,
		.run = run_start };
	int r;

	r = measure_remoted(options, driver, BENCH_EVERYTHING);
	if (!r)
		r = measure_remoted(options, driver, BENCH_SAME_CORE);
	if (!r && bench_wanted(options, "pin_1gib_cold"))
		r = measure_cold(options, driver);
	if (!r && any_wanted(options, "start_"))
		r = measure_apart(options, &start);
	return r;
}

/* The same calls without the stack, if the driver can be loaded into this process. */
static int measure_direct(const struct bench_options *options, const char *driver)
{
	static const struct {
		const char *driver, *direct, *path;
	} known[] = {
		{ "null", "null-direct", BENCH_NULL },
		{ "soft", "soft-direct", BENCH_SOFT },
		{ "nvidia", "nvidia-direct", "libcuda.so.1" },
	};
	int r = 0;

	for (size_t i = 0; i < BENCH_N(known); i++) {
		struct job job = {
			.driver = known[i].direct, .path = known[i].path, .run = run_calls
		};

		if (strcmp(known[i].driver, driver))
			continue;
		r = measure_apart(options, &job);
		job.run = run_start;
		if (!r && any_wanted(options, "start_"))
			r = measure_apart(options, &job);
	}
	return r;
}

/* Whether NVIDIA's driver is installed here and works; asked in a process that ends. */
static bool has_nvidia(void)
{
	int status = 1;
	pid_t pid;

	pid = bench_fork();
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

/* One line after the one that reports the error. */
static int hint(void)
{
	fputs("Try 'vgpu-bench --help'.\n", stderr);
	return 125;
}

/* Returns: whether it names two processors. */
static bool parse_cpus(const char *text, struct bench_options *options)
{
	char end;

	if (sscanf(text, "%d,%d%c", &options->guest_cpu, &options->host_cpu, &end) == 2)
		return true;
	fprintf(stderr, "vgpu-bench: --cpus takes GUEST,HOST, not '%s'\n", text);
	return false;
}

/* Returns: whether there was room for one more. */
static bool add(const char **list, unsigned int *np, unsigned int max, const char *option)
{
	if (*np == max) {
		fprintf(stderr, "vgpu-bench: more than %u times %s\n", max, option);
		return false;
	}
	list[(*np)++] = optarg;
	return true;
}

/* Returns: 0, or the status to exit with, or -1 to exit with 0. */
static int parse(int argc, char **argv, struct bench_options *options,
	struct drivers *drivers, const char **jsonp)
{
	static const struct option names[] = {
		{ "driver", required_argument, NULL, 'd' },
		{ "only", required_argument, NULL, 'o' },
		{ "hugepages", no_argument, NULL, 'p' },
		{ "quick", no_argument, NULL, 'q' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "json", optional_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{},
	};
	bool is_right = true;
	int c;

	while (is_right && (c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'd')
			is_right = add(drivers->name, &drivers->n, BENCH_N(drivers->name),
				"--driver");
		else if (c == 'o')
			is_right = add(options->only, &options->n_only, BENCH_ONLY_MAX,
				"--only");
		else if (c == 'c')
			is_right = parse_cpus(optarg, options);
		else if (c == 'p')
			bench_host_want_hugepages();
		else if (c == 'q')
			options->quick = true;
		else if (c == 'v')
			options->verbose = true;
		else if (c == 'j')
			*jsonp = optarg ? optarg : "-";
		else if (c == 'h') {
			fputs(help, stdout);
			return -1;
		} else if (c == 'V') {
			puts("vgpu-bench (vGPU) " VGPU_VERSION);
			return -1;
		} else {
			is_right = false;
		}
	}
	if (is_right && optind < argc) {
		fprintf(stderr, "vgpu-bench: unexpected argument '%s'\n", argv[optind]);
		is_right = false;
	}
	return is_right ? 0 : hint();
}

static int write_results(const struct bench_options *options,
	const struct bench_machine *machine, const char *json)
{
	FILE *file;

	if (!json || strcmp(json, "-"))
		bench_print_table(stdout, &results);
	if (!json)
		return 0;
	file = strcmp(json, "-") ? fopen(json, "we") : stdout;
	if (!file) {
		fprintf(stderr, "vgpu-bench: %s: %s\n", json, strerror(errno));
		return 1;
	}
	bench_print_json(file, options, machine, &results);
	return fflush(file) ? 1 : 0;
}

static int measure_all(const struct bench_options *options, const struct drivers *drivers)
{
	struct job limits = { .driver = "machine", .run = run_limits };
	int failed = measure_apart(options, &limits) < 0;

	for (unsigned int i = 0; i < drivers->n; i++) {
		fprintf(stderr, "vgpu-bench: driver %s\n", drivers->name[i]);
		failed |= measure_direct(options, drivers->name[i]) < 0;
		failed |= measure_driver(options, drivers->name[i]) < 0;
	}
	return failed;
}

int main(int argc, char **argv)
{
	struct bench_options options = {};
	struct bench_machine machine = {};
	struct drivers drivers = {};
	const char *json = NULL;
	int r, failed;

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
	setenv("VGPU_SOFTGPU_MEMORY", "4G", 0);
	getloadavg(&machine.load_before, 1);
	failed = measure_all(&options, &drivers);
	getloadavg(&machine.load_after, 1);
	return write_results(&options, &machine, json) || failed;
}
