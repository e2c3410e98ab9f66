/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Own group: the division of the control group in which vgpud was started
 *
 * With --own-group the keeper moves vgpud's processes to CGROUP_MAIN below that group,
 * and enables the controllers for the groups of VMs beside it (broker/vm-group.h). From
 * then on no process can be put into the group itself: a service manager that starts the
 * next vgpud there either starts it in CGROUP_MAIN, or undoes the division before, by a
 * command with --leave-group. That is why it takes an option.
 */

#include <stdbool.h>
#include <stddef.h>

#include "keeper/held-worker.h"

#define OWN_GROUP_WHY_MAX 160u

/*
 * Divides the group of this process, or does nothing if that was done before. What it
 * began and cannot complete it undoes.
 *
 * @path:	of the group, NULL: this process's
 * @workers:	those that an earlier vgpud has left there
 * @may:	--own-group was given
 * @why:	for people
 *
 * Return: whether the group is divided, and the groups of VMs can limit memory.
 */
bool own_group_divide(const char *path, const struct held_workers *workers, bool may,
	char why[OWN_GROUP_WHY_MAX]);

/* The same, and logs what became of it. */
void own_group_enter(const struct held_workers *workers, bool may);

/* Moves this process back; all others of vgpud are gone. */
void own_group_leave(void);

/*
 * Undoes a division for the next vgpud. Processes stay where they are, without limits
 * meanwhile.
 *
 * @path:	of the group of this process, NULL: it is looked up
 *
 * Return: 0, also if there was none, or -errno.
 */
int own_group_undo(const char *path);
