/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that processes of a VM share
 */

#include <errno.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"
#include "vgpud/share-table.h"

static struct share_table table;

static const uint8_t *token(uint32_t number)
{
	static uint8_t bytes[CONTROL_TOKEN_SIZE];

	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, &number, sizeof(number));
	return bytes;
}

static int add(uint32_t number, uint64_t size, uint64_t worker, uint32_t cookie)
{
	struct share share = { .size = size, .fd = -1 };

	memcpy(share.token, token(number), sizeof(share.token));
	return share_table_add(&table, &share, worker, cookie);
}

static int hold(uint32_t number, uint64_t worker, uint32_t cookie)
{
	struct share *share = share_table_find(&table, token(number));

	check(share);
	return share_table_hold(&table, share, worker, cookie);
}

TEST(the_worker_that_shares_memory_pays_for_it)
{
	share_table_init(&table);
	check_eq(add(1, 100, 7, 1), 0);
	check_eq(hold(1, 8, 1), 0);
	check_eq(table.unpaid, 0);
	/* Then it is left to the other. */
	share_table_leave(&table, 7, 1);
	check_eq(table.unpaid, 100);
	check(!share_table_find(&table, token(1)));
	share_table_leave(&table, 8, 1);
	check_eq(table.unpaid, 0);
	check_eq(table.n, 0);
	check_eq(table.n_holders, 0);
}

TEST(memory_that_is_left_to_others_is_on_its_device)
{
	static const uint8_t none[16], device[16] = { 1 }, other[16] = { 2 };
	struct share share = { .fd = -1 };

	share_table_init(&table);
	for (uint32_t i = 0; i < 4; i++) {
		memcpy(share.token, token(i), sizeof(share.token));
		memcpy(share.device, i < 2 ? device : i < 3 ? other : none, 16);
		share.size = 1u << i;
		check_eq(share_table_add(&table, &share, 7, i), 0);
		check_eq(hold(i, 8, i), 0);
	}
	check_eq(share_table_unpaid_on(&table, device), 0);
	share_table_forget(&table, 7);
	check_eq(share_table_unpaid_on(&table, device), 1 + 2);
	check_eq(share_table_unpaid_on(&table, other), 4);
	check_eq(share_table_unpaid_on(&table, none), 8);
	check_eq(table.unpaid, 15);
	share_table_leave(&table, 8, 0);
	check_eq(share_table_unpaid_on(&table, device), 2);
	share_table_clear(&table);
	/* No size of a compromised worker overflows. */
	share.size = UINT64_MAX;
	for (uint32_t i = 0; i < 2; i++) {
		memcpy(share.token, token(i), sizeof(share.token));
		check_eq(share_table_add(&table, &share, 0, i), 0);
	}
	check(share_table_unpaid_on(&table, none) == UINT64_MAX);
	share_table_clear(&table);
}

TEST(memory_that_no_other_holds_ends_with_the_worker_that_shared_it)
{
	share_table_init(&table);
	check_eq(add(1, 100, 7, 1), 0);
	check_eq(hold(1, 8, 1), 0);
	share_table_leave(&table, 8, 1);
	check(share_table_find(&table, token(1)));
	share_table_leave(&table, 7, 1);
	check_eq(table.n, 0);
	check_eq(table.unpaid, 0);
}

TEST(a_worker_is_forgotten_with_all_that_it_holds)
{
	share_table_init(&table);
	check_eq(add(1, 100, 7, 1), 0);
	check_eq(add(2, 10, 8, 1), 0);
	/* Twice, and its own. */
	check_eq(hold(2, 7, 2), 0);
	check_eq(hold(2, 7, 3), 0);
	check_eq(hold(1, 7, 4), 0);
	check_eq(table.n_holders, 5);
	share_table_forget(&table, 7);
	check_eq(table.n, 1);
	check_eq(table.n_holders, 1);
	check_eq(table.unpaid, 0);
	check(share_table_find(&table, token(2)));
	share_table_forget(&table, 8);
	check_eq(table.n, 0);
}

TEST(a_message_that_arrives_again_changes_nothing)
{
	share_table_init(&table);
	check_eq(add(1, 100, 7, 1), 0);
	check_eq(add(1, 100, 7, 1), -EEXIST);
	check_eq(hold(1, 8, 1), 0);
	check_eq(hold(1, 8, 1), 0);
	check_eq(table.n_holders, 2);
	share_table_leave(&table, 8, 1);
	share_table_leave(&table, 8, 1);
	check_eq(table.n_holders, 1);
	check(share_table_find_held(&table, 7, 1));
	check(!share_table_find_held(&table, 7, 2));
	check(!share_table_find_held(&table, 8, 1));
	share_table_clear(&table);
}

TEST(memory_that_was_left_is_restored_as_such)
{
	struct share_table other;
	struct share *share;

	share_table_init(&table);
	check_eq(add(1, 100, 0, 5), 0);
	check(!share_table_find(&table, token(1)));
	share = TAILQ_FIRST(&table.shares);
	check_eq(share_table_hold(&table, share, 8, 1), 0);
	check_eq(table.unpaid, 100);
	share_table_init(&other);
	share_table_move(&other, &table);
	check_eq(table.n, 0);
	check_eq(other.unpaid, 100);
	share_table_leave(&other, 8, 1);
	check_eq(other.n, 0);
	check_eq(other.unpaid, 0);
}

TEST(a_table_is_bounded)
{
	share_table_init(&table);
	for (uint32_t i = 0; i < SHARE_TABLE_N_MAX; i++)
		check_eq(add(i, 1, 7, i), 0);
	check_eq(add(SHARE_TABLE_N_MAX, 1, 7, SHARE_TABLE_N_MAX), -ENOSPC);
	for (uint32_t i = table.n_holders; i < SHARE_TABLE_HOLDERS_MAX; i++)
		check_eq(hold(0, 8, i), 0);
	check_eq(hold(0, 9, 0), -ENOSPC);
	share_table_clear(&table);
	check_eq(table.n_holders, 0);
}

TEST(only_memory_files_are_host_memory)
{
	int fd = memfd_create("test", MFD_CLOEXEC), ends[2];
	struct share share = { .size = 8192, .fd = fd };

	check(fd >= 0);
	check_eq(ftruncate(fd, 8192), 0);
	check_eq(pwrite(fd, "x", 1, 0), 1);
	share_table_init(&table);
	check_eq(share_table_add(&table, &share, 7, 1), 0);
	/* What stands for memory of a device. */
	check_eq(pipe(ends), 0);
	close(ends[1]);
	share.fd = ends[0];
	share.token[0] = 1;
	check_eq(share_table_add(&table, &share, 7, 2), 0);
	check_eq(share_table_host_memory(&table), 4096);
	share_table_clear(&table);
}
