/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps of files that others can cut short
 */

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/guard.h"
#include "test.h"

#define SIZE 65536

static struct guard guard;

static volatile char *map_file(int *fdp)
{
	volatile char *map;

	*fdp = memfd_create("file", MFD_CLOEXEC);
	check_eq(ftruncate(*fdp, SIZE), 0);
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fdp, 0);
	check(map != MAP_FAILED);
	return map;
}

TEST(a_map_that_loses_its_file_reads_zeroes)
{
	int fd;
	volatile char *map = map_file(&fd);

	guard_begin(&guard, (void *)map, SIZE);
	map[0] = 1;
	map[SIZE - 1] = 2;
	check(!guard.is_broken);
	check_eq(ftruncate(fd, 4096), 0);
	check_eq(map[0], 1);
	check_eq(map[SIZE - 1], 0);
	check(guard.is_broken);
	map[SIZE - 1] = 3;
	check_eq(map[0], 0);
	check_eq(map[SIZE - 1], 3);
	guard_end(&guard);
	munmap((void *)map, SIZE);
	close(fd);
}

TEST(a_bus_error_elsewhere_ends_the_process)
{
	int fd, status;
	volatile char *map = map_file(&fd), *other = map_file(&fd);
	pid_t pid;

	guard_begin(&guard, (void *)map, SIZE);
	check_eq(ftruncate(fd, 0), 0);
	pid = fork();
	if (!pid) {
		other[0] = 1;
		_exit(0);
	}
	check_eq(waitpid(pid, &status, 0), pid);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	check(!guard.is_broken);
	guard_end(&guard);
}

const bool test_keeps_descriptors = true;
