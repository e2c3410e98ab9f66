/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-metrics: serves what vgpud tells of its virtual machines to Prometheus
 */

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "metrics/exposition.h"
#include "metrics/listen.h"
#include "metrics/serve.h"
#include "vgpu/log.h"

#define DEFAULT_LISTEN "/run/vgpu-metrics/metrics.sock"

static const char help[] =
	"Usage: vgpu-metrics [OPTION]...\n"
	"Serves what vgpud tells of its virtual machines by HTTP, at /metrics, in the\n"
	"formats of Prometheus and OpenMetrics.\n"
	"\n"
	"      --listen PLACE  a path for a UNIX socket, or ADDRESS:PORT of the "
	"loopback\n"
	"                     (default " DEFAULT_LISTEN ")\n"
	"      --once         print the metrics and exit: 1 if vgpud does not answer\n"
	"      --processes    metrics of each guest process, too\n"
	"      --socket PATH  where vgpud serves (default " CTL_SOCKET ")\n"
	"  -h, --help         print this and exit\n"
	"  -V, --version      print the version and exit\n"
	"\n"
	"Exit status: 0 done; 1 it failed; 2 wrong command line.\n";

enum {
	OPTION_LISTEN = 256,
	OPTION_ONCE,
	OPTION_PROCESSES,
	OPTION_SOCKET,
};

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "listen", required_argument, NULL, OPTION_LISTEN },
	{ "once", no_argument, NULL, OPTION_ONCE },
	{ "processes", no_argument, NULL, OPTION_PROCESSES },
	{ "socket", required_argument, NULL, OPTION_SOCKET },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

struct options {
	const char *listen, *socket;
	bool is_once, with_processes;
};

static int usage(void)
{
	fputs("Try 'vgpu-metrics --help'.\n", stderr);
	return CTL_USAGE;
}

static int print_once(const struct options *options)
{
	struct snapshot snapshot;
	size_t size;
	char *text;
	bool is_up;

	snapshot_take(&snapshot, options->socket, options->with_processes, false);
	text = exposition_write(
		&snapshot, EXPOSITION_PROMETHEUS, options->with_processes, &size);
	is_up = snapshot.is_up;
	snapshot_deinit(&snapshot);
	if (text)
		fwrite(text, 1, size, stdout);
	free(text);
	if (!text || fflush(stdout) || ferror(stdout))
		return ctl_fail(CTL_FAILED, "the metrics cannot be written");
	return is_up ? CTL_OK : CTL_FAILED;
}

/* Until a signal. */
static void serve(struct server *server, const sigset_t *signals)
{
	const struct timespec second = { .tv_sec = 1 };

	while (sigtimedwait(signals, NULL, &second) < 0)
		server_tick(server);
}

static int run(const struct options *options)
{
	struct server_options server_options = {
		.socket = options->socket,
		.with_processes = options->with_processes,
	};
	struct listen_address address;
	struct server *server;
	const char *reason;
	sigset_t signals;
	int r;

	reason = listen_parse(&address, options->listen);
	if (reason) {
		ctl_fail(CTL_USAGE, "--listen %s: %s", options->listen, reason);
		return usage();
	}
	r = listen_open(&server_options.fd, &address);
	if (r)
		return ctl_fail(CTL_FAILED, "%s: %s", options->listen, strerror(-r));
	/* Blocked in the library's thread as well. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	server = server_start(&server_options);
	if (!server)
		return ctl_fail(CTL_FAILED, "the server does not start");
	serve(server, &signals);
	server_stop(server);
	if (address.path)
		unlink(address.path);
	return CTL_OK;
}

int main(int argc, char **argv)
{
	struct options options = { .listen = DEFAULT_LISTEN, .socket = CTL_SOCKET };
	int option;

	vgpu_log_init("vgpu-metrics", VGPU_LOG_INFO);
	signal(SIGPIPE, SIG_IGN);
	while ((option = getopt_long(argc, argv, "hV", long_options, NULL)) != -1) {
		switch (option) {
		case OPTION_LISTEN:
			options.listen = optarg;
			break;
		case OPTION_ONCE:
			options.is_once = true;
			break;
		case OPTION_PROCESSES:
			options.with_processes = true;
			break;
		case OPTION_SOCKET:
			options.socket = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		case 'V':
			puts("vgpu-metrics " VGPUD_VERSION);
			return 0;
		default:
			return usage();
		}
	}
	if (optind < argc) {
		ctl_fail(CTL_USAGE, "unexpected argument '%s'", argv[optind]);
		return usage();
	}
	return options.is_once ? print_once(&options) : run(&options);
}
