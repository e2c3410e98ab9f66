/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Account: the limits of one [vm NAME] on this host, and their use
 *
 * Budgets belong to the section, not to a connection: over the socket transport each
 * guest process has a shared memory of its own, and all of them share one account.
 */

#include <stdbool.h>
#include <stdint.h>

#include "control/quota.h"
#include "vgpud/budget.h"
#include "vgpud/config.h"
#include "vgpud/image-store.h"

struct account {
	const struct config_vm *config;
	struct budget log;	 /* lines that its guests cause */
	struct budget processes; /* guest processes that begin */
	uint64_t host_memory;	 /* of its workers, as counted last */
	uint64_t turn;		/* when it was given a worker last, by the pool's count */
	unsigned int n_waiting; /* channels that may have one, as counted last */
	struct image_store images; /* code for its next processes */
	uint32_t n_images_max;
	struct quota_page *quota; /* its device memory; all workers of it hold the page */
	int quota_fd;
	unsigned int n_active; /* guest processes, as counted last */
};

void account_init(struct account *account, const struct config_vm *config, int64_t now);

void account_deinit(struct account *account);

/* Takes the quota page up. The descriptor is its own in any case. Return: 0, -errno. */
int account_share_quota(struct account *account, int fd);

/* Writes the section's limit into the page, where a worker that was taken over could have
 * written another. */
void account_limit_memory(struct account *account);

/* Whether a line that a guest can cause at will may be written to the log now. */
bool account_take_log_line(struct account *account);

/* Says how many lines were not written, once one may be. */
void account_log_lost(struct account *account);

/* Returns: bytes that all workers of a VM may hold. */
uint64_t account_host_memory(const struct account *account);
