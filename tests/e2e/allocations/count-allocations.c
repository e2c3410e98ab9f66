/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts malloc, calloc, realloc and mmap of the processes it is preloaded into
 *
 * The counters of each process are in a file $VGPU_COUNT_DIR/<name>.<pid>, which the
 * test maps: one struct allocation_counts.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "count-allocations.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static struct allocation_counts fallback, *counts = &fallback;

static void count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

__attribute__((visibility("default"))) void *malloc(size_t size)
{
	count(&counts->n_malloc);
	return __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
	count(&counts->n_calloc);
	return __libc_calloc(n, size);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t size)
{
	count(&counts->n_realloc);
	return __libc_realloc(p, size);
}

__attribute__((visibility("default"))) void *mmap(
	void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	count(&counts->n_mmap);
	return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

__attribute__((constructor)) static void open_counts(void)
{
	const char *folder = getenv("VGPU_COUNT_DIR");
	char path[512];
	void *map;
	int fd;

	if (!folder)
		return;
	snprintf(path, sizeof(path), "%s/%s.%d", folder, program_invocation_short_name,
		getpid());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*counts)))
		return;
	map = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		counts = map;
}
