/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Cgroup: vgpud's own control group of version 2, and files in groups
 *
 * The kernel permits limits of memory only to groups below one without processes. So a
 * vgpud that may, because it was started with --own-group, moves its processes to the
 * group CGROUP_MAIN below the one that it was started in. A process of vgpud knows by
 * that name that the group above is vgpud's own, and nothing has to be handed over.
 */

#include <stdbool.h>
#include <stddef.h>

#define CGROUP_PATH_MAX 4096u
#define CGROUP_MAIN "vgpud-main"
/* Before the name of a VM: the group of its workers. */
#define CGROUP_VM_PREFIX "vm-"

/* The group below which those of VMs are. */
struct cgroup_own {
	int folder;    /* -1: there is none */
	bool is_inner; /* this process is in CGROUP_MAIN below it */
	char path[CGROUP_PATH_MAX];
};

/*
 * Finds the folder of this process's control group of version 2.
 *
 * @groups:	the text of /proc/self/cgroup
 * @mounts:	that of /proc/self/mountinfo
 *
 * Return: whether there is one.
 */
bool cgroup_find(const char *groups, const char *mounts, char path[CGROUP_PATH_MAX]);

/*
 * Opens the group of this process, or the one above if it is called like that.
 *
 * @name:	CGROUP_MAIN, or another name
 *
 * Return: 0, -ENOENT: this process is in no group of version 2, or -errno.
 */
int cgroup_own_open(struct cgroup_own *own, const char *name);
/* The same for any group of a process. */
int cgroup_own_open_at(struct cgroup_own *own, const char *path, const char *name);
void cgroup_own_close(struct cgroup_own *own);

/* Return: the text of a file, to be freed, or NULL. */
char *cgroup_read(int folder, const char *name);

/*
 * Writes a file. A limit of memory is set without waiting until the kernel has taken
 * back what exceeds it, if the kernel can do that.
 *
 * Return: 0 or -errno.
 */
int cgroup_write(int folder, const char *name, const char *text);

/* Whether a list of words in one line, or several, has that one. */
bool cgroup_has_word(const char *list, const char *word);

/* The same for the list in a file; false if it cannot be read. */
bool cgroup_file_has_word(int folder, const char *name, const char *word);
