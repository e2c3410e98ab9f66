/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cgroup: vgpud's own control group of version 2, and files in groups
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpud/cgroup.h"

#define TEXT_MAX (1u << 18)

/*
 * Where the groups are
 */

/* The line of version 2 is 0::PATH. Return: its path and size, or NULL. */
static const char *own_path(const char *groups, size_t *sizep)
{
	const char *line = groups;

	while (line && strncmp(line, "0::/", 4) != 0) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		return NULL;
	*sizep = strcspn(line + 3, "\n");
	return line + 3;
}

/* The path without the root of the mount, which a container has made its own. Return:
 * NULL for one that is not below it. */
static const char *below(const char *path, size_t *sizep, const char *root)
{
	const size_t size = strcmp(root, "/") ? strlen(root) : 0;

	if (*sizep < size || strncmp(path, root, size) != 0 ||
		(size && *sizep > size && path[size] != '/'))
		return NULL;
	*sizep -= size;
	return path + size;
}

/* Return: whether a line of mountinfo is a mount of version 2, and its root and place. */
static bool take_mount(const char *line, size_t size, char **rootp, char **mountp)
{
	_vgpu_cleanup_(vgpu_freep) char *copy = strndup(line, size);
	const char *type = copy ? strstr(copy, " - ") : NULL;

	if (!type || strncmp(type, " - cgroup2 ", 11) != 0)
		return false;
	/* Names with blanks are escaped there: such a mount is not used. */
	return sscanf(copy, "%*d %*d %*s %ms %ms ", rootp, mountp) == 2 &&
	       !strchr(*rootp, '\\') && !strchr(*mountp, '\\');
}

static bool find_below_mount(const char *line, size_t line_size, const char *path,
	size_t path_size, char found[CGROUP_PATH_MAX])
{
	_vgpu_cleanup_(vgpu_freep) char *root = NULL;
	_vgpu_cleanup_(vgpu_freep) char *mount = NULL;
	const char *rest;
	int n;

	if (!take_mount(line, line_size, &root, &mount))
		return false;
	rest = below(path, &path_size, root);
	if (!rest)
		return false;
	n = snprintf(found, CGROUP_PATH_MAX, "%s%.*s", mount, (int)path_size, rest);
	return n > 0 && (size_t)n < CGROUP_PATH_MAX;
}

bool cgroup_find(const char *groups, const char *mounts, char path[CGROUP_PATH_MAX])
{
	size_t size = 0;
	const char *own = own_path(groups, &size);

	/* A group outside of the namespace's root, which begins with "/..". */
	if (!own || size >= CGROUP_PATH_MAX || !strncmp(own, "/..", 3))
		return false;
	while (*mounts) {
		const size_t line = strcspn(mounts, "\n");

		if (find_below_mount(mounts, line, own, size, path))
			return true;
		mounts += line + (mounts[line] == '\n');
	}
	return false;
}

/*
 * Files
 */

char *cgroup_read(int folder, const char *name)
{
	_vgpu_cleanup_(vgpu_closep) int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	_vgpu_cleanup_(vgpu_freep) char *text = malloc(TEXT_MAX);
	char *result;
	size_t used = 0;
	ssize_t n;

	if (fd < 0 || !text)
		return NULL;
	while (used < TEXT_MAX - 1 &&
		(n = read(fd, text + used, TEXT_MAX - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	result = text;
	text = NULL;
	return result;
}

int cgroup_write(int folder, const char *name, const char *text)
{
	_vgpu_cleanup_(vgpu_closep) int fd =
		openat(folder, name, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
	const size_t size = strlen(text);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, size);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EIO;
}

bool cgroup_has_word(const char *list, const char *word)
{
	const size_t size = strlen(word);

	while (*list) {
		const size_t n = strcspn(list, " \n");

		if (n == size && !strncmp(list, word, n))
			return true;
		list += n;
		list += strspn(list, " \n");
	}
	return false;
}

bool cgroup_file_has_word(int folder, const char *name, const char *word)
{
	_vgpu_cleanup_(vgpu_freep) char *text = cgroup_read(folder, name);

	return text && cgroup_has_word(text, word);
}

/*
 * The own group
 */

int cgroup_own_open_at(struct cgroup_own *own, const char *path, const char *name)
{
	size_t size = strlen(path);
	char *last;

	*own = (struct cgroup_own){ .folder = -1 };
	if (size >= sizeof(own->path))
		return vgpu_error_origin(-ENAMETOOLONG);
	memcpy(own->path, path, size + 1);
	last = strrchr(own->path, '/');
	if (last && last != own->path && !strcmp(last + 1, name)) {
		*last = '\0';
		own->is_inner = true;
	}
	own->folder = open(own->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return own->folder < 0 ? -errno : 0;
}

int cgroup_own_open(struct cgroup_own *own, const char *name)
{
	_vgpu_cleanup_(vgpu_freep) char *groups =
		cgroup_read(AT_FDCWD, "/proc/self/cgroup");
	_vgpu_cleanup_(vgpu_freep) char *mounts =
		cgroup_read(AT_FDCWD, "/proc/self/mountinfo");
	char path[CGROUP_PATH_MAX];

	*own = (struct cgroup_own){ .folder = -1 };
	if (!groups || !mounts || !cgroup_find(groups, mounts, path))
		return -ENOENT;
	return cgroup_own_open_at(own, path, name);
}

void cgroup_own_close(struct cgroup_own *own)
{
	own->folder = vgpu_close(own->folder);
}
