/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drop-in: replaces the file of a virtual machine, whole or not at all
 *
 * A power cut at any instruction leaves the old file or the new one: the new contents are
 * on the disk before they get the name, and the name is on the disk before the caller is
 * told. What a cut leaves under the hidden name is replaced by the next change.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/drop-in.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"

#define DROP_IN_MODE 0644

/* Return: 0 or -errno; -EINVAL for a path without a folder. */
static int open_folder(const char *path, int *folderp)
{
	_vgpu_cleanup_(vgpu_freep) char *folder = strdup(path);
	char *name = folder ? strrchr(folder, '/') : NULL;

	if (!folder)
		return vgpu_error_origin(-ENOMEM);
	if (!name || name == folder)
		return vgpu_error_origin(-EINVAL);
	*name = '\0';
	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return vgpu_error_origin(-errno);
	*folderp = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *folderp < 0 ? vgpu_error_origin(-errno) : 0;
}

static int write_all(int fd, const char *text)
{
	size_t size = strlen(text);
	ssize_t n;

	while (size) {
		n = write(fd, text, size);
		if (n < 0 && errno != EINTR)
			return vgpu_error_origin(-errno);
		text += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return fsync(fd) < 0 ? vgpu_error_origin(-errno) : 0;
}

/* The file's name is part of the hidden one, so a left one is found again. */
static char *temporary_of(const char *path)
{
	char *temporary;

	return asprintf(&temporary, ".%s.new", strrchr(path, '/') + 1) < 0 ? NULL
									   : temporary;
}

static int write_temporary(struct drop_in *drop_in, const char *text)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	int r;

	if (unlinkat(drop_in->folder, drop_in->temporary, 0) < 0 && errno != ENOENT)
		return vgpu_error_origin(-errno);
	fd = openat(drop_in->folder, drop_in->temporary,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, DROP_IN_MODE);
	if (fd < 0)
		return vgpu_error_origin(-errno);
	/* Independent of the umask. */
	r = fchmod(fd, DROP_IN_MODE) < 0 ? vgpu_error_origin(-errno)
					 : write_all(fd, text);
	if (r)
		unlinkat(drop_in->folder, drop_in->temporary, 0);
	return r;
}

int drop_in_prepare(struct drop_in *drop_in, const char *path, const char *text)
{
	int r;

	*drop_in = DROP_IN_NULL;
	r = open_folder(path, &drop_in->folder);
	if (r)
		return vgpu_error_trace(r);
	drop_in->path = strdup(path);
	drop_in->temporary = temporary_of(path);
	r = drop_in->path && drop_in->temporary ? write_temporary(drop_in, text)
						: -ENOMEM;
	if (!r)
		return 0;
	free(drop_in->temporary);
	drop_in->temporary = NULL;
	drop_in_close(drop_in);
	return vgpu_error_trace(r);
}

int drop_in_commit(struct drop_in *drop_in)
{
	if (renameat(drop_in->folder, drop_in->temporary, drop_in->folder,
		    strrchr(drop_in->path, '/') + 1) < 0)
		return vgpu_error_origin(-errno);
	free(drop_in->temporary);
	drop_in->temporary = NULL;
	return fsync(drop_in->folder) < 0 ? vgpu_error_origin(-errno) : 0;
}

void drop_in_close(struct drop_in *drop_in)
{
	if (drop_in->temporary)
		unlinkat(drop_in->folder, drop_in->temporary, 0);
	free(drop_in->temporary);
	free(drop_in->path);
	vgpu_close(drop_in->folder);
	*drop_in = DROP_IN_NULL;
}

int drop_in_remove(const char *path)
{
	_vgpu_cleanup_(vgpu_closep) int folder = -1;
	int r;

	r = open_folder(path, &folder);
	if (r)
		return vgpu_error_trace(r);
	if (unlinkat(folder, strrchr(path, '/') + 1, 0) < 0)
		return errno == ENOENT ? 0 : vgpu_error_origin(-errno);
	return fsync(folder) < 0 ? vgpu_error_origin(-errno) : 0;
}
