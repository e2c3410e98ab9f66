/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * VM groups: CPU time and memory of a VM's workers, by control groups
 *
 * vgpud's own control group, of version 2, has one below it for each VM that has workers
 * and a limit: vm-NAME, with the limits in cpu.max and memory.max. A worker is moved
 * there when it gets a guest process, and ends there. So nothing is kept for the next
 * broker: it finds the groups by their names, and has the workers that run moved once
 * more.
 *
 * The kernel permits limits of memory only below a group without processes. If the keeper
 * could move vgpud's processes out of the way (keeper/own-group.h), the groups of VMs are
 * beside theirs and have both limits. Otherwise they are threaded ones, whose parent may
 * have processes: then no process of vgpud is moved, nor is a restart by a service
 * manager refused, which puts the new process into the parent. In exchange they have no
 * limit of memory.
 *
 * All of this takes a control group that the administrator has left to vgpud, as systemd
 * does with Delegate=.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "vgpud/cgroup.h"

#define VM_GROUPS_WHY_MAX 160u

struct vm_groups {
	struct cgroup_own own;	     /* without a folder: there are none */
	bool has_cpu;		     /* they limit CPU time */
	bool has_memory;	     /* they limit memory */
	char why[VM_GROUPS_WHY_MAX]; /* there are none, for people */
};

#define VM_GROUPS_NULL ((struct vm_groups){ .own.folder = -1 })

struct vm_group_limits {
	unsigned int cpu; /* percent of one CPU, 0: none */
	uint64_t memory;  /* bytes, UINT64_MAX: none */
};

/* Opens the folder of this process. */
void vm_groups_init(struct vm_groups *groups);
/* The same for any group of a process. */
void vm_groups_init_at(struct vm_groups *groups, const char *path);
void vm_groups_deinit(struct vm_groups *groups);

enum {
	_VM_GROUP_E_SUCCESS,
	VM_GROUP_E_IN_USE, /* the memory in use exceeds the new limit: it is not set */
};

/*
 * Makes the group of a VM, unless it exists, and sets its limits.
 *
 * A limit of memory below the use is not set: the kernel would end workers in this call,
 * which takes as long as that. The caller ends one, and comes again.
 *
 * Return: 0, VM_GROUP_E_IN_USE or -errno.
 */
int vm_group_set(const struct vm_groups *groups, const char *vm,
	const struct vm_group_limits *limits);

bool vm_group_exists(const struct vm_groups *groups, const char *vm);

/* Opens the file to which the pid of a process is written that is to be moved into the
 * group of a VM, which exists. Return: the descriptor or -errno. */
int vm_group_open(const struct vm_groups *groups, const char *vm);

/* Return: how many processes of the group the kernel has ended because its limit of
 * memory was reached. */
uint64_t vm_group_oom_kills(const struct vm_groups *groups, const char *vm);

/* Removes the group of a VM if it has no process. */
void vm_group_remove(const struct vm_groups *groups, const char *vm);

/* Removes the group of a VM that has no limit any more, or, if it has processes, takes
 * the limits away. */
void vm_group_lift(const struct vm_groups *groups, const char *vm);

/*
 * Removes the groups that an earlier configuration left, if they have no process: others
 * may belong to another vgpud in the same group.
 *
 * @is_limited_fn:	whether a VM has one
 */
void vm_groups_sweep(const struct vm_groups *groups,
	bool (*is_limited_fn)(void *data, const char *vm), void *data);
