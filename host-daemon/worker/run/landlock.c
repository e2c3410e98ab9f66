/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock: the files that a process may open, enforced by the kernel
 *
 * The numbers of the kernel's interface are defined here, because the headers of Debian
 * 12 are older than the kernels in use. Besides files, a process in a Landlock domain may
 * not trace any process outside it, and so cannot read its memory in /proc.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "worker/run/landlock.h"

/* Each name contains the version of the interface that introduced it; version 1 has bits
 * 0 to 12. */
#define FS_EXECUTE (1ull << 0)
#define FS_WRITE_FILE (1ull << 1)
#define FS_READ_FILE (1ull << 2)
#define FS_READ_DIR (1ull << 3)
#define FS_V1 ((1ull << 13) - 1)
#define FS_V2_REFER (1ull << 13)
#define FS_V3_TRUNCATE (1ull << 14)
#define FS_V5_IOCTL_DEV (1ull << 15)
#define NET_V4_BIND_CONNECT_TCP 3ull
#define SCOPE_V6_ABSTRACT_UNIX_AND_SIGNAL 3ull

#define CREATE_VERSION 1u
#define RULE_PATH_BENEATH 1

struct attributes {
	uint64_t fs;
	uint64_t net;	/* since version 4 */
	uint64_t scope; /* since version 6 */
};

struct path_beneath {
	uint64_t access;
	int32_t parent;
} __attribute__((__packed__));

static long create(const void *attributes, unsigned long size, uint32_t flags)
{
	return syscall(SYS_landlock_create_ruleset, attributes, size, flags);
}

static long add(int ruleset, int type, const void *rule, uint32_t flags)
{
	return syscall(SYS_landlock_add_rule, ruleset, type, rule, flags);
}

static long restrict_self(int ruleset, uint32_t flags)
{
	return syscall(SYS_landlock_restrict_self, ruleset, flags);
}

const struct landlock_kernel landlock_kernel = { create, add, restrict_self };

/* Return: the size of the attributes in that version of the interface. */
static unsigned long deny_all(int abi, struct attributes *attributes)
{
	*attributes = (struct attributes){ .fs = FS_V1 };
	if (abi >= 2)
		attributes->fs |= FS_V2_REFER;
	if (abi >= 3)
		attributes->fs |= FS_V3_TRUNCATE;
	if (abi >= 4)
		attributes->net = NET_V4_BIND_CONNECT_TCP;
	if (abi >= 5)
		attributes->fs |= FS_V5_IOCTL_DEV;
	if (abi >= 6)
		attributes->scope = SCOPE_V6_ABSTRACT_UNIX_AND_SIGNAL;
	if (abi >= 6)
		return sizeof(*attributes);
	return abi >= 4 ? offsetof(struct attributes, scope)
			: offsetof(struct attributes, net);
}

int landlock_init(struct landlock *landlock, const struct landlock_kernel *kernel)
{
	struct attributes attributes;
	unsigned long size;

	*landlock = LANDLOCK_NULL;
	landlock->kernel = kernel;
	landlock->abi = (int)kernel->create(NULL, 0, CREATE_VERSION);
	if (landlock->abi < 1)
		return LANDLOCK_E_ABSENT;
	size = deny_all(landlock->abi, &attributes);
	landlock->ruleset = (int)kernel->create(&attributes, size, 0);
	return landlock->ruleset < 0 ? vgpu_error_origin(-errno) : 0;
}

/* The kernel refuses a rule with rights that do not apply to files, or that it does not
 * implement. */
static uint64_t rights(int abi, bool is_folder, unsigned int access)
{
	uint64_t fs = 0;

	if (access & LANDLOCK_READ)
		fs |= FS_READ_FILE | (is_folder ? FS_READ_DIR : 0);
	if (access & LANDLOCK_WRITE)
		fs |= FS_WRITE_FILE;
	if (access & LANDLOCK_IOCTL && abi >= 5)
		fs |= FS_V5_IOCTL_DEV;
	return fs;
}

static int allow(
	struct landlock *landlock, const char *path, unsigned int access, int *fdp)
{
	_vgpu_cleanup_(vgpu_closep) int fd = open(path, O_PATH | O_CLOEXEC);
	struct path_beneath rule = { .parent = fd };
	struct stat st;

	*fdp = -1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	rule.access = rights(landlock->abi, S_ISDIR(st.st_mode), access);
	if (landlock->kernel->add(landlock->ruleset, RULE_PATH_BENEATH, &rule, 0) < 0)
		return vgpu_error_origin(-errno);
	*fdp = fd;
	fd = -1;
	return 0;
}

int landlock_allow(struct landlock *landlock, const char *path, unsigned int access)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;

	return allow(landlock, path, access, &fd);
}

int landlock_allow_proc(struct landlock *landlock, const char *path)
{
	_vgpu_cleanup_(vgpu_closep) int fd = -1;
	int r;

	r = allow(landlock, path, LANDLOCK_READ, &fd);
	if (r || fd < 0)
		return r;
	if (landlock->n_kept == LANDLOCK_KEPT_MAX)
		return vgpu_error_origin(-ENOSPC);
	landlock->kept[landlock->n_kept++] = fd;
	fd = -1;
	return 0;
}

int landlock_enforce(struct landlock *landlock)
{
	if (landlock->kernel->restrict_self(landlock->ruleset, 0) < 0)
		return vgpu_error_origin(-errno);
	landlock->ruleset = vgpu_close(landlock->ruleset);
	return 0;
}

void landlock_deinit(struct landlock *landlock)
{
	while (landlock->n_kept)
		close(landlock->kept[--landlock->n_kept]);
	landlock->ruleset = vgpu_close(landlock->ruleset);
}
