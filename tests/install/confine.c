/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes a command with the confinement of a service, without a service manager
 *
 *	confine --capability NUMBER... --call NAME... --writable DIR... -- COMMAND...
 *
 * The command keeps only these capabilities, may make only these system calls (others
 * fail with EPERM) and only sockets of the file system, sees no network, and may write
 * only there and in /dev, /proc and /sys. What a call is on another kernel is ignored.
 * Exit status: the command's, 126 if it could not be confined.
 */

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define CAPABILITIES_MAX 64

static bool kept[CAPABILITIES_MAX];
static scmp_filter_ctx filter;

static void need(bool is_true, const char *what)
{
	if (is_true)
		return;
	fprintf(stderr, "confine: %s: %s\n", what, strerror(errno));
	exit(126);
}

static void keep_capability(const char *number)
{
	unsigned long i = strtoul(number, NULL, 10);

	need(i < CAPABILITIES_MAX, number);
	kept[i] = true;
}

static void allow_call(const char *name)
{
	const int call = seccomp_syscall_resolve_name(name);

	if (call == __NR_SCMP_ERROR || call < 0)
		return;
	if (call == SCMP_SYS(socket))
		errno = -seccomp_rule_add(
			filter, SCMP_ACT_ALLOW, call, 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
	else
		errno = -seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
	need(!errno, name);
}

/* A mount of its own stays as it is when those around it become read-only. */
static void keep_writable(const char *folder)
{
	need(!mount(folder, folder, NULL, MS_BIND, NULL), folder);
}

static void drop_capabilities(void)
{
	for (int i = 0; i < CAPABILITIES_MAX; i++)
		if (!kept[i] && prctl(PR_CAPBSET_READ, i) == 1)
			need(!prctl(PR_CAPBSET_DROP, i), "capabilities");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "capability", required_argument, NULL, 'p' },
		{ "call", required_argument, NULL, 'c' },
		{ "writable", required_argument, NULL, 'w' },
		{ 0 },
	};
	int option;

	filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	need(filter != NULL, "filter");
	need(!unshare(CLONE_NEWNET | CLONE_NEWNS), "namespaces");
	need(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "mounts");
	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (option == 'p')
			keep_capability(optarg);
		else if (option == 'c')
			allow_call(optarg);
		else if (option == 'w')
			keep_writable(optarg);
		else
			exit(126);
	}
	need(!mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), "root");
	drop_capabilities();
	need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "privileges");
	errno = -seccomp_load(filter);
	need(!errno, "filter");
	execvp(argv[optind], argv + optind);
	need(false, argv[optind]);
}
