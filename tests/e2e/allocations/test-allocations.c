/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: ten thousand launches allocate nothing, on either side
 *
 * Runs with count-allocations preloaded here and in the worker, on the null driver:
 * allocations of a real driver are not of interest.
 */

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../e2e.h"
#include "count-allocations.h"

#define N_LAUNCHES 10000
#define PROCESSES_MAX 8

/* The counters of all processes of that name, mapped. */
static int map_counts(const char *name, const volatile struct allocation_counts **maps)
{
	const char *folder = getenv("VGPU_COUNT_DIR");
	struct dirent *entry;
	char path[512];
	int n = 0, fd;
	DIR *dir;

	if (!folder)
		test_skip("VGPU_COUNT_DIR is not set: nothing counts");
	dir = opendir(folder);
	check(dir);
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, name, strlen(name)) || n == PROCESSES_MAX)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		check(fd >= 0);
		maps[n] = mmap(NULL, sizeof(**maps), PROT_READ, MAP_SHARED, fd, 0);
		check(maps[n++] != MAP_FAILED);
		close(fd);
	}
	closedir(dir);
	return n;
}

static uint64_t total(const volatile struct allocation_counts **maps, int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += maps[i]->n_malloc + maps[i]->n_calloc + maps[i]->n_realloc +
		       maps[i]->n_mmap;
	return sum;
}

static void launch(CUfunction fill, CUdeviceptr p, int n)
{
	for (int i = 0; i < n; i++)
		check_ok(launch_fill(fill, p, i, 1, NULL));
	check_ok(cuStreamSynchronize(NULL));
}

TEST(launches_allocate_nothing_in_program_or_worker)
{
	const volatile struct allocation_counts *ours[PROCESSES_MAX],
		*theirs[PROCESSES_MAX];
	struct fixture fixture = fixture_new();
	CUfunction fill = fixture_function(&fixture, "fill");
	uint64_t ours_before, theirs_before, ours_after, theirs_after;
	int n_ours, n_theirs;
	CUdeviceptr p;

	check_ok(cuMemAlloc(&p, 4096));
	launch(fill, p, 2000); /* whatever is made once is made now */
	n_ours = map_counts("e2e-allocations", ours);
	n_theirs = map_counts("vgpu-worker", theirs);
	check(n_ours >= 1 && n_theirs >= 1);
	ours_before = total(ours, n_ours);
	theirs_before = total(theirs, n_theirs);
	check(ours_before > 0 && theirs_before > 0); /* the counters count */

	launch(fill, p, N_LAUNCHES);

	ours_after = total(ours, n_ours);
	theirs_after = total(theirs, n_theirs);
	check_eq(ours_after, ours_before);
	check_eq(theirs_after, theirs_before);
}
