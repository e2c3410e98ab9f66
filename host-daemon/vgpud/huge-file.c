/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Huge file: a memory file in huge pages that the administrator has reserved
 */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpud/huge-file.h"

static_assert(HUGE_FILE_PAGE_SIZE == 2u << 20, "MFD_HUGE_2MB");

int huge_file_make(const char *name, uint64_t size)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	int made;

	fd = memfd_create(
		name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | MFD_HUGE_2MB);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return vgpu_error_origin(-errno);
	made = fd;
	fd = -1;
	return made;
}

bool huge_file_is(int fd)
{
	struct statfs st;

	return !fstatfs(fd, &st) && st.f_type == HUGETLBFS_MAGIC;
}

/* Return: MAP_FAILED: there are not enough pages. */
static void *map(int fd, uint64_t offset, uint64_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
}

int huge_file_reserve(int fd, uint64_t offset, uint64_t size)
{
	void *at = map(fd, offset, size);

	if (at == MAP_FAILED)
		return vgpu_error_origin(-errno);
	/* The reservation is the file's, as the mapping is shared. */
	munmap(at, size);
	return 0;
}

int huge_file_empty(int fd, uint64_t offset, uint64_t size)
{
	int r;

	do
		r = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)offset, (off_t)size);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return vgpu_error_origin(-errno);
	/* The reservation goes with the page. */
	r = huge_file_reserve(fd, offset, size);
	return r ? vgpu_error_trace(r) : 0;
}

int huge_file_write(int fd, const void *data, size_t size, uint64_t offset)
{
	const uint64_t in_page = offset % HUGE_FILE_PAGE_SIZE;
	uint8_t *at = map(fd, offset - in_page, HUGE_FILE_PAGE_SIZE);

	if (at == MAP_FAILED)
		return vgpu_error_origin(-errno);
	assert(size <= HUGE_FILE_PAGE_SIZE - in_page);
	memcpy(at + in_page, data, size);
	munmap(at, HUGE_FILE_PAGE_SIZE);
	return 0;
}
