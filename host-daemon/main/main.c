/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpud: gives virtual machines a share of this host's GPU
 */

#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "broker/broker.h"
#include "keeper/child.h"
#include "keeper/handover.h"
#include "keeper/keeper.h"
#include "keeper/listen-fds.h"
#include "keeper/own-group.h"
#include "keeper/store.h"
#include "vgpu/cleanup.h"
#include "vgpu/log.h"
#include "vgpud/config-load.h"
#include "vgpud/config.h"
#include "vgpud/journal.h"
#include "vgpud/link.h"
#include "vgpud/notify.h"

#define DEFAULT_CONFIG "/etc/vgpu/vgpud.conf"

static const char help[] =
	"Usage: vgpud [OPTION]...\n"
	"Gives virtual machines a share of this host's GPU: serves QEMU's ivshmem "
	"devices\n"
	"and runs a worker process for each guest process that uses CUDA.\n"
	"\n"
	"  -c, --config FILE  read FILE (default " DEFAULT_CONFIG ")\n"
	"      --check        read the configuration, print its mistakes and what this "
	"host\n"
	"                     lacks for it, and exit\n"
	"      --fd-store N   the service manager keeps N descriptors, at most 8192:\n"
	"                     vgpud stores there what the next one needs to continue\n"
	"      --own-group    the control group is vgpud's own: move vgpud's processes\n"
	"                     below it, so that machines can have limits of memory\n"
	"      --leave-group  undo that for the next vgpud, and exit\n"
	"  -h, --help         print this and exit\n"
	"  -V, --version      print the version and exit\n"
	"\n"
	"The file has one section [vgpud] and one [vm NAME] for each VM, which may be\n"
	"in a file of its own, vm.d/NAME.conf beside it:\n"
	"\n"
	"  [vgpud]\n"
	"  driver = auto          auto, nvidia, soft, null, or the path of a "
	"libcuda.so.1\n"
	"  log-level = info       none, error, warning, info, debug\n"
	"  log-file = PATH        default: standard error\n"
	"  flight-folder = PATH   for files with the last calls before a fault or the\n"
	"                         death of a worker; default: in the log only\n"
	"  ctl-socket = PATH      where vgpuctl connects; default: control in the "
	"folder\n"
	"                         of the service, none by hand\n"
	"  ctl-admins = vgpu-admin    the groups that may change and look, and that may\n"
	"  ctl-monitors = vgpu-monitor    only look, by vgpuctl\n"
	"  warm-workers = 1       workers kept ready for the next guest process\n"
	"  max-workers = 128      limit of all workers\n"
	"  meter = no             yes: measure and share the device time of NVIDIA's "
	"driver\n"
	"  quantum = 5            ms of device time by which a VM may be ahead of "
	"others\n"
	"  device-memory-total = SIZE   device memory of all VMs at a time; default: no\n"
	"                         limit\n"
	"  evict-idle = 10        seconds without calls after which a process may make\n"
	"                         room for others\n"
	"  sandbox = yes          confine workers; no: for debugging only\n"
	"  allow-unprivileged = no    yes: NVIDIA's driver also if vgpud is not root\n"
	"  worker-uids = 70000-74095  their user ids if vgpud is root\n"
	"  worker = PATH          the worker program\n"
	"  softgpu = PATH         the software device\n"
	"  null-driver = PATH     the driver that executes nothing, for measurements\n"
	"  nvml = auto            NVIDIA's library for sensors, shown to guests: auto, "
	"no\n"
	"                         or the path of a libnvidia-ml.so.1\n"
	"  sensors = PATH         the program that reads them\n"
	"  softgpu-name = NAME    its name, compute capability, memory and threads\n"
	"  softgpu-cc = 12.1\n"
	"  softgpu-memory = 4G\n"
	"  softgpu-threads = N\n"
	"  softgpu-kernel-timeout = 0   time limit of a kernel in seconds, 0: none\n"
	"  softgpu-devices = 1    number of software devices, at most 8\n"
	"  softgpu-schedule = long    or fair: the order of the warps of a block\n"
	"  softgpu-check = no     what kernels are watched for: memory, race,\n"
	"                         uninitialised, fatal; yes: memory\n"
	"\n"
	"  [vm NAME]\n"
	"  transport = ivshmem    ivshmem (QEMU ivshmem-doorbell), socket (processes of\n"
	"                         this machine), plain (QEMU ivshmem-plain)\n"
	"  socket = PATH          where QEMU or the processes connect\n"
	"  socket-mode = 0660     its mode and group\n"
	"  socket-group = GROUP\n"
	"  memory = PATH          with plain: QEMU's mem-path\n"
	"  memory-owner = USER    its owner, unless root or vgpud's user\n"
	"  size = 4G              shared memory, a power of two from 64M\n"
	"  hugepages = no         its pages: no, transparent, hugetlb (ivshmem only)\n"
	"  devices = LIST         those it has, such as 2,0 or GPU-UUID; default: all\n"
	"  device-memory = SIZE   limit of all its guest processes, default: none\n"
	"  evictable = no         yes: its device memory may make room for others, and\n"
	"                         moves to its shared memory meanwhile\n"
	"  weight = 100           of its share of the device's time, 1 to 10000\n"
	"  priority = normal      low, normal or high: higher ones go first\n"
	"  paused = no            yes: it has no device time\n"
	"  max-processes = N      guest processes at a time, default: 31 (which need\n"
	"                         size = 2G), with socket 64\n"
	"  handles = 262144       limit of objects of each: streams, events, ...\n"
	"  max-threads = 1024     guest threads that call, of each\n"
	"  image-memory = 4G      limit of code that each has loaded\n"
	"  image-store = 1G       limit of code that is kept for the next one\n"
	"  host-memory = SIZE     limit of host memory of all its workers; default:\n"
	"                         half of the host's memory\n"
	"  cpu = PERCENT          limit of CPU time of all its workers, in percent of "
	"one\n"
	"                         CPU, default: none\n"
	"  copy-bandwidth = SIZE  limit of bytes that are copied in a second between "
	"all\n"
	"                         its guest processes and the devices, default: none\n"
	"  process-rate = 20      guest processes that start in a second; five times as\n"
	"                         many at once\n"
	"  log-lines = 200        lines that its guests may cause at once; 5 more in\n"
	"                         each second\n"
	"  softgpu-launch-timeout = 0   time limit in seconds of all kernels that one\n"
	"                         launch starts, 0: none\n"
	"\n"
	"SIGTERM and SIGINT end running sessions and then vgpud. SIGHUP reloads the\n"
	"configuration, SIGUSR2 replaces vgpud by the program on the disk, and with\n"
	"--fd-store SIGUSR1 leaves everything to the next vgpud; running sessions\n"
	"continue.\n"
	"\n"
	"Exit status: 0 ended by a signal, or --check found no mistake; 1 vgpud cannot\n"
	"run or cannot continue, the log has the reason; 2 invalid option or\n"
	"configuration.\n";

/*
 * Keeper and broker have descriptors of all VMs: without this any process of the same
 * user could open their memory and descriptors in /proc. The flag does not survive
 * execve(), so each process sets it.
 */
static void forbid_reading(void)
{
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		vgpu_log_warning("processes of the same user may read vgpud: %m");
}

/* The broker's part of main(): descriptors 3 and 4 are link and configuration. */
static int run_broker(const char *path, const char *version)
{
	_vgpu_cleanup_(config_freep) struct config *config = NULL;
	int r;

	/* It was executed as /proc/self/exe. */
	prctl(PR_SET_NAME, "vgpud-broker");
	vgpu_log_init("vgpud-broker", VGPU_LOG_INFO);
	forbid_reading();
	vgpu_log_never_wait();
	journal_use();
	if (strcmp(version, LINK_VERSION)) {
		vgpu_log_error("this broker speaks version %s with its keeper, the "
			       "running keeper version %s: vgpud has to be restarted",
			LINK_VERSION, version);
		return EXIT_FAILURE;
	}
	r = config_load_kept(CHILD_FIRST_FD + 1, &config);
	if (r)
		return r;
	vgpu_log_init("vgpud-broker", config->log_level);
	return broker_run(config, path, CHILD_FIRST_FD + 1, CHILD_FIRST_FD);
}

/*
 * VGPU_LOG belongs to the library in guest programs, and may be set in order to debug
 * one. The host's processes, which all descend from this one, use VGPUD_LOG.
 */
static void take_log_variable(void)
{
	const char *level = getenv("VGPUD_LOG");

	unsetenv("VGPU_LOG");
	vgpu_log_init("vgpud", VGPU_LOG_INFO);
	if (!level)
		return;
	if (vgpu_log_level_from_string(level) < 0)
		vgpu_log_warning("VGPUD_LOG is none, error, warning, info or debug, not "
				 "\"%s\"",
			level);
	else
		setenv("VGPU_LOG", level, 1);
}

static bool has_room(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLOUT };

	return fd >= 0 && poll(&poller, 1, 0) > 0 && poller.revents & POLLOUT;
}

/*
 * Reads the configuration, or the one of an earlier vgpud whose work goes on. If that was
 * another program, this one may find mistakes there, and its work goes on with the file.
 * If that has mistakes as well, everything stays with the service manager.
 */
static int load(const char *path, int state, int *sourcesp, struct config **configp)
{
	if (state < 0)
		return config_load(path, NULL, sourcesp, configp);
	*sourcesp = handover_find_sources(state);
	if (*sourcesp >= 0 && !config_load_kept(*sourcesp, configp))
		return 0;
	*sourcesp = vgpu_close(*sourcesp);
	vgpu_log_error("the configuration that an earlier vgpud has stored cannot be "
		       "used: %s is read instead",
		path);
	return config_load(path, NULL, sourcesp, configp);
}

static int run_keeper(
	const char *path, bool check, unsigned int n_stored_max, bool own_group)
{
	_vgpu_cleanup_(config_freep) struct config *config = NULL;
	_vgpu_cleanup_(vgpu_closep) int sources = -1, console = -1, control = -1;
	struct listen_fds given;
	int state = -1, r;

	vgpu_log_never_wait();
	journal_use();
	take_log_variable();
	vgpu_log_init("vgpud", VGPU_LOG_INFO);
	forbid_reading();
	notify_init();
	if (check)
		return config_load_check(path);
	r = listen_fds_init(&given);
	if (r)
		return EXIT_FAILURE;
	control = listen_fds_take(&given, "control");
	state = store_inherit(&given, n_stored_max);
	listen_fds_deinit(&given);
	console = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	r = load(path, state, &sources, &config);
	if (r)
		return r;
	vgpu_log_init("vgpud", config->log_level);
	r = config_load_log(config);
	if (!r) {
		r = keeper_run(
			&config, sources, path, state, n_stored_max, control, own_group);
		sources = control = -1;
	}
	if (r && config->log_file && has_room(console))
		dprintf(console, "vgpud has ended with status %d: %s says why\n", r,
			config->log_file);
	return r;
}

/* The same in a process that was a keeper already, whose log is open and whose
 * descriptors are the ones of the state. */
static int run_successor(const char *path, int state)
{
	_vgpu_cleanup_(config_freep) struct config *config = NULL;
	int sources, r;

	if (close_range(CHILD_FIRST_FD, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		vgpu_log_warning("workers inherit descriptors: %m");
	/* It may have been executed by its number. */
	prctl(PR_SET_NAME, "vgpud");
	vgpu_log_never_wait();
	journal_use();
	take_log_variable();
	forbid_reading();
	notify_init();
	sources = handover_find_sources(state);
	if (sources < 0)
		return EXIT_FAILURE;
	r = config_load_kept(sources, &config);
	if (r)
		return r;
	vgpu_log_init("vgpud", config->log_level);
	return keeper_run(&config, sources, path, state, 0, -1, false);
}

/* Whether this program can be the successor of the keeper that executes it for a trial:
 * descriptors 3 and 4 are state and configuration. */
static int run_trial(void)
{
	_vgpu_cleanup_(config_freep) struct config *config = NULL;
	int r;

	vgpu_log_never_wait();
	journal_use();
	take_log_variable();
	forbid_reading();
	if (!handover_is_possible(CHILD_FIRST_FD))
		return EXIT_FAILURE;
	r = config_load_kept(CHILD_FIRST_FD + 1, &config);
	return r ? r : HANDOVER_EXIT_CAN;
}

static int leave_group(void)
{
	const int r = own_group_undo(NULL);

	if (r)
		fprintf(stderr,
			"vgpud: the division of the control group cannot be undone: %s\n",
			strerror(-r));
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Return: the number, or 0: it is none, or too large. */
static unsigned int parse_store(const char *text)
{
	char *end;
	const unsigned long n = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && n <= STORE_MAX ? n : 0;
}

/*
 * Three kinds of processes make up the host side. vgpud itself becomes the keeper, which
 * owns every descriptor and is the parent of the two others: the broker, which is this
 * same program executed again by the keeper, makes all decisions and may be replaced at
 * any time; and the workers, one for each guest process, are another program, and the
 * only one that uses a GPU driver. Only workers ever interpret the calls of a guest.
 */
int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "check", no_argument, NULL, 'k' },
		{ "fd-store", required_argument, NULL, 's' },
		{ "leave-group", no_argument, NULL, 'l' },
		{ "own-group", no_argument, NULL, 'g' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	const char *path = DEFAULT_CONFIG;
	unsigned int n_stored_max = 0;
	bool check = false, own_group = false;
	int option;

	if (argc == 4 && !strcmp(argv[1], "--broker"))
		return run_broker(argv[2], argv[3]);
	if (argc == 4 && !strcmp(argv[1], HANDOVER_SUCCESSOR))
		return run_successor(argv[3], (int)strtol(argv[2], NULL, 10));
	if (argc == 2 && !strcmp(argv[1], HANDOVER_TRIAL))
		return run_trial();
	while ((option = getopt_long(argc, argv, "c:hV", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			path = optarg;
			break;
		case 'k':
			check = true;
			break;
		case 's':
			n_stored_max = parse_store(optarg);
			if (n_stored_max)
				break;
			fprintf(stderr,
				"vgpud: --fd-store takes a number from 1 to %u, not "
				"'%s'\n",
				STORE_MAX, optarg);
			return EXIT_USAGE;
		case 'g':
			own_group = true;
			break;
		case 'l':
			return leave_group();
		case 'h':
			return fputs(help, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
		case 'V':
			puts("vgpud " VGPUD_VERSION);
			return EXIT_SUCCESS;
		default:
			fputs("Try 'vgpud --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "vgpud: unexpected argument '%s'\nTry 'vgpud --help'.\n",
			argv[optind]);
		return EXIT_USAGE;
	}
	return run_keeper(path, check, n_stored_max, own_group);
}
