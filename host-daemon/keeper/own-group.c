/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Own group: the division of the control group in which vgpud was started
 *
 * Processes are moved by their numbers. Each was found in this group just before, and is
 * this process or a worker of vgpud: others keep it from dividing the group.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/own-group.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpud/cgroup.h"

#define CONTROL "cgroup.subtree_control"
#define MAIN_PROCS CGROUP_MAIN "/cgroup.procs"
/* Where systemd runs other commands of a service whose group is left to it. */
#define COMMANDS ".control"
/* Processes of a vgpud that was killed end within that time. */
#define END_TRIES 25
#define END_PAUSE_US 20000u

static bool is_ours(const struct held_workers *workers, pid_t pid)
{
	const struct held_worker *worker;

	if (pid == getpid())
		return true;
	TAILQ_FOREACH(worker, workers, entry)
		if (worker->pid == pid && !worker->exited)
			return true;
	return false;
}

/* Return: whether the list, of a number in each line, has others. */
static bool has_others(const char *list, const struct held_workers *workers)
{
	while (*list) {
		if (!is_ours(workers, (pid_t)strtol(list, NULL, 10)))
			return true;
		list += strcspn(list, "\n");
		list += *list == '\n';
	}
	return false;
}

/* Moves all processes of a list to a group. Return: 0 or -errno. */
static int move_all(const struct cgroup_own *own, const char *list, const char *procs)
{
	char number[16];

	while (*list) {
		const int pid = (int)strtol(list, NULL, 10);
		int r;

		snprintf(number, sizeof(number), "%d", pid == getpid() ? 0 : pid);
		r = cgroup_write(own->folder, procs, number);
		/* It has ended meanwhile. */
		if (r && r != -ESRCH)
			return r;
		list += strcspn(list, "\n");
		list += *list == '\n';
	}
	return 0;
}

/* Groups of VMs that an undivided vgpud has left: threaded ones would keep this one from
 * enabling the controller. Those with processes stay. */
static void remove_empty(const struct cgroup_own *own)
{
	const int fd = openat(own->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!folder) {
		vgpu_close(fd);
		return;
	}
	while ((entry = readdir(folder)))
		if (!strncmp(entry->d_name, CGROUP_VM_PREFIX, strlen(CGROUP_VM_PREFIX)))
			unlinkat(own->folder, entry->d_name, AT_REMOVEDIR);
	closedir(folder);
}

/* Return: 0 or -errno. */
static int enable(const struct cgroup_own *own)
{
	int r = cgroup_write(own->folder, CONTROL, "+memory");

	if (!r && cgroup_file_has_word(own->folder, "cgroup.controllers", "cpu"))
		r = cgroup_write(own->folder, CONTROL, "+cpu");
	return r;
}

/* Return: 0 or -errno, the first one. */
static int disable(const struct cgroup_own *own)
{
	static const char *const words[][2] = { { "memory", "-memory" },
		{ "cpu", "-cpu" } };
	int first = 0;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		int r = 0;

		if (cgroup_file_has_word(own->folder, CONTROL, words[i][0]))
			r = cgroup_write(own->folder, CONTROL, words[i][1]);
		first = first ? first : r;
	}
	return first;
}

static int move_down(const struct cgroup_own *own, const char *list)
{
	int r;

	/* Out of threaded groups, which then can be removed; it moves no others. */
	r = move_all(own, list, "cgroup.procs");
	remove_empty(own);
	if (!r)
		r = disable(own);
	if (!r && mkdirat(own->folder, CGROUP_MAIN, 0755) < 0 && errno != EEXIST)
		r = -errno;
	return r ? r : move_all(own, list, MAIN_PROCS);
}

/* Return: 0 or -errno. */
static int divide(const struct cgroup_own *own, const char *list)
{
	int r = move_down(own, list);

	if (!r)
		r = enable(own);
	if (!r)
		return 0;
	disable(own);
	move_all(own, list, "cgroup.procs");
	unlinkat(own->folder, CGROUP_MAIN, AT_REMOVEDIR);
	return r;
}

/* Return: the processes of the group, to be freed; NULL: there are others than ours. */
static char *list_ours(const struct cgroup_own *own, const struct held_workers *workers)
{
	for (unsigned int i = 0; i < END_TRIES; i++) {
		_vgpu_cleanup_(vgpu_freep) char *list =
			cgroup_read(own->folder, "cgroup.procs");
		char *result = list;

		if (!list)
			return NULL;
		if (!has_others(list, workers)) {
			list = NULL;
			return result;
		}
		usleep(END_PAUSE_US);
	}
	return NULL;
}

static const char *try_to_divide(
	const struct cgroup_own *own, const struct held_workers *workers, bool may)
{
	_vgpu_cleanup_(vgpu_freep) char *list = NULL;
	int r;

	if (!cgroup_file_has_word(own->folder, "cgroup.controllers", "memory"))
		return "its control group has no controller memory";
	if (!own->is_inner && !may)
		return "it was started without --own-group";
	if (own->is_inner) {
		r = enable(own);
		return r ? strerror(-r) : NULL;
	}
	list = list_ours(own, workers);
	if (!list)
		return "other processes are in its control group";
	r = divide(own, list);
	return r ? strerror(-r) : NULL;
}

bool own_group_divide(const char *path, const struct held_workers *workers, bool may,
	char why[OWN_GROUP_WHY_MAX])
{
	struct cgroup_own own;
	const char *reason;
	int r;

	r = path ? cgroup_own_open_at(&own, path, CGROUP_MAIN)
		 : cgroup_own_open(&own, CGROUP_MAIN);
	if (r)
		reason = "it is in no control group of version 2 that it can open";
	else
		reason = try_to_divide(&own, workers, may);
	cgroup_own_close(&own);
	snprintf(why, OWN_GROUP_WHY_MAX, "%s", reason ? reason : "");
	return !reason;
}

void own_group_enter(const struct held_workers *workers, bool may)
{
	char why[OWN_GROUP_WHY_MAX];

	if (own_group_divide(NULL, workers, may, why))
		vgpu_log_info("host-memory and cpu of each virtual machine are limited "
			      "by a control group, too");
	else
		vgpu_log_info("host-memory is limited by measurements only, and cpu by "
			      "threaded control groups or less, because vgpud cannot "
			      "divide its control group: %s",
			why);
}

void own_group_leave(void)
{
	struct cgroup_own own;

	/* Whether it can or not, this process ends. */
	if (!cgroup_own_open(&own, CGROUP_MAIN) && own.is_inner && !disable(&own) &&
		!cgroup_write(own.folder, "cgroup.procs", "0"))
		unlinkat(own.folder, CGROUP_MAIN, AT_REMOVEDIR);
	cgroup_own_close(&own);
}

int own_group_undo(const char *path)
{
	struct cgroup_own own;
	int r;

	r = path ? cgroup_own_open_at(&own, path, COMMANDS)
		 : cgroup_own_open(&own, COMMANDS);
	/* Threaded groups are in nobody's way. */
	if (!r && !faccessat(own.folder, CGROUP_MAIN, F_OK, 0))
		r = disable(&own);
	cgroup_own_close(&own);
	return r;
}
