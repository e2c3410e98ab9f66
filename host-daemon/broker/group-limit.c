/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group limits: how control groups keep cpu = and host-memory = of a VM
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "broker/group-limit.h"
#include "broker/state.h"
#include "broker/vm-group.h"
#include "broker/worker.h"
#include "control/control.h"
#include "vgpu/cleanup.h"
#include "vgpu/log.h"
#include "vgpud/link.h"

/* What the kernel keeps for a process and charges to its group. Stacks and descriptions
 * of all its threads, 24 KiB each; sockets, pipes and tables of its descriptors. */
#define KERNEL_SIZE ((uint64_t)CONTROL_THREADS_MAX * (24u << 10) + (16u << 20))
/* An entry of 8 bytes for each page of 4 KiB that it has mapped, and the tables above:
 * one part in so many. */
#define TABLES_PART 500u

static bool has_limit(const struct vm_groups *groups, const struct config_vm *config)
{
	return groups->has_memory || (groups->has_cpu && config->cpu);
}

static bool is_limited(void *data, const char *vm)
{
	const struct broker *broker = data;
	const struct config_vm *config = config_find_vm(broker->config, vm);

	return config && has_limit(&broker->groups, config);
}

/* Adds a product, up to the greatest number. */
static void add(uint64_t *sump, uint64_t n, uint64_t size)
{
	uint64_t product;

	if (__builtin_mul_overflow(n, size, &product) ||
		__builtin_add_overflow(*sump, product, sump))
		*sump = UINT64_MAX;
}

uint64_t group_limit_memory(const struct account *account)
{
	const struct config_vm *config = account->config;
	const bool is_socket = config->transport == CONFIG_SOCKET;
	uint64_t mapped = config->size, limit = account_host_memory(account);

	add(&limit, 1, limit / TABLES_PART);
	add(&limit, is_socket ? config->max_processes : 1, config->size);
	add(&limit, 1, config->image_store);
	add(&mapped, 1, config->image_store);
	add(&limit, config->max_processes, KERNEL_SIZE + mapped / TABLES_PART);
	return limit;
}

/* Return: as vm_group_set(). */
static int set(struct broker *broker, struct account *account)
{
	const struct vm_group_limits limits = {
		.cpu = account->config->cpu,
		.memory = group_limit_memory(account),
	};
	const int r = vm_group_set(&broker->groups, account->config->name, &limits);

	account->is_group_over = r == VM_GROUP_E_IN_USE;
	return r;
}

/* Return: 0, also for a VM that needs no group yet, or -errno. */
static int open_account(struct broker *broker, struct account *account)
{
	const char *name = account->config->name;
	int r;

	/* Whether there can be groups is known of those beside vgpud's own. */
	if (broker->groups.has_memory && !account->config->cpu &&
		!vm_group_exists(&broker->groups, name)) {
		account->has_group = true;
		return 0;
	}
	r = set(broker, account);
	account->has_group = r >= 0;
	/* Made again when there is a worker. */
	vm_group_remove(&broker->groups, name);
	return r < 0 ? r : 0;
}

void group_limits_open(struct broker *broker)
{
	struct vm_groups *groups = &broker->groups;
	unsigned int n_without = 0;

	vm_groups_init(groups);
	vm_groups_sweep(groups, is_limited, broker);
	for (unsigned int i = 0; i < broker->config->n_vms; i++) {
		struct account *account = &broker->accounts[i];
		const struct config_vm *config = account->config;
		int r;

		if (!has_limit(groups, config)) {
			vm_group_lift(groups, config->name);
			n_without += config->cpu > 0;
			continue;
		}
		r = open_account(broker, account);
		n_without += r < 0;
		if (r && !*groups->why)
			snprintf(groups->why, sizeof(groups->why),
				"there can be no control group: %s", strerror(-r));
	}
	if (n_without)
		vgpu_log_warning("cpu = of %u virtual machines is kept for kernels of "
				 "softgpu only: %s; see cpu in vgpud(8)",
			n_without, groups->why);
}

void group_limits_close(struct broker *broker)
{
	/* Also those whose limit was lifted while they had processes. */
	for (unsigned int i = 0; broker->accounts && i < broker->config->n_vms; i++)
		vm_group_remove(&broker->groups, config_vm_at(broker->config, i)->name);
	vm_groups_deinit(&broker->groups);
}

void group_limits_renew(struct broker *broker)
{
	for (unsigned int i = 0; i < broker->config->n_vms; i++) {
		struct account *account = &broker->accounts[i];

		if (account->is_group_over && account->n_in_group)
			set(broker, account);
	}
}

/* Return: 0 or -errno. */
static int request_move(const struct worker *worker, const char *vm)
{
	const struct link_message message = { .type = LINK_JOIN, .id = worker->id };
	_vgpu_cleanup_(vgpu_closep) int fd = vm_group_open(&worker->broker->groups, vm);

	if (fd < 0)
		return fd;
	/* If the keeper is gone so is this process, soon. */
	link_send(worker->broker->link, &message, &fd, 1);
	return 0;
}

void group_limit_join(struct account *account, struct worker *worker)
{
	int r;

	if (!account->has_group || worker->group_account)
		return;
	/* Empty, it may have been removed. */
	r = account->n_in_group ? 0 : set(worker->broker, account);
	if (r >= 0)
		r = request_move(worker, account->config->name);
	if (r) {
		vgpu_log_warning("vm=%s worker=%d: no control group limits it: %s",
			account->config->name, (int)worker->pid, strerror(-r));
		return;
	}
	worker->group_account = account;
	account->n_in_group++;
}

void group_limit_leave(struct worker *worker)
{
	struct account *account = worker->group_account;

	worker->group_account = NULL;
	if (!account || --account->n_in_group)
		return;
	vm_group_remove(&worker->broker->groups, account->config->name);
}

uint64_t group_limit_oom_kills(const struct worker *worker)
{
	return worker->group_account ? vm_group_oom_kills(&worker->broker->groups,
					       worker->group_account->config->name)
				     : 0;
}

unsigned int group_limit_of_kernels(
	const struct broker *broker, const struct account *account)
{
	return account->has_group && broker->groups.has_cpu ? 0 : account->config->cpu;
}

const char *group_limit_cpu_way(
	const struct broker *broker, const struct account *account)
{
	if (!account->config->cpu)
		return NULL;
	if (account->has_group && broker->groups.has_cpu)
		return "cgroup";
	/* Before the first worker has said which driver it has. */
	if (!broker->n_shared_units && !strcmp(broker->config->driver, "soft"))
		return "kernels";
	return broker->n_units ? "kernels" : "none";
}

const char *group_limit_memory_way(
	const struct broker *broker, const struct account *account)
{
	return account->has_group && broker->groups.has_memory ? "cgroup" : "measured";
}
