/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VM groups: CPU time and memory of a VM's workers, by control groups
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/vm-group.h"
#include "control/control.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"

/* Of the kernel's: the time in which cpu.max grants its part, us. */
#define PERIOD_US 100000u

/* A file below the group of a VM. */
struct place {
	char path[CONTROL_VM_NAME_MAX + 32];
};

/* @file:	NULL: the group itself */
static struct place place_of(const char *vm, const char *file)
{
	struct place place;

	snprintf(place.path, sizeof(place.path), CGROUP_VM_PREFIX "%s%s%s", vm,
		file ? "/" : "", file ? file : "");
	return place;
}

static int write_file(const struct vm_groups *groups, const char *vm, const char *file,
	const char *text)
{
	return cgroup_write(groups->own.folder, place_of(vm, file).path, text);
}

static char *read_file(const struct vm_groups *groups, const char *vm, const char *file)
{
	return cgroup_read(groups->own.folder, place_of(vm, file).path);
}

/*
 * Where the groups are
 */

static void refuse(struct vm_groups *groups, const char *why)
{
	cgroup_own_close(&groups->own);
	groups->has_cpu = groups->has_memory = false;
	snprintf(groups->why, sizeof(groups->why), "%s", why);
}

/* The keeper has enabled the controllers that there are. */
static void use_divided(struct vm_groups *groups)
{
	const int folder = groups->own.folder;

	groups->has_cpu = cgroup_file_has_word(folder, "cgroup.subtree_control", "cpu");
	groups->has_memory =
		cgroup_file_has_word(folder, "cgroup.subtree_control", "memory");
	if (!groups->has_cpu && !groups->has_memory)
		refuse(groups, "the control group of vgpud has no controllers");
}

/* Threaded groups. */
static void use_undivided(struct vm_groups *groups)
{
	if (!cgroup_file_has_word(groups->own.folder, "cgroup.controllers", "cpu"))
		refuse(groups, "the control group of vgpud has no controller cpu");
	else if (faccessat(groups->own.folder, "cgroup.subtree_control", W_OK,
			 AT_EACCESS) < 0)
		refuse(groups, errno == EROFS
				       ? "control groups are read-only for vgpud"
				       : "vgpud may not write to its control group");
	else
		groups->has_cpu = true;
}

static void use(struct vm_groups *groups, int r)
{
	if (r == -ENOENT && !*groups->own.path)
		refuse(groups, "vgpud is in no control group of version 2");
	else if (r)
		refuse(groups, "the control group of vgpud cannot be opened");
	else if (groups->own.is_inner)
		use_divided(groups);
	else
		use_undivided(groups);
}

void vm_groups_init_at(struct vm_groups *groups, const char *path)
{
	*groups = VM_GROUPS_NULL;
	use(groups, cgroup_own_open_at(&groups->own, path, CGROUP_MAIN));
}

void vm_groups_init(struct vm_groups *groups)
{
	*groups = VM_GROUPS_NULL;
	use(groups, cgroup_own_open(&groups->own, CGROUP_MAIN));
}

void vm_groups_deinit(struct vm_groups *groups)
{
	cgroup_own_close(&groups->own);
}

/*
 * One VM
 */

/* Below a group with processes the kernel permits controllers to threaded groups only. */
static int make_threaded(const struct vm_groups *groups, const char *vm)
{
	_vgpu_cleanup_(vgpu_freep) char *text = read_file(groups, vm, "cgroup.type");
	int r = 0;

	if (!text || !cgroup_has_word(text, "threaded"))
		r = write_file(groups, vm, "cgroup.type", "threaded");
	return r ? r : cgroup_write(groups->own.folder, "cgroup.subtree_control", "+cpu");
}

static int limit_cpu(const struct vm_groups *groups, const char *vm, unsigned int percent)
{
	char limit[48] = "max";

	if (!groups->has_cpu)
		return 0;
	if (percent)
		snprintf(limit, sizeof(limit), "%llu %u",
			(unsigned long long)percent * (PERIOD_US / 100), PERIOD_US);
	return write_file(groups, vm, "cpu.max", limit);
}

/* The number behind a word at the beginning of a line; 0: none. */
static uint64_t find_number(const char *text, const char *word)
{
	const size_t size = strlen(word);

	while (text && *text) {
		if (!strncmp(text, word, size) && text[size] == ' ')
			return strtoull(text + size + 1, NULL, 10);
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return 0;
}

/* Bytes of the group that the kernel cannot just drop, as it can contents of files. */
static uint64_t read_use(const struct vm_groups *groups, const char *vm)
{
	_vgpu_cleanup_(vgpu_freep) char *text = read_file(groups, vm, "memory.current");
	_vgpu_cleanup_(vgpu_freep) char *stat = read_file(groups, vm, "memory.stat");
	const uint64_t use = text ? strtoull(text, NULL, 10) : 0;
	const uint64_t files =
		find_number(stat, "inactive_file") + find_number(stat, "active_file");

	return use > files ? use - files : 0;
}

static int limit_memory(const struct vm_groups *groups, const char *vm, uint64_t bytes)
{
	char limit[32] = "max";
	int r;

	if (!groups->has_memory)
		return 0;
	/* What does not fit is not moved to the host's swap instead, which has no limit
	 * of its own. Kernels without swap have no such file. */
	r = write_file(groups, vm, "memory.swap.max", "0");
	if (r && r != -ENOENT)
		return r;
	if (read_use(groups, vm) > bytes)
		return VM_GROUP_E_IN_USE;
	if (bytes != UINT64_MAX)
		snprintf(limit, sizeof(limit), "%" PRIu64, bytes);
	return write_file(groups, vm, "memory.max", limit);
}

int vm_group_set(const struct vm_groups *groups, const char *vm,
	const struct vm_group_limits *limits)
{
	int r;

	if (groups->own.folder < 0)
		return vgpu_error_origin(-ENOTSUP);
	if (mkdirat(groups->own.folder, place_of(vm, NULL).path, 0755) < 0 &&
		errno != EEXIST)
		return vgpu_error_origin(-errno);
	r = groups->own.is_inner ? 0 : make_threaded(groups, vm);
	if (!r)
		r = limit_cpu(groups, vm, limits->cpu);
	if (!r)
		r = limit_memory(groups, vm, limits->memory);
	return r < 0 ? vgpu_error_origin(r) : r;
}

bool vm_group_exists(const struct vm_groups *groups, const char *vm)
{
	return groups->own.folder >= 0 &&
	       !faccessat(groups->own.folder, place_of(vm, NULL).path, F_OK, 0);
}

int vm_group_open(const struct vm_groups *groups, const char *vm)
{
	const int fd = openat(groups->own.folder, place_of(vm, "cgroup.procs").path,
		O_WRONLY | O_CLOEXEC);

	return fd < 0 ? vgpu_error_origin(-errno) : fd;
}

uint64_t vm_group_oom_kills(const struct vm_groups *groups, const char *vm)
{
	_vgpu_cleanup_(vgpu_freep) char *text = NULL;

	if (!groups->has_memory)
		return 0;
	text = read_file(groups, vm, "memory.events");
	return find_number(text, "oom_kill");
}

void vm_group_remove(const struct vm_groups *groups, const char *vm)
{
	if (groups->own.folder >= 0)
		unlinkat(groups->own.folder, place_of(vm, NULL).path, AT_REMOVEDIR);
}

void vm_group_lift(const struct vm_groups *groups, const char *vm)
{
	int r;

	if (groups->own.folder < 0 ||
		!unlinkat(groups->own.folder, place_of(vm, NULL).path, AT_REMOVEDIR) ||
		errno == ENOENT)
		return;
	r = limit_cpu(groups, vm, 0);
	if (!r && groups->has_memory)
		r = write_file(groups, vm, "memory.max", "max");
	if (r)
		vgpu_log_warning("vm=%s: the limits of its control group stay in force: "
				 "%s",
			vm, strerror(-r));
}

void vm_groups_sweep(const struct vm_groups *groups,
	bool (*is_limited_fn)(void *data, const char *vm), void *data)
{
	const size_t n = strlen(CGROUP_VM_PREFIX);
	const struct dirent *entry;
	DIR *folder;
	int fd;

	if (groups->own.folder < 0)
		return;
	fd = openat(groups->own.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder) {
		vgpu_close(fd);
		return;
	}
	while ((entry = readdir(folder)))
		if (!strncmp(entry->d_name, CGROUP_VM_PREFIX, n) &&
			strlen(entry->d_name + n) < CONTROL_VM_NAME_MAX &&
			!is_limited_fn(data, entry->d_name + n))
			vm_group_remove(groups, entry->d_name + n);
	closedir(folder);
}
