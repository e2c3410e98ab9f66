/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox files: the files that a worker may open, before and after it has a guest
 *
 * Landlock restricts the calling thread and those that it starts, so it is enforced while
 * there is one thread, before any driver is loaded. The rules allow what loading a driver
 * needs: libraries and the loader's files, the devices, and the files of /proc and /sys
 * that NVIDIA's driver is known to read. softgpu and the null driver need none of them
 * later, and lose them.
 *
 * So NVIDIA's library can be loaded only from a folder in the loader's configuration, in
 * LD_LIBRARY_PATH or in `driver`. Device files that nvidia-modprobe creates must exist
 * before.
 */

#include <errno.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "worker/run/landlock.h"
#include "worker/run/sandbox-files.h"

#define NVIDIA_MODPROBE "/usr/bin/nvidia-modprobe"

/* Files of the loader and the C library, and NVIDIA's settings. */
static const char *const readable[] = {
	"/lib",
	"/lib64",
	"/usr/lib",
	"/usr/lib64",
	"/usr/local/lib",
	"/usr/local/lib64",
	"/usr/local/nvidia",
	"/run/opengl-driver/lib",
	"/etc/ld.so.cache",
	"/etc/ld.so.preload",
	"/etc/localtime",
	"/etc/nvidia",
	"/usr/share/locale",
	"/usr/share/nvidia",
	"/usr/share/zoneinfo",
	"/dev/random",
	"/dev/urandom",
	"/sys",
};

static const char *const readable_proc[] = {
	"/proc/self",
	"/proc/cpuinfo",
	"/proc/devices",
	"/proc/driver",
	"/proc/filesystems",
	"/proc/meminfo",
	"/proc/modules",
	"/proc/stat",
	"/proc/sys/kernel",
	"/proc/sys/vm",
	"/proc/version",
};

/* Including folders: /dev/nvidia-caps. */
static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/nvidia*",
	"/dev/dxg" };

static const char *const loader_settings[] = { "/etc/ld.so.conf",
	"/etc/ld.so.conf.d/*.conf" };

#define N(_array) (sizeof(_array) / sizeof(*(_array)))

typedef int (*visit_fn)(struct landlock *landlock, const char *path);

/* Return: 0, also without a match, or -errno. */
static int visit(struct landlock *landlock, const char *pattern, visit_fn visitor)
{
	glob_t found;
	int r = 0;

	if (glob(pattern, GLOB_NOSORT, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc && !r; i++)
		r = visitor(landlock, found.gl_pathv[i]);
	globfree(&found);
	return r;
}

static int allow_device(struct landlock *landlock, const char *path)
{
	return landlock_allow(
		landlock, path, LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_IOCTL);
}

static int allow_reading(struct landlock *landlock, const char *path)
{
	return landlock_allow(landlock, path, LANDLOCK_READ);
}

/* Allows a folder of libraries, unless it is the root. */
static int allow_folder(struct landlock *landlock, const char *path)
{
	return *path != '/' || !path[strspn(path, "/")] ? 0
							: allow_reading(landlock, path);
}

/* Each line of the loader's configuration is a folder, or includes other such files. */
static int allow_loader_folders(struct landlock *landlock, const char *path)
{
	_vgpu_cleanup_(vgpu_freep) char *line = NULL;
	FILE *file = fopen(path, "re");
	size_t size = 0;
	int r = 0;

	if (!file)
		return 0;
	while (!r && getline(&line, &size, file) >= 0) {
		line[strcspn(line, "#\n")] = '\0';
		line[strcspn(line, " \t=")] = '\0';
		r = allow_folder(landlock, line);
	}
	fclose(file);
	return r;
}

static int allow_path_list(struct landlock *landlock, const char *list)
{
	char path[PATH_MAX];
	size_t n;
	int r = 0;

	for (; !r && list && *list; list += n + (list[n] == ':')) {
		n = strcspn(list, ":");
		if ((size_t)snprintf(path, sizeof(path), "%.*s", (int)n, list) <
			sizeof(path))
			r = allow_folder(landlock, path);
	}
	return r;
}

/* Allows the libraries in the folder of one given by its path, and no other file
 * there. */
static int allow_siblings(struct landlock *landlock, const char *path)
{
	char folder[PATH_MAX], pattern[PATH_MAX];

	if ((size_t)snprintf(folder, sizeof(folder), "%s", path) >= sizeof(folder) ||
		(size_t)snprintf(pattern, sizeof(pattern), "%.*s/*.so*", PATH_MAX - 8,
			dirname(folder)) >= sizeof(pattern))
		return 0;
	return visit(landlock, pattern, allow_reading);
}

static int allow_library(struct landlock *landlock, const char *path)
{
	_vgpu_cleanup_(vgpu_freep) char *real = NULL;
	int r;

	if (!path || *path != '/')
		return 0;
	real = realpath(path, NULL);
	r = allow_siblings(landlock, path);
	return r || !real ? r : allow_siblings(landlock, real);
}

static int allow_all(struct landlock *landlock, const struct driver_options *options)
{
	int r = 0;

	for (size_t i = 0; i < N(readable) && !r; i++)
		r = allow_reading(landlock, readable[i]);
	for (size_t i = 0; i < N(readable_proc) && !r; i++)
		r = landlock_allow_proc(landlock, readable_proc[i]);
	for (size_t i = 0; i < N(devices) && !r; i++)
		r = visit(landlock, devices[i], allow_device);
	for (size_t i = 0; i < N(loader_settings) && !r; i++)
		r = visit(landlock, loader_settings[i], allow_loader_folders);
	if (!r)
		r = allow_path_list(landlock, getenv("LD_LIBRARY_PATH"));
	if (!r)
		r = allow_library(landlock, options->choice);
	if (!r)
		r = allow_library(landlock, options->softgpu_path);
	return r ? r : allow_library(landlock, options->null_path);
}

/* NVIDIA's driver lets a setuid program create its device files, which cannot work in the
 * sandbox. So this runs the program before, with the driver's arguments. */
static void make_devices(const struct driver_options *options)
{
	char *argv[] = { "nvidia-modprobe", "-u", "-c", "0", NULL };
	pid_t pid;

	if (!strcmp(options->choice, "soft") || !strcmp(options->choice, "null") ||
		!access("/dev/nvidia-uvm", F_OK) || access(NVIDIA_MODPROBE, X_OK))
		return;
	pid = fork();
	if (!pid) {
		close_range(STDERR_FILENO + 1, ~0u, 0);
		execv(NVIDIA_MODPROBE, argv);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int sandbox_files_limit(struct landlock *landlock, const struct driver_options *options)
{
	int r;

	make_devices(options);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return vgpu_error_origin(-errno);
	r = landlock_init(landlock, &landlock_kernel);
	if (r == LANDLOCK_E_ABSENT) {
		vgpu_log_info("this kernel has no Landlock: only the system call filter "
			      "and file permissions protect files");
		return 0;
	}
	if (!r)
		r = allow_all(landlock, options);
	if (!r)
		r = landlock_enforce(landlock);
	return r ? vgpu_error_trace(r) : 0;
}

int sandbox_files_end(struct landlock *landlock)
{
	int r;

	landlock_deinit(landlock);
	r = landlock_init(landlock, &landlock_kernel);
	if (r == LANDLOCK_E_ABSENT)
		return 0;
	if (!r)
		r = landlock_enforce(landlock);
	landlock_deinit(landlock);
	return r ? vgpu_error_trace(r) : 0;
}
