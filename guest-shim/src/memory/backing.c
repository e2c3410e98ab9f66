/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backing: the file that memory of the program is mapped from
 *
 * The list of mappings has device and inode of the file; the file that has that path now
 * must be the same one. If the mapping's device differs from that of stat(2), as with
 * btrfs, the backing is unknown.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "vgpu/cleanup.h"

#include "memory/backing.h"
#include "memory/mapping.h"

/* Coarser than the time stamps of file systems, and than clocks that two hosts share. */
#define SETTLED_S 2

/* Bits of /proc/self/pagemap (Documentation/admin-guide/mm/pagemap.rst). */
#define PAGE_OF_FILE (1ull << 61)
#define PAGE_SWAPPED (1ull << 62)
#define PAGE_PRESENT (1ull << 63)
#define PAGES_AT_ONCE 512u

/* Whether the mapping of a line contains an address; fast, because there may be thousands
 * of lines. */
static bool covers(const char *line, uint64_t address)
{
	char *end;
	uint64_t start = strtoull(line, &end, 16);

	return start <= address && *end == '-' && address < strtoull(end + 1, NULL, 16);
}

static bool is_unwritable_file(const struct shim_mapping *mapping)
{
	return mapping->permissions[0] == 'r' && mapping->permissions[1] == '-' &&
	       mapping->permissions[3] == 'p' && mapping->inode &&
	       mapping->path[0] == '/';
}

void shim_backing_of(const struct stat *info, struct shim_backing *backing)
{
	*backing = (struct shim_backing){
		.device = info->st_dev,
		.inode = info->st_ino,
		.size = (uint64_t)info->st_size,
		.modified_s = (uint64_t)info->st_mtim.tv_sec,
		.modified_ns = (uint64_t)info->st_mtim.tv_nsec,
		.changed_s = (uint64_t)info->st_ctim.tv_sec,
		.changed_ns = (uint64_t)info->st_ctim.tv_nsec,
	};
}

/* A path that has changed hands names another file. */
static bool identify(const struct shim_mapping *mapping, struct shim_backing *backing)
{
	struct stat st;

	if (stat(mapping->path, &st) < 0 || !S_ISREG(st.st_mode) ||
		st.st_dev != makedev(mapping->major, mapping->minor) ||
		st.st_ino != mapping->inode)
		return false;
	shim_backing_of(&st, backing);
	return true;
}

/* Whether no page was written to, which would have given the program a private copy: the
 * mapping may have been writable before. */
static bool is_unchanged(uint64_t first, uint64_t last)
{
	_vgpu_cleanup_(vgpu_closep) int fd =
		open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entries[PAGES_AT_ONCE];

	if (fd < 0)
		return false;
	while (first <= last) {
		uint64_t n = last - first + 1 < PAGES_AT_ONCE ? last - first + 1
							      : PAGES_AT_ONCE;

		if (pread(fd, entries, n * sizeof(*entries),
			    (off_t)(first * sizeof(*entries))) !=
			(ssize_t)(n * sizeof(*entries)))
			return false;
		for (uint64_t i = 0; i < n; i++)
			if (entries[i] & (PAGE_PRESENT | PAGE_SWAPPED) &&
				!(entries[i] & PAGE_OF_FILE))
				return false;
		first += n;
	}
	return true;
}

bool shim_backing_find(const void *data, uint64_t size, struct shim_backing *backing)
{
	_vgpu_cleanup_(shim_mapping_closep) FILE *file = shim_mapping_open();
	_vgpu_cleanup_(vgpu_freep) char *line = NULL;
	const uint64_t address = (uint64_t)(uintptr_t)data;
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct shim_mapping mapping;
	size_t room = 0;

	if (!file || !size)
		return false;
	while (getline(&line, &room, file) > 0)
		if (covers(line, address))
			break;
	if (!line || !covers(line, address) || !shim_mapping_parse(line, &mapping) ||
		size > mapping.end - address || !is_unwritable_file(&mapping) ||
		!identify(&mapping, backing))
		return false;
	backing->offset = mapping.offset + (address - mapping.start);
	return is_unchanged(address / page, (address + size - 1) / page);
}

bool shim_backing_is_settled(const struct shim_backing *backing)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec > backing->changed_s + SETTLED_S;
}
