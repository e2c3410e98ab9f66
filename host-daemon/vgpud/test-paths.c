/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Default programs and libraries
 */

#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "vgpud/paths.h"

static bool ends_with(const char *path, const char *name)
{
	size_t length = strlen(path), n = strlen(name);

	return length > n && path[length - n - 1] == '/' &&
	       !strcmp(path + length - n, name);
}

TEST(paths_that_are_not_set_become_absolute_ones)
{
	struct config config = {};

	check_eq(paths_complete(&config), 0);
	check(config.worker && *config.worker == '/');
	check(ends_with(config.worker, "vgpu-worker"));
	check(ends_with(config.sensors, "vgpu-sensors"));
	check(config.softgpu && *config.softgpu == '/');
	check(ends_with(config.softgpu, "libvgpu-softgpu.so"));
	check(config.null_driver && *config.null_driver == '/');
	check(ends_with(config.null_driver, "libvgpu-null.so"));
	free(config.worker);
	free(config.softgpu);
	free(config.null_driver);
	free(config.sensors);
}

TEST(paths_that_are_set_stay_as_they_are)
{
	char worker[] = "/nowhere/worker", driver[] = "relative/driver.so";
	struct config config = { .worker = worker, .softgpu = driver };

	check_eq(paths_complete(&config), 0);
	check(config.worker == worker);
	check(config.softgpu == driver);
	check(ends_with(config.null_driver, "libvgpu-null.so"));
	free(config.null_driver);
	free(config.sensors);
}

/* Return: the socket for vgpuctl, to be freed, by that value of systemd's variable. */
static char *ctl_socket_by(const char *folders)
{
	struct config config = {};

	if (folders)
		check_eq(setenv("RUNTIME_DIRECTORY", folders, 1), 0);
	else
		unsetenv("RUNTIME_DIRECTORY");
	check_eq(paths_complete(&config), 0);
	free(config.worker);
	free(config.softgpu);
	free(config.null_driver);
	free(config.sensors);
	return config.ctl_socket;
}

TEST(the_socket_for_vgpuctl_is_in_the_folder_of_the_service)
{
	char *path = ctl_socket_by("/run/vgpud");

	check_str(path, "/run/vgpud/control");
	free(path);
	path = ctl_socket_by("/run/a:/run/b");
	check_str(path, "/run/a/control");
	free(path);
	check(!ctl_socket_by("relative"));
	check(!ctl_socket_by(NULL));
}
