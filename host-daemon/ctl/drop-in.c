/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drop-in: replaces the file of a virtual machine, whole or not at all
 *
 * A power cut at any instruction leaves the old file or the new one: the new contents are
 * on the disk before they get the name, and the name is on the disk before the caller is
 * told. Until then they have a hidden name, which is the file's, so that there is one
 * change of a file at a time.
 *
 * Who changes a file has locked the hidden one. What nobody has locked was left by a
 * process that died, or by a power cut, and is removed by the next change of any file in
 * the folder. Nobody but the owner can open it before it is complete, so no other user
 * can lock it.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/drop-in.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpud/config-source.h"

#define DROP_IN_MODE 0644
#define TEMPORARY_SUFFIX CONFIG_SOURCE_SUFFIX ".new"
/* Attempts to make a hidden file that others take for one that was left. */
#define ATTEMPTS_MAX 100

/*
 * Folder
 */

static int sync_folder(const char *path)
{
	_vgpu_cleanup_(vgpu_closep) int fd =
		open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? vgpu_error_origin(-errno) : 0;
}

/* A new folder is lost by a power cut unless the one above has it on the disk. */
static int make_folder(char *path)
{
	char *name = strrchr(path, '/');
	int r;

	if (mkdir(path, 0755) < 0)
		return errno == EEXIST ? 0 : vgpu_error_origin(-errno);
	if (!name || name == path)
		return sync_folder(name ? "/" : ".");
	*name = '\0';
	r = sync_folder(path);
	*name = '/';
	return r;
}

/* Return: 0 or -errno; -EINVAL for a path without a folder. */
static int open_folder(const char *path, bool is_made, int *folderp)
{
	_vgpu_cleanup_(vgpu_freep) char *folder = strdup(path);
	char *name = folder ? strrchr(folder, '/') : NULL;
	int r;

	if (!folder)
		return vgpu_error_origin(-ENOMEM);
	if (!name || name == folder)
		return vgpu_error_origin(-EINVAL);
	*name = '\0';
	r = is_made ? make_folder(folder) : 0;
	if (r)
		return vgpu_error_trace(r);
	*folderp = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *folderp < 0 ? vgpu_error_origin(-errno) : 0;
}

static const char *name_of(const char *path)
{
	return strrchr(path, '/') + 1;
}

/*
 * Hidden files
 */

static char *temporary_of(const char *path)
{
	char *temporary;

	return asprintf(&temporary, ".%s.new", name_of(path)) < 0 ? NULL : temporary;
}

/* Whether a name in the folder is still that of an open file. */
static bool is_named(int folder, const char *name, int fd)
{
	struct stat named, opened;

	return !fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) &&
	       !fstat(fd, &opened) && named.st_dev == opened.st_dev &&
	       named.st_ino == opened.st_ino;
}

/* Removes a hidden file that nobody writes. Return: 0, also without one, or -errno;
 * -EBUSY: somebody does. */
static int remove_left(int folder, const char *name)
{
	_vgpu_cleanup_(vgpu_closep) int fd = openat(
		folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0;
	/* What cannot be opened, such as a link, is none of a vgpuctl of this user. */
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
		return vgpu_error_origin(errno == EWOULDBLOCK ? -EBUSY : -errno);
	if (fd >= 0 && !is_named(folder, name, fd))
		return 0;
	if (unlinkat(folder, name, 0) < 0 && errno != ENOENT)
		return vgpu_error_origin(-errno);
	return 0;
}

static int is_left(const struct dirent *entry)
{
	const size_t size = strlen(entry->d_name), end = strlen(TEMPORARY_SUFFIX);

	return size > end + 1 && *entry->d_name == '.' &&
	       !strcmp(entry->d_name + size - end, TEMPORARY_SUFFIX);
}

/* Those of other files: one that cannot be removed is no reason to change nothing. */
static void sweep(int folder)
{
	struct dirent **entries = NULL;
	const int n = scandirat(folder, ".", &entries, is_left, NULL);

	for (int i = 0; i < n; i++) {
		remove_left(folder, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
}

/* Return: 0, -EAGAIN: another process took it for one that was left, or -errno. */
static int make_temporary(struct drop_in *drop_in)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	int r;

	r = remove_left(drop_in->folder, drop_in->temporary);
	if (r)
		return vgpu_error_trace(r);
	fd = openat(drop_in->folder, drop_in->temporary,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? -EAGAIN : vgpu_error_origin(-errno);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : vgpu_error_origin(-errno);
	if (!is_named(drop_in->folder, drop_in->temporary, fd))
		return -EAGAIN;
	drop_in->fd = fd;
	fd = -1;
	return 0;
}

static int lock(struct drop_in *drop_in)
{
	int r = -EAGAIN;

	for (int i = 0; i < ATTEMPTS_MAX && r == -EAGAIN; i++)
		r = make_temporary(drop_in);
	return r == -EAGAIN ? vgpu_error_origin(-EBUSY) : r;
}

int drop_in_open(struct drop_in *drop_in, const char *path)
{
	int r;

	*drop_in = DROP_IN_NULL;
	r = open_folder(path, true, &drop_in->folder);
	if (r)
		return vgpu_error_trace(r);
	sweep(drop_in->folder);
	drop_in->path = strdup(path);
	drop_in->temporary = temporary_of(path);
	r = drop_in->path && drop_in->temporary ? lock(drop_in) : -ENOMEM;
	if (r)
		drop_in_close(drop_in);
	return r ? vgpu_error_trace(r) : 0;
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

int drop_in_write(struct drop_in *drop_in, const char *text)
{
	return write_all(drop_in->fd, text);
}

int drop_in_commit(struct drop_in *drop_in)
{
	/* Independent of the umask. It is a part of what the disk has to have. */
	if (fchmod(drop_in->fd, DROP_IN_MODE) < 0 || fsync(drop_in->fd) < 0)
		return vgpu_error_origin(-errno);
	if (renameat(drop_in->folder, drop_in->temporary, drop_in->folder,
		    name_of(drop_in->path)) < 0)
		return vgpu_error_origin(-errno);
	free(drop_in->temporary);
	drop_in->temporary = NULL;
	return fsync(drop_in->folder) < 0 ? vgpu_error_origin(-errno) : 0;
}

void drop_in_close(struct drop_in *drop_in)
{
	if (drop_in->temporary && drop_in->fd >= 0)
		unlinkat(drop_in->folder, drop_in->temporary, 0);
	free(drop_in->temporary);
	free(drop_in->path);
	vgpu_close(drop_in->fd);
	vgpu_close(drop_in->folder);
	*drop_in = DROP_IN_NULL;
}

/*
 * Removal
 */

/* Return: 0, also without a hidden file, or -errno. */
static int remove_temporary(int folder, const char *path)
{
	_vgpu_cleanup_(vgpu_freep) char *temporary = temporary_of(path);

	return temporary ? remove_left(folder, temporary) : vgpu_error_origin(-ENOMEM);
}

/* On a file system that is read-only, unlink() fails for such a file, too. */
static bool is_absent(int folder, const char *path)
{
	struct stat st;

	return fstatat(folder, name_of(path), &st, AT_SYMLINK_NOFOLLOW) < 0 &&
	       errno == ENOENT;
}

int drop_in_check_remove(const char *path)
{
	_vgpu_cleanup_(vgpu_closep) int folder = -1;
	int r;

	r = open_folder(path, false, &folder);
	if (r)
		return r == -ENOENT ? 0 : vgpu_error_trace(r);
	if (is_absent(folder, path))
		return 0;
	if (faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return vgpu_error_origin(-errno);
	return remove_temporary(folder, path);
}

int drop_in_remove(const char *path)
{
	_vgpu_cleanup_(vgpu_closep) int folder = -1;
	int r;

	r = open_folder(path, false, &folder);
	if (r)
		return r == -ENOENT ? 0 : vgpu_error_trace(r);
	r = remove_temporary(folder, path);
	if (r)
		return vgpu_error_trace(r);
	if (is_absent(folder, path))
		return 0;
	if (unlinkat(folder, name_of(path), 0) < 0 && errno != ENOENT)
		return vgpu_error_origin(-errno);
	return fsync(folder) < 0 ? vgpu_error_origin(-errno) : 0;
}
