/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of a worker's driver, which is never the guest library
 *
 * The libraries are built beside this test: one with our note, one that works and one
 * whose cuInit fails. Each is copied to the name that is searched.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/driver.h"
#include "test.h"

static struct driver driver;
static CUresult init;

/* A folder in which that library is called libcuda.so.1. */
static const char *folder_with(const char *name, const char *variable)
{
	static char folders[4][256];
	static int n_folders;
	char *folder = folders[n_folders++], path[512];

	snprintf(folder, sizeof(folders[0]), "%s/%s", test_tmpdir(), name);
	check_eq(mkdir(folder, 0700), 0);
	snprintf(path, sizeof(path), "%s/libcuda.so.1", folder);
	check_eq(symlink(getenv(variable), path), 0);
	return folder;
}

static int choose(const char *choice)
{
	struct driver_options options = {
		.choice = choice,
		.softgpu_path = getenv("DRIVER_GOOD"),
		.null_path = getenv("DRIVER_GOOD"),
	};

	return driver_select(&driver, &options, &init);
}

TEST(the_guest_library_is_skipped_and_the_search_continues)
{
	char path[600];

	snprintf(path, sizeof(path), "%s:%s", folder_with("ours", "DRIVER_OURS"),
		folder_with("good", "DRIVER_GOOD"));
	setenv("LD_LIBRARY_PATH", path, 1);
	check_eq(choose("nvidia"), 0);
	check(strstr(driver.path, "/good/libcuda.so.1"));
	check(driver.table.cuInit && !driver.table.cuMemAlloc_v2);
}

TEST(our_own_library_is_refused_also_by_path)
{
	check_eq(choose(getenv("DRIVER_OURS")), DRIVER_E_OURS);
}

TEST(a_driver_that_does_not_start_makes_way_for_softgpu)
{
	setenv("LD_LIBRARY_PATH", folder_with("broken", "DRIVER_BROKEN"), 1);
	check_eq(choose("auto"), 0);
	check_str(driver.path, getenv("DRIVER_GOOD"));
	check_eq(choose("nvidia"), DRIVER_E_NO_INIT);
	check_eq(init, CUDA_ERROR_NO_DEVICE);
}

TEST(a_library_that_is_no_driver_is_refused)
{
	check_eq(choose("/nonexistent/libcuda.so.1"), DRIVER_E_ABSENT);
	check_eq(choose("/proc/self/exe"), DRIVER_E_ABSENT);
	check_eq(choose("/dev/null"), DRIVER_E_ABSENT);
}
