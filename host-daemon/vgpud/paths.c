/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths: the default programs and libraries of vgpud
 */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vgpud/paths.h"
#include "vgpu/error.h"

/* Places relative to vgpud's folder: in a build tree, or moved together. */
static const char *const dirs[] = {
	"../worker",
	"../worker/sensors",
	"../softgpu",
	"../softgpu/api",
	"../driver",
	"../driver/null",
	".",
	NULL,
};

/* Fills in one path: relative to this program, or the installed one. */
static int complete(
	char **pathp, const char *dir, const char *installed, const char *name)
{
	char *path = NULL;

	if (*pathp)
		return 0;
	for (int i = 0; dirs[i]; i++) {
		if (asprintf(&path, "%s/%s/%s", dir, dirs[i], name) < 0)
			return vgpu_error_origin(-ENOMEM);
		*pathp = realpath(path, NULL);
		free(path);
		if (*pathp)
			return 0;
	}
	if (asprintf(&path, "%s/%s", installed, name) < 0)
		return vgpu_error_origin(-ENOMEM);
	*pathp = path;
	return 0;
}

/* The first folder of RuntimeDirectory=, see systemd.exec(5). By hand there is no
 * default: several vgpuds of one host would want the same path. */
static int complete_ctl_socket(char **pathp)
{
	const char *folders = getenv("RUNTIME_DIRECTORY");

	if (*pathp || !folders || *folders != '/')
		return 0;
	if (asprintf(pathp, "%.*s/control", (int)strcspn(folders, ":"), folders) < 0) {
		*pathp = NULL;
		return vgpu_error_origin(-ENOMEM);
	}
	return 0;
}

int paths_complete(struct config *config)
{
	char dir[PATH_MAX];
	ssize_t n;
	int r;

	n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	if (n < 0)
		return vgpu_error_origin(-errno);
	dir[n] = '\0';
	*strrchr(dir, '/') = '\0';

	r = complete(&config->worker, dir, VGPUD_LIBEXECDIR, "vgpu-worker");
	if (!r)
		r = complete(&config->sensors, dir, VGPUD_LIBEXECDIR, "vgpu-sensors");
	if (!r)
		r = complete(&config->softgpu, dir, VGPUD_LIBDIR, "libvgpu-softgpu.so");
	if (!r)
		r = complete(&config->null_driver, dir, VGPUD_LIBDIR, "libvgpu-null.so");
	if (!r)
		r = complete_ctl_socket(&config->ctl_socket);
	return r;
}
