/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver of a worker
 *
 * NVIDIA's library is searched here, in the loader's search path: it must be known before
 * it is loaded whether a file is the guest library, which the same path may contain
 * first.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"
#include "vgpu/cleanup.h"
#include "vgpu/log.h"

#define LIBRARY "libcuda.so.1"

static const char *const folders[] = {
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib64",
	"/usr/lib",
	"/usr/lib/x86_64-linux-gnu/nvidia/current",
	"/usr/local/nvidia/lib64",
	"/usr/local/nvidia/lib",
	"/usr/local/lib",
	"/run/opengl-driver/lib",
	"/usr/lib/wsl/lib",
};

struct search {
	struct driver *driver;
	const struct softgpu_config *softgpu;
	CUresult init;
	int result; /* DRIVER_E_* that says most about why there is none */
	int n_tried;
};

/* Returns: whether the search is over. */
static bool try_folder(struct search *search, const char *folder, size_t length)
{
	char path[512];
	int r;

	if (!length || (size_t)snprintf(path, sizeof(path), "%.*s/" LIBRARY, (int)length,
			       folder) >= sizeof(path))
		return false;
	if (access(path, F_OK))
		return false;
	search->n_tried++;
	r = driver_open(search->driver, path, search->softgpu, &search->init);
	if (r != DRIVER_E_ABSENT)
		search->result = r;
	/* One that is there but does not start is the answer: another copy of it
	 * would say the same. */
	return r == 0 || r == DRIVER_E_NO_INIT;
}

static bool try_path_list(struct search *search, const char *list)
{
	const char *end;

	for (; list && *list; list = *end ? end + 1 : end) {
		end = strchrnul(list, ':');
		if (try_folder(search, list, end - list))
			return true;
	}
	return false;
}

static int find_nvidia(
	struct driver *driver, const struct softgpu_config *softgpu, CUresult *initp)
{
	struct search search = {
		.driver = driver,
		.softgpu = softgpu,
		.init = CUDA_ERROR_NO_DEVICE,
		.result = DRIVER_E_ABSENT,
	};
	bool over = try_path_list(&search, getenv("LD_LIBRARY_PATH"));
	size_t i;

	for (i = 0; i < sizeof(folders) / sizeof(*folders) && !over; i++)
		over = try_folder(&search, folders[i], strlen(folders[i]));
	if (!search.n_tried) {
		snprintf(driver->why, sizeof(driver->why),
			"there is no " LIBRARY " on this machine");
		vgpu_log_info("%s", driver->why);
	}
	*initp = search.init;
	return search.result;
}

/* This is for the administrator of the host; guests never see it. */
static void warn(const struct driver *driver, const struct driver_options *options)
{
	const char *remedy = "install NVIDIA's driver, whose nvidia-smi has to work, or "
			     "set driver = soft in vgpud.conf";

	if (!strcmp(options->choice, "soft"))
		remedy = "install softgpu (package vgpu-softgpu), or set driver = nvidia "
			 "in vgpud.conf if that driver is there";
	else if (!strcmp(options->choice, "auto"))
		remedy = "install NVIDIA's driver, whose nvidia-smi has to work, or "
			 "softgpu (package vgpu-softgpu)";
	vgpu_log_warning("there is no driver to serve with (driver = %s): %s; %s",
		options->choice, driver->why, remedy);
}

static int select_auto(
	struct driver *driver, const struct driver_options *options, CUresult *initp)
{
	int r = find_nvidia(driver, &options->softgpu, initp);

	if (!r) {
		vgpu_log_info(
			"the driver is %s, NVIDIA's: its cuInit succeeds", driver->path);
		return 0;
	}
	/* The list may be NVIDIA's, and wrong: softgpu has other devices. */
	if (options->softgpu.visible && r == DRIVER_E_NO_INIT)
		return r;
	r = driver_open(driver, options->softgpu_path, &options->softgpu, initp);
	if (!r)
		vgpu_log_info("the driver is %s, softgpu: there is no working " LIBRARY
			      " of NVIDIA's",
			driver->path);
	return r;
}

int driver_select(
	struct driver *driver, const struct driver_options *options, CUresult *initp)
{
	const char *path = options->choice;
	int r;

	*initp = CUDA_ERROR_NO_DEVICE;
	if (!strcmp(path, "auto")) {
		r = select_auto(driver, options, initp);
		if (r)
			warn(driver, options);
		return r;
	}
	if (!strcmp(path, "nvidia")) {
		r = find_nvidia(driver, &options->softgpu, initp);
	} else {
		if (!strcmp(path, "soft"))
			path = options->softgpu_path;
		else if (!strcmp(path, "null"))
			path = options->null_path;
		r = driver_open(driver, path, &options->softgpu, initp);
	}
	if (r)
		warn(driver, options);
	else
		vgpu_log_info("the driver is %s, as configured (%s)", driver->path,
			options->choice);
	return r;
}
