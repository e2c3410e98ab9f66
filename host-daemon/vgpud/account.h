/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Account: the limits of one [vm NAME] on this host, and their use
 *
 * Budgets belong to the section, not to a connection: with transport socket each guest
 * process has a separate shared memory, and all of them share one account.
 */

#include <stdbool.h>
#include <stdint.h>

#include "control/quota.h"
#include "vgpud/budget.h"
#include "vgpud/config.h"
#include "vgpud/image-store.h"
#include "vgpud/share-table.h"

struct arbiter_vm;
struct device_set;
struct history;

struct account {
	const struct config_vm *config;
	struct budget log;	   /* of log lines caused by its guests */
	struct budget flights;	   /* of reports about faults and ends */
	struct budget processes;   /* of new guest processes */
	uint64_t host_memory;	   /* of its workers, at the last count */
	uint64_t turn;		   /* of its last worker, by the pool's count */
	unsigned int n_waiting;	   /* channels waiting for a worker, at the last count */
	struct image_store images; /* code for other processes of it */
	uint32_t n_images_max;
	struct share_table shares; /* memory that its processes share */
	uint32_t n_shares_max;
	uint64_t shared_memory;	  /* of this host, for those, at the last count */
	struct quota_page *quota; /* of its device memory; shared by its workers */
	int quota_fd;
	/* What its workers may have at most, see broker/quota-watch.h; 0: not known yet.
	 * And how often in a row they had more. */
	uint64_t memory_ceiling;
	unsigned int n_over_quota;
	unsigned int n_active; /* guest processes, at the last count */
	/* The broker's, see broker/rooms.c: bytes of others that have left the device
	 * because the driver refused memory to this one. */
	uint64_t lacked;
	/* One allocation of the broker's, see broker/history.h; NULL: none yet. */
	struct history *history;
	struct device_set *devices; /* the broker's */
	/* The broker's, see broker/group-limit.h: its workers have a control group, and
	 * so many are there; more memory is in use than its new limit. */
	bool has_group;
	bool is_group_over;
	unsigned int n_in_group;
	struct arbiter_vm *arbiter; /* the broker's; NULL: its time is not limited */
};

void account_init(struct account *account, const struct config_vm *config, int64_t now);

void account_deinit(struct account *account);

/* Maps the quota page. Takes ownership of the descriptor in any case. Return: 0 or
 * -errno. */
int account_share_quota(struct account *account, int fd);

/* Writes the section's limit and its shared memory into the page, where a compromised
 * worker may have changed them. */
void account_limit_memory(struct account *account);

/* Takes the budget of a log line that a guest can cause at will. Return: whether to log
 * it. */
bool account_take_log_line(struct account *account);

/* Logs the number of dropped lines, once the budget allows. */
void account_log_lost(struct account *account);

/*
 * How many descriptors of a kind each VM may have, so that descriptors remain for other
 * uses.
 *
 * @share:	one in this many of the process's descriptors is for all VMs together
 * @n_max:	no more than this many
 */
uint32_t account_fds_max(unsigned int share, unsigned int n_vms, uint32_t n_max);

/* Return: the limit of private memory of all workers of a VM, in bytes. */
uint64_t account_host_memory(const struct account *account);
