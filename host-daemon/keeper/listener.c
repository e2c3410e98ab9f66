/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listener: a UNIX socket at a path that one process owns
 *
 * A socket file does not show whether its creator still lives, and a test connection
 * would be accepted as a VM. So ownership of a path is a lock on a file beside it, which
 * the kernel releases when the process dies.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "keeper/listener.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"

#define LISTENER_BACKLOG 64

/* Whether the path still refers to the open file: the last owner may have removed it
 * between open() and flock() here. */
static bool is_current(int fd, const char *path)
{
	struct stat ours, theirs;

	return !fstat(fd, &ours) && !stat(path, &theirs) &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

/*
 * /run is empty after each boot, so a folder below it has to be created by its user.
 * Creates only the last component of the path, and none in the root, which would be a
 * mistake. QEMU runs as another user and must be able to search the folder; the socket's
 * mode and group control access.
 */
static int make_folder(const char *path)
{
	_vgpu_cleanup_(vgpu_freep) char *folder = strdup(path);
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	char *name;

	if (!folder)
		return vgpu_error_origin(-ENOMEM);
	name = strrchr(folder, '/');
	if (!name || name == folder)
		return 0;
	*name = '\0';
	if (!strchr(folder + 1, '/'))
		return 0;
	if (mkdir(folder, 0700) < 0)
		return errno == EEXIST ? 0 : vgpu_error_origin(-errno);
	/* Independent of the umask. */
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0755) < 0)
		return vgpu_error_origin(-errno);
	vgpu_log_info("the folder %s was missing and has been made", folder);
	return 0;
}

static int take_lock(const char *path, int *lockp)
{
	for (;;) {
		_vgpu_cleanup_(vgpu_closep) int fd = -1;

		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return vgpu_error_origin(-errno);
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK ? LISTENER_E_TAKEN
						    : vgpu_error_origin(-errno);
		if (!is_current(fd, path))
			continue;
		*lockp = fd;
		fd = -1;
		return 0;
	}
}

static int remove_stale(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : vgpu_error_origin(-errno);
	if (!S_ISSOCK(st.st_mode))
		return LISTENER_E_ALIEN;
	return unlink(path) < 0 ? vgpu_error_origin(-errno) : 0;
}

/* Uses a descriptor, because users with write access to the folder may replace the file
 * meanwhile. */
static int permit(const char *path, mode_t mode, gid_t group)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	char link[32];
	struct stat st;

	fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return vgpu_error_origin(-errno);
	if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return vgpu_error_origin(-EPERM);
	if (group != (gid_t)-1 && fchownat(fd, "", -1, group, AT_EMPTY_PATH) < 0)
		return vgpu_error_origin(-errno);
	/* fchmod() refuses O_PATH descriptors. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return chmod(link, mode) < 0 ? vgpu_error_origin(-errno) : 0;
}

int listener_permit(const struct listener *listener, mode_t mode, gid_t group)
{
	return permit(listener->path, mode, group);
}

static int open_socket(const char *path, int type, mode_t mode, gid_t group, int *fdp)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	int r;

	if (strlen(path) >= sizeof(address.sun_path))
		return vgpu_error_origin(-ENAMETOOLONG);
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return vgpu_error_origin(-errno);
	/* Set before listen(), so no client can connect before. */
	r = permit(path, mode, group);
	if (!r && listen(fd, LISTENER_BACKLOG) < 0)
		r = vgpu_error_origin(-errno);
	if (r) {
		unlink(path);
		return r;
	}
	*fdp = fd;
	fd = -1;
	return 0;
}

static int set_paths(struct listener *listener, const char *path)
{
	*listener = (struct listener)LISTENER_NULL;
	listener->path = strdup(path);
	if (listener->path && asprintf(&listener->lock_path, "%s.lock", path) >= 0)
		return 0;
	free(listener->path);
	*listener = (struct listener)LISTENER_NULL;
	return vgpu_error_origin(-ENOMEM);
}

int listener_adopt(struct listener *listener, const char *path, int fd, int lock)
{
	const int r = set_paths(listener, path);

	if (r)
		return r;
	listener->fd = fd;
	listener->lock = lock;
	return 0;
}

int listener_borrow(struct listener *listener, const char *path, int fd)
{
	struct listener l;
	int r;

	*listener = (struct listener)LISTENER_NULL;
	r = set_paths(&l, path);
	if (r)
		return vgpu_error_trace(r);
	r = take_lock(l.lock_path, &l.lock);
	if (r) {
		free(l.lock_path);
		free(l.path);
		return r;
	}
	l.fd = fd;
	l.is_borrowed = true;
	*listener = l;
	return 0;
}

static int replace_socket(const char *path, int type, mode_t mode, gid_t group, int *fdp)
{
	const int r = remove_stale(path);

	return r ? r : open_socket(path, type, mode, group, fdp);
}

/* Opens both, or none of them. */
static int open_both(struct listener *listener, int type, mode_t mode, gid_t group)
{
	int r = make_folder(listener->path);

	if (!r)
		r = take_lock(listener->lock_path, &listener->lock);
	if (r)
		return r;
	r = replace_socket(listener->path, type, mode, group, &listener->fd);
	if (!r)
		return 0;
	unlink(listener->lock_path);
	listener->lock = vgpu_close(listener->lock);
	return r;
}

int listener_init(
	struct listener *listener, const char *path, int type, mode_t mode, gid_t group)
{
	struct listener l;
	int r;

	*listener = (struct listener)LISTENER_NULL;
	r = set_paths(&l, path);
	if (r)
		return vgpu_error_trace(r);
	r = open_both(&l, type, mode, group);
	if (!r) {
		*listener = l;
		return 0;
	}
	free(l.lock_path);
	free(l.path);
	return r;
}

bool listener_is_whole(const struct listener *listener)
{
	struct stat st;

	if (!is_current(listener->lock, listener->lock_path))
		return false;
	return listener->is_borrowed ||
	       (!lstat(listener->path, &st) && S_ISSOCK(st.st_mode));
}

/* Locks the path again. A failure changes nothing. */
static int renew_lock(struct listener *listener)
{
	int lock, r;

	r = take_lock(listener->lock_path, &lock);
	if (r)
		return r;
	close(listener->lock);
	listener->lock = lock;
	return 0;
}

/* Without our lock file another process may own the path by now. */
int listener_renew(struct listener *listener, int type, mode_t mode, gid_t group)
{
	struct listener next = *listener;
	const bool owned = is_current(listener->lock, listener->lock_path);
	int r;

	if (listener->is_borrowed)
		return renew_lock(listener);
	r = owned ? replace_socket(next.path, type, mode, group, &next.fd)
		  : open_both(&next, type, mode, group);
	if (r)
		return r;
	if (!owned)
		close(listener->lock);
	close(listener->fd);
	*listener = next;
	return 0;
}

static void end(struct listener *listener, bool removes_socket)
{
	if (!listener->path)
		return;
	/* Unlink while the lock is held: see is_current(). Without our lock file the path
	 * may be another's by now. */
	if (is_current(listener->lock, listener->lock_path)) {
		if (removes_socket)
			unlink(listener->path);
		unlink(listener->lock_path);
	}
	vgpu_close(listener->fd);
	vgpu_close(listener->lock);
	free(listener->lock_path);
	free(listener->path);
	*listener = (struct listener)LISTENER_NULL;
}

void listener_deinit(struct listener *listener)
{
	end(listener, !listener->is_borrowed);
}

void listener_leave(struct listener *listener)
{
	end(listener, false);
}
