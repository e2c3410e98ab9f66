/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts of VMs
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"
#include "vgpu/error.h"
#include "vgpud/account.h"

static struct config_vm config = {
	.name = "one",
	.log_lines = 3,
	.process_rate = 10,
	.device_memory = 1 << 20,
};
static struct account account;

TEST(log_lines_are_written_up_to_the_burst)
{
	account_init(&account, &config, INT64_MAX / 2);
	for (unsigned int i = 0; i < config.log_lines; i++)
		check(account_take_log_line(&account));
	check(!account_take_log_line(&account));
	account_deinit(&account);
}

TEST(processes_start_in_bursts_of_seconds)
{
	account_init(&account, &config, 1000);
	for (int i = 0; i < 50; i++)
		check(budget_take(&account.processes, 1000));
	check(!budget_take(&account.processes, 1099));
	check(budget_take(&account.processes, 1100));
	account_deinit(&account);
}

TEST(host_memory_has_a_default)
{
	account_init(&account, &config, 0);
	check_eq(account_host_memory(&account),
		(uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 2);
	config.host_memory = 123;
	check_eq(account_host_memory(&account), 123);
	account_deinit(&account);
}

TEST(the_limit_is_in_the_page_that_workers_share)
{
	struct quota_page *seen;
	int fd;

	account_init(&account, &config, 0);
	check_eq(quota_make(&fd), 0);
	check_eq(quota_map(&seen, fd), 0);
	check_eq(account_share_quota(&account, fd), 0);
	check_eq(quota_limit(seen), 1 << 20);
	/* A worker has raised it. */
	quota_set_limit(seen, 1ull << 40);
	account_limit_memory(&account);
	check_eq(quota_limit(seen), 1 << 20);
	quota_unmap(seen);
	account_deinit(&account);
}

TEST(a_page_that_cannot_be_mapped_is_owned_nevertheless)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	account_init(&account, &config, 0);
	check(fd >= 0);
	check(account_share_quota(&account, fd) != 0);
	check(!account.quota);
	account_deinit(&account);
	check_eq(fcntl(fd, F_GETFD), -1);
	check_eq(errno, EBADF);
}
