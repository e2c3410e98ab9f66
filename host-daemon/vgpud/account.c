/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Account: the limits of one [vm NAME] on this host, and their use
 */

#include <stdlib.h>
#include <sys/resource.h>

#include "vgpud/account.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpud/clock.h"

/* Interval of log lines after the burst, and burst of new processes in seconds. */
#define ACCOUNT_LOG_MS 200
#define ACCOUNT_PROCESSES_S 5
/* Burst of reports of last calls, and their interval after it. */
#define ACCOUNT_FLIGHTS 8u
#define ACCOUNT_FLIGHT_MS 10000

void account_init(struct account *account, const struct config_vm *config, int64_t now)
{
	*account = (struct account){ .config = config, .quota_fd = -1 };
	image_store_init(&account->images);
	share_table_init(&account->shares);
	budget_init(&account->log, config->log_lines, ACCOUNT_LOG_MS, now);
	budget_init(&account->flights, ACCOUNT_FLIGHTS, ACCOUNT_FLIGHT_MS, now);
	budget_init(&account->processes, config->process_rate * ACCOUNT_PROCESSES_S,
		1000 / config->process_rate, now);
}

void account_deinit(struct account *account)
{
	image_store_clear(&account->images);
	share_table_clear(&account->shares);
	account->quota = quota_unmap(account->quota);
	account->quota_fd = vgpu_close(account->quota_fd);
	free(account->history);
	account->history = NULL;
}

/* Those of its processes, for running ones. */
static void limit_processes(struct account *account)
{
	const struct config_vm *config = account->config;

	quota_set_limits(account->quota,
		&(struct quota_limits){
			.values = {
				[QUOTA_IMAGE_MEMORY] = config->image_memory,
				[QUOTA_HANDLES] = config->handles,
				[QUOTA_LAUNCH_TIMEOUT] =
					1000ull * config->softgpu_launch_timeout + 1,
				[QUOTA_COPY_BANDWIDTH] = config->copy_bandwidth,
				[QUOTA_THREADS] = config->max_threads,
			},
		});
}

void account_limit_memory(struct account *account)
{
	limit_processes(account);
	quota_set_limit(account->quota, account->config->device_memory);
	quota_set_shared(account->quota, account->shares.unpaid);
}

int account_share_quota(struct account *account, int fd)
{
	int r;

	vgpu_close(account->quota_fd);
	account->quota_fd = fd;
	account->quota = quota_unmap(account->quota);
	r = quota_map(&account->quota, fd);
	if (r)
		return vgpu_error_trace(r);
	limit_processes(account);
	/* Not its shared memory, which a new broker does not know yet. */
	quota_set_limit(account->quota, account->config->device_memory);
	return 0;
}

void account_log_lost(struct account *account)
{
	uint32_t n = budget_refused(&account->log, clock_now());

	if (n)
		vgpu_log_warning("vm=%s: %u log lines about it were dropped",
			account->config->name, n);
}

bool account_take_log_line(struct account *account)
{
	account_log_lost(account);
	return budget_take(&account->log, clock_now());
}

uint32_t account_fds_max(unsigned int share, unsigned int n_vms, uint32_t n_max)
{
	struct rlimit limit;
	rlim_t n;

	if (!n_vms || getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1;
	n = limit.rlim_cur / share / n_vms;
	return n < n_max ? (uint32_t)n : n_max;
}

uint64_t account_host_memory(const struct account *account)
{
	if (account->config->host_memory)
		return account->config->host_memory;
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 2;
}
