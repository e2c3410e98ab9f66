/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-doctor: looks for what keeps programs of this virtual machine from the vGPU
 */

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"
#include "vgpu/log.h"

#include "doctor/doctor.h"

/* See vgpu-doctor(1). */
enum {
	EXIT_FINE = 0,
	EXIT_FINDING = 1,
	EXIT_USAGE = 2,
};

static const char help[] =
	"Usage: vgpu-doctor [--json] [--root DIR]\n"
	"Looks for what keeps programs of this virtual machine from the vGPU, changes\n"
	"nothing, and prints for each subject ok, WARN or FAIL and what to do.\n"
	"\n"
	"      --json      print JSON\n"
	"      --root DIR  look at what is installed in the system below DIR, an image\n"
	"                  for example; without a device and calls\n"
	"  -h, --help      print this and exit\n"
	"  -V, --version   print the version and exit\n"
	"\n"
	"Exit status: 0 nothing fails; 1 something does; 2 wrong command line.\n";

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "json", no_argument, NULL, 'j' },
	{ "root", required_argument, NULL, 'r' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static int usage(void)
{
	fputs("Try 'vgpu-doctor --help'.\n", stderr);
	return EXIT_USAGE;
}

/* Output that cannot be written is a failure. */
static int end(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "vgpu-doctor: the output cannot be written: %s\n",
		strerror(errno));
	return EXIT_FINDING;
}

/* Return: the path without slashes at its end, of the heap, or NULL: it is no folder. */
static char *find_root(const char *path)
{
	char *root = realpath(path, NULL);
	DIR *folder = root ? opendir(root) : NULL;

	if (folder) {
		closedir(folder);
		if (!strcmp(root, "/"))
			*root = '\0';
		return root;
	}
	fprintf(stderr, "vgpu-doctor: %s: %s\n", path, strerror(errno));
	free(root);
	return NULL;
}

static int look(const char *root, bool is_json)
{
	struct doctor doctor;
	int status;

	doctor_init(&doctor, root);
	doctor_look(&doctor);
	if (is_json)
		vgpu_findings_print_json(&doctor.found, stdout);
	else
		vgpu_findings_print(&doctor.found, stdout);
	status = doctor.found.worst == VGPU_FINDING_FAIL ? EXIT_FINDING : EXIT_FINE;
	doctor_deinit(&doctor);
	return end(status);
}

int main(int argc, char **argv)
{
	_vgpu_cleanup_(vgpu_freep) char *root = NULL;
	const char *path = NULL;
	bool is_json = false;
	int option;

	vgpu_log_init("vgpu-doctor", VGPU_LOG_NONE);
	signal(SIGPIPE, SIG_IGN);
	while ((option = getopt_long(argc, argv, "hV", long_options, NULL)) != -1) {
		switch (option) {
		case 'h':
			fputs(help, stdout);
			return end(EXIT_FINE);
		case 'V':
			puts("vgpu-doctor " VGPU_VERSION);
			return end(EXIT_FINE);
		case 'j':
			is_json = true;
			break;
		case 'r':
			path = optarg;
			break;
		default:
			return usage();
		}
	}
	if (optind < argc) {
		fprintf(stderr, "vgpu-doctor: unexpected argument '%s'\n", argv[optind]);
		return usage();
	}
	if (path && !(root = find_root(path)))
		return EXIT_USAGE;
	return look(root ? root : "", is_json);
}
