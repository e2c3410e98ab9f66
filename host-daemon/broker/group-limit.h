/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Group limits: how control groups keep cpu = and host-memory = of a VM
 *
 * By a group of its workers (vm-group.h) where vgpud may make one.
 *
 * Without one for CPU time the arbiter bounds its device time, which with softgpu is the
 * CPU time of its kernels. With another driver nothing is bounded then: a worker that was
 * stopped from outside would hold locks in memory that it shares with others.
 *
 * Memory is measured in any case (host-memory.h), which is the finer limit: it knows
 * memory that the VM pays for otherwise, and what each worker has. That of the group is
 * higher by all that, see group_limit_memory(), and is for what no measurement sees in
 * time, or at all. The kernel ends the largest process of a group then, and no other: the
 * workers of a VM belong to one tenant, but one that has little is not ended for what
 * another one takes (memory.oom.group stays 0).
 */

#include <stdint.h>

struct account;
struct broker;
struct worker;

/* For all VMs. Before the first worker is known. */
void group_limits_open(struct broker *broker);
/* After the last worker was freed. */
void group_limits_close(struct broker *broker);

/* Now and then: sets limits of memory that were below what was in use. */
void group_limits_renew(struct broker *broker);

/* Whenever a worker gets a session, or is found to have one. */
void group_limit_join(struct account *account, struct worker *worker);
/* Before it is freed; whether it joined or not. */
void group_limit_leave(struct worker *worker);

/* Return: how many processes of its group the kernel has ended because the limit of
 * memory was reached; 0 for one that is in no group. */
uint64_t group_limit_oom_kills(const struct worker *worker);

/*
 * Return: the limit of memory of a VM's group, in bytes; UINT64_MAX: none.
 *
 * A page belongs to the group whose process used it first, and all pages that guest and
 * worker share may have been used by the worker first. So the limit has room for all that
 * the VM may have besides host-memory, and for what the kernel keeps for each process,
 * which is charged to the group as well: an honest VM is ended by measurement, or not at
 * all.
 */
uint64_t group_limit_memory(const struct account *account);

/* Return: percent of one CPU to which the arbiter has to bound it; 0: none. */
unsigned int group_limit_of_kernels(
	const struct broker *broker, const struct account *account);

/* Return: "cgroup", "kernels" or "none"; NULL: there is no limit. */
const char *group_limit_cpu_way(
	const struct broker *broker, const struct account *account);

/* Return: "cgroup", which is measured as well, or "measured". */
const char *group_limit_memory_way(
	const struct broker *broker, const struct account *account);
